"""Attribute rows of many samples in one matrix."""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array


class StackedRows(Sequence):
    """The matrices of n samples, kept below one another in one.

    A sequence: item i is the matrix of sample i, a view. Models take it wherever they take a list
    of matrices, and do without stacking it.

    Parameters
    ----------
    rows : csr_array of shape (sum of T_i, A), float64, without duplicates
    lengths : int64 array of shape (n,)
        The numbers of rows T_i.
    """

    def __init__(self, rows, lengths):
        self.rows, self.lengths = rows, lengths
        self._first = np.concatenate([[0], np.cumsum(lengths)])

    def __len__(self):
        return self.lengths.size

    def __getitem__(self, key):
        if isinstance(key, slice):
            return [self[i] for i in range(*key.indices(len(self)))]
        i = range(len(self))[key]
        first, last = self._first[i], self._first[i + 1]
        start, end = self.rows.indptr[first], self.rows.indptr[last]
        ends = (self.rows.indptr[first : last + 1] - start).astype(np.int32, copy=False)
        indices = self.rows.indices[start:end].astype(np.int32, copy=False)
        shape = (last - first, self.rows.shape[1])
        matrix = csr_array((self.rows.data[start:end], indices, ends), shape=shape)
        matrix.has_canonical_format = True
        return matrix

    def every(self, first, step):
        """Return the matrices first, first + step, first + 2 step, ..., stacked anew."""
        chosen = np.arange(first, len(self), step)
        rows = np.concatenate([np.arange(self._first[i], self._first[i + 1]) for i in chosen])
        return StackedRows(self.rows[rows], self.lengths[chosen])
