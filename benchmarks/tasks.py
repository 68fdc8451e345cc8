"""The tasks of the benchmarks, ready to bind."""

from typing import NamedTuple

import numpy as np

from sdcastruct import datasets
from sdcastruct.features import SequenceLabelEncoder, Vectorizer
from sdcastruct.models import ChainModel

MIN_FREQ = 3
TEST_FOLD = 9


class Task(NamedTuple):
    """Samples of a chain model; for text also the attribute strings and labels behind them."""

    model: ChainModel
    X: list
    Y: list
    attributes: list | None = None
    labels: list | None = None


def ocr():
    """Return the nine training folds of the OCR letters."""
    letters = datasets.load_ocr()
    train = np.flatnonzero(letters.folds != TEST_FOLD)
    model = ChainModel(n_states=26, n_features=128)
    return Task(model, [letters.X[i] for i in train], [letters.y[i] for i in train])


def conll2000(sentences=None):
    """Return CoNLL-2000 chunking, with the attributes that occur at least three times."""
    corpus = datasets.load_conll2000()
    attributes, labels = corpus.X[:sentences], corpus.y[:sentences]
    vectorizer, encoder = Vectorizer(min_freq=MIN_FREQ), SequenceLabelEncoder()
    X, Y = vectorizer.fit_transform(attributes), encoder.fit_transform(labels)
    known = set(vectorizer.attributes_)
    kept = [[[a for a in token if a in known] for token in sentence] for sentence in attributes]
    model = ChainModel(n_states=len(encoder.classes_), n_features=len(known))
    return Task(model, X, Y, kept, labels)
