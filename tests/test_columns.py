"""Corpora as text: what is written is read back, and every bad line is named."""

import io
import re
from itertools import islice

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sdcastruct.features import columns
from sdcastruct.features.columns import (
    read_columns,
    read_crfsuite,
    write_columns,
    write_crfsuite,
)

words = st.text(
    st.characters(exclude_characters=" \t\r\n\ufeff", exclude_categories=["Cs"]), min_size=1
)
names = st.text(st.characters(exclude_characters="\t\r\n\ufeff", exclude_categories=["Cs"]))
attributes = names.filter(bool)


@st.composite
def sentences(draw):
    width = draw(st.integers(1, 3))
    row = st.lists(words, min_size=width, max_size=width)
    return draw(st.lists(st.lists(row, min_size=1, max_size=4), max_size=4))


def lines(text):
    return io.StringIO(text)


class TestReadColumns:
    def test_sentences_end_at_empty_lines(self):
        text = "\n\nThe DT O\ncat\t NN  O \n \t\n\nsat VB O"
        assert list(read_columns(lines(text))) == [
            [["The", "DT", "O"], ["cat", "NN", "O"]],
            [["sat", "VB", "O"]],
        ]

    @pytest.mark.parametrize("text", ["", "\n", " \n\t\n"])
    def test_nothing_to_read(self, text):
        assert list(read_columns(lines(text))) == []

    def test_tabs_alone_keep_spaces_and_empty_columns(self):
        text = "New York\t\tB-LOC\n \t \nis\tVB\tO\n"
        assert list(read_columns(lines(text), separator="\t")) == [
            [["New York", "", "B-LOC"]],
            [["is", "VB", "O"]],
        ]

    @pytest.mark.parametrize("space", ["\u00a0", "\u3000", "\u2028", "\x0b", "\x1c", "\x85"])
    def test_other_spaces_belong_to_words(self, space):
        word = f"10{space}000"
        assert list(read_columns(lines(f"{word} CD\n"))) == [[[word, "CD"]]]

    def test_windows_line_ends_and_byte_order_mark(self, tmp_path):
        path = tmp_path / "windows.txt"
        path.write_bytes("\ufeffThe O\r\n\r\ncat O\r\n".encode())
        with open(path, encoding="utf-8") as file:
            assert list(read_columns(file)) == [[["The", "O"]], [["cat", "O"]]]

    def test_docstart(self):
        text = "a O\n-DOCSTART- O\nb O\n\n-DOCSTART- O\n\nc O\n"
        kept = [row[0] for sentence in read_columns(lines(text)) for row in sentence]
        assert kept == ["a", "-DOCSTART-", "b", "-DOCSTART-", "c"]
        assert list(read_columns(lines(text), skip_docstart=True)) == [
            [["a", "O"]],
            [["b", "O"]],
            [["c", "O"]],
        ]

    def test_comments_only_if_asked(self):
        text = "# # I-NP\n1.8 CD I-NP\n"
        assert len(next(read_columns(lines(text)))) == 2
        assert list(read_columns(lines("# a remark\n" + text), comment="# a")) == [
            [["#", "#", "I-NP"], ["1.8", "CD", "I-NP"]]
        ]

    def test_reads_no_further_than_needed(self):
        def endless():
            while True:
                yield from ("The O\n", "cat O\n", "\n")

        assert list(islice(read_columns(endless()), 2)) == [[["The", "O"], ["cat", "O"]]] * 2

    def test_ragged(self):
        rows = read_columns(lines("\nThe DT O\n\ncat NN\n"), name="corpus.txt")
        assert next(rows) == [["The", "DT", "O"]]
        with pytest.raises(
            ValueError,
            match=r"^corpus.txt, line 4: 2 columns found, expected 3 as in line 2: 'cat NN'$",
        ):
            next(rows)

    def test_ragged_against_a_given_number(self):
        message = r"^<input>, line 1: 1 column found, expected 2: 'xx*\.\.\.'$"
        with pytest.raises(ValueError, match=message):
            list(read_columns(lines("x" * 100), n_columns=2))

    def test_the_file_names_itself(self, tmp_path):
        path = tmp_path / "ragged.txt"
        path.write_text("a b\nc\n")
        with (
            open(path, encoding="utf-8") as file,
            pytest.raises(ValueError, match=f"^{re.escape(str(path))}, line 2: "),
        ):
            list(read_columns(file))


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@given(before=st.integers(0, 3000), after=st.integers(0, 3000), width=st.integers(0, 40))
@example(before=0, after=0, width=0)
@example(before=8191, after=8192, width=0)
def test_bad_bytes_are_found_in_their_line(newline, encoding, before, after, width):
    """The decoder works on blocks of 8192 bytes; the line must not depend on where they end."""
    good = b"a" * width + b" O" + newline
    raw = io.BytesIO(good * before + b"Espa\xf1a O" + newline + good * after)
    file = io.TextIOWrapper(raw, encoding=encoding)
    message = f"^<input>, line {before + 1}: byte 0xf1 is not {encoding}, "
    with pytest.raises(ValueError, match=message):
        list(read_columns(file, name="<input>", n_columns=1 + bool(width)))


class TestWriteColumns:
    @given(sentences(), st.sampled_from([" ", "\t"]))
    def test_round_trip(self, rows, separator):
        file = io.StringIO(newline="")
        write_columns(file, rows, separator=separator)
        assert list(read_columns(lines(file.getvalue()))) == rows
        if separator == "\t":
            assert list(read_columns(lines(file.getvalue()), separator="\t")) == rows

    @given(sentences(), st.data())
    def test_appended_column(self, rows, data):
        labels = [data.draw(st.lists(words, min_size=len(s), max_size=len(s))) for s in rows]
        file = io.StringIO(newline="")
        write_columns(file, iter(rows), iter(labels))
        read = list(read_columns(lines(file.getvalue())))
        assert [[row[:-1] for row in sentence] for sentence in read] == rows
        assert [[row[-1] for row in sentence] for sentence in read] == labels

    def test_layout(self):
        file = io.StringIO()
        write_columns(file, [[["The", "DT"], ["cat", "NN"]], [["sat", "VB"]]], [["a", "b"], ["c"]])
        assert file.getvalue() == "The DT a\ncat NN b\n\nsat VB c\n\n"

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            ([["O"], ["O"]], r"labels\[1\] has 1 label but sentences\[1\] has 2 rows"),
            ([["O"]], "labels has 1 sentences, but sentences has more"),
            ([["O"], ["O", "O"], []], "labels has more sentences than the 2 of sentences"),
        ],
    )
    def test_labels_that_do_not_fit(self, labels, message):
        with pytest.raises(ValueError, match=message):
            write_columns(io.StringIO(), [[["a"]], [["b"], ["c"]]], labels)

    @pytest.mark.parametrize("word", ["New York", "", "a\nb", "a\rb"])
    def test_columns_that_could_not_be_read_back(self, word):
        with pytest.raises(ValueError, match=r"sentences\[0\]\[1\] is .*, expected columns that"):
            write_columns(io.StringIO(), [[["a", "O"], [word, "O"]]])


class TestReadCRFsuite:
    def test_labels_and_attributes(self):
        text = "B-NP\tw[0]=An\t__BOS__\nI-NP\tw[0]=A.P.\n\n\nO\n"
        assert list(read_crfsuite(lines(text))) == [
            (["B-NP", "I-NP"], [["w[0]=An", "__BOS__"], ["w[0]=A.P."]]),
            (["O"], [[]]),
        ]

    def test_values(self):
        text = "O\ta:2\tb\tc:-1e-1\td:\n"
        assert list(read_crfsuite(lines(text))) == [
            (["O"], [{"a": 2.0, "b": 1.0, "c": -0.1, "d": 1.0}])
        ]

    def test_repeated_attributes_count(self):
        text = "O\ta\ta\nO\ta\ta:0.5\ta:2\n"
        assert list(read_crfsuite(lines(text))) == [(["O", "O"], [["a", "a"], {"a": 3.5}])]

    @pytest.mark.parametrize(
        ("field", "name"),
        [
            (r"w=\:", "w=:"),
            (r"w=\\", "w=\\"),
            (r"w=\\\:", "w=\\:"),
            (r"w=\n", r"w=\n"),
            ("w= a b", "w= a b"),
        ],
    )
    def test_escapes(self, field, name):
        assert list(read_crfsuite(lines(f"{field}\t{field}\t{field}:2\n\n"))) == [
            ([name], [{name: 3.0}])
        ]
        assert list(read_crfsuite(lines(f"O\t{field}\n\n"))) == [(["O"], [[name]])]

    def test_a_backslash_at_the_end_of_a_field(self):
        assert list(read_crfsuite(lines("O\\\ta\\\tb\n"))) == [(["O\\"], [["a\\", "b"]])]

    def test_empty_fields_are_skipped(self):
        assert list(read_crfsuite(lines("O\t\ta\t\tb\t\n"))) == [(["O"], [["a", "b"]])]

    def test_equal_attributes_are_one_object(self, monkeypatch):
        text = "O\tsame\n\nO\tsame\tv:2\n"
        (_, ((first,),)), (_, (second,)) = read_crfsuite(lines(text))
        assert first is next(iter(second))
        monkeypatch.setattr(columns, "MAX_SHARED", 0)
        (_, ((first,),)), (_, (second,)) = read_crfsuite(lines(text))
        assert first is not next(iter(second))

    def test_data_without_labels(self):
        text = "\ta\tb\n\t\n"
        assert list(read_crfsuite(lines(text), labelled=False)) == [(["", ""], [["a", "b"], []])]
        with pytest.raises(ValueError, match=r"^f, line 1: the label is empty, expected a label"):
            list(read_crfsuite(lines(text), name="f"))

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("O\tw=:)", r"attribute 'w=:\)' has the value '\)', expected a finite number; .* \\:$"),
            ("O\ta:nan", "attribute 'a:nan' has the value 'nan', expected a finite number"),
            ("O\ta:inf", "attribute 'a:inf' has the value 'inf', expected a finite number"),
            ("O\ta:1:2", "attribute 'a:1:2' has 2 colons, expected at most 1"),
            ("O\t:1", "attribute ':1' has no name"),
            ("X:Y\ta", "label 'X:Y' has a colon"),
        ],
    )
    def test_bad_line(self, line, message):
        text = f"O\ta\n\n{line}\n"
        with pytest.raises(ValueError, match=f"^<input>, line 3: {message}"):
            list(read_crfsuite(lines(text)))

    def test_bad_encoding(self):
        file = io.TextIOWrapper(io.BytesIO(b"O\ta\nO\t\xe9\n"), encoding="utf-8")
        with pytest.raises(ValueError, match=r"^corpus, line 2: byte 0xe9 is not utf-8"):
            list(read_crfsuite(file, name="corpus"))

    def test_items_are_those_of_python_crfsuite(self):
        pycrfsuite = pytest.importorskip("pycrfsuite")
        ((_, items),) = read_crfsuite(lines("O\ta\\:b:2\tc\nO\ta\\:b\n"))
        assert pycrfsuite.ItemSequence(items).items() == [{"a:b": 2.0, "c": 1.0}, {"a:b": 1.0}]


class TestWriteCRFsuite:
    items = st.one_of(
        st.lists(attributes, max_size=3),
        st.dictionaries(
            attributes, st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=3
        ),
    )
    sequences = st.lists(
        st.lists(st.tuples(names.filter(lambda name: name.strip(" ")), items), min_size=1),
        max_size=3,
    )

    @given(sequences)
    def test_round_trip(self, sequences):
        labels = [[label for label, _ in sequence] for sequence in sequences]
        items = [[item for _, item in sequence] for sequence in sequences]
        file = io.StringIO(newline="")
        write_crfsuite(file, labels, items)
        assert list(read_crfsuite(lines(file.getvalue()))) == list(zip(labels, items, strict=True))

    def test_values_of_python_crfsuite(self):
        file = io.StringIO()
        write_crfsuite(file, [["O", "", ""]], [[{"w": "a:b", "n": 2, "t": True}, ["c"], []]])
        assert file.getvalue() == "O\tw\\:a\\:b\tn:2.0\tt:1.0\n\tc\n\t\n\n"

    def test_lengths(self):
        with pytest.raises(
            ValueError, match=r"labels\[0\] has 1 label but sequences\[0\] has 2 it"
        ):
            write_crfsuite(io.StringIO(), [["O"]], [[["a"], ["b"]]])

    def test_name_with_a_tab(self):
        with pytest.raises(ValueError, match=r"'a\\tb' holds a tab or a line break"):
            write_crfsuite(io.StringIO(), [["O"]], [[["a\tb"]]])
