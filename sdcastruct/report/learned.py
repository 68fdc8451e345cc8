"""How training went and what was learned."""

from functools import partial

import numpy as np

from sdcastruct import plotting
from sdcastruct.report.page import facts, figure, tag

N_ATTRIBUTES = 6  # per label and sign
N_TRANSITIONS = 12  # per sign


def training(crf):
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


def transitions(crf):
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


def attributes(crf):
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


def model(crf, y, gaps):
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
    defaults = type(crf)().get_params()
    pairs = []
    for name, value in crf.get_params().items():
        text = repr(value)
        text = text if len(text) <= 200 else text[:199] + "…"
        pairs.append((name, text if value == defaults[name] else tag("strong", text)))
    return pairs
