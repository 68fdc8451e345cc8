"""Small random problems of pystruct's models, and their twins by enumeration.

The feature map of a twin is the model's own ``joint_feature`` of every labelling: nothing here asks
our package what a score or a weight is.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from reference import EnumeratedProblem, EnumeratedSample, enumerate_labelings
from strategies import bounded
from structures import forests, labels, loops, node_counts

pytest.importorskip("pystruct")

from pystruct.models import (
    BinaryClf,
    ChainCRF,
    DirectionalGridCRF,
    EdgeFeatureGraphCRF,
    GraphCRF,
    GridCRF,
    MultiClassClf,
    MultiLabelClf,
)

from sdcastruct.interop.pystruct import wrap
from sdcastruct.interop.pystruct.any_model import EnumeratedModel, PotentialModel


@dataclass
class PystructProblem:
    """Samples of a pystruct model; labels are int vectors from 0, whatever the model calls them."""

    model: object
    X: object
    labels: list
    n_states: int

    @property
    def Y(self):
        """The labellings as the model has them."""
        Y = [self.labelling(x, y) for x, y in zip(self.X, self.labels, strict=True)]
        return np.array(Y) if isinstance(self.X, np.ndarray) else Y

    def labelling(self, x, y):
        """Return an int vector as the model writes labellings."""
        if isinstance(self.model, BinaryClf):
            return 2 * y[0] - 1
        if isinstance(self.model, MultiClassClf):
            return y[0]
        return y.reshape(x.shape[:2]) if isinstance(self.model, GridCRF) else y

    @cached_property
    def joint(self):
        """The enumerated problem."""
        samples = []
        for x, y in zip(self.X, self.labels, strict=True):
            labelings = enumerate_labelings(len(y), self.n_states)
            features = [self.model.joint_feature(x, self.labelling(x, z)) for z in labelings]
            samples.append(EnumeratedSample(labelings, np.array(features, float), y))
        return EnumeratedProblem(samples)

    def reachable(self, w):
        """Return weights without the part that no features span: symmetric tables mix weights."""
        w = w.copy()
        K = self.n_states
        for sign, edge_features in (
            (1, getattr(self.model, "symmetric_edge_features", ())),
            (-1, getattr(self.model, "antisymmetric_edge_features", ())),
        ):
            for f in edge_features:
                first = K * self.model.n_features + f * K * K
                table = w[first : first + K * K].reshape(K, K)
                w[first : first + K * K] = ((table + sign * table.T) / 2).ravel()
        return w


def values(*shape):
    """Draw an array of bounded floats."""
    return arrays(float, shape, elements=bounded(-2.0, 2.0))


@st.composite
def sizes(draw):
    """Draw numbers of states and features."""
    return draw(st.integers(1, 3)), draw(st.integers(1, 2))


@st.composite
def chains(draw, **options):
    """Draw ChainCRF; some chains have one node."""
    K, F = draw(sizes())
    lengths = [draw(node_counts(K)) for _ in range(draw(st.integers(1, 3)))]
    X = [draw(values(T, F)) for T in lengths]
    return PystructProblem(
        ChainCRF(K, F, **options), X, [draw(labels([K] * T)) for T in lengths], K
    )


@st.composite
def graphs(draw, shapes, model=GraphCRF, n_edge_features=None, **options):
    """Draw GraphCRF or EdgeFeatureGraphCRF; some nodes are isolated, some graphs have no edges."""
    K, F = draw(sizes())
    X, Y = [], []
    for _ in range(draw(st.integers(1, 3))):
        T = draw(node_counts(K))
        edges = np.array(draw(shapes(T)), int).reshape(-1, 2)
        features = [] if n_edge_features is None else [draw(values(len(edges), n_edge_features))]
        X.append((draw(values(T, F)), edges, *features))
        Y.append(draw(labels([K] * T)))
    if n_edge_features is not None:
        options["n_edge_features"] = n_edge_features
    return PystructProblem(model(n_states=K, n_features=F, **options), X, Y, K)


@st.composite
def grids(draw, model=GridCRF, **options):
    """Draw GridCRF or DirectionalGridCRF; some grids are single pixels, rows or columns."""
    K, F = draw(sizes())
    shapes = st.sampled_from([(1, 1), (1, 3), (3, 1), (2, 2), (2, 3), (3, 2)])
    X, Y = [], []
    for _ in range(draw(st.integers(1, 3))):
        width, height = draw(shapes)
        X.append(draw(values(width, height, F)))
        Y.append(draw(labels([K] * (width * height))))
    return PystructProblem(model(n_states=K, n_features=F, **options), X, Y, K)


@st.composite
def multilabels(draw, shapes):
    """Draw MultiLabelClf with edges of some shape between the labels."""
    n, L, F = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 2))
    edges = np.array(draw(shapes(L)), int).reshape(-1, 2)
    model = MultiLabelClf(n_labels=L, n_features=F, edges=edges)
    return PystructProblem(model, draw(values(n, F)), [draw(labels([2] * L)) for _ in range(n)], 2)


@st.composite
def single_labels(draw, model, n_states=None):
    """Draw MultiClassClf or BinaryClf."""
    K, F = draw(sizes())
    K, n = n_states or K, draw(st.integers(1, 4))
    options = {} if n_states else {"n_classes": K}
    Y = [draw(labels([K])) for _ in range(n)]
    return PystructProblem(model(n_features=F, **options), draw(values(n, F)), Y, K)


def no_edges(n_nodes):
    """Draw no edges."""
    return st.just([])


def all_edges(n_nodes):
    """Draw all edges."""
    return st.just(list(combinations(range(n_nodes), 2)))


PROBLEMS = {
    "ChainCRF": chains(),
    "ChainCRF, undirected": chains(directed=False),
    "GraphCRF, trees": graphs(forests),
    "GraphCRF, loops": graphs(loops),
    "GraphCRF, directed trees": graphs(forests, directed=True),
    "GraphCRF, directed loops": graphs(loops, directed=True),
    "EdgeFeatureGraphCRF": graphs(loops, EdgeFeatureGraphCRF, 2),
    "EdgeFeatureGraphCRF, symmetric": graphs(
        loops,
        EdgeFeatureGraphCRF,
        3,
        symmetric_edge_features=[0],
        antisymmetric_edge_features=[2],
    ),
    "GridCRF": grids(),
    "GridCRF, 8 neighbours": grids(neighborhood=8),
    "DirectionalGridCRF": grids(DirectionalGridCRF),
    "MultiLabelClf, no edges": multilabels(no_edges),
    "MultiLabelClf, trees": multilabels(forests),
    "MultiLabelClf, all edges": multilabels(all_edges),
    "MultiClassClf": single_labels(MultiClassClf),
    "BinaryClf": single_labels(BinaryClf, n_states=2),
}


def instance(name):
    """Return one problem with a name from above, with random numbers in it."""
    rng, K, F, n = np.random.default_rng(0), 3, 2, 4
    kind, _, how = name.partition(", ")
    ring = np.array([[0, 1], [2, 1], [2, 3], [3, 0], [1, 3]])
    edges = [ring[: 3 if "trees" in name else 5], ring[:2], ring[:3], ring[:0]]
    if kind == "ChainCRF":
        X = [rng.normal(size=(T, F)) for T in (4, 1, 3, 2)]
        model = ChainCRF(K, F, directed=how != "undirected")
    elif kind == "GraphCRF":
        X = [(rng.normal(size=(4, F)), e) for e in edges]
        model = GraphCRF(K, F, directed="directed" in how)
    elif kind == "EdgeFeatureGraphCRF":
        X = [(rng.normal(size=(4, F)), e, rng.normal(size=(len(e), 2))) for e in edges]
        options = {"symmetric_edge_features": [0], "antisymmetric_edge_features": [1]}
        model = EdgeFeatureGraphCRF(K, F, 2, **(options if how else {}))
    elif "Grid" in kind:
        X = [rng.normal(size=(*shape, F)) for shape in ((2, 2), (1, 3), (3, 2), (1, 1))]
        options = {"neighborhood": 8} if how else {}
        model = (GridCRF if kind == "GridCRF" else DirectionalGridCRF)(K, F, **options)
    else:
        X = rng.normal(size=(n, F))
        if kind == "MultiLabelClf":
            edges = {"no edges": ring[:0], "trees": ring[:2], "all edges": ring[:3] % 3}
            K, model = 2, MultiLabelClf(3, F, edges[how])
        elif kind == "MultiClassClf":
            model = MultiClassClf(F, K)
        else:
            K, model = 2, BinaryClf(F)
    Y = [rng.integers(K, size=len(wrap(model).states(x))) for x in X]
    return PystructProblem(model, X, Y, K)


# Every problem through `wrap`, which packs it, and through the wrapper that knows its methods only.
PATHS = [
    *((name, wrap) for name in PROBLEMS if name != "EdgeFeatureGraphCRF, symmetric"),
    *((name, PotentialModel) for name in PROBLEMS if not name.endswith("Clf")),
    ("MultiClassClf", EnumeratedModel),
]
IDS = [f"{name}, {'compiled' if path is wrap else 'generic'}" for name, path in PATHS]
