"""Nodes and edges, in any graph: a `GraphModel` that takes the inputs of `TreeModel`."""

import numpy as np
from scipy import sparse

from sdcastruct.inference.triangulation import min_fill
from sdcastruct.models.checks import as_array, check_nodes
from sdcastruct.models.clique import Clique
from sdcastruct.models.graph import GraphModel


class PairwiseModel(GraphModel):
    """Nodes with the same states and edges between any of them; loops are welcome.

    An input is a tuple ``(nodes, edges)``, or ``(nodes, edges, edge_features)`` with
    ``n_edge_features``, as for `TreeModel`. The weights are (A, K) for the nodes, then (F, K * K)
    for the edges, or (F, number of weights) if they are tied.

    Parameters
    ----------
    n_states, n_features : int
        Number of labels K of a node and of its attributes A.
    n_edge_features : int, optional
        Number of attributes F of an edge. By default an edge has one constant attribute.
    tied : "symmetric" or int array of shape (K, K), optional
        See `Clique`.
    max_table_bytes, elimination_order
        See `GraphModel`.

    Examples
    --------
    A ring of four nodes:

    >>> import numpy as np
    >>> from sdcastruct.models import PairwiseModel
    >>> model = PairwiseModel(n_states=3, n_features=4, tied="symmetric")
    >>> x = (np.eye(4), [[0, 1], [1, 2], [2, 3], [3, 0]])
    >>> model.junction_tree(x).width, model.dim
    (2, 18)
    """

    def __init__(
        self,
        n_states,
        n_features,
        n_edge_features=None,
        tied=None,
        max_table_bytes=2**30,
        elimination_order=min_fill,
    ):
        cliques = {
            "nodes": Clique(n_states, n_features),
            "edges": Clique((n_states, n_states), n_edge_features, tied),
        }
        super().__init__(cliques, max_table_bytes, elimination_order)
        self.n_states, self.n_features = n_states, n_features
        self.n_edge_features, self.tied = n_edge_features, tied

    def __repr__(self):
        return (
            f"PairwiseModel(n_states={self.n_states}, n_features={self.n_features}, "
            f"n_edge_features={self.n_edge_features}, tied={self.tied!r})"
        )

    def cliques_of(self, x):
        """Return the cliques of a tuple (nodes, edges) or (nodes, edges, edge_features)."""
        featureless = self.cliques["edges"].n_features is None
        names = ("nodes", "edges") if featureless else ("nodes", "edges", "edge_features")
        if not isinstance(x, tuple | list) or len(x) != len(names):
            found = f"{len(x)} items" if isinstance(x, tuple | list) else type(x).__name__
            raise TypeError(f"found {found}, expected a tuple ({', '.join(names)})")
        rows = x[0]
        if not sparse.issparse(rows):
            rows = as_array("nodes", rows, "expected rows of equal length")
        if rows.dtype.kind not in "fiub":
            raise TypeError(f"nodes has dtype {rows.dtype}, expected real numbers")
        if rows.ndim != 2:
            raise ValueError(f"nodes has shape {rows.shape}, expected (n_nodes, {self.n_features})")
        edges = check_nodes("edges", x[1], 2, rows.shape[0])
        nodes = np.arange(rows.shape[0])[:, None]
        return {"nodes": (nodes, rows), "edges": edges if featureless else (edges, x[2])}

    def _names(self, kind):
        if kind == "nodes":
            return "X[{}][0]", "X[{}][0]", "n_features", "node"
        return "X[{}][1]", "X[{}][2]", "n_edge_features", "edge"

    def _split(self, layout, mu):
        """Return node marginals of shape (T, K) and edge marginals of shape (E, K, K)."""
        tables = super()._split(layout, mu)
        return tables["nodes"], tables["edges"]
