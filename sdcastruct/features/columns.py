r"""Corpora as text: CoNLL columns and CRFsuite's attribute format, one sentence at a time.

CoNLL columns hold a token a line, its columns separated by spaces or tabs; an empty line ends a
sentence::

    He      PRP  B-NP
    reckons VBZ  B-VP

CRFsuite's format holds an item a line: the label, then the attributes, each after a tab. An
attribute may have a value after a colon, 1 if it has none; ``\:`` and ``\\`` stand for a colon and
a backslash; an empty line ends a sequence::

    B-NP<TAB>w[0]=He<TAB>length:2
    B-VP<TAB>w[0]=reckons<TAB>length:7

Readers take an open text file (or any iterable of lines) and hold one sentence in memory. Their
errors are ValueErrors that begin with the file and the line.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TextIO

DOCSTART = "-DOCSTART-"
MAX_SHARED = 2**20  # strings that a reader remembers, so that an endless stream can be read

Sentence = list[list[str]]
Item = list[str] | dict[str, float]

# Not str.split: a no-break space or another Unicode space is part of a word.
_words = re.compile(r"[^ \t]+").findall
# Up to the next colon that no backslash escapes.
_part = re.compile(r"(?:\\.|[^:\\]|\\\Z)*", re.DOTALL)
_escape = re.compile(r"\\([:\\])")


def read_columns(
    file: Iterable[str],
    *,
    name: str | None = None,
    separator: str | None = None,
    n_columns: int | None = None,
    comment: str | None = None,
    skip_docstart: bool = False,
) -> Iterator[Sentence]:
    """Read sentences from a file of columns.

    Parameters
    ----------
    file : text file or iterable of str
        Lines of text; only as much is read as the sentences asked for need.
    name : str, optional
        What errors call the file; its own ``name`` if it has one.
    separator : str, optional
        What separates columns, such as ``"\\t"`` for columns that hold spaces or are empty. By
        default any run of spaces and tabs.
    n_columns : int, optional
        The number of columns to insist on; that of the first row if not given.
    comment : str, optional
        Lines that start with it are skipped. None by default: in CoNLL-2000 "#" is a word.
    skip_docstart : bool, default=False
        Skip the lines whose first column is ``-DOCSTART-``. They are tokens otherwise.

    Yields
    ------
    list of lists of str
        The rows of a sentence, each with its columns. Sentences without rows do not occur,
        however many empty lines follow each other.

    Raises
    ------
    ValueError
        A row has another number of columns, or a byte does not belong to the file's encoding.
    """
    name = _name_of(file, name)
    first = None
    sentence: Sentence = []
    for number, line in _numbered_lines(file, name):
        if comment is not None and line.startswith(comment):
            continue
        row = _words(line)
        if row and separator is not None:
            row = line.split(separator)
        if not row or (skip_docstart and row[0] == DOCSTART):
            if sentence:
                yield sentence
                sentence = []
            continue
        if n_columns is None:
            n_columns, first = len(row), number
        if len(row) != n_columns:
            raise ValueError(
                f"{name}, line {number}: {_count(len(row), 'column')} found, expected "
                f"{n_columns}{f' as in line {first}' if first else ''}: {_shortened(line)}"
            )
        sentence.append(row)
    if sentence:
        yield sentence


def write_columns(
    file: TextIO,
    sentences: Iterable[Sequence[Sequence[str]]],
    labels: Iterable[Sequence[str]] | None = None,
    *,
    separator: str = " ",
) -> None:
    """Write sentences as columns, with one more column at the end if ``labels`` are given.

    Parameters
    ----------
    file : text file
    sentences : iterable of sequences of rows
        As :func:`read_columns` yields them.
    labels : iterable of sequences of str, optional
        The column to append: for each sentence one label a row. Read in step with
        ``sentences``, so that both may be generators.
    separator : str, default=" "
        A space is what conlleval expects, a tab what CRF++ writes.

    Raises
    ------
    ValueError
        The lengths of sentences and labels differ, or a column could not be read back: it is
        empty or holds the separator or a line break.
    """
    missing = object()
    rest = None if labels is None else iter(labels)
    s = -1
    for s, sentence in enumerate(sentences):
        rows = sentence
        if rest is not None:
            column = next(rest, missing)
            if column is missing:
                raise ValueError(f"labels has {s} sentences, but sentences has more")
            rows = _appended(sentence, column, s)
        file.writelines(_line(row, separator, s, t) for t, row in enumerate(rows))
        file.write("\n")
    if rest is not None and next(rest, missing) is not missing:
        raise ValueError(f"labels has more sentences than the {s + 1} of sentences")


def read_crfsuite(
    file: Iterable[str], *, name: str | None = None, labelled: bool = True
) -> Iterator[tuple[list[str], list[Item]]]:
    r"""Read sequences from a file in CRFsuite's attribute format.

    Parameters
    ----------
    file : text file or iterable of str
        Lines of text; only as much is read as the sequences asked for need.
    name : str, optional
        What errors call the file; its own ``name`` if it has one.
    labelled : bool, default=True
        Refuse lines without a label. If False such lines, which start with a tab, have the
        label ``""``: data to tag.

    Yields
    ------
    labels : list of str
    items : list of (list of str or dict)
        The attributes of an item are a list if none has a value, otherwise a dict
        {attribute: value} in which the values of repeated attributes are added. Equal
        attributes are one object.

    Raises
    ------
    ValueError
        A label is missing, a value is no finite number, an attribute has no name or a second
        unescaped colon, or a byte does not belong to the file's encoding. CRFsuite itself
        reads the like as 0 or as another attribute.
    """
    name = _name_of(file, name)
    labels: list[str] = []
    items: list[Item] = []
    shared: dict[str, str] = {}
    for number, line in _numbered_lines(file, name):
        if line.strip(" "):
            label, *attributes = line.split("\t")
            try:
                labels.append(_label(label, labelled))
                items.append(_item(attributes, shared))
            except ValueError as error:
                raise ValueError(f"{name}, line {number}: {error}") from None
        elif items:
            yield labels, items
            labels, items = [], []
            if len(shared) > MAX_SHARED:
                shared.clear()
    if items:
        yield labels, items


def write_crfsuite(
    file: TextIO,
    labels: Iterable[Sequence[str]],
    sequences: Iterable[Sequence[Iterable[str] | Mapping[str, float | str]]],
) -> None:
    """Write sequences in CRFsuite's attribute format.

    Parameters
    ----------
    file : text file
    labels : iterable of sequences of str
        One label per item.
    sequences : iterable of sequences of items
        An item is an iterable of attributes or a mapping {attribute: value}. A value that is a
        string belongs to the name, as in python-crfsuite: {"w": "cat"} is the attribute
        ``w:cat`` with the value 1.

    Raises
    ------
    ValueError
        A sequence has not as many labels as items, or a name holds a tab or a line break.
    """
    for s, (ys, items) in enumerate(zip(labels, sequences, strict=True)):
        if len(ys) != len(items):
            raise ValueError(
                f"labels[{s}] has {_count(len(ys), 'label')} but sequences[{s}] has "
                f"{_count(len(items), 'item')}"
            )
        for label, item in zip(ys, items, strict=True):
            # An item without label and attributes still needs its tab: empty lines end sequences.
            fields = [_escaped(label), *_attribute_fields(item)]
            file.write("\t".join(fields if any(fields) else ["", ""]) + "\n")
        file.write("\n")


def _name_of(file, name):
    return str(name if name is not None else getattr(file, "name", "<input>"))


def _numbered_lines(file, name):
    """Yield (number, line without its end); a byte that cannot be decoded is a ValueError.

    A text file decodes block by block, but asks for the next block only when it has no complete
    line left. So the bad byte lies in the line after the last one yielded, or further by the
    line ends before it in the block that failed.
    """
    number = 0
    try:
        for number, line in enumerate(file, 1):
            if number == 1:
                line = line.removeprefix("\ufeff")
            yield number, line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        skipped = error.object.count(b"\n", 0, error.start)
        raise ValueError(
            f"{name}, line {number + 1 + skipped}: byte 0x{error.object[error.start]:02x} is not "
            f"{error.encoding}, expected a file in that encoding"
        ) from None


def _appended(sentence, labels, s):
    if len(sentence) != len(labels):
        raise ValueError(
            f"labels[{s}] has {_count(len(labels), 'label')} but sentences[{s}] has "
            f"{_count(len(sentence), 'row')}"
        )
    return [[*row, label] for row, label in zip(sentence, labels, strict=True)]


def _line(row, separator, s, t):
    line = separator.join(row)
    if line.count(separator) != len(row) - 1 or "" in row or "\n" in line or "\r" in line:
        raise ValueError(
            f"sentences[{s}][{t}] is {list(row)}, expected columns that are not empty and hold "
            f"neither {separator!r} nor a line break"
        )
    return line + "\n"


def _label(field, labelled):
    name, *value = _parts(field)
    if value:
        raise ValueError(rf"label {field!r} has a colon, expected \: for a colon in a label")
    if labelled and not name:
        raise ValueError("the label is empty, expected a label, a tab, and the attributes")
    return name


def _item(fields, shared):
    """Return the attributes of the fields: a list of names, or a dict if one has a value."""
    fields = list(filter(None, map(shared.setdefault, fields, fields)))
    text = "".join(fields)
    if ":" not in text and "\\" not in text:
        return fields
    attributes = [_attribute(field, shared) for field in fields]
    if all(value is None for _, value in attributes):
        return [name for name, _ in attributes]
    item: dict[str, float] = {}
    for name, value in attributes:
        item[name] = item.get(name, 0.0) + (1.0 if value is None else value)
    return item


def _attribute(field, shared):
    """Return the name and the value of an attribute, None if it has none."""
    name, *values = _parts(field)
    name = shared.setdefault(name, name)
    hint = r"; a colon in a name is written \:"
    if not name:
        raise ValueError(f"attribute {field!r} has no name{hint}")
    if len(values) > 1:
        raise ValueError(f"attribute {field!r} has {len(values)} colons, expected at most 1{hint}")
    if not values or not values[0]:
        return name, None
    try:
        value = float(values[0])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(
            f"attribute {field!r} has the value {values[0]!r}, expected a finite number{hint}"
        )
    return name, value


def _parts(field):
    """Split a field at its unescaped colons and undo the escapes."""
    parts, start = [], 0
    while start <= len(field):
        found = _part.match(field, start)
        parts.append(_escape.sub(r"\1", found.group()))
        start = found.end() + 1
    return parts


def _attribute_fields(item):
    if not isinstance(item, Mapping):
        return [_escaped(name) for name in item]
    return [
        _escaped(f"{name}:{value}") if isinstance(value, str) else f"{_escaped(name)}:{value + 0.0}"
        for name, value in item.items()
    ]


def _escaped(name):
    if "\t" in name or "\n" in name or "\r" in name:
        raise ValueError(f"{name!r} holds a tab or a line break, which the format cannot hold")
    return name.replace("\\", "\\\\").replace(":", "\\:")


def _count(number, noun):
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _shortened(line, limit=60):
    return repr(line if len(line) <= limit else line[:limit] + "...")
