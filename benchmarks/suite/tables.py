"""Tables of what was measured, as rows for Markdown. Ratios are medians over the repetitions."""

import numpy as np

from suite.distance import NEAR
from suite.laboratory import PRECISIONS
from suite.trainers import TRAINERS

COMPARED = PRECISIONS.index(1e-3)
REFERENCES = ("sdca-1", "sdca-2")
TITLES_OF_SCALING = {
    "n": "seconds per epoch, parts of {task}",
    "T": "seconds per update, synthetic chains of length T",
    "K": "seconds per update, synthetic chains with K labels",
}


def seconds_to(record, optimum):
    """Return when P(w) / P* - 1 came below each precision, NaN where it did not."""
    below = record.columns.primal / optimum - 1.0
    met = [np.flatnonzero(below <= precision) for precision in PRECISIONS]
    return np.array([record.columns.seconds[hit[0]] if hit.size else np.nan for hit in met])


def times(traces):
    """Return the main table: seconds to each precision, ratios to ours, memory, repetitions.

    Parameters
    ----------
    traces : dict
        What `Laboratory.traces` returns for each task.
    """
    heads = [f"to {precision:.0e}" for precision in PRECISIONS]
    titles = [TRAINERS[name].title.removeprefix("sdcastruct, ") for name in REFERENCES]
    ratios = [f"to 1e-03, times sdcastruct, {title}" for title in titles]
    rows = [("task", "trainer", *heads, *ratios, "peak memory", "runs")]
    for task, (optimum, found) in traces.items():
        needed = {
            name: np.array([seconds_to(record, optimum) for record in records])
            for name, records in found.items()
        }
        for name, records in found.items():
            peak = np.median([record.results["peak"] for record in records]) / 1e6
            rows.append(
                (
                    task,
                    TRAINERS[name].title,
                    *(_number(x, " s") for x in np.median(needed[name], axis=0)),
                    *(_ratio(needed, name, reference) for reference in REFERENCES),
                    f"{peak:.0f} MB",
                    len(records),
                )
            )
    return rows


def _ratio(needed, name, reference):
    """Return the median of the ratios of the repetitions that both have done."""
    if reference not in needed:
        return "-"
    pairs = zip(needed[name][:, COMPARED], needed[reference][:, COMPARED], strict=False)
    return _number(np.median([theirs / ours for theirs, ours in pairs]))


def threads(found):
    """Return seconds to the same certified gap by number of threads, {task: records}.

    If a host has moved its processors, pairs of runs on near and on distant ones are told apart.
    """
    counts = sorted(next(iter(found.values()))[0].columns.n_jobs)
    heads = ["1 thread" if n == 1 else f"{n:g} threads" for n in counts]
    more = [f"{what}, {head}" for what in ("epochs", "stolen") for head in heads]
    rows = [("task", "processors", *heads, "ratio", "ratios of half of the runs", *more, "runs")]
    for task, records in found.items():
        rows.append((task, "all", *_by_numbers_of_threads(records)))
        distances = _by_threads(records, "distance")[:, -1]
        for name, chosen in (("share a cache", distances <= NEAR), ("far apart", distances > NEAR)):
            if 0 < chosen.sum() < np.isfinite(distances).sum():
                part = [records[k] for k in np.flatnonzero(chosen)]
                rows.append((task, name, *_by_numbers_of_threads(part)))
    return rows


def _by_numbers_of_threads(records):
    """Return what a row of `threads` says of some pairs of runs."""
    seconds, epochs, stolen = (
        _by_threads(records, name) for name in ("seconds", "n_epochs", "stolen")
    )
    ratios = seconds[:, 0] / seconds[:, -1]
    low, high = np.quantile(ratios, (0.25, 0.75))
    shown = [_number(x, " s") for x in np.median(seconds, axis=0)]
    shown += [f"{np.median(ratios):.2f}", f"{low:.2f} to {high:.2f}"]
    shown += [f"{count:g}" for count in np.median(epochs, axis=0)]
    shown += [f"{share:.1%}" for share in np.median(stolen, axis=0)]
    return *shown, len(records)


def _by_threads(records, name):
    """Return a column of all records, a row for each, ordered by the number of threads."""
    return np.array([r.columns[name][np.argsort(r.columns.n_jobs)] for r in records])


def storage(found):
    """Return what the marginals take in each way of storing them, {variant: records}."""
    heads = "stored", "ratio", "peak memory", "peak / stored", "seconds", "relative gap"
    rows = [("marginals", *heads, "runs")]
    full = next(iter(found.values()))[0].columns.dual_bytes[0]
    for variant, records in found.items():
        columns = [record.columns for record in records]
        stored = columns[0].dual_bytes[0]
        peak = np.median([record.results["peak"] for record in records])
        gap = max(1.0 - c.dual[0] / c.primal[0] for c in columns)
        seconds = np.median([c.seconds[0] for c in columns])
        memory = f"{stored / 1e6:.0f} MB", f"{stored / full:.2f}", f"{peak / 1e6:.0f} MB"
        measured = f"{peak / stored:.2f}", _number(seconds, " s"), f"{gap:.1e}", len(records)
        rows.append((variant, *memory, *measured))
    return rows


def epoch_costs(found):
    """Return epochs in passes of the oracle, {(task, sampler): columns}."""
    head = (
        "task",
        "sampler",
        "epoch / oracle pass",
        "epoch / oracle on its draws",
        "oracle pass",
        "on the draws",
        "epoch",
        "nodes / pass",
        "epochs",
    )
    rows = [head]
    for (task, sampler), columns in found.items():
        passes = columns.oracle, columns.drawn
        ratios = [f"{np.median(columns.epoch / seconds):.2f}" for seconds in passes]
        shown = [_number(np.median(seconds), " s") for seconds in (*passes, columns.epoch)]
        nodes = np.median(columns.nodes)
        rows.append((task, sampler, *ratios, *shown, f"{nodes:.2f}", len(columns.epoch)))
    return rows


def updates(found):
    """Return microseconds per update, ours and NumPy's, {task: columns}."""
    rows = [("task", "sdcastruct", "NumPy", "ratio", "runs")]
    for task, columns in found.items():
        shown = [f"{1e6 * np.median(columns[name]):.1f} µs" for name in ("ours", "numpy")]
        ratio = np.median(columns.numpy / columns.ours)
        rows.append((task, *shown, f"{ratio:.1f}", len(columns.ours)))
    return rows


def dense(found):
    """Return what products of dense attributes cost, ours and NumPy's, {labels: columns}."""
    rows = [("labels", "per sentence", "sdcastruct", "NumPy", "ratio", "runs")]
    for n_states, columns in found.items():
        for title, name in {"scores": "score", "weights from marginals": "add"}.items():
            pair = columns[name], columns[f"numpy_{name}"]
            shown = [f"{1e6 * np.median(seconds):.1f} µs" for seconds in pair]
            ratio = f"{np.median(pair[0] / pair[1]):.2f}"
            rows.append((n_states, title, *shown, ratio, len(pair[0])))
        epoch = f"{1e6 * np.median(columns.epoch):.1f} µs"
        rows.append((n_states, "update of SDCA", epoch, "-", "-", len(columns.epoch)))
    return rows


def scaling(found, task):
    """Return seconds as a size grows, and the exponent of a power fitted to them.

    Parameters
    ----------
    found : iterable of (str, float, array)
        What grows, its value, seconds of each repetition.
    """
    groups = {}
    for what, size, seconds in found:
        groups.setdefault(what, []).append((size, np.median(seconds)))
    rows = [("", "sizes", "seconds", "exponent", "between the last two")]
    for what, points in groups.items():
        sizes, seconds = np.array(points).T
        slopes = np.diff(np.log(seconds)) / np.diff(np.log(sizes))
        exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        rows.append(
            (
                TITLES_OF_SCALING[what].format(task=task),
                ", ".join(f"{size:.0f}" for size in sizes),
                ", ".join(f"{x:.3g}" for x in seconds),
                f"{exponent:.2f}",
                f"{slopes[-1]:.2f}",
            )
        )
    return rows


def _number(x, unit=""):
    return "-" if np.isnan(x) else f"{x:.3g}{unit}"
