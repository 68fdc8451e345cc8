"""How good predicted labels are."""

import re
from collections import Counter
from itertools import chain

import numpy as np

from sdcastruct.evaluation import Score, confusions, evaluate
from sdcastruct.report.page import facts, table, tag

N_CONFUSIONS = 15


def scores(crf, X, y):
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
