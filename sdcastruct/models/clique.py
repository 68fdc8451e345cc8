"""Kinds of cliques: the declarations of a `GraphModel`."""

import math

import numpy as np

from sdcastruct.models.checks import as_array, check_count

LARGEST_TIED = 2**24  # entries of a table with ties, which are listed one by one


class Clique:
    """A kind of clique: its table of scores and the weights behind it.

    Parameters
    ----------
    n_states : int or tuple of int
        Number of states of each node of the clique; an int declares a clique of one node.
    n_features : int, optional
        Number of attributes F. By default a clique has one constant attribute.
    tied : "symmetric" or int array of shape n_states, optional
        Entries of the table with equal numbers, from 0 on, share one weight per attribute.
        "symmetric" ties entries that are equal up to the order of the nodes.

    Examples
    --------
    Neighbours that agree or not, whatever their labels (a Potts model):

    >>> import numpy as np
    >>> from sdcastruct.models import Clique
    >>> Clique((3, 3), tied=np.eye(3, dtype=int)).width
    2
    """

    def __init__(self, n_states, n_features=None, tied=None):
        states = tuple(n_states) if np.ndim(n_states) else (n_states,)
        if not states:
            raise ValueError(f"n_states={n_states!r}: expected at least one node")
        self.n_states = tuple(check_count("n_states", k, 1) for k in states)
        if n_features is not None:
            n_features = check_count("n_features", n_features, 0)
        self.n_features = n_features
        self.tied = _check_tied(tied, self.n_states)

    def __repr__(self):
        tied = "" if self.tied is None else f", tied to {self.width} weights"
        return f"Clique({self.n_states}, n_features={self.n_features}{tied})"

    @property
    def dim(self):
        """Number of weights."""
        return self.width * (1 if self.n_features is None else self.n_features)

    @property
    def width(self):
        """Number of weights per attribute."""
        return self.size if self.tied is None else int(self.tied.max()) + 1

    @property
    def size(self):
        """Number of entries of the table."""
        return math.prod(self.n_states)


def _check_tied(tied, n_states):
    """Return the column of each entry of a table as an int64 array, or None."""
    if tied is None:
        return None
    if math.prod(n_states) > LARGEST_TIED:
        raise ValueError(
            f"tied: a table over {n_states} states has more than {LARGEST_TIED} entries"
        )
    if isinstance(tied, str):
        if tied != "symmetric":
            raise ValueError(f"tied={tied!r}: expected 'symmetric', an int array or None")
        if len(set(n_states)) > 1:
            raise ValueError(f"tied='symmetric': expected nodes with equal states, got {n_states}")
        ordered = np.sort(np.indices(n_states).reshape(len(n_states), -1), axis=0)
        _, columns = np.unique(ordered, axis=1, return_inverse=True)
        return columns.reshape(n_states).astype(np.int64)
    columns = as_array("tied", tied, f"expected {n_states} integers")
    if columns.shape != n_states or columns.dtype.kind not in "iu":
        raise ValueError(
            f"tied has shape {columns.shape} of {columns.dtype}, expected {n_states} integers"
        )
    found = np.unique(columns)
    if not np.array_equal(found, np.arange(found.size)):
        raise ValueError(
            f"tied has the numbers {found.tolist()}: expected 0, 1, 2, ... without a gap"
        )
    return columns.astype(np.int64)
