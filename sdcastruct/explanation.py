"""Why a label was predicted: the votes of attributes and neighbours."""

import numpy as np


class Explanation:
    """The score of every label at every position of a sequence, vote by vote.

    The score of a labelling is the sum of its votes, and its probability is proportional to the
    exponential of that. Prints the strongest votes for the predicted labels.

    Attributes
    ----------
    labels : list
        The predicted labels.
    votes : list of dicts
        For every position {label: [(what, weight), ...]}, strongest first: attributes times their
        values, the bias, the place at the beginning or the end, and the transitions from and to the
        predicted neighbours.
    """

    def __init__(self, crf, rows):
        self.labels = crf._encoder.inverse_transform(crf.model_.decode([rows], crf.coef_))[0]
        tables = crf.model_.split_weights(crf.coef_)
        codes = [crf.classes_.index(label) for label in self.labels]
        self.votes = [
            {label: _votes(crf, tables, rows, codes, t, k) for k, label in enumerate(crf.classes_)}
            for t in range(rows.shape[0])
        ]

    def __str__(self, n_votes=5):
        lines = []
        for t, (label, votes) in enumerate(zip(self.labels, self.votes, strict=True)):
            shown = ", ".join(f"{what} {weight:+.2f}" for what, weight in votes[label][:n_votes])
            lines.append(f"{t:3d}  {label!s:10s} {shown}")
        return "\n".join(lines)


def _votes(crf, tables, rows, codes, t, k):
    """Return the votes for label k at position t, strongest first."""
    attributes, bias, transitions = tables
    first, last = rows.indptr[t], rows.indptr[t + 1]
    columns, values = rows.indices[first:last], rows.data[first:last]
    votes = [
        (crf.attributes_[a], value * attributes[a, k])
        for a, value in zip(columns, values, strict=True)
    ]
    votes.append(("(any position)", bias[0, k]))
    if t == 0:
        votes.append(("(first position)", bias[1, k]))
    if t == len(codes) - 1:
        votes.append(("(last position)", bias[2, k]))
    if t > 0:
        votes.append((f"(after {crf.classes_[codes[t - 1]]})", transitions[codes[t - 1], k]))
    if t < len(codes) - 1:
        votes.append((f"(before {crf.classes_[codes[t + 1]]})", transitions[k, codes[t + 1]]))
    return sorted(((what, float(weight)) for what, weight in votes), key=lambda v: -np.abs(v[1]))
