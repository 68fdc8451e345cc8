"""Attribute templates in the manner of CRF++ and CRFsuite.

A template is a tuple of (field, offset) pairs. At position t of a sentence it gives the attribute

    (("w", -1), ("w", 0))   ->   w[-1]|w[0]=<w of t-1>|<w of t>

and nothing where one of the offsets leaves the sentence.
"""

from collections.abc import Iterable, Mapping, Sequence

Template = tuple[tuple[str, int], ...]


def template_name(template: Template) -> str:
    """Return the name of a template's attributes, such as ``w[-1]|w[0]``."""
    return "|".join(f"{field}[{offset}]" for field, offset in template)


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
