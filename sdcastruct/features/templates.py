"""Attribute templates in the manner of CRFsuite and CRF++.

A CRFsuite template is a tuple of (field, offset) pairs. At position t of a sentence it gives the
attribute

    (("w", -1), ("w", 0))   ->   w[-1]|w[0]=<w of t-1>|<w of t>

and nothing where one of the offsets leaves the sentence. A CRF++ template is a line of a file,

    U05:%x[-1,0]/%x[0,0]    ->   U05:<column 0 of t-1>/<column 0 of t>

and speaks at every position: k tokens before the first one reads ``_B-k``, k tokens after the
last one ``_B+k``.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

Template = tuple[tuple[str, int], ...]
Rows = Sequence[Sequence[str]]

_MACRO = re.compile(r"%x\[(-?[0-9]+),([0-9]+)\]")


def template_name(template: Template) -> str:
    """Return the name of a template's attributes, such as ``w[-1]|w[0]``."""
    return "|".join(f"{field}[{offset}]" for field, offset in template)


def grams(field: str, length: int, *starts: int) -> tuple[Template, ...]:
    """Return one template per start: ``length`` neighbouring values of a field."""
    return tuple(
        tuple((field, offset) for offset in range(start, start + length)) for start in starts
    )


# The template of CRFsuite's chunking tutorial.
CHUNKING = (
    *grams("w", 1, -2, -1, 0, 1, 2),
    *grams("w", 2, -1, 0),
    *grams("pos", 1, -2, -1, 0, 1, 2),
    *grams("pos", 2, -2, -1, 0, 1),
    *grams("pos", 3, -2, -1, 0),
)


def apply_templates(
    sentences: Iterable[Mapping[str, Sequence[str]]], templates: Iterable[Template]
) -> list[list[list[str]]]:
    """Extract the attributes of every token.

    Parameters
    ----------
    sentences : iterable of mappings
        The fields of each sentence: name -> one string per token, all of one length.
    templates : iterable of tuples of (field, offset)
        Every template contributes at most one attribute to a token.

    Returns
    -------
    list of lists of lists of str
        Sentences, tokens, attributes in the order of the templates. Equal attributes are one
        object, which keeps a corpus of millions of them small.
    """
    named = [(template_name(template) + "=", template) for template in templates]
    shared: dict[str, str] = {}
    return [_sentence_attributes(fields, named, shared) for fields in sentences]


def _sentence_attributes(fields, named, shared):
    length = len(next(iter(fields.values())))
    rows = [[] for _ in range(length)]
    for prefix, template in named:
        offsets = [offset for _, offset in template]
        first = max(0, -min(offsets))
        last = max(first, length - max(0, *offsets))
        columns = [fields[field][first + offset : last + offset] for field, offset in template]
        for row, values in zip(rows[first:last], zip(*columns, strict=True), strict=True):
            attribute = prefix + "|".join(values)
            row.append(shared.setdefault(attribute, attribute))
    return rows


class Templates(ABC):
    """Turn sentences, given as rows of columns, into the attributes of their tokens.

    Attributes
    ----------
    source : str
        What :func:`load_templates` makes the same templates of: a model file keeps it.
    transitions : bool
        Whether the templates ask for weights of label pairs.
    """

    source: str
    transitions: bool

    def extract(self, sentence: Rows) -> list[list[str]]:
        """Return the attributes of each token.

        Parameters
        ----------
        sentence : sequence of rows
            The columns of each token. Leave the label out, or a template may read it.

        Raises
        ------
        ValueError
            A template reads a column that the rows do not have.
        """
        return self._extract(sentence, {})

    def extract_all(self, sentences: Iterable[Rows]) -> list[list[list[str]]]:
        """Return the attributes of many sentences.

        Equal attributes are one object, which keeps a corpus of millions of them small.
        """
        shared: dict[str, str] = {}
        return [self._extract(sentence, shared) for sentence in sentences]

    @abstractmethod
    def check_columns(self, n_columns: int) -> None:
        """Raise a ValueError if a template reads a column beyond the first ``n_columns``."""

    @abstractmethod
    def _extract(self, sentence, shared): ...


@dataclass(frozen=True)
class FieldTemplates(Templates):
    """CRFsuite templates: named columns, and nothing said beyond the ends of a sentence.

    Parameters
    ----------
    source : str
        The name of the set.
    fields : tuple of str
        The names of the first columns.
    templates : tuple of tuples of (field, offset)
    """

    source: str
    fields: tuple[str, ...]
    templates: tuple[Template, ...]
    transitions: bool = True

    def check_columns(self, n_columns: int) -> None:
        if n_columns < len(self.fields):
            raise ValueError(
                f"templates {self.source!r} read {len(self.fields)} columns "
                f"({', '.join(self.fields)}), but there are only {n_columns} besides the label"
            )

    @cached_property
    def _named(self):
        return [(template_name(template) + "=", template) for template in self.templates]

    def _extract(self, sentence, shared):
        if not sentence:
            return []
        self.check_columns(min(map(len, sentence)))
        fields = {name: [row[c] for row in sentence] for c, name in enumerate(self.fields)}
        return _sentence_attributes(fields, self._named, shared)


@dataclass(frozen=True)
class UnigramTemplate:
    """A U line of a CRF++ template file.

    Attributes
    ----------
    line : int
        Its number in the file.
    pattern : str
        The line with ``{}`` for each macro, for ``str.format``.
    macros : tuple of (row, column)
        The arguments of each ``%x[row,column]``.
    """

    line: int
    pattern: str
    macros: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class CRFppTemplates(Templates):
    """The templates of a CRF++ template file; made by :func:`parse_crfpp`."""

    source: str
    name: str
    unigrams: tuple[UnigramTemplate, ...]
    transitions: bool

    def check_columns(self, n_columns: int) -> None:
        for template in self.unigrams:
            for row, column in template.macros:
                if column >= n_columns:
                    raise ValueError(
                        f"{self.name}, line {template.line}: %x[{row},{column}] reads column "
                        f"{column}, counted from 0, but there are only {n_columns} columns "
                        "besides the label"
                    )

    @cached_property
    def _macros(self):
        return {macro for template in self.unigrams for macro in template.macros}

    @cached_property
    def _n_columns(self):
        return 1 + max((column for _, column in self._macros), default=-1)

    def _extract(self, sentence, shared):
        if not sentence:
            return []
        n_columns = min(map(len, sentence))
        if n_columns < self._n_columns:
            self.check_columns(n_columns)
        values = self._values(sentence)
        columns = [_expanded(template, values, len(sentence)) for template in self.unigrams]
        shared_columns = (map(shared.setdefault, column, column) for column in columns)
        return list(map(list, zip(*shared_columns, strict=True)))

    def _values(self, sentence):
        """Return what each macro reads at the positions of a sentence."""
        rows = [row for row, _ in self._macros]
        before = max(0, -min(rows, default=0))
        after = max(0, max(rows, default=0))
        head = [f"_B-{k}" for k in range(before, 0, -1)]
        tail = [f"_B+{k}" for k in range(1, after + 1)]
        padded = {
            column: [*head, *(tokens[column] for tokens in sentence), *tail]
            for column in {column for _, column in self._macros}
        }
        return {
            (row, column): padded[column][before + row : before + row + len(sentence)]
            for row, column in self._macros
        }


def _expanded(template, values, length):
    """Return the attributes of a template at the positions of a sentence."""
    if not template.macros:
        return [template.pattern.format()] * length
    return list(map(template.pattern.format, *(values[macro] for macro in template.macros)))


def parse_crfpp(text: str, name: str = "template") -> CRFppTemplates:
    """Parse a template file of CRF++.

    Lines that start with U are attributes, in which ``%x[row,column]`` stands for a column of
    the token ``row`` places away; offsets are not limited to CRF++'s -4 to 4. A plain ``B`` asks
    for transitions. Empty lines and those that start with # are skipped.

    Parameters
    ----------
    text : str
        The content of the file.
    name : str, default="template"
        What errors call the file.

    Raises
    ------
    ValueError
        The line and what is wrong: a line of unknown type, a bad macro, a B line with macros,
        no U line at all.

    Examples
    --------
    >>> templates = parse_crfpp("U01:%x[-1,0]/%x[0,0]")
    >>> templates.extract([["The"], ["cat"]])
    [['U01:_B-1/The'], ['U01:The/cat']]
    """
    unigrams, transitions = [], False
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        pattern, macros = _parsed_line(line, f"{name}, line {number}")
        if line.startswith("U"):
            unigrams.append(UnigramTemplate(number, pattern, macros))
        transitions = transitions or line.startswith("B")
    if not unigrams:
        raise ValueError(f"{name}: no line starts with U, expected one such as U00:%x[0,0]")
    return CRFppTemplates(text, name, tuple(unigrams), transitions)


def _parsed_line(line, where):
    """Return the pattern and the macros of a U or B line."""
    if line[0] not in "UB":
        raise ValueError(
            f"{where}: unknown type of line {line!r}, expected U, B or # as the first character"
        )
    literals, rows, columns = (_MACRO.split(line)[part::3] for part in range(3))
    for literal in literals:
        if "%" in literal:
            bad = re.search(r"%[^%\]]*\]?", literal).group()
            raise ValueError(
                f"{where}: bad macro {bad!r}, expected %x[row,column] such as %x[-1,0]"
            )
    if line[0] == "B" and rows:
        raise ValueError(
            f"{where}: {line!r} is not supported: transitions do not depend on the tokens, "
            "expected a plain B"
        )
    pattern = "{}".join(part.replace("{", "{{").replace("}", "}}") for part in literals)
    macros = tuple((int(row), int(column)) for row, column in zip(rows, columns, strict=True))
    return pattern, macros


BUILT_IN = {"chunking": FieldTemplates("chunking", ("w", "pos"), CHUNKING)}


def load_templates(source: str, name: str = "template") -> Templates:
    """Return the built-in templates of a name, or those of the text of a CRF++ template file.

    Parameters
    ----------
    source : str
        ``"chunking"``, the template of CRFsuite's chunking tutorial for the columns word and
        part of speech; or the content of a template file.
    name : str, default="template"
        What errors call the file.
    """
    return BUILT_IN[source] if source in BUILT_IN else parse_crfpp(source, name)
