"""Label sequences to integer sequences and back."""

from itertools import chain

import numpy as np
from sklearn.preprocessing import LabelEncoder


class SequenceLabelEncoder:
    """Encode the labels of sequences as the integers 0, ..., K-1.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels in sorted order; label ``classes_[k]`` has the code ``k``.
    """

    def fit(self, y):
        """Learn the labels of ``y``, a list of label sequences."""
        self._encoder = LabelEncoder().fit(list(chain.from_iterable(y)))
        self.classes_ = self._encoder.classes_
        return self

    def transform(self, y):
        """Return one int64 array per sequence; labels not seen by ``fit`` are a ValueError."""
        codes = self._encoder.transform(list(chain.from_iterable(y))).astype(np.int64)
        ends = np.cumsum([len(labels) for labels in y])
        return np.split(codes, ends[:-1])

    def fit_transform(self, y):
        """Learn the labels of ``y`` and encode it."""
        return self.fit(y).transform(y)

    def inverse_transform(self, codes):
        """Return the label sequences, as lists, of integer sequences."""
        return [self.classes_[sequence].tolist() for sequence in codes]
