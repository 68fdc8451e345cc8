"""CoNLL-2000 chunking, CoNLL-2002 named entities, and parts of speech."""

import zipfile

from sklearn.utils import Bunch

from sdcastruct.datasets import text
from sdcastruct.datasets.fetch import fetch
from sdcastruct.datasets.treebank import read_treebank
from sdcastruct.features.templates import CHUNKING

CHUNKING_DESCR = """\
CoNLL-2000 chunking
-------------------
Base phrases of the Wall Street Journal: sections 15-18 for training (8936 sentences, 211727
tokens, 22 labels), section 20 for test (2012 sentences). Attributes: the template of CRFsuite's
chunking tutorial. E. Tjong Kim Sang and S. Buchholz, CoNLL-2000.
"""

ENTITIES_DESCR = """\
CoNLL-2002 named entities
-------------------------
Persons, organisations, locations and others in Dutch (15806 / 2895 / 5195 sentences in train /
testa / testb) and Spanish (8323 / 1915 / 1517) newspapers, 9 labels in the IOB2 scheme. The
-DOCSTART- tokens of the Dutch files are kept, so that the token count is the published one
(202931 in train). Attributes: words, parts of speech, shapes and affixes, at most 20 a token.
E. Tjong Kim Sang, CoNLL-2002. The corpus may only be used for research.
"""

POS_DESCR = """\
Parts of speech of the CoNLL-2000 corpus
----------------------------------------
The sentences of CoNLL-2000 (8936 train, 2012 test) with their part-of-speech column as the labels
(44 in train), which the Brill tagger assigned. Attributes: words, shape and affixes, at most 13
a token.
"""

TREEBANK_DESCR = """\
Parts of speech of a corpus of your own
---------------------------------------
{sentences} sentences, {tokens} tokens and {tags} labels, read from {path}.
Attributes: words, shape and affixes, at most 13 a token.
"""

LANGUAGES = {"dutch": "ned", "spanish": "esp"}


def load_conll2000(split="train"):
    """Load the CoNLL-2000 chunking task.

    Parameters
    ----------
    split : {"train", "test"}, default="train"

    Returns
    -------
    Bunch
        X : list of lists of lists of str
            Sentences, tokens, attributes; 19 at a token with two neighbours on each side.
        y : list of lists of str
            The chunk labels, such as ``B-NP``.
        tokens : list of lists of (word, pos, chunk) tuples
            The columns of the corpus.
        DESCR : str
            What this data set is.
    """
    return _task(_read_conll2000(split), CHUNKING, CHUNKING_DESCR)


def load_conll2002(language="dutch", split="train"):
    """Load the CoNLL-2002 named entity task.

    Parameters
    ----------
    language : {"dutch", "spanish"}, default="dutch"
    split : {"train", "testa", "testb", "test"}, default="train"
        ``"test"`` is ``"testb"``, the part on which results are reported.

    Returns
    -------
    Bunch
        X, y, tokens, DESCR as in :func:`load_conll2000`; tokens are (word, pos, entity) tuples.
    """
    _check_choice("language", language, tuple(LANGUAGES))
    _check_choice("split", split, ("train", "testa", "testb", "test"))
    part = "testb" if split == "test" else split
    member = f"conll2002/{LANGUAGES[language]}.{part}"
    return _task(_read_columns("conll2002.zip", member), text.ENTITIES, ENTITIES_DESCR)


def load_pos(split=None, path=None):
    """Load a part-of-speech task: the tags of the CoNLL-2000 corpus, or of a corpus of yours.

    Parameters
    ----------
    split : {"train", "test"}, default="train"
        The part of CoNLL-2000; not with `path`.
    path : str or Path, or list of them, optional
        Tagged text to read instead, such as a licensed copy of the Penn Treebank: ``.mrg`` files
        with trees, ``.pos`` or ``.tagged`` files with ``word/TAG``, folders with files of one of
        these kinds, or files of any other name with a word and its tag a line and an empty line
        between sentences. Prefer trees: ``.pos`` files do not mark sentences, which are then cut
        after full stops.

    Returns
    -------
    Bunch
        X, y, tokens, DESCR as in :func:`load_conll2000`; tokens are (word, pos) tuples.

    Examples
    --------
    The usual training sections of the Wall Street Journal, 00 to 18, from the LDC's folders::

        load_pos(path=[f"treebank_3/parsed/mrg/wsj/{section:02d}" for section in range(19)])
    """
    if path is None:
        tagged = _read_conll2000("train" if split is None else split)
        sentences = [[token[:2] for token in sentence] for sentence in tagged]
        return _task(sentences, text.PARTS_OF_SPEECH, POS_DESCR)
    if split is not None:
        raise ValueError(f"split is {split!r} and path is {path!r}, expected one of them")
    sentences = read_treebank(path)
    description = TREEBANK_DESCR.format(
        sentences=len(sentences),
        tokens=sum(map(len, sentences)),
        tags=len({tag for sentence in sentences for _, tag in sentence}),
        path=path,
    )
    return _task(sentences, text.PARTS_OF_SPEECH, description)


def _read_conll2000(split):
    _check_choice("split", split, ("train", "test"))
    return _read_columns("conll2000.zip", f"conll2000/{split}.txt")


def _read_columns(archive, member):
    """Return the sentences of a file of columns as lists of tuples of strings."""
    with zipfile.ZipFile(fetch(archive)) as corpus:
        content = corpus.read(member).decode("utf-8")
    blocks = (block.splitlines() for block in content.strip().split("\n\n"))
    return [[tuple(line.split()) for line in block if line.strip()] for block in blocks]


def _task(sentences, templates, description):
    return Bunch(
        X=text.attributes(sentences, templates),
        y=[[token[-1] for token in sentence] for sentence in sentences],
        tokens=sentences,
        DESCR=description,
    )


def _check_choice(argument, given, allowed):
    if given not in allowed:
        raise ValueError(
            f"{argument} is {given!r}, expected one of {', '.join(map(repr, allowed))}"
        )
