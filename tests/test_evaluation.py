"""Scores are conlleval's: its rules for phrases, its counts, its layout."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdcastruct.datasets import load_conll2000
from sdcastruct.evaluation import Score, confusions, evaluate, phrases

SCHEMES = {"IOB": "BI", "IOE": "IE", "brackets": "[]"}
KINDS = ("NP", "VP")

# Between which tags of one type conlleval.pl sees a start or an end, besides those of brackets.
STARTS = {"BB", "IB", "OB", "OI", "OE", "EE", "EI"}
ENDS = {"BB", "IB", "BO", "IO", "EO", "EE", "EI"}


def labels_of(tags):
    return ["O", *(f"{tag}-{kind}" for tag in tags for kind in KINDS)]


@st.composite
def labellings(draw, tags):
    label = st.sampled_from(labels_of(tags))
    sentence = st.lists(st.tuples(label, label), max_size=8)
    pairs = draw(st.lists(sentence, max_size=5))
    return [[[pair[side] for pair in sentence] for sentence in pairs] for side in (0, 1)]


def is_boundary(pairs, previous, current, of):
    tag, kind = of
    other = previous[1] if of is current else current[1]
    return previous[0] + current[0] in pairs or tag in "[]" or (tag != "O" and kind != other)


def conlleval_counts(y_true, y_pred):
    """Count as conlleval.pl does, in one pass that tracks whether both sides agree so far."""
    n_true = n_found = n_correct = 0
    last, agree = [("O", "")] * 2, False
    ended = [[label for s in side for label in [*s, "O"]] for side in (y_true, y_pred)]
    for pair in zip(*ended, strict=True):
        now = [tuple((label + "-").split("-")[:2]) for label in pair]
        end_true, end_pred = (is_boundary(ENDS, a, b, of=a) for a, b in zip(last, now, strict=True))
        start_true, start_pred = (
            is_boundary(STARTS, a, b, of=b) for a, b in zip(last, now, strict=True)
        )
        if agree and end_true and end_pred and last[0][1] == last[1][1]:
            n_correct, agree = n_correct + 1, False
        elif end_true != end_pred or now[0][1] != now[1][1]:
            agree = False
        agree = agree or (start_true and start_pred and now[0][1] == now[1][1])
        n_true, n_found = n_true + start_true, n_found + start_pred
        last = now
    return Score(n_true, n_found, n_correct)


class TestPhrases:
    @pytest.mark.parametrize(
        ("labels", "expected"),
        [
            ("", []),
            ("O O", []),
            ("B-X I-X O", [("X", 0, 1)]),
            ("I-X I-X", [("X", 0, 1)]),
            ("O I-X O", [("X", 1, 1)]),
            ("B-Y I-X", [("Y", 0, 0), ("X", 1, 1)]),
            ("I-Y I-X", [("Y", 0, 0), ("X", 1, 1)]),
            ("I-X B-X I-X", [("X", 0, 0), ("X", 1, 2)]),
            ("B-X B-X", [("X", 0, 0), ("X", 1, 1)]),
            ("B-X O I-X", [("X", 0, 0), ("X", 2, 2)]),
            ("I-X E-X I-X E-X", [("X", 0, 1), ("X", 2, 3)]),
            ("E-X E-X", [("X", 0, 0), ("X", 1, 1)]),
            ("O E-X O", [("X", 1, 1)]),
            ("I-X E-Y", [("X", 0, 0), ("Y", 1, 1)]),
            ("S-X S-X", [("X", 0, 0), ("X", 1, 1)]),
            ("B-X I-X E-X B-X E-X S-X O", [("X", 0, 2), ("X", 3, 4), ("X", 5, 5)]),
            ("B-X S-X I-X", [("X", 0, 0), ("X", 1, 1), ("X", 2, 2)]),
            ("[-X ]-X . [-X", [("X", 0, 0), ("X", 1, 1), ("X", 3, 3)]),
            ("[-X I-X I-X O", [("X", 0, 0)]),
            ("B-X . O", [("X", 0, 0)]),
            ("B-X-Y I-X-Y I-X", [("X-Y", 0, 1), ("X", 2, 2)]),
            ("B I B O I", [("", 0, 1), ("", 2, 2), ("", 4, 4)]),
            ("NN DT NN", []),
        ],
    )
    def test_rules(self, labels, expected):
        assert phrases(labels.split()) == expected

    @given(st.lists(st.sampled_from(labels_of("BIES"))))
    def test_phrases_are_disjoint_and_hold_every_label_but_O(self, labels):
        covered = []
        for kind, first, last in phrases(labels):
            assert all(label.endswith(f"-{kind}") for label in labels[first : last + 1])
            covered += range(first, last + 1)
        assert covered == [t for t, label in enumerate(labels) if label != "O"]

    @given(
        st.lists(st.tuples(st.sampled_from([*KINDS, None]), st.integers(1, 4)), max_size=6),
        st.sampled_from(["IOB2", "IOE2", "IOBES"]),
    )
    def test_schemes_spell_the_same_phrases(self, spans, scheme):
        labels, expected = [], []
        for kind, length in spans:
            if kind is None:
                labels += ["O"] * length
                continue
            expected.append((kind, len(labels), len(labels) + length - 1))
            tags = {
                "IOB2": "B" + "I" * (length - 1),
                "IOE2": "I" * (length - 1) + "E",
                "IOBES": "S" if length == 1 else "B" + "I" * (length - 2) + "E",
            }[scheme]
            labels += [f"{tag}-{kind}" for tag in tags]
        assert phrases(labels) == expected


class TestCounts:
    @pytest.mark.parametrize("scheme", SCHEMES)
    @given(st.data())
    def test_one_pass_of_conlleval(self, scheme, data):
        y_true, y_pred = data.draw(labellings(SCHEMES[scheme]))
        assert evaluate(y_true, y_pred).overall == conlleval_counts(y_true, y_pred)

    @pytest.mark.parametrize("tags", ["BI", "IE", "BIES"])
    @given(st.data())
    def test_seqeval(self, tags, data):
        """seqeval's default mode, wherever a type is given."""
        metrics = pytest.importorskip("seqeval.metrics.sequence_labeling")
        y_true, y_pred = data.draw(labellings(tags))
        evaluation = evaluate(y_true, y_pred)
        if not evaluation.types:
            return  # seqeval fails on corpora without entities
        precision, recall, f1, support = metrics.precision_recall_fscore_support(
            y_true, y_pred, zero_division=0
        )
        scores = evaluation.types.values()
        assert support.tolist() == [score.n_true for score in scores]
        assert precision == pytest.approx([score.precision for score in scores])
        assert recall == pytest.approx([score.recall for score in scores])
        assert f1 == pytest.approx([score.f1 for score in scores])
        assert metrics.f1_score(y_true, y_pred, zero_division=0) == pytest.approx(evaluation.f1)
        assert metrics.accuracy_score(y_true, y_pred) == pytest.approx(evaluation.accuracy)

    def test_seqeval_strict_differs(self):
        """Strict IOB2 has no phrase without a B; conlleval has."""
        metrics = pytest.importorskip("seqeval.metrics")
        scheme = pytest.importorskip("seqeval.scheme")
        y_true, y_pred = [["B-X", "O", "B-X"]], [["I-X", "O", "B-X"]]
        assert evaluate(y_true, y_pred).f1 == 1
        strict = metrics.f1_score(y_true, y_pred, mode="strict", scheme=scheme.IOB2)
        assert strict == pytest.approx(2 / 3)

    @given(labellings("BI"))
    def test_swapping_sides_swaps_precision_and_recall(self, labelling):
        y_true, y_pred = labelling
        there, back = evaluate(y_true, y_pred), evaluate(y_pred, y_true)
        assert (there.precision, there.recall) == (back.recall, back.precision)
        assert (there.f1, there.accuracy) == (back.f1, back.accuracy)

    @given(labellings("BIES"))
    def test_perfect(self, labelling):
        y_true, _ = labelling
        evaluation = evaluate(y_true, y_true)
        assert evaluation.f1 == float(evaluation.overall.n_true > 0)
        assert evaluation.n_correct_tokens == evaluation.n_tokens == sum(map(len, y_true))
        assert confusions(y_true, y_true) == []

    def test_phrases_end_with_their_sentence(self):
        assert evaluate([["B-X"], ["I-X"]], [["B-X"], ["I-X"]]).overall == Score(2, 2, 2)
        assert evaluate([["B-X", "I-X"]], [["B-X", "I-X"]]).overall == Score(1, 1, 1)

    def test_right_ends_of_another_type_are_wrong(self):
        evaluation = evaluate([["B-X", "I-X"]], [["B-Y", "I-Y"]])
        assert evaluation.types == {"X": Score(1, 0, 0), "Y": Score(0, 1, 0)}

    def test_labels_that_are_no_strings(self):
        evaluation = evaluate([np.array([1, 2, 3])], [np.array([1, 2, 4])])
        assert evaluation.accuracy == pytest.approx(2 / 3)
        assert evaluation.overall == Score(0, 0, 0)


class TestPrinting:
    def test_example(self):
        y_true = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "B-PP", "O"]]
        y_pred = [["B-NP", "I-NP", "O", "B-NP"], ["B-NP", "O", "O"]]
        assert str(evaluate(y_true, y_pred)) == (
            "processed 7 tokens with 4 phrases; found: 3 phrases; correct: 2.\n"
            "accuracy:  71.43%; precision:  66.67%; recall:  50.00%; FB1:  57.14\n"
            "               NP: precision:  66.67%; recall: 100.00%; FB1:  80.00  3\n"
            "               PP: precision:   0.00%; recall:   0.00%; FB1:   0.00  0\n"
            "               VP: precision:   0.00%; recall:   0.00%; FB1:   0.00  0"
        )

    def test_all_correct(self):
        assert str(evaluate([["B-X"]], [["B-X"]])) == (
            "processed 1 tokens with 1 phrases; found: 1 phrases; correct: 1.\n"
            "accuracy: 100.00%; precision: 100.00%; recall: 100.00%; FB1: 100.00\n"
            "                X: precision: 100.00%; recall: 100.00%; FB1: 100.00  1"
        )

    def test_nothing(self):
        assert str(evaluate([], [])) == (
            "processed 0 tokens with 0 phrases; found: 0 phrases; correct: 0."
        )

    def test_no_phrases(self):
        assert str(evaluate([["NN", "VB"]], [["NN", "NN"]])) == (
            "processed 2 tokens with 0 phrases; found: 0 phrases; correct: 0.\n"
            "accuracy:  50.00%; precision:   0.00%; recall:   0.00%; FB1:   0.00"
        )

    @pytest.mark.skipif("SDCASTRUCT_DATA" not in os.environ, reason="needs SDCASTRUCT_DATA")
    def test_conll2000(self):
        """The test set has the published 47377 tokens and 23852 phrases."""
        y = load_conll2000("test").y
        first, second, *_ = str(evaluate(y, y)).splitlines()
        assert first.startswith("processed 47377 tokens with 23852 phrases; found: 23852 phrases;")
        assert second == "accuracy: 100.00%; precision: 100.00%; recall: 100.00%; FB1: 100.00"


class TestErrors:
    @pytest.mark.parametrize("judge", [evaluate, confusions])
    def test_lengths(self, judge):
        with pytest.raises(ValueError, match="y_true has 2 sentences but y_pred has 1"):
            judge([["O"], ["O"]], [["O"]])
        with pytest.raises(ValueError, match=r"y_pred\[1\] has 2 labels but y_true\[1\] has 1"):
            judge([["O"], ["O"]], [["O"], ["O", "O"]])

    def test_one_sentence_is_not_a_list_of_sentences(self):
        with pytest.raises(TypeError, match=r"y_true\[0\] is the string 'B-NP', expected a seq"):
            evaluate(["B-NP"], ["B-NP"])


def test_confusions_are_sorted():
    y_true, y_pred = [["B", "B", "I", "O", "O"]], [["I", "I", "O", "B", "O"]]
    assert confusions(y_true, y_pred) == [("B", "I", 2), ("I", "O", 1), ("O", "B", 1)]
