"""Items to sparse matrices.

A sequence of T items becomes x, a (T, A) CSR matrix: x[t, a] is the value of attribute a in item t,
summed over its mentions. The corpus is built as one stacked matrix, of which the matrices of the
sequences are views.
"""

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sdcastruct.features.items import keep_columns, occurrences, read
from sdcastruct.features.vocabulary import Vocabulary
from sdcastruct.models.checks import check_count
from sdcastruct.models.stacked import StackedRows


class Vectorizer(BaseEstimator):
    """Number the attributes of a corpus and write its items as rows of matrices.

    An item is what python-crfsuite takes: a list, tuple or set of attribute names, or a dict from
    names to numbers, bools, strings, dicts and lists. ``{"w": "cat"}`` names the attribute
    ``w:cat``, with the value 1; nested names are joined in the same way; True is 1. Items of
    different kinds may be mixed. An attribute with the value 0 gets a column, but no entry.

    Parameters
    ----------
    min_freq : int, default=1
        Attributes with fewer mentions in the corpus given to ``fit`` are left out, whatever their
        values.

    Attributes
    ----------
    attributes_ : list of str
        The A attributes in order of first mention; ``attributes_[a]`` names column ``a``. A set
        mentions its names in no fixed order.
    vocabulary_ : Vocabulary
        The same in compact form.

    Examples
    --------
    >>> from sdcastruct.features import Vectorizer
    >>> vectorizer = Vectorizer()
    >>> (x,) = vectorizer.fit_transform([[{"w": "cat", "length": 3}, ["w:cat", "last"]]])
    >>> vectorizer.attributes_
    ['w:cat', 'length', 'last']
    >>> x.toarray()
    array([[1., 3., 0.],
           [1., 0., 1.]])
    """

    def __init__(self, min_freq=1):
        self.min_freq = min_freq

    @classmethod
    def of(cls, vocabulary, min_freq=1):
        """Return a fitted vectorizer with a given vocabulary."""
        vectorizer = cls(min_freq=min_freq)
        vectorizer.vocabulary_, vectorizer._names = vocabulary, None
        return vectorizer

    @property
    def attributes_(self):
        check_is_fitted(self, "vocabulary_")
        if self._names is None:
            self._names = self.vocabulary_.names()
        return self._names

    def get_feature_names_out(self, input_features=None):
        """Return ``attributes_`` as an array of objects."""
        return np.array(self.attributes_, dtype=object)

    def fit(self, X, y=None):
        """Learn the attributes of ``X``.

        Parameters
        ----------
        X : list of sequences of items
            No sequence is empty; an item may be.
        y : ignored

        Returns
        -------
        self
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X, y=None):
        """Learn the attributes of ``X`` and return its matrices, reading the items once."""
        min_freq = check_count("min_freq", self.min_freq, 1)
        vocabulary = Vocabulary()
        codes, values, indptr, lengths = read(X, vocabulary, learn=True)
        if min_freq > 1:
            kept = occurrences(codes, len(vocabulary)) >= min_freq
            columns = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
            keep_columns(columns, codes, values, indptr)
            vocabulary = vocabulary.keep(kept)
        vocabulary.trim()
        self.vocabulary_, self._names = vocabulary, None
        return _stacked(codes, values, indptr, lengths, len(vocabulary))

    def transform(self, X):
        """Return the matrices of ``X``; attributes that ``fit`` has not kept are ignored.

        Parameters
        ----------
        X : list of sequences of items

        Returns
        -------
        StackedRows
            A sequence of csr_array of shape (T, A), one per sequence: float64 values, int32 column
            indices sorted within a row, no duplicates.
        """
        check_is_fitted(self, "vocabulary_")
        codes, values, indptr, lengths = read(X, self.vocabulary_, learn=False)
        return _stacked(codes, values, indptr, lengths, len(self.vocabulary_))


def _stacked(columns, values, indptr, lengths, n_columns):
    """Return entries as CSR matrices in canonical form; the arrays become their own."""
    n = indptr[-1]
    if n <= np.iinfo(np.int32).max:  # else SciPy widens the indices of the stacked matrix as well
        indptr = indptr.astype(np.int32)
    rows = csr_array((values[:n], columns[:n], indptr), shape=(len(indptr) - 1, n_columns))
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return StackedRows(rows, lengths)
