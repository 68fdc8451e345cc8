"""Label sequences to integer sequences and back."""

from itertools import chain

import numpy as np


class SequenceLabelEncoder:
    """Encode the labels of sequences as the integers 0, ..., K-1.

    Attributes
    ----------
    classes_ : list
        The labels; label ``classes_[k]`` has the code ``k``. In sorted order where they can be
        sorted, else in order of first occurrence.
    """

    @classmethod
    def of(cls, classes):
        """Return the encoder of given labels, in this order."""
        encoder = cls()
        encoder.classes_ = list(classes)
        encoder._codes = {label: k for k, label in enumerate(encoder.classes_)}
        return encoder

    def fit(self, y):
        """Learn the labels of ``y``, a list of label sequences."""
        labels = dict.fromkeys(_plain(label) for label in chain.from_iterable(y))
        try:
            self.classes_ = sorted(labels)
        except TypeError:
            self.classes_ = list(labels)
        self._codes = {label: k for k, label in enumerate(self.classes_)}
        return self

    def transform(self, y):
        """Return one int64 array per sequence; labels not seen by ``fit`` are a ValueError."""
        return [self._encode(i, labels) for i, labels in enumerate(y)]

    def fit_transform(self, y):
        """Learn the labels of ``y`` and encode it."""
        return self.fit(y).transform(y)

    def inverse_transform(self, codes):
        """Return the label sequences, as lists, of integer sequences."""
        return [[self.classes_[k] for k in sequence] for sequence in codes]

    def _encode(self, i, labels):
        try:
            codes = [self._codes[_plain(label)] for label in labels]
        except KeyError as error:
            raise ValueError(
                f"y[{i}] has the label {error.args[0]!r}, expected one of {self.classes_}"
            ) from None
        return np.array(codes, dtype=np.int64)


def _plain(label):
    """Return a label as a Python object, so that NumPy's scalars equal it."""
    return label.item() if isinstance(label, np.generic) else label
