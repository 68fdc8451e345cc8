"""The report of a fit: one HTML file that needs nothing but itself.

It says in words what the certificate proves, and shows how training went, what was learned, how
good the labels are that it predicts, and which training sequences look mislabelled.
"""

import datetime
import os
import re
from collections import Counter
from decimal import ROUND_CEILING, Context
from functools import partial
from importlib.resources import files
from itertools import chain
from pathlib import Path

import numpy as np
from sklearn.utils.validation import check_is_fitted

import sdcastruct
from sdcastruct import archive, plotting
from sdcastruct.crf import CRF
from sdcastruct.evaluation import Score, confusions, evaluate
from sdcastruct.features import Vectorizer
from sdcastruct.page import contents, document, facts, figure, join, section, table, tag

N_SUSPECTS = 20
N_OPEN = 5  # suspects that are shown before anybody asks
N_ATTRIBUTES = 6  # per label and sign
N_TRANSITIONS = 12  # per sign
N_CONFUSIONS = 15


def write_report(
    path,
    crf,
    X=None,
    y=None,
    X_test=None,
    y_test=None,
    tokens=None,
    title="Report of a fit",
):
    """Write what is known of a trained estimator to an HTML file.

    An estimator from `CRF.load` does not know its history; the report leaves that out.

    Parameters
    ----------
    path : str or Path
    crf : CRF
        A fitted estimator.
    X, y : lists, optional
        The training sequences, to show those whose labels look wrong.
    X_test, y_test : lists, optional
        Other sequences, to score the predicted labels.
    tokens : list of lists of str, optional
        What to call the positions of `X`, such as words. By default the first attribute of an item
        that tells it from others of the sequence; for arrays the number of the position.
    title : str
    """
    path = _check_path(path)
    if not isinstance(crf, CRF):
        raise TypeError(f"crf={crf!r}: expected a CRF")
    check_is_fitted(crf, "coef_")
    _check_pair("X", X, "y", y)
    _check_pair("X_test", X_test, "y_test", y_test)
    _check_training(crf, X, tokens)
    gaps = _block_gaps(crf, X, y)
    sections = {
        "Scores": X_test is not None and partial(_scores, crf, X_test, y_test),
        "Training": hasattr(crf, "history_") and partial(_training, crf),
        "Suspects": gaps is not None and partial(_suspects, crf, X, y, tokens, gaps),
        "Transitions": partial(_transitions, crf),
        "Attributes": partial(_attributes, crf),
        "Model": partial(_model, crf, y, gaps),
    }
    known = {name: make for name, make in sections.items() if make}
    written = document(
        title,
        files("sdcastruct").joinpath("report.css").read_text(encoding="utf-8"),
        tag("h1", title),
        tag("p", "Linear-chain conditional random field", class_="subtitle"),
        _certificate(crf),
        contents(*known),
        *(section(name, *make()) for name, make in known.items()),
        tag("footer", f"sdcastruct {sdcastruct.__version__}, {datetime.date.today()}"),
    )
    with archive.replacing(path) as file:
        file.write(written.encode("utf-8", "xmlcharrefreplace"))


def _check_path(path):
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path={path!r}: expected a path")
    path = Path(path)
    if not path.absolute().parent.is_dir():
        raise ValueError(f"path={str(path)!r}: there is no folder {str(path.parent)!r}")
    if path.is_dir():
        raise ValueError(f"path={str(path)!r}: expected a file, this is a folder")
    return path


def _check_pair(name, X, other_name, y):
    """Check that there is one thing in y for every position of X, or that neither is given."""
    if (X is None) != (y is None):
        raise ValueError(f"{name} and {other_name}: expected both or neither")
    if X is None:
        return
    if len(X) != len(y):
        raise ValueError(f"{other_name} has {len(y)} sequences but {name} has {len(X)}")
    for i, (x, labels) in enumerate(zip(X, y, strict=True)):
        if len(labels) != _length(x):
            raise ValueError(
                f"{other_name}[{i}] has {len(labels)} entries but {name}[{i}] has {_length(x)}"
            )


def _check_training(crf, X, tokens):
    if tokens is not None:
        _check_pair("tokens", tokens, "X", X)
    known = getattr(crf, "suspects_", None)
    if X is not None and known is not None and len(X) != len(known):
        raise ValueError(f"X has {len(X)} sequences but the CRF was trained on {len(known)}")


def _length(x):
    return x.shape[0] if hasattr(x, "shape") else len(x)


def _block_gaps(crf, X, y):
    """Return the block gap of every training sequence, or None if they are not known."""
    if hasattr(crf, "suspects_"):
        gaps = np.empty(len(crf.suspects_))
        for i, gap in crf.suspects_:
            gaps[i] = gap
        return gaps
    return None if X is None else -crf.log_probability(X, y)


def _certificate(crf):
    primal, dual, gap = crf.primal_objective_, crf.dual_objective_, crf.duality_gap_
    if np.isnan(gap):
        text = "Weights were pruned after training: what is left has no certificate."
        return tag("div", tag("p", text), class_="card open")
    relative = gap / primal if primal > 0 else gap
    claim = f"Within {_rounded_up(100 * relative)}% of the best possible objective."
    verdict = f"Tolerance of {crf.tol:g} " + ("certified" if crf.converged_ else "not reached")
    ends = join(
        tag("span", "dual, a lower bound", tag("b", f"{dual:.6f}")),
        tag("span", "primal, these weights", tag("b", f"{primal:.6f}"), class_="end"),
    )
    words = (
        f"The objective of these weights is {primal:.6f}. A full pass over the training sequences "
        f"proves that no weights at all bring it below {dual:.6f}: the optimum lies between dual "
        f"and primal. Their distance, the duality gap, is {gap:.3g}, or {relative:.2e} of the "
        f"primal."
    )
    if not crf.converged_:
        words += " Training ended before the tolerance was reached; the bounds hold all the same."
    objective = (
        "The objective is λ/2 ‖w‖² - 1/n Σ log p(y | x; w) with λ = 1/(C n): the lower, the better."
    )
    return tag(
        "div",
        tag("span", verdict, class_="badge"),
        tag("p", claim, class_="claim"),
        tag("div", tag("div", "the optimum lies here", class_="between"), ends, class_="bracket"),
        tag("p", words),
        tag("p", objective, class_="muted"),
        facts(_work(crf)),
        class_="card" if crf.converged_ else "card open",
    )


def _rounded_up(bound):
    """Return a bound with two digits that is still one."""
    return f"{float(Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(bound)):g}"


def _work(crf):
    """Return the names and values of what training took."""
    pairs = [("epochs", f"{crf.n_epochs_:,}")]
    if hasattr(crf, "history_"):
        pairs.append(("updates", f"{crf.history_.n_updates[-1]:,}"))
        pairs.append(("oracle calls", f"{crf.history_.n_oracle_calls[-1]:,}"))
        pairs.append(("seconds", f"{crf.history_.seconds[-1]:,.1f}"))
    return pairs


def _scores(crf, X, y):
    true = [list(map(str, labels)) for labels in y]
    predicted = [list(map(str, labels)) for labels in crf.predict(X)]
    evaluation = evaluate(true, predicted)
    whole = np.mean([a == b for a, b in zip(true, predicted, strict=True)])
    numbers = [("labels correct", f"{evaluation.accuracy:.2%}")]
    if _are_chunks({*chain.from_iterable(true), *map(str, crf.classes_)}):
        numbers.append(("F1 of phrases", f"{evaluation.f1:.2%}"))
        what, scores = "phrases", {"all": evaluation.overall, **evaluation.types}
    else:
        what, scores = "label", _score_labels(true, predicted)
    numbers.append(("sequences correct", f"{whole:.2%}"))
    rows = [(name, *_written(score)) for name, score in scores.items()]
    head = (what, "precision", "recall", "F1", "true", "found", "correct")
    total = "first-is-total" if what == "phrases" else None
    return [
        tag("p", f"On {len(true):,} held-out sequences with {evaluation.n_tokens:,} positions."),
        tag("div", facts(numbers), class_="scores"),
        tag("div", table(head, rows, class_=total), _confusions(true, predicted), class_="beside"),
    ]


def _written(score):
    ratios = (f"{100 * part:.2f}" for part in (score.precision, score.recall, score.f1))
    counts = (f"{count:,}" for count in (score.n_true, score.n_found, score.n_correct))
    return *ratios, *counts


def _are_chunks(labels):
    """Return whether labels are such as B-NP, I-NP and O."""
    return labels != {"O"} and all(re.fullmatch("O|[BIES]-.+", label) for label in labels)


def _score_labels(true, predicted):
    """Return the score of every label, {label: Score}."""
    n_true = Counter(chain.from_iterable(true))
    n_found = Counter(chain.from_iterable(predicted))
    pairs = zip(chain.from_iterable(true), chain.from_iterable(predicted), strict=True)
    n_correct = Counter(a for a, b in pairs if a == b)
    names = sorted(n_true | n_found)
    return {name: Score(n_true[name], n_found[name], n_correct[name]) for name in names}


def _confusions(true, predicted):
    wrong = confusions(true, predicted)
    if not wrong:
        return ""
    n_wrong = sum(count for _, _, count in wrong)
    rows = [
        (f"{a} → {b}", f"{count:,}", f"{count / n_wrong:.1%}")
        for a, b, count in wrong[:N_CONFUSIONS]
    ]
    return table(("true → predicted", "count", "of errors"), rows)


def _training(crf):
    figures = [
        figure(
            partial(_draw_convergence, crf),
            "The duality gap: certified where there is a dot, else a running estimate, which "
            "starts high. The dashed line is the tolerance.",
        )
    ]
    if "dev_accuracy" in crf.history_:
        draw = partial(plotting.dev_accuracy, crf)
        figures.append(figure(lambda ax: draw(ax=ax), "Labels of the dev set that are correct."))
    return [tag("div", *figures, class_="figures")]


def _draw_convergence(crf, ax):
    plotting.convergence(crf, ax=ax)
    ax.axhline(crf.tol * crf.primal_objective_, linestyle="--", linewidth=1.0, color="C1")


def _transitions(crf):
    weights = crf.model_.split_weights(crf.coef_)[2]
    names = [f"{a} → {b}" for a in crf.classes_ for b in crf.classes_]
    K = len(crf.classes_)
    side = float(np.clip(0.19 * K + 1.3, 3.4, 14.0))
    heat_map = figure(
        lambda ax: plotting.transitions(crf, ax=ax),
        "Weights of transitions, from the label of the row to that of the column.",
        width=side + 0.6,
        height=side,
        min_width=16 * K + 80,
    )
    strongest = _strongest(weights.ravel(), names, N_TRANSITIONS)
    return [tag("div", heat_map, tag("div", *strongest, class_="card pair"), class_="beside")]


def _attributes(crf):
    weights, names = crf.model_.split_weights(crf.coef_)[0], crf.attributes_
    cards = [
        tag("div", tag("h3", label), *_strongest(weights[:, k], names, N_ATTRIBUTES), class_="card")
        for k, label in enumerate(crf.classes_)
    ]
    words = "The attributes that speak most for each label, and most against it."
    return [tag("p", words), tag("div", *cards, class_="columns")]


def _strongest(weights, names, n):
    """Return lists of the n largest and of the n smallest weights."""
    order = np.argsort(-weights, kind="stable")
    limit = np.abs(weights).max(initial=0.0)
    lists = []
    for sign, first in (("positive", order[:n]), ("negative", order[::-1][:n])):
        chosen = [a for a in first if (weights[a] > 0) == (sign == "positive") and weights[a]]
        items = (
            tag(
                "li",
                tag("span", names[a]),
                tag("b", f"{weights[a]:+.2f}"),
                class_=sign,
                style=f"--size:{100 * abs(weights[a]) / limit:.0f}%",
            )
            for a in chosen
        )
        lists.append(tag("ol", *items, class_="weights"))
    return lists


def _suspects(crf, X, y, tokens, gaps):
    words = (
        "The block gap of a training sequence is the negative log-probability of its given labels. "
        "Where it is large, they surprise the model although it was trained on them: they may be "
        "wrong."
    )
    histogram = figure(
        lambda ax: plotting.block_gaps(gaps, ax=ax), "Block gaps of all training sequences."
    )
    parts = [tag("p", words), tag("div", histogram, class_="figures")]
    if X is not None:
        parts += [_legend(), *_suspicious(crf, X, y, tokens, gaps)]
    return parts


def _legend():
    return tag(
        "p",
        "The largest gaps, sequences counted from 0. Where labels differ: ",
        tag("del", "given label"),
        " ",
        tag("ins", "predicted label"),
        ", with their probabilities.",
        class_="legend",
    )


def _suspicious(crf, X, y, tokens, gaps):
    """Return the sequences of the largest gaps, one element each."""
    chosen = np.argsort(-gaps, kind="stable")[:N_SUSPECTS].tolist()
    sequences = [X[i] for i in chosen]
    predicted, marginals = crf.predict(sequences), crf.predict_marginals(sequences)
    shown = []
    for rank, i in enumerate(chosen):
        names = _position_names(X[i]) if tokens is None else tokens[i]
        rows = list(zip(names, y[i], predicted[rank], marginals[rank], strict=True))
        n_wrong = sum(given != found for _, given, found, _ in rows)
        summary = tag(
            "summary",
            tag("b", f"Sequence {i}"),
            tag("span", f"-log p = {gaps[i]:.2f}"),
            tag("span", f"{n_wrong} of {len(rows)} labels differ"),
        )
        look = "sequence numbered" if isinstance(names, range) else "sequence"
        text = tag("p", *(_token(*row) for row in rows), class_=look)
        shown.append(tag("details", summary, text, open="" if rank < N_OPEN else None))
    return shown


def _token(name, given, found, p):
    if given == found:
        return tag("span", tag("b", name), tag("span", given), class_="token")
    return tag(
        "span",
        tag("b", name),
        tag("del", f"{given} {p[given]:.0%}"),
        tag("ins", f"{found} {p[found]:.0%}"),
        class_="token wrong",
    )


def _position_names(x):
    """Return a name for every position of a sequence that came without tokens."""
    if hasattr(x, "shape"):
        return range(1, x.shape[0] + 1)
    items = [Vectorizer().fit([[item]]).attributes_ for item in x]
    everywhere = set.intersection(*map(set, items))
    return [_telling([a for a in item if a not in everywhere] or item) for item in items]


def _telling(attributes):
    """Return the first attribute, but rather one that our templates made of the position itself."""
    here = (a for a in attributes if re.match(r"\w+\[0\]=", a))
    return next(here, attributes[0] if attributes else "")


def _model(crf, y, gaps):
    sizes = [
        ("labels", f"{len(crf.classes_):,}"),
        ("attributes", f"{len(crf.attributes_):,}"),
        ("weights", f"{crf.coef_.size:,}"),
        ("weights not zero", f"{np.count_nonzero(crf.coef_):,}"),
    ]
    if gaps is not None:
        sizes.append(("training sequences", f"{gaps.size:,}"))
    if y is not None:
        sizes.append(("positions", f"{sum(map(len, y)):,}"))
    note = tag("p", "Parameters in colour are not the default.", class_="muted")
    return [facts(sizes), tag("h3", "Parameters"), facts(_parameters(crf)), note]


def _parameters(crf):
    """Return the names and values of the parameters."""
    defaults = CRF().get_params()
    pairs = []
    for name, value in crf.get_params().items():
        text = repr(value)
        text = text if len(text) <= 200 else text[:199] + "…"
        pairs.append((name, text if value == defaults[name] else tag("strong", text)))
    return pairs
