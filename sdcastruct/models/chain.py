"""Linear-chain CRF with the feature map of the paper (Appendix B).

The weights are three tables laid end to end, K states and A attributes::

    attributes   (A, K)   x_t adds to column y_t
    bias         (3, K)   any position, first position, last position
    transitions  (K, K)   from y_t (row) to y_{t+1} (column)

so that dim = A K + 3 K + K^2. Scores of a chain of T nodes: T K node scores, then one table of K^2
transitions that all edges share. Marginals: T node tables, then T - 1 edge tables. Counting
numbers: +1 on edges, 1 - degree on nodes.
"""

from numbers import Integral

import numpy as np
from scipy import sparse

from sdcastruct.inference.chain import ChainEngine
from sdcastruct.models.base import Model
from sdcastruct.models.checks import check_labels, check_rows
from sdcastruct.problem import Attributes, Problem, Regions, Template


class ChainModel(Model):
    """Chains whose nodes all have the same states.

    Parameters
    ----------
    n_states : int
        Number of labels K of a node.
    n_features : int
        Number of attributes A of a node.

    Examples
    --------
    >>> import numpy as np
    >>> from sdcastruct.models import ChainModel
    >>> model = ChainModel(n_states=2, n_features=3)
    >>> problem = model.bind([np.eye(3), np.ones((1, 3))], [[0, 1, 1], [0]])
    >>> problem.n_samples, problem.dim
    (2, 16)
    """

    def __init__(self, n_states, n_features):
        for name, value, least in (("n_states", n_states, 1), ("n_features", n_features, 0)):
            if not isinstance(value, Integral) or isinstance(value, bool):
                raise TypeError(f"{name}={value!r}: expected an integer")
            if value < least:
                raise ValueError(f"{name}={value}: expected at least {least}")
        self.n_states = int(n_states)
        self.n_features = int(n_features)

    def __repr__(self):
        return f"ChainModel(n_states={self.n_states}, n_features={self.n_features})"

    @property
    def dim(self):
        """Number of weights, A K + 3 K + K^2."""
        return (self.n_features + 3 + self.n_states) * self.n_states

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
        rows, lengths = check_rows(X, self.n_features)
        truth = {}
        if Y is not None:
            labels = check_labels(Y, lengths, self.n_states)
            truth = self._truth(labels, lengths)
        return Problem(
            self._attributes(rows, lengths),
            self._regions(lengths),
            ChainEngine(lengths, self.n_states),
            **truth,
        )

    def split_marginals(self, mu, n_nodes):
        """Return node marginals of shape (T, K) and edge marginals of shape (T - 1, K, K)."""
        T, K = n_nodes, self.n_states
        return mu[: T * K].reshape(T, K), mu[T * K :].reshape(T - 1, K, K)

    def split_weights(self, w):
        """Return w as three tables (attributes (A, K), bias (3, K), transitions (K, K))."""
        K, A = self.n_states, self.n_features
        w = self._check_weights(w)
        attributes, bias, transitions = np.split(w, [A * K, (A + 3) * K])
        return attributes.reshape(A, K), bias.reshape(3, K), transitions.reshape(K, K)

    def _attributes(self, rows, lengths):
        K, A, n = self.n_states, self.n_features, lengths.size
        node_ptr = _pointers(lengths)
        node_offset = _positions(lengths) * K
        transitions = sparse.csr_matrix(np.ones((n, 1)))
        templates = [
            Template(rows, node_ptr, node_offset, 0, K),
            Template(_bias_rows(node_ptr), node_ptr, node_offset, A * K, K),
            Template(transitions, np.arange(n + 1), lengths * K, (A + 3) * K, K * K),
        ]
        return Attributes(_pointers(lengths * K + K * K), templates)

    def _regions(self, lengths):
        K, n = self.n_states, lengths.size
        nodes, pairs = lengths * K, (lengths - 1) * K * K
        single = lengths == 1
        # Nodes from first to last: 1 - degree is 0 at the ends, -1 inside, +1 if there is no edge.
        run_length = np.stack(
            [np.full(n, K), np.maximum(lengths - 2, 0) * K, np.where(single, 0, K), pairs], axis=1
        )
        run_counting = np.tile([0.0, -1.0, 0.0, 1.0], (n, 1))
        run_counting[single, 0] = 1.0
        zero, one = np.zeros_like(nodes), np.ones_like(nodes)
        segments = np.stack(
            [zero, zero, nodes, one, nodes, nodes, np.full(n, K * K), lengths - 1], axis=1
        )
        return Regions(
            _pointers(nodes + pairs),
            np.arange(n + 1, dtype=np.int64) * 4,
            run_length.ravel(),
            run_counting.ravel(),
            np.arange(n + 1, dtype=np.int64) * 2,
            segments.reshape(-1, 4),
        )

    def _truth(self, labels, lengths):
        """Return the positions of the true labelling among the marginals and among the scores."""
        K = self.n_states
        position = _positions(lengths)
        length = np.repeat(lengths, lengths)
        node = position * K + labels
        has_next = position < length - 1
        pair = (labels * K + np.roll(labels, -1))[has_next]
        position, length = position[has_next], length[has_next]
        order = np.argsort(np.concatenate([_owners(lengths), _owners(lengths - 1)]), kind="stable")
        edge_region = length * K + position * K * K + pair
        return {
            "truth_ptr": _pointers(2 * lengths - 1),
            "truth_region": np.concatenate([node, edge_region])[order],
            "truth_slot": np.concatenate([node, length * K + pair])[order],
        }


def _bias_rows(node_ptr):
    """Return the bias attributes (any, first, last) of every node as a CSR matrix."""
    bias = np.zeros((node_ptr[-1], 3))
    bias[:, 0] = 1.0
    bias[node_ptr[:-1], 1] = 1.0
    bias[node_ptr[1:] - 1, 2] = 1.0
    return sparse.csr_matrix(bias)


def _pointers(counts):
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def _owners(counts):
    """Return the sample that each of its nodes (or edges) belongs to."""
    return np.repeat(np.arange(counts.size), counts)


def _positions(counts):
    """Return 0, 1, ..., count - 1 for every count, end to end."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
