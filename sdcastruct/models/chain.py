"""Linear-chain CRF with the feature map of the paper (Appendix B).

The weights are three tables laid end to end, K states and A attributes::

    attributes   (A, K)   x_t adds to column y_t
    bias         (3, K)   any position, first position, last position
    transitions  (K, K)   from y_t (row) to y_{t+1} (column)

so that dim = A K + 3 K + K^2; the biases may be left out. Scores of a chain of T nodes: T K node
scores, then one table of K^2 transitions that all edges share. Marginals: T node tables, then T - 1
edge tables.
"""

from numbers import Integral

import numpy as np
from scipy import sparse

from sdcastruct.models.base import Model
from sdcastruct.models.checks import check_count, check_labels, check_rows, check_samples
from sdcastruct.models.forest import Forest, node_losses, pointers
from sdcastruct.problem import Attributes, Problem, Template, side_by_side

MOST_KEPT = 256


class ChainModel(Model):
    """Chains whose nodes all have the same states.

    Parameters
    ----------
    n_states : int
        Number of labels K of a node.
    n_features : int
        Number of attributes A of a node.
    forbidden : list of pairs of int, optional
        Transitions (from, to) that no labelling may have; (None, to) forbids to begin with a label.
    bias : bool, default True
        Whether labels have weights for any, for the first and for the last position.

    Examples
    --------
    >>> import numpy as np
    >>> from sdcastruct.models import ChainModel
    >>> model = ChainModel(n_states=2, n_features=3)
    >>> problem = model.bind([np.eye(3), np.ones((1, 3))], [[0, 1, 1], [0]])
    >>> problem.n_samples, problem.dim
    (2, 16)
    """

    def __init__(self, n_states, n_features, forbidden=None, bias=True):
        self.n_states = check_count("n_states", n_states, 1)
        self.n_features = check_count("n_features", n_features, 0)
        self.bias = bool(bias)
        self.forbidden = None if not forbidden else [tuple(pair) for pair in forbidden]
        self._allowed = self._allowed_first = None
        self._kept = {}
        if self.forbidden:
            self._set_allowed()

    @property
    def dim(self):
        """Number of weights, A K + 3 K + K^2 with biases."""
        return (self.n_features + self._n_biases + self.n_states) * self.n_states

    @property
    def _n_biases(self):
        return 3 if self.bias else 0

    def bind(self, X, Y=None):
        """Check samples and pack them into a `Problem`.

        Parameters
        ----------
        X : list of arrays or CSR matrices of shape (T, n_features)
            One row of attributes per node.
        Y : list of int arrays of shape (T,), optional
            One label from 0 to n_states - 1 per node. Without Y the problem serves for
            prediction only.
        """
        check_samples(X)
        rows, lengths = check_rows(X, self.n_features)
        labels = None if Y is None else check_labels(Y, lengths, self.n_states)
        if labels is not None and self.forbidden:
            self._check_transitions(labels, lengths)
        forest, regions, engine, biases, transitions = self._graphs(lengths)
        if biases is not None:  # one table with the attributes: a step has fewer arrays to read
            rows = side_by_side(rows, biases)
        nodes = Template(rows, forest.node_ptr, forest.node_offset, 0, self.n_states)
        return Problem(
            Attributes(forest.slot_ptr, [nodes, transitions]),
            regions,
            engine,
            None if Y is None else forest.truth(labels),
        )

    def states(self, x):
        """Return the number of states of each node of an input."""
        return np.full(np.shape(x)[0], self.n_states)

    def split_marginals(self, x, mu):
        """Return node marginals of shape (T, K) and edge marginals of shape (T - 1, K, K)."""
        T, K = np.shape(x)[0], self.n_states
        return mu[: T * K].reshape(T, K), mu[T * K :].reshape(T - 1, K, K)

    def split_weights(self, w):
        """Return w as three tables (attributes (A, K), bias (3, K), transitions (K, K))."""
        K, A = self.n_states, self.n_features
        w = self._check_weights(w)
        attributes, bias, transitions = np.split(w, [A * K, (A + self._n_biases) * K])
        return attributes.reshape(A, K), bias.reshape(-1, K), transitions.reshape(K, K)

    def loss_scores(self, x, y):
        """Return the Hamming loss as scores of nodes, where theta begins."""
        return node_losses(self.n_states, y)

    def forbid(self, nodes, transitions):
        """Return scores of shapes (T, K) and (K, K), with -infinity for what is forbidden."""
        if not self.forbidden:
            return nodes, transitions
        nodes = nodes.copy()
        nodes[0][self._allowed_first == 0.0] = -np.inf
        return nodes, np.where(self._allowed == 0.0, -np.inf, transitions)

    def _set_allowed(self):
        """Turn the forbidden transitions into tables of 0 and 1."""
        K = self.n_states
        self._allowed, self._allowed_first = np.ones((K, K)), np.ones(K)
        for pair in self.forbidden:
            if len(pair) != 2 or any(
                not isinstance(k, Integral) or not 0 <= k < K for k in pair if k is not None
            ):
                raise ValueError(
                    f"forbidden has {pair!r}: expected (from, to) with labels from 0 to {K - 1}"
                )
            before, after = pair
            if after is None:
                raise ValueError(f"forbidden has {pair!r}: expected a label to end with")
            if before is None:
                self._allowed_first[after] = 0.0
            else:
                self._allowed[before, after] = 0.0

    def _check_transitions(self, labels, lengths):
        """Check that the true labellings have no forbidden transition."""
        node_ptr = pointers(lengths)
        allowed = np.append(True, self._allowed[labels[:-1], labels[1:]] > 0.0)
        allowed[node_ptr[:-1]] = self._allowed_first[labels[node_ptr[:-1]]] > 0.0
        for at in np.flatnonzero(~allowed):
            i = np.searchsorted(node_ptr, at, side="right") - 1
            t = at - node_ptr[i]
            before = None if t == 0 else int(labels[at - 1])
            raise ValueError(
                f"Y[{i}][{t}]: the transition {(before, int(labels[at]))} is forbidden"
            )

    def _graphs(self, lengths):
        """Return what depends on the lengths alone, kept for single chains of common lengths.

        So that a service that labels one sequence at a time does not pack the same graph again.
        """
        if lengths.size > 1:
            return self._make_graphs(lengths)
        length = int(lengths[0])
        if length not in self._kept:
            if len(self._kept) == MOST_KEPT:
                self._kept.clear()
            self._kept[length] = self._make_graphs(lengths)
        return self._kept[length]

    def _make_graphs(self, lengths):
        """Return forest, regions, engine, the bias attributes and the template of transitions."""
        K, A = self.n_states, self.n_features
        forest = Forest.chains(K, lengths)
        ones = sparse.csr_matrix(np.ones((forest.n_tables.sum(), 1)))
        first = (A + self._n_biases) * K
        tables = pointers(forest.n_tables)
        transitions = Template(ones, tables, forest.table_offset, first, K * K)
        engine = forest.engine(self._allowed, self._allowed_first)
        biases = _bias_rows(forest.node_ptr) if self.bias else None
        return forest, forest.regions(), engine, biases, transitions

    def __getstate__(self):
        return {**self.__dict__, "_kept": {}}


def _bias_rows(node_ptr):
    """Return the bias attributes (any, first, last) of every node as a CSR matrix."""
    bias = np.zeros((node_ptr[-1], 3))
    bias[:, 0] = 1.0
    bias[node_ptr[:-1], 1] = 1.0
    bias[node_ptr[1:] - 1, 2] = 1.0
    return sparse.csr_matrix(bias)
