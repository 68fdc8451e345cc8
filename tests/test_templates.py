"""Templates say what CRF++ and CRFsuite say, and a bad template file is named by its line."""

import os
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdcastruct.datasets import load_conll2000
from sdcastruct.features.templates import (
    CHUNKING,
    apply_templates,
    load_templates,
    parse_crfpp,
    template_name,
)

needs_corpora = pytest.mark.skipif(
    "SDCASTRUCT_DATA" not in os.environ, reason="SDCASTRUCT_DATA names no folder with the corpora"
)

# CRF++'s own example for CoNLL-2000.
CHUNKING_CRFPP = """\
# Unigram
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]

U10:%x[-2,1]
U11:%x[-1,1]
U12:%x[0,1]
U13:%x[1,1]
U14:%x[2,1]
U15:%x[-2,1]/%x[-1,1]
U16:%x[-1,1]/%x[0,1]
U17:%x[0,1]/%x[1,1]
U18:%x[1,1]/%x[2,1]

U20:%x[-2,1]/%x[-1,1]/%x[0,1]
U21:%x[-1,1]/%x[0,1]/%x[1,1]
U22:%x[0,1]/%x[1,1]/%x[2,1]

# Bigram
B
"""

SENTENCE = [["He", "PRP"], ["reckons", "VBZ"], ["the", "DT"]]
cells = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
corpora = st.lists(st.lists(st.tuples(cells, cells, cells), max_size=5), max_size=3)


@pytest.fixture(scope="module")
def chunking():
    corpus = load_conll2000("test")
    return corpus.tokens[:600], corpus.X[:600]


def expanded(line, sentence, t):
    """What CRF++ makes of a line at a position, macro by macro."""
    for row in range(-3, 4):
        for column in range(3):
            place = t + row
            if place < 0:
                value = f"_B{place}"
            elif place >= len(sentence):
                value = f"_B+{place - len(sentence) + 1}"
            else:
                value = sentence[place][column]
            line = line.replace(f"%x[{row},{column}]", value)
    return line


class TestCRFpp:
    def test_macros_and_borders(self):
        templates = parse_crfpp("U01:%x[-1,0]/%x[0,1]\nU02:%x[2,0]\nU03\nB")
        assert templates.extract(SENTENCE) == [
            ["U01:_B-1/PRP", "U02:the", "U03"],
            ["U01:He/VBZ", "U02:_B+1", "U03"],
            ["U01:reckons/DT", "U02:_B+2", "U03"],
        ]

    def test_far_offsets_in_a_short_sentence(self):
        templates = parse_crfpp("U:%x[-9,0]\nU:%x[9,0]\nU:%x[-1,0]")
        assert templates.extract([["a"]]) == [["U:_B-9", "U:_B+9", "U:_B-1"]]

    def test_comments_empty_lines_and_windows_line_ends(self):
        templates = parse_crfpp("\ufeff# words\r\n\r\nU00:%x[0,0]\r\n \r\nB \r\n")
        assert templates.extract([["a"]]) == [["U00:a"]]
        assert templates.transitions

    def test_transitions_only_if_asked(self):
        assert not parse_crfpp("U00:%x[0,0]").transitions
        assert parse_crfpp("B01\nU00:%x[0,0]").transitions

    def test_braces_are_letters(self):
        assert parse_crfpp("U{0}:{%x[0,0]}{").extract([["{x}"]]) == [["U{0}:{{x}}{"]]

    def test_empty_sentence(self):
        assert parse_crfpp("U00:%x[0,0]").extract([]) == []

    @given(
        corpora,
        st.lists(
            st.lists(
                st.tuples(st.integers(-3, 3), st.integers(0, 2)).map("%x[{0[0]},{0[1]}]".format)
                | st.sampled_from(["/", "|", "{", "}", "[0]", "{}"]),
                max_size=5,
            ).map(lambda pieces: "U00:" + "".join(pieces)),
            min_size=1,
            max_size=4,
        ),
    )
    def test_one_macro_at_a_time(self, corpus, lines):
        """The columns hold private letters, which neither macros nor borders can spell."""
        corpus = [
            [[f"\ue000{s}.{t}.{c}" for c in range(3)] for t in range(len(sentence))]
            for s, sentence in enumerate(corpus)
        ]
        templates = parse_crfpp("\n".join(lines))
        assert templates.extract_all(corpus) == [
            [[expanded(line, sentence, t) for line in lines] for t in range(len(sentence))]
            for sentence in corpus
        ]

    @given(corpora)
    def test_one_sentence_or_all(self, corpus):
        templates = parse_crfpp(CHUNKING_CRFPP)
        assert templates.extract_all(corpus) == [templates.extract(s) for s in corpus]

    def test_equal_attributes_are_one_object(self):
        first, second = parse_crfpp("U00:%x[0,0]").extract_all([[["same"]], [["same"]]])
        assert first[0][0] is second[0][0]

    def test_source_and_pickle(self):
        templates = parse_crfpp(CHUNKING_CRFPP, "chunk.template")
        assert load_templates(templates.source, "chunk.template") == templates
        assert pickle.loads(pickle.dumps(templates)) == templates

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("X00:%x[0,0]", "unknown type of line 'X00:.*', expected U, B or #"),
            ("%x[0,0]", "unknown type of line"),
            ("U01:%x[+1,0]", r"bad macro '%x\[\+1,0\]', expected %x\[row,column\]"),
            ("U01:%x[0]/%x[1,0]", r"bad macro '%x\[0\]'"),
            ("U01:%x[0,-1]", r"bad macro '%x\[0,-1\]'"),
            ("U01:%x[0, 1]", r"bad macro '%x\[0, 1\]'"),
            ("U01:%x[0,0]/%y[0,0]", r"bad macro '%y\[0,0\]'"),
            ("U01:100%", "bad macro '%'"),
            ("U01:%x[0,1", r"bad macro '%x\[0,1'"),
            ("B01:%x[0,0]", r"'B01:%x\[0,0\]' is not supported: .*, expected a plain B"),
            ("B%x[0]", r"bad macro '%x\[0\]'"),
        ],
    )
    def test_bad_line(self, line, message):
        with pytest.raises(ValueError, match=f"^my.template, line 3: {message}"):
            parse_crfpp(f"# words\nU00:%x[0,0]\n{line}\n", "my.template")

    @pytest.mark.parametrize("source", ["", "B\n", "# U00:%x[0,0]"])
    def test_no_attributes(self, source):
        with pytest.raises(ValueError, match=r"^template: no line starts with U"):
            parse_crfpp(source)

    def test_column_out_of_range(self):
        templates = parse_crfpp("# words\nU00:%x[0,0]\nU01:%x[-1,0]/%x[-1,2]", "t")
        message = r"^t, line 3: %x\[-1,2\] reads column 2, counted from 0, but .* only 2 columns"
        for refuse in (
            lambda: templates.check_columns(2),
            lambda: templates.extract(SENTENCE),
            lambda: templates.extract([["a", "b", "c"], ["a", "b"]]),
        ):
            with pytest.raises(ValueError, match=message):
                refuse()
        templates.check_columns(3)


class TestBuiltIn:
    def test_chunking(self):
        *_, last = load_templates("chunking").extract([*SENTENCE])
        assert last == [
            *("w[-2]=He", "w[-1]=reckons", "w[0]=the", "w[-1]|w[0]=reckons|the"),
            *("pos[-2]=PRP", "pos[-1]=VBZ", "pos[0]=DT"),
            *("pos[-2]|pos[-1]=PRP|VBZ", "pos[-1]|pos[0]=VBZ|DT"),
            "pos[-2]|pos[-1]|pos[0]=PRP|VBZ|DT",
        ]

    @given(corpora)
    def test_columns_are_fields(self, corpus):
        fields = [{"w": [r[0] for r in s], "pos": [r[1] for r in s]} for s in corpus]
        templates = load_templates("chunking")
        assert templates.extract_all(corpus) == apply_templates(fields, CHUNKING)
        assert [templates.extract(s) for s in corpus] == apply_templates(fields, CHUNKING)

    def test_source_is_the_name(self):
        templates = load_templates("chunking")
        assert load_templates(templates.source) == templates
        assert templates.transitions

    def test_too_few_columns(self):
        with pytest.raises(
            ValueError, match=r"^templates 'chunking' read 2 columns \(w, pos\), .* only 1 besides"
        ):
            load_templates("chunking").extract([["a"]])

    def test_neither_name_nor_template(self):
        with pytest.raises(ValueError, match="line 1: unknown type of line 'chunk'"):
            load_templates("chunk")


@needs_corpora
class TestCoNLL2000:
    def test_built_in(self, chunking):
        tokens, X = chunking
        assert load_templates("chunking").extract_all(tokens) == X

    def test_crfpp_with_the_same_names(self, chunking):
        lines = (
            f"U{template_name(template)}="
            + "|".join(f"%x[{offset},{('w', 'pos').index(field)}]" for field, offset in template)
            for template in CHUNKING
        )
        templates = parse_crfpp("\n".join(lines))
        for tokens, expected in zip(*chunking, strict=True):
            inside = [
                [attribute[1:] for attribute in item if "_B-" not in attribute]
                for item in templates.extract(tokens)
            ]
            assert [[a for a in item if "_B+" not in a] for item in inside] == expected

    def test_crfpp_up_to_names(self, chunking):
        """Names pair off one to one, so that the two vocabularies make the same matrices."""
        tokens, X = chunking
        items = parse_crfpp(CHUNKING_CRFPP).extract_all(tokens)
        ours = [a for s in items for item in s for a in item if "_B-" not in a and "_B+" not in a]
        theirs = [a for s in X for item in s for a in item]
        pairs = set(zip(ours, theirs, strict=True))
        assert len(pairs) == len(set(ours)) == len(set(theirs))
