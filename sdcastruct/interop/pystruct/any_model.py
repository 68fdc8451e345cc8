"""Models that we know nothing of but pystruct's interface."""

import numpy as np
from scipy import sparse

from sdcastruct.interop.pystruct.base import PystructModel, SingleLabelModel
from sdcastruct.interop.pystruct.known_models import single_scores, with_templates
from sdcastruct.models import MulticlassModel, PairwiseModel
from sdcastruct.models.checks import check_samples
from sdcastruct.problem import Problem
from sdcastruct.problem.callback import CallbackAttributes

AGREEMENT = 1e-8  # relative: some thousand products of float64 numbers, with room to spare


class PotentialModel(PystructModel):
    """A pairwise model whose potentials and features are its own methods, called at every step."""

    def bind(self, X, Y=None):
        """Check samples and pack their graphs; scores and features stay with the model."""
        check_samples(X)
        dim, X = self.dim, list(X)
        inputs = [self._graph(f"X[{i}]", x) for i, x in enumerate(X)]
        labels = None if Y is None else [self.labels(y) for y in Y]
        graphs = self._graphs.bind(inputs, labels)
        samples = _Samples(self.model, dim, X, [len(edges) for _, edges, _ in inputs])
        attributes = CallbackAttributes(
            graphs.attributes.slot_ptr, dim, samples.scores, samples.features
        )
        problem = Problem(attributes, graphs.regions, graphs.engine, graphs.labels)
        if Y is not None:
            y = self.labelling(X[0], labels[0])
            samples.check_model(0, y, problem.gather(0, problem.truth(0)))
        return problem

    def states(self, x):
        """Return the number of states of each node of an input."""
        return self._graphs.states(self._graph("x", x))

    def split_marginals(self, x, mu):
        """Return marginals of nodes (T, K) and edges (E, K, K), as ``joint_feature`` takes them."""
        return self._graphs.split_marginals(self._graph("x", x), mu)

    @property
    def _graphs(self):
        return PairwiseModel(
            self.model.n_states,
            n_features=1,
            n_edge_features=1,
            max_table_bytes=self.max_table_bytes,
        )

    def _graph(self, name, x):
        """Return the graph of an input, with a constant for every table of scores."""
        unary = self.model._get_unary_potentials(x, np.zeros(self.dim))
        if np.ndim(unary) != 2 or np.shape(unary)[1] != self.model.n_states:
            raise ValueError(
                f"_get_unary_potentials({name}, w) has shape {np.shape(unary)}, expected "
                f"(n_nodes, {self.model.n_states})"
            )
        edges = np.asarray(self.model._get_edges(x))
        return np.ones((len(unary), 1)), edges, np.ones((len(edges), 1))


class EnumeratedModel(SingleLabelModel):
    """A model with one label per input: the features of all of them are packed."""

    def bind(self, X, Y=None):
        """Check samples and pack them into a `Problem`."""
        check_samples(X)
        dim, K = self.dim, self.model.n_states
        graphs = MulticlassModel(K, 1).bind(np.ones((len(X), 1)), Y)
        tables = [
            [joint_feature(self.model, dim, x, k, f"X[{i}], {k}") for k in range(K)]
            for i, x in enumerate(X)
        ]
        attributes = sparse.vstack([sparse.csr_matrix(rows) for rows in tables], format="csr")
        return with_templates(graphs, [single_scores(attributes, len(X), K)])


class _Samples:
    """Scores and features of bound samples, by the methods of their model."""

    def __init__(self, model, dim, X, n_edges):
        self.model, self.dim, self.X, self.n_edges = model, dim, X, n_edges
        self.linear = set()  # samples whose joint_feature of zeros is known to be zero

    def scores(self, i, w):
        """Return the potentials of nodes and edges, end to end."""
        K, E = self.model.n_states, self.n_edges[i]
        unary = np.asarray(self.model._get_unary_potentials(self.X[i], w), np.float64)
        pairwise = np.asarray(self.model._get_pairwise_potentials(self.X[i], w), np.float64)
        if pairwise.shape not in ((K, K), (E, K, K)):
            raise ValueError(
                f"_get_pairwise_potentials(X[{i}], w) has shape {pairwise.shape}, expected "
                f"{(K, K)} or {(E, K, K)}"
            )
        scores = np.concatenate([unary.ravel(), np.broadcast_to(pairwise, (E, K, K)).ravel()])
        if not np.isfinite(scores).all() and np.isfinite(w).all():
            raise ValueError(f"the potentials of X[{i}] are not finite at finite weights")
        return scores

    def features(self, i, m):
        """Return ``joint_feature`` of marginals, or of a difference of marginals.

        A model may have used that the marginals of a node sum to one; its ``joint_feature`` is then
        affine, f(m) = A m + f(0), and the linear map that agrees with it is A m + mass f(0).
        """
        K = self.model.n_states
        n = m.size - self.n_edges[i] * K * K
        unary, pairwise = m[:n].reshape(-1, K), m[n:].reshape(-1, K * K)
        features = self._joint_feature(i, (unary, pairwise))
        mass = unary[0].sum()
        if abs(mass - 1.0) > 1e-12 and i not in self.linear:
            zero = self._joint_feature(i, (np.zeros_like(unary), np.zeros_like(pairwise)))
            features -= (1.0 - mass) * zero
            if not zero.any():
                self.linear.add(i)
        return features

    def check_model(self, i, y, m):
        """Check that the methods of the model agree on a labelling with slot marginals m."""
        name = type(self.model).__name__
        features = self._joint_feature(i, y)
        try:
            expected = self.features(i, m)
        except Exception as error:
            raise TypeError(
                f"joint_feature of {name} takes the labels Y[{i}] but not their marginals, a tuple "
                f"of arrays (n_nodes, n_states) and (n_edges, n_states**2): {error}"
            ) from error
        if not np.allclose(features, expected, AGREEMENT, AGREEMENT):
            raise ValueError(
                f"joint_feature of {name} gives the labels Y[{i}] other features than their "
                "marginals"
            )
        w = features  # no weights but those that features span occur in training
        score, expected = float(self.scores(i, w) @ m), float(w @ features)
        if not np.isclose(score, expected, AGREEMENT, AGREEMENT):
            raise ValueError(
                f"the potentials of {name} for the labels Y[{i}] add up to {score:g}, but "
                f"w @ joint_feature(X[{i}], Y[{i}]) is {expected:g}: expected the same"
            )

    def _joint_feature(self, i, y):
        what = "marginals" if isinstance(y, tuple) else f"Y[{i}]"
        return joint_feature(self.model, self.dim, self.X[i], y, f"X[{i}], {what}")


def joint_feature(model, dim, x, y, name):
    """Return the features of labels or marginals, a new array, after a look at them."""
    features = np.array(model.joint_feature(x, y), np.float64)
    if features.shape != (dim,):
        raise ValueError(
            f"joint_feature({name}) has shape {features.shape}, expected (size_joint_feature,), "
            f"that is ({dim},)"
        )
    if not np.isfinite(features).all():
        raise ValueError(f"joint_feature({name}) is not finite")
    return features
