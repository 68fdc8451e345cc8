"""Training sequences whose labels look wrong."""

import re

import numpy as np

from sdcastruct import plotting
from sdcastruct.features import Vectorizer
from sdcastruct.report.page import figure, tag

N_SUSPECTS = 20
N_OPEN = 5  # suspects that are shown before anybody asks


def block_gaps(crf, X, y):
    """Return the block gap of every training sequence, or None if they are not known."""
    if hasattr(crf, "suspects_"):
        gaps = np.empty(len(crf.suspects_))
        for i, gap in crf.suspects_:
            gaps[i] = gap
        return gaps
    return None if X is None else -crf.log_probability(X, y)


def suspects(crf, X, y, tokens, gaps):
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
        names = position_names(X[i]) if tokens is None else tokens[i]
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


def position_names(x):
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
