"""The four tasks of the paper with its feature maps (Section 6.1, Table 1), lam = 1/n.

Where the paper is silent, the size of its Table 1 decides: 74658 attributes on CONLL are those that
occur at least three times (all would be 335672), 190458 on POS fit the same rule, and 310983 on NER
are far more than those that occur twice (123124), so that there all are kept.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np
from scipy import sparse

from sdcastruct import datasets
from sdcastruct.features import SequenceLabelEncoder, Vectorizer
from sdcastruct.models import ChainModel

TEST_FOLD = 9
MIN_FREQ = 3
TRAIN_SECTIONS, TEST_SECTIONS = range(19), range(22, 25)

# Table 1 of the paper: weights, sequences, nodes, labels, attributes, most attributes of a node,
# GiB of pairwise marginals.
PAPER_TABLE = {
    "OCR": {"d": 4082, "n": 6202, "N": 52827, "K": 26, "A": 128, "a": 128, "GiB": 0.2},
    "CONLL": {"d": 1643026, "n": 8936, "N": 211727, "K": 22, "A": 74658, "a": 19, "GiB": 0.7},
    "NER": {"d": 2798955, "n": 15806, "N": 202931, "K": 9, "A": 310983, "a": 20, "GiB": 0.1},
    "POS": {"d": 8572770, "n": 38219, "N": 912273, "K": 45, "A": 190458, "a": 13, "GiB": 13.0},
}

# Why our numbers are others, where they are.
DIFFERENCES = {
    "OCR": "N: the paper's is more than the 52152 letters of the whole corpus, unexplained",
    "CONLL": "A and d: CRFsuite's chunking template, attributes that occur at least 3 times; why "
    "the paper has slightly fewer, it does not say",
    "NER": "A and d: the paper does not list its attributes; ours are as many a node, none is cut",
    "POS": "all but a: this is the part-of-speech column of CoNLL-2000 (four sections of the Wall "
    "Street Journal), unless --wsj gives the licensed sections of the paper",
}


@dataclass(frozen=True, eq=False)
class Task:
    """A problem to train on and sequences to test on.

    Attributes
    ----------
    name : str
    model : ChainModel
    X, Y : list
        Training samples.
    items, labels : callable
        The same for CRFsuite: attribute strings of every node, and label strings.
    X_test : list
    truth : array
        True labels of all test nodes, -1 for labels that are not in the training data.
    """

    name: str
    model: ChainModel
    X: list
    Y: list
    items: Callable
    labels: list
    X_test: list
    truth: np.ndarray

    @cached_property
    def problem(self):
        return self.model.bind(self.X, self.Y)

    def test_error(self, w):
        """Return the share of test nodes that get a wrong label."""
        return float(np.mean(np.concatenate(self.model.decode(self.X_test, w)) != self.truth))

    def summary(self):
        """Return this task's column of Table 1."""
        n, N, K = len(self.X), sum(map(len, self.Y)), self.model.n_states
        return {
            "d": self.model.dim,
            "n": n,
            "N": N,
            "K": K,
            "A": self.model.n_features,
            "a": max(_most_attributes(x) for x in self.X),
            "GiB": (N - n) * K**2 * 8 / 2**30,
        }


def load(name, size=None, wsj=None):
    """Load a task.

    Parameters
    ----------
    name : {"OCR", "CONLL", "NER", "POS"}
    size : int, optional
        Take only so many training and test sequences, the first ones.
    wsj : str or Path, optional
        Folder with the sections 00 to 24 of the Wall Street Journal, for POS.
    """
    return LOADERS[name](size, wsj)


def _load_ocr(size, _):
    letters = datasets.load_ocr()
    train, test = (
        np.flatnonzero(pick)[:size]
        for pick in (letters.folds != TEST_FOLD, letters.folds == TEST_FOLD)
    )
    X, Y = [letters.X[i] for i in train], [letters.y[i] for i in train]
    return Task(
        name="OCR",
        model=ChainModel(n_states=26, n_features=128),
        X=X,
        Y=Y,
        items=lambda: [[[f"pixel {p}" for p in np.flatnonzero(node)] for node in x] for x in X],
        labels=[list(letters.classes[y]) for y in Y],
        X_test=[letters.X[i] for i in test],
        truth=np.concatenate([letters.y[i] for i in test]),
    )


def _load_conll(size, _):
    train, test = (datasets.load_conll2000(split) for split in ("train", "test"))
    return _text("CONLL", train, test, size, MIN_FREQ)


def _load_ner(size, _):
    train, test = (datasets.load_conll2002("dutch", split) for split in ("train", "test"))
    return _text("NER", train, test, size, min_freq=1)


def _load_pos(size, wsj):
    if wsj is None:
        train, test = (datasets.load_pos(split) for split in ("train", "test"))
    else:
        train, test = (
            datasets.load_pos(path=[Path(wsj, f"{section:02d}") for section in sections])
            for sections in (TRAIN_SECTIONS, TEST_SECTIONS)
        )
    return _text("POS", train, test, size, MIN_FREQ)


LOADERS = {"OCR": _load_ocr, "CONLL": _load_conll, "NER": _load_ner, "POS": _load_pos}


def _text(name, train, test, size, min_freq):
    vectorizer, encoder = Vectorizer(min_freq=min_freq), SequenceLabelEncoder()
    X = vectorizer.fit_transform(train.X[:size])
    Y = encoder.fit_transform(train.y[:size])
    codes = {label: code for code, label in enumerate(encoder.classes_)}

    def items():
        known = set(vectorizer.attributes_)
        return [[[a for a in node if a in known] for node in x] for x in train.X[:size]]

    return Task(
        name=name,
        model=ChainModel(len(encoder.classes_), len(vectorizer.vocabulary_)),
        X=X,
        Y=Y,
        items=items,
        labels=train.y[:size],
        X_test=vectorizer.transform(test.X[:size]),
        truth=np.array([codes.get(k, -1) for k in chain.from_iterable(test.y[:size])]),
    )


def _most_attributes(x):
    return int(np.diff(x.indptr).max()) if sparse.issparse(x) else x.shape[1]
