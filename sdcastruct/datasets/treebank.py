r"""Tagged sentences of the Penn Treebank, which its owners may not share: read from your own copy.

Three kinds of files, told apart by their names:

``.mrg``
    Trees, ``( (S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .)) )``. A tree is a sentence; empty
    elements, tagged ``-NONE-``, are left out.
``.pos``, ``.tagged``
    ``[ The/DT cat/NN ] sat/VBD ./.`` with brackets around noun phrases. These files do not mark
    sentences: one ends after a token tagged ``.`` and the quotes or brackets that it closes.
all others
    Columns, a word and its tag a line; an empty line ends a sentence.

The slash and the asterisk are written ``\/`` and ``\*`` in the first two; of the tags ``VBG|NN``
the first is taken.
"""

import re
from pathlib import Path

from sdcastruct.features import read_columns

CLOSING = ("''", ")", "-RRB-")


def read_treebank(path):
    """Return the sentences of files or folders, lists of (word, tag) tuples.

    Parameters
    ----------
    path : str or Path, or list of them
        Files, or folders in which all ``.mrg``, ``.pos`` and ``.tagged`` files are read, those of
        subfolders too.

    Raises
    ------
    FileNotFoundError
        There is no such file or folder.
    ValueError
        A folder has no such files, or several kinds of them; or a file is not what its name says.
    """
    paths = path if isinstance(path, list | tuple) else [path]
    if not paths:
        raise ValueError(f"path={path!r}: expected at least one file or folder")
    files = [file for entry in paths for file in _files(Path(entry))]
    return [sentence for file in files for sentence in _read(file)]


def _files(path):
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise FileNotFoundError(f"path={str(path)!r}: expected an existing file or folder")
    files = sorted(file for file in path.rglob("*") if file.suffix in READERS)
    kinds = sorted({file.suffix for file in files})
    if len(kinds) != 1:
        raise ValueError(
            f"path={str(path)!r} has {' and '.join(kinds) or 'no'} files, expected files of one "
            f"kind among {', '.join(READERS)}"
        )
    return files


def _read(file):
    with file.open(encoding="utf-8") as stream:
        sentences = READERS.get(file.suffix, _read_columns)(stream)
    if not sentences:
        raise ValueError(f"{file} has no sentences, expected at least one")
    return sentences


def _read_columns(stream):
    rows = read_columns(stream, n_columns=2)
    return [[(word, tag) for word, tag in sentence] for sentence in rows]


def _read_trees(stream):
    sentences, sentence, depth = [], [], 0
    for found in re.finditer(r"\(([^\s()]+) ([^\s()]+)\)|[()]", stream.read()):
        tag, word = found.groups()
        if tag is None:
            depth += 1 if found.group() == "(" else -1
        elif tag != "-NONE-":
            sentence.append(_token(word, tag))
        if depth < 0:
            break
        if depth == 0 and sentence:
            sentences.append(sentence)
            sentence = []
    if depth != 0:
        raise ValueError(f"{stream.name} has parentheses that do not match, expected trees")
    return sentences


def _read_tagged(stream):
    sentences, sentence, complete = [], [], False
    for token in re.sub(r"^=+$", " ", stream.read(), flags=re.MULTILINE).split():
        if token in ("[", "]"):
            continue
        word, _, tag = token.rpartition("/")
        if not word or not tag:
            raise ValueError(f"{stream.name} has {token!r}, expected tokens word/TAG")
        if complete and tag not in CLOSING:
            sentences.append(sentence)
            sentence = []
        sentence.append(_token(word, tag))
        complete = tag == "." or (complete and tag in CLOSING)
    return [*sentences, sentence] if sentence else sentences


def _token(word, tag):
    """Return a token without escapes, and with its first tag if the annotators left several."""
    return re.sub(r"\\([/*])", r"\1", word), tag.split("|")[0]


READERS = {".mrg": _read_trees, ".pos": _read_tagged, ".tagged": _read_tagged}
