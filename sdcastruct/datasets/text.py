"""The attribute templates of the tagging tasks, and the fields of a word that they look at.

At most 19 attributes a token for chunking, 20 for named entities, 13 for parts of speech: the
numbers of the paper's Table 1. Attributes of the first and the last position are not among them;
every chain model has biases for those.
"""

import re
from functools import cache

from sdcastruct.features import apply_templates
from sdcastruct.features.templates import grams

WORDS = grams("w", 1, -2, -1, 0, 1, 2) + grams("w", 2, -1, 0)

ENTITIES = (
    *WORDS,
    *grams("pos", 1, -1, 0, 1),
    *grams("shape", 1, -1, 0, 1),
    *((("lower", 0),), (("prefix2", 0),), (("prefix3", 0),), (("prefix4", 0),)),
    *((("suffix2", 0),), (("suffix3", 0),), (("suffix4", 0),)),
)

PARTS_OF_SPEECH = (
    *WORDS,
    *((("shape", 0),), (("prefix2", 0),), (("prefix3", 0),)),
    *((("suffix2", 0),), (("suffix3", 0),), (("suffix4", 0),)),
)


def word_shape(word):
    """Return the shape of a word, runs shortened: ``McCoy's`` -> ``XxXx'x``, ``1999`` -> ``0``."""
    classes = (
        "X" if c.isupper() else "x" if c.islower() else "0" if c.isdigit() else c for c in word
    )
    return re.sub(r"(.)\1+", r"\1", "".join(classes))


FIELDS = {
    "lower": str.lower,
    "shape": word_shape,
    "prefix2": lambda word: word[:2],
    "prefix3": lambda word: word[:3],
    "prefix4": lambda word: word[:4],
    "suffix2": lambda word: word[-2:],
    "suffix3": lambda word: word[-3:],
    "suffix4": lambda word: word[-4:],
}


def attributes(sentences, templates):
    """Extract the attributes of sentences given as lists of (word, pos, ...) tuples.

    Returns
    -------
    list of lists of lists of str
        Sentences, tokens, attributes.
    """
    used = {field for template in templates for field, _ in template}
    derived = {name: cache(of_word) for name, of_word in FIELDS.items() if name in used}
    return apply_templates((_fields(sentence, derived) for sentence in sentences), templates)


def _fields(sentence, derived):
    words = [token[0] for token in sentence]
    return {
        "w": words,
        "pos": [token[1] for token in sentence],
        **{name: list(map(of_word, words)) for name, of_word in derived.items()},
    }
