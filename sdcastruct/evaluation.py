"""Token accuracy and entity scores, as conlleval prints them.

A label is a tag and a type, ``B-NP`` or ``O``. With c correct of f found and n true phrases,

    precision = c / f        recall = c / n        F1 = 2 precision recall / (precision + recall)

where a phrase is correct if its type and both of its ends are. Where a phrase starts and ends is
decided between each label and the one before it, by the rules of conlleval.pl (E. Tjong Kim Sang,
2004), which read IOB1, IOB2, IOE1, IOE2 and brackets without being told which, and never refuse a
sequence: I-X after O or after another type starts a phrase. The original does not know IOBES: S,
and a B after an E, are read here as in seqeval's default mode.

Differences from seqeval: its strict mode (``mode="strict", scheme=IOB2``) drops phrases that do not
start with B; its default mode calls the type of untyped labels ``_``, for conlleval it is empty.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

Labels = Sequence[Sequence[str]]


def phrases(labels: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return the phrases of a label sequence as (type, first, last) with both ends included.

    Examples
    --------
    >>> phrases(["I-NP", "B-NP", "I-NP", "O", "I-VP"])
    [('NP', 0, 0), ('NP', 1, 2), ('VP', 4, 4)]
    """
    found = []
    start, previous = None, ("O", "")
    for t, current in enumerate([*map(_tag_and_type, labels), ("O", "")]):
        starts = _starts(*previous, *current)
        if start is not None and (starts or _ends(previous[0], current[0])):
            found.append((previous[1], start, t - 1))
            start = None
        if starts:
            start = t
        previous = current
    return found


def _tag_and_type(label):
    tag, _, kind = str(label).partition("-")
    return tag, kind


def _starts(last_tag, last_type, tag, kind):
    """Return whether a phrase starts at a token, given the label before it."""
    return (
        tag in ("B", "S", "[", "]")
        or (tag in ("I", "E") and last_tag in ("O", "E", "S"))
        or (tag not in ("O", ".") and kind != last_type)
    )


def _ends(last_tag, tag):
    """Return whether a phrase ended at the token before, although none starts here."""
    return tag in ("O", ".") or last_tag in ("[", "]")


@dataclass(frozen=True)
class Score:
    """How many phrases there are, were found and are correct.

    Attributes
    ----------
    n_true, n_found, n_correct : int
    precision, recall, f1 : float
        Between 0 and 1; 0 where nothing was found or nothing is true.
    """

    n_true: int
    n_found: int
    n_correct: int

    @property
    def precision(self) -> float:
        return _ratio(self.n_correct, self.n_found)

    @property
    def recall(self) -> float:
        return _ratio(self.n_correct, self.n_true)

    @property
    def f1(self) -> float:
        return _harmonic_mean(self.precision, self.recall)

    def __str__(self):
        # Percentages from the counts, as conlleval has them: 100 * (c / f) may round otherwise.
        precision = _ratio(100 * self.n_correct, self.n_found)
        recall = _ratio(100 * self.n_correct, self.n_true)
        f1 = _harmonic_mean(precision, recall)
        return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"


@dataclass(frozen=True)
class Evaluation:
    """The scores of a labelling; its ``str()`` is what conlleval prints.

    Attributes
    ----------
    n_tokens, n_correct_tokens : int
    types : dict of str to Score
        The score of each type of phrase, in alphabetical order.
    overall : Score
        All types together.
    accuracy : float
        The share of correct labels, between 0 and 1.
    precision, recall, f1 : float
        Those of ``overall``.
    """

    n_tokens: int
    n_correct_tokens: int
    types: dict[str, Score] = field(default_factory=dict)

    @property
    def overall(self) -> Score:
        scores = self.types.values()
        return Score(
            sum(score.n_true for score in scores),
            sum(score.n_found for score in scores),
            sum(score.n_correct for score in scores),
        )

    @property
    def accuracy(self) -> float:
        return _ratio(self.n_correct_tokens, self.n_tokens)

    @property
    def precision(self) -> float:
        return self.overall.precision

    @property
    def recall(self) -> float:
        return self.overall.recall

    @property
    def f1(self) -> float:
        return self.overall.f1

    def __str__(self):
        overall = self.overall
        lines = [
            f"processed {self.n_tokens} tokens with {overall.n_true} phrases; "
            f"found: {overall.n_found} phrases; correct: {overall.n_correct}."
        ]
        if self.n_tokens:
            accuracy = 100 * self.n_correct_tokens / self.n_tokens
            lines.append(f"accuracy: {accuracy:6.2f}%; {overall}")
        lines += [f"{kind:>17}: {score}  {score.n_found}" for kind, score in self.types.items()]
        return "\n".join(lines)


def evaluate(y_true: Labels, y_pred: Labels) -> Evaluation:
    """Compare predicted with true labels.

    Parameters
    ----------
    y_true, y_pred : sequences of sequences of str
        The labels of each sentence. Phrases do not go beyond sentences.

    Raises
    ------
    ValueError
        The numbers of sentences, or of the labels of a sentence, differ.

    Examples
    --------
    >>> print(evaluate([["B-NP", "I-NP", "O"]], [["B-NP", "O", "O"]]))
    processed 3 tokens with 1 phrases; found: 1 phrases; correct: 0.
    accuracy:  66.67%; precision:   0.00%; recall:   0.00%; FB1:   0.00
                   NP: precision:   0.00%; recall:   0.00%; FB1:   0.00  1
    """
    _check_lengths(y_true, y_pred)
    n_true, n_found, n_correct = Counter(), Counter(), Counter()
    correct_tokens = 0
    for true, predicted in zip(y_true, y_pred, strict=True):
        correct_tokens += sum(bool(a == b) for a, b in zip(true, predicted, strict=True))
        true_phrases, found_phrases = phrases(true), phrases(predicted)
        n_true.update(kind for kind, _, _ in true_phrases)
        n_found.update(kind for kind, _, _ in found_phrases)
        n_correct.update(kind for kind, _, _ in set(true_phrases).intersection(found_phrases))
    kinds = sorted(n_true.keys() | n_found.keys())
    types = {kind: Score(n_true[kind], n_found[kind], n_correct[kind]) for kind in kinds}
    return Evaluation(sum(map(len, y_true)), correct_tokens, types)


def confusions(y_true: Labels, y_pred: Labels) -> list[tuple[str, str, int]]:
    """Return the wrong labels as (true, predicted, count), the most frequent first.

    Parameters
    ----------
    y_true, y_pred : sequences of sequences of str
        The labels of each sentence.

    Examples
    --------
    >>> confusions([["B-NP", "I-NP", "O"]], [["B-NP", "O", "O"]])
    [('I-NP', 'O', 1)]
    """
    _check_lengths(y_true, y_pred)
    counts = Counter(
        (a, b)
        for true, predicted in zip(y_true, y_pred, strict=True)
        for a, b in zip(true, predicted, strict=True)
        if a != b
    )
    by_count = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return [(true, predicted, count) for (true, predicted), count in by_count]


def _check_lengths(y_true, y_pred):
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sentences but y_pred has {len(y_pred)}")
    for s, (true, predicted) in enumerate(zip(y_true, y_pred, strict=True)):
        for argument, labels in (("y_true", true), ("y_pred", predicted)):
            if isinstance(labels, str):
                raise TypeError(
                    f"{argument}[{s}] is the string {labels!r}, expected a sequence of labels"
                )
        if len(true) != len(predicted):
            raise ValueError(
                f"y_pred[{s}] has {len(predicted)} labels but y_true[{s}] has {len(true)}"
            )


def _ratio(part, whole):
    return part / whole if whole else 0.0


def _harmonic_mean(a, b):
    return 2 * a * b / (a + b) if a + b else 0.0
