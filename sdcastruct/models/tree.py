"""Forests: every sample has its own nodes and edges, without cycles.

The weights are two tables laid end to end, K states, A attributes of a node, F of an edge and R
types of edges::

    nodes   (A, K)         x_v adds to column y_v
    edges   (R, F, K, K)   the attributes of an edge (u, v) of type r add to row y_u, column y_v

Without edge attributes F = 1: all edges of a type share one table, and so one slot. There is no
bias; append columns of ones to the attributes.
"""

import numpy as np
from scipy import sparse

from sdcastruct.inference.rooting import closing_edge
from sdcastruct.models.base import Model
from sdcastruct.models.checks import (
    as_array,
    check_count,
    check_labels,
    check_nodes,
    check_rows,
    check_samples,
)
from sdcastruct.models.forest import Forest, node_losses, owners, pointers, positions
from sdcastruct.problem import Attributes, Problem, Template


class TreeModel(Model):
    """Forests whose nodes all have the same states.

    An input is a tuple ``(nodes, edges)``, ``(nodes, edges, edge_features)``, ``(nodes, edges,
    edge_types)`` or ``(nodes, edges, edge_features, edge_types)``, as the parameters say.

    Parameters
    ----------
    n_states : int
        Number of labels K of a node.
    n_features : int
        Number of attributes A of a node.
    n_edge_features : int, optional
        Number of attributes F of an edge. By default an edge has one constant attribute.
    n_edge_types : int, default 1
        Number R of edge types, each with weights of its own.

    Examples
    --------
    A star of four nodes:

    >>> import numpy as np
    >>> from sdcastruct.models import TreeModel
    >>> model = TreeModel(n_states=3, n_features=4)
    >>> x = (np.eye(4), [[0, 1], [0, 2], [3, 0]])
    >>> problem = model.bind([x], [[0, 1, 2, 1]])
    >>> problem.dim
    21
    """

    def __init__(self, n_states, n_features, n_edge_features=None, n_edge_types=1):
        self.n_states = check_count("n_states", n_states, 1)
        self.n_features = check_count("n_features", n_features, 0)
        if n_edge_features is not None:
            n_edge_features = check_count("n_edge_features", n_edge_features, 0)
        self.n_edge_features = n_edge_features
        self.n_edge_types = check_count("n_edge_types", n_edge_types, 1)

    @property
    def dim(self):
        """Number of weights, A K + R F K^2."""
        K = self.n_states
        F = 1 if self.n_edge_features is None else self.n_edge_features
        return self.n_features * K + self.n_edge_types * F * K * K

    def bind(self, X, Y=None):
        """Check samples and pack them into a `Problem`.

        Parameters
        ----------
        X : list of tuples
            nodes : array or CSR matrix of shape (T, n_features)
            edges : int array of shape (E, 2), nodes counted from 0; any orientation
            edge_features : array or CSR matrix of shape (E, n_edge_features), if it is given
            edge_types : int array of shape (E,) from 0 to n_edge_types - 1, if there are several
        Y : list of int arrays of shape (T,), optional
            One label from 0 to n_states - 1 per node. Without Y the problem serves for
            prediction only.
        """
        check_samples(X)
        items = [_items(i, x, self._item_names) for i, x in enumerate(X)]
        rows, n_nodes = check_rows([x["nodes"] for x in items], self.n_features, "X[{}][0]")
        edges = [
            check_nodes(f"X[{i}][1]", x["edges"], 2, T)
            for i, (x, T) in enumerate(zip(items, n_nodes, strict=True))
        ]
        n_edges = np.array([len(e) for e in edges], np.int64)
        edges = np.concatenate(edges)
        _check_forest(pointers(n_nodes), pointers(n_edges), edges)
        types = self._edge_types(items, n_edges)
        labels = None if Y is None else check_labels(Y, n_nodes, self.n_states)
        if self.n_edge_features is None:
            forest, edge_attributes = self._shared_tables(n_nodes, n_edges, edges, types)
        else:
            features = self._edge_features(items, n_edges)
            forest, edge_attributes = self._own_tables(n_nodes, n_edges, edges, types, features)
        K, A = self.n_states, self.n_features
        templates = [
            Template(rows, forest.node_ptr, forest.node_offset, 0, K),
            Template(edge_attributes, pointers(forest.n_tables), forest.table_offset, A * K, K * K),
        ]
        return Problem(
            Attributes(forest.slot_ptr, templates),
            forest.regions(),
            forest.engine(),
            None if Y is None else forest.truth(labels),
        )

    def states(self, x):
        """Return the number of states of each node of an input."""
        return np.full(np.shape(x[0])[0], self.n_states)

    def split_marginals(self, x, mu):
        """Return node marginals of shape (T, K) and edge marginals of shape (E, K, K)."""
        T, K = np.shape(x[0])[0], self.n_states
        return mu[: T * K].reshape(T, K), mu[T * K :].reshape(-1, K, K)

    def split_weights(self, w):
        """Return w as two tables (nodes (A, K), edges (R, F, K, K))."""
        K, A = self.n_states, self.n_features
        nodes, edges = np.split(self._check_weights(w), [A * K])
        return nodes.reshape(A, K), edges.reshape(self.n_edge_types, -1, K, K)

    def loss_scores(self, x, y):
        """Return the Hamming loss as scores of nodes, where theta begins."""
        return node_losses(self.n_states, y)

    @property
    def _item_names(self):
        names = ["nodes", "edges"]
        if self.n_edge_features is not None:
            names.append("edge_features")
        if self.n_edge_types > 1:
            names.append("edge_types")
        return names

    def _edge_features(self, items, n_edges):
        features, counts = check_rows(
            [x["edge_features"] for x in items],
            self.n_edge_features,
            "X[{}][2]",
            columns="n_edge_features",
            row="edge",
            least=0,
        )
        for i in np.flatnonzero(counts != n_edges):
            raise ValueError(f"X[{i}][2] has {counts[i]} rows but X[{i}] has {n_edges[i]} edges")
        return features

    def _edge_types(self, items, n_edges):
        """Return the type of every edge, all samples end to end."""
        if self.n_edge_types == 1:
            return np.zeros(n_edges.sum(), np.int64)
        types = []
        for i, (x, count) in enumerate(zip(items, n_edges, strict=True)):
            name = f"X[{i}][{len(self._item_names) - 1}]"
            found = as_array(name, x["edge_types"], "expected one type per edge")
            if found.shape != (count,):
                raise ValueError(f"{name} has shape {found.shape}, expected ({count},) edge types")
            if found.size and found.dtype.kind not in "iu":
                raise TypeError(f"{name} has dtype {found.dtype}, expected integers")
            for e in np.flatnonzero((found < 0) | (found >= self.n_edge_types)):
                raise ValueError(
                    f"{name}[{e}] is {found[e]}, expected an edge type from 0 to "
                    f"{self.n_edge_types - 1} (n_edge_types={self.n_edge_types})"
                )
            types.append(found.astype(np.int64))
        return np.concatenate(types)

    def _shared_tables(self, n_nodes, n_edges, edges, types):
        """Return the forest and its edge attributes: one table for each type that a sample has."""
        R = self.n_edge_types
        owner = owners(n_edges)
        present, table = np.unique(owner * R + types, return_inverse=True)
        n_tables = np.bincount(present // R, minlength=n_edges.size)
        table = table - pointers(n_tables)[owner]
        attributes = sparse.csr_matrix(
            (np.ones(present.size), (np.arange(present.size), present % R)), (present.size, R)
        )
        return Forest(self.n_states, n_nodes, n_edges, n_tables, edges, table), attributes

    def _own_tables(self, n_nodes, n_edges, edges, types, features):
        """Return the forest and its edge attributes: one table for each edge."""
        F = self.n_edge_features
        columns = features.indices + np.repeat(types, np.diff(features.indptr)) * F
        attributes = sparse.csr_matrix(
            (features.data, columns, features.indptr), (features.shape[0], self.n_edge_types * F)
        )
        forest = Forest(self.n_states, n_nodes, n_edges, n_edges, edges, positions(n_edges))
        return forest, attributes


def _items(i, x, names):
    """Return the parts of an input by name."""
    if not isinstance(x, tuple | list) or len(x) != len(names):
        found = f"{len(x)} items" if isinstance(x, tuple | list) else type(x).__name__
        raise TypeError(f"X[{i}] is {found}, expected a tuple ({', '.join(names)})")
    return dict(zip(names, x, strict=True))


def _check_forest(node_ptr, edge_ptr, edges):
    closing = closing_edge(node_ptr, edge_ptr, edges)
    if closing is not None:
        i, e = closing
        nodes = edges[edge_ptr[i] + e].tolist()
        raise ValueError(
            f"X[{i}][1][{e}] = {nodes} closes a cycle: expected a forest (GraphModel and "
            "PairwiseModel take cycles)"
        )
