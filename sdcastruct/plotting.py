"""Figures of training runs and of what they learned, drawn with matplotlib."""

from collections.abc import Mapping

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

AXES = {
    "epoch": "epochs",
    "seconds": "seconds",
    "n_updates": "parameter updates",
    "n_oracle_calls": "oracle calls",
}
POINTS = 72.0  # per inch
SMALLEST_CELL = 7.0  # points that a label of a heat map needs
N_MARKED = 10  # at most so many of the largest block gaps


def convergence(results, x="epoch", optimum=None, ax=None):
    """Draw how the certified gap, or the primal suboptimality, falls.

    Certified values are marked; between them the line follows the running estimate of the gap.

    Parameters
    ----------
    results : Result or fitted CRF, list or dict of them
        The keys of a dict become the legend.
    x : {"epoch", "seconds", "n_updates", "n_oracle_calls"}
    optimum : float, optional
        Optimal primal value; if given, the primal suboptimality is drawn instead of the gap.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    _check_axis(x)
    histories = {name: _history(result) for name, result in _named(results).items()}
    ax = _axes(ax)
    for name, history in histories.items():
        _draw_run(ax, name, history, x, optimum)
    ax.set_yscale("log")
    ax.set_ylabel("duality gap" if optimum is None else "primal suboptimality")
    return _finished(ax, x)


def dev_accuracy(results, x="epoch", ax=None):
    """Draw how the accuracy on the dev set rises.

    Parameters
    ----------
    results : CRF fitted with (X_dev, y_dev), list or dict of them
        The keys of a dict become the legend.
    x : {"epoch", "seconds", "n_updates", "n_oracle_calls"}
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    _check_axis(x)
    histories = {name: _history(result) for name, result in _named(results).items()}
    if any("dev_accuracy" not in history for history in histories.values()):
        raise ValueError("the history has no dev_accuracy: expected a fit with X_dev and y_dev")
    ax = _axes(ax)
    for name, history in histories.items():
        ax.plot(history[x], 100 * history.dev_accuracy, "o-", markersize=3.5, label=name)
    ax.set_ylabel("dev accuracy (%)")
    return _finished(ax, x)


def transitions(crf, ax=None):
    """Draw the weights of transitions between labels as a heat map.

    Zero is white; forbidden transitions are hatched. Weights are written into the cells if there
    is room.

    Parameters
    ----------
    crf : CRF
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(crf, "coef_")
    weights = np.ma.array(crf.model_.split_weights(crf.coef_)[2], mask=_is_forbidden(crf.model_))
    limit = float(np.abs(weights).max(fill_value=0.0)) or 1.0
    names = [_shortened(str(label)) for label in crf.classes_]
    if ax is None:
        side = len(names) * np.clip(300.0 / len(names), 8.5, 60.0)
        margin = 5.0 * max(map(len, names)) + 45.0
        ax = _axes(None, (side + margin + 50.0) / POINTS, (side + margin) / POINTS)
    mesh = ax.pcolormesh(
        weights,
        cmap="RdBu",
        vmin=-limit,
        vmax=limit,
        edgecolors="face",  # no seams between cells
        linewidth=0.3,
        rasterized=len(names) > 100,
    )
    bar = ax.figure.colorbar(mesh, ax=ax, shrink=0.6, aspect=30, label="weight")
    bar.outline.set_visible(False)
    ax.set(aspect="equal", xlabel="to", ylabel="from")
    ax.invert_yaxis()
    _name_cells(ax, names, SMALLEST_CELL)
    cell = _cell_size(ax)
    _name_cells(ax, names, cell)
    if cell >= 22.0:
        _write_weights(ax, weights, limit, min(9.0, 0.3 * cell))
    if weights.mask.any():
        _explain_hatching(ax)
    return ax


def block_gaps(crf_or_gaps, ax=None):
    """Draw a histogram of the block gaps of the training sequences; the largest are marked.

    The axis of gaps is logarithmic if they differ by a factor of more than 100; gaps below a
    millionth of the largest are then counted with the smallest that are shown.

    Parameters
    ----------
    crf_or_gaps : fitted CRF or array of shape (n,)
        An estimator with ``suspects_``, or the gap of every sequence.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    indices, gaps = _gaps(crf_or_gaps)
    largest = gaps[0]
    bottom = max(gaps[gaps > 0].min(initial=largest), 1e-6 * largest)
    logarithmic = largest > 100.0 * bottom
    n_bins = int(np.clip(np.sqrt(gaps.size), 8, 40))
    bins = np.geomspace(bottom, largest, n_bins + 1) if logarithmic else n_bins
    ax = _axes(ax)
    ax.hist(np.maximum(gaps, bottom) if logarithmic else gaps, bins=bins, alpha=0.75)
    if logarithmic:
        ax.set_xscale("log")
    marked = gaps[: min(N_MARKED, -(-gaps.size // 10))]
    ax.plot(
        marked,
        np.full(marked.size, 0.03),
        "v",
        color="C3",
        transform=ax.get_xaxis_transform(),
        label=f"the {marked.size} largest; sequence {indices[0]} has {largest:.3g}",
    )
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False)
    ax.yaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("block gap, -log p(y | x)")
    ax.set_ylabel("sequences")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _check_axis(x):
    if x not in AXES:
        raise ValueError(f"x={x!r}: expected one of {', '.join(map(repr, AXES))}")


def _axes(ax, width=6.4, height=4.0):
    """Return the axes that were given, or those of a new figure."""
    if ax is not None:
        return ax
    from matplotlib import pyplot  # slow to import, and not needed to train

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def _finished(ax, x):
    """Give the axes of a run their frame and legend."""
    ax.set_xlabel(AXES[x])
    ax.grid(True, which="major", alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    if ax.get_legend_handles_labels()[1]:
        ax.legend(frameon=False)
    return ax


def _draw_run(ax, name, history, x, optimum):
    along = history[x]
    certified = ~np.isnan(history.gap)
    if optimum is None:
        height = np.where(certified, history.gap, history.gap_estimate)
    else:
        along, height = along[certified], history.primal[certified] - optimum
        certified = np.ones(height.shape, bool)
    (line,) = ax.plot(along, height, label=name)
    ax.plot(along[certified], height[certified], "o", markersize=3.5, color=line.get_color())


def _named(results):
    if isinstance(results, Mapping):
        return results
    if isinstance(results, list | tuple):
        return {f"run {k + 1}": result for k, result in enumerate(results)}
    return {None: results}


def _history(result):
    """Return the history of a result or of an estimator."""
    if isinstance(result, BaseEstimator):
        return _kept(result, "history_")
    if not hasattr(result, "history"):
        raise TypeError(f"{result!r} has no history: expected a Result or a fitted CRF")
    return result.history


def _kept(crf, name):
    """Return what an estimator knows of its training, or say why it does not."""
    check_is_fitted(crf, "coef_")
    if not hasattr(crf, name):
        raise ValueError(f"the CRF has no {name}: CRF.load does not keep it, only fit makes it")
    return getattr(crf, name)


def _gaps(crf_or_gaps):
    """Return indices and gaps of the training sequences, largest first."""
    if isinstance(crf_or_gaps, BaseEstimator):
        indices, gaps = zip(*_kept(crf_or_gaps, "suspects_"), strict=True)
        return indices, np.array(gaps)
    gaps = np.asarray(crf_or_gaps, float)
    if gaps.ndim != 1 or gaps.size == 0:
        raise ValueError(f"gaps have shape {gaps.shape}, expected (n,) with n >= 1")
    if not np.isfinite(gaps).all():
        raise ValueError(f"gaps[{np.argmin(np.isfinite(gaps))}] is not finite")
    order = np.argsort(-gaps, kind="stable")
    return order, gaps[order]


def _is_forbidden(model):
    """Return a table of the transitions that are forbidden, shape (K, K)."""
    table = np.zeros((model.n_states, model.n_states), bool)
    for before, after in model.forbidden or ():
        if before is not None:
            table[before, after] = True
    return table


def _shortened(name, length=16):
    return name if len(name) <= length else name[: length - 1] + "…"


def _cell_size(ax):
    """Return how many points a cell of a heat map is wide, once all has found its place."""
    ax.figure.draw_without_rendering()
    corners = ax.transData.transform([[0.0, 0.0], [1.0, 1.0]])
    return np.abs(corners[1] - corners[0]).min() * POINTS / ax.figure.dpi


def _name_cells(ax, names, cell):
    """Write the labels along both axes, all of them if cells of so many points have room."""
    step = int(np.ceil(SMALLEST_CELL / cell))
    shown = names[::step]
    places = np.arange(0, len(names), step) + 0.5
    size = np.clip(0.85 * cell, 6.0, 9.0)
    turned = max(map(len, shown)) * 0.65 * size > cell
    # Labels such as "$" are no mathematics.
    ax.set_xticks(places, shown, rotation=90 if turned else 0, fontsize=size, parse_math=False)
    ax.set_yticks(places, shown, fontsize=size, parse_math=False)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def _write_weights(ax, weights, limit, size):
    for (row, column), weight in np.ndenumerate(weights.filled(np.nan)):
        if not np.isnan(weight):
            color = "white" if abs(weight) > 0.6 * limit else "black"
            place = {"ha": "center", "va": "center", "fontsize": size, "color": color}
            ax.text(column + 0.5, row + 0.5, f"{weight:.1f}", **place)


def _explain_hatching(ax):
    """Hatch what the heat map leaves free."""
    from matplotlib.patches import Patch

    look = {"facecolor": "0.88", "hatch": "////", "edgecolor": "0.65", "linewidth": 0.0}
    ax.patch.set(**look)
    ax.legend(
        handles=[Patch(label="forbidden", **look)],
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        borderaxespad=0.3,
        frameon=False,
    )
