"""Attribute lists to sparse matrices.

A sentence of T tokens becomes x, a (T, A) CSR matrix: x[t, a] is how often attribute a occurs at
token t. The corpus is built as one stacked matrix, which is then cut at the sentence bounds.
"""

from collections import defaultdict
from itertools import chain, compress, count, pairwise, repeat

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted


class Vectorizer(BaseEstimator):
    """Number the attributes of a corpus and count them token by token.

    Parameters
    ----------
    min_freq : int, default=1
        Attributes with fewer occurrences in the corpus given to ``fit`` are left out.

    Attributes
    ----------
    attributes_ : list of str
        The A attributes in order of first occurrence; ``attributes_[a]`` names column ``a``.
    """

    def __init__(self, min_freq=1):
        self.min_freq = min_freq

    def fit(self, X):
        """Learn the attributes of ``X``.

        Parameters
        ----------
        X : list of lists of lists of str
            Sentences, tokens, attributes.

        Returns
        -------
        self
        """
        self._number(_tokens(X))
        return self

    def fit_transform(self, X):
        """Learn the attributes of ``X`` and return its matrices, reading the strings once."""
        tokens = _tokens(X)
        return _matrices(self._number(tokens), tokens, X, len(self.attributes_))

    def transform(self, X):
        """Return the matrices of ``X``; attributes that ``fit`` has not kept are ignored.

        Parameters
        ----------
        X : list of lists of lists of str

        Returns
        -------
        list of csr_array of shape (T, A)
            float64 counts, int32 column indices sorted within a row.
        """
        check_is_fitted(self, "attributes_")
        tokens = _tokens(X)
        attributes = chain.from_iterable(tokens)
        columns = np.fromiter(map(self._columns.get, attributes, repeat(-1)), dtype=np.int32)
        return _matrices(columns, tokens, X, len(self.attributes_))

    def _number(self, tokens):
        """Set ``attributes_``; return the column of every attribute occurrence, -1 if dropped."""
        if self.min_freq < 1:
            raise ValueError(f"min_freq is {self.min_freq}, expected at least 1")
        codes = defaultdict(count().__next__)
        occurrences = np.fromiter(map(codes.__getitem__, chain.from_iterable(tokens)), np.int32)
        kept = np.bincount(occurrences, minlength=len(codes)) >= self.min_freq
        column = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
        self.attributes_ = list(compress(codes, kept.tolist()))
        self._columns = {name: a for a, name in enumerate(self.attributes_)}
        return column[occurrences]


def _tokens(X):
    """Return the tokens of all sentences; refuse what would iterate, but not over attributes."""
    for i, sentence in enumerate(X):
        for t, token in enumerate(sentence):
            if isinstance(token, str | dict):
                raise TypeError(
                    f"X[{i}][{t}] is a {type(token).__name__}, expected a list of attribute strings"
                )
    return list(chain.from_iterable(X))


def _matrices(columns, tokens, X, n_attributes):
    """Return one CSR matrix per sentence of ``X`` from the columns of all its attributes."""
    row_ends = np.cumsum(np.fromiter(map(len, tokens), np.int64, len(tokens)))
    known = columns >= 0
    indptr = np.zeros(len(tokens) + 1, dtype=np.int32)
    indptr[1:] = np.concatenate([[0], np.cumsum(known)])[row_ends]
    indices = columns[known]
    stacked = csr_array((np.ones(len(indices)), indices, indptr), shape=(len(tokens), n_attributes))
    stacked.sum_duplicates()
    bounds = np.cumsum([0, *map(len, X)])
    return [stacked[first:last] for first, last in pairwise(bounds)]
