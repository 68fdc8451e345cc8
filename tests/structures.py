"""Small random problems of every structure, and what their documentation says about them.

A sample is a list of factors: the nodes that a table of scores is over, the attributes that it
multiplies, and where its weights lie in w. That is all the documentation of a model says, and all
that enumeration needs; nothing here asks the package where anything lies.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import prod
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from reference import EnumeratedProblem, EnumeratedSample
from scipy.sparse import csr_array
from strategies import bounded, chains, lambdas, weights

from sdcastruct.models import (
    ChainModel,
    Clique,
    GraphModel,
    MulticlassModel,
    PairwiseModel,
    TreeModel,
)

MAX_LABELINGS = 729


class Factor(NamedTuple):
    """A table of scores over nodes: entry y is attributes @ W[:, column[y]], W at offset in w."""

    nodes: tuple
    attributes: np.ndarray
    column: np.ndarray
    offset: int

    @property
    def width(self):
        """Number of columns of W."""
        return int(self.column.max()) + 1

    def add_features(self, labelings, features):
        """Add the features of this factor to those of each labeling."""
        column = self.column[tuple(labelings[:, self.nodes].T)]
        for row, value in enumerate(self.attributes):
            at = self.offset + row * self.width + column
            features[np.arange(len(labelings)), at] += value


@dataclass
class Structure:
    """Samples with the compiled problem and its enumerated twin."""

    model: object
    X: object  # as the package takes it
    Y: object
    states: list  # of each node, per sample
    factors: list  # per sample
    tables: list  # nodes of every table of split_marginals in its order, per sample
    dim: int

    @cached_property
    def problem(self):
        """The compiled problem."""
        return self.model.bind(self.X, self.Y)

    @cached_property
    def joint(self):
        """The enumerated problem."""
        return EnumeratedProblem([self._sample(i) for i in range(len(self.states))])

    @cached_property
    def judge(self):
        """The enumerated problem with the regions of the package, for dual points."""
        samples = []
        for i, s in enumerate(self.joint.samples):
            regions, counting = self._truths(i, s.labelings), self.problem.counting(i)
            s = EnumeratedSample(s.labelings, s.features, self.Y[i], regions, counting)
            samples.append(s)
        return EnumeratedProblem(samples)

    def size(self, i, w):
        """Return the largest sum of magnitudes behind a score: what rounding is relative to."""
        terms = [factor._replace(attributes=abs(factor.attributes)) for factor in self.factors[i]]
        return 1 + (self._features(terms, self.joint.samples[i].labelings) @ np.abs(w)).max()

    def _sample(self, i):
        labelings = np.array(list(product(*map(range, self.states[i]))), dtype=np.intp)
        return EnumeratedSample(labelings, self._features(self.factors[i], labelings), self.Y[i])

    def _features(self, factors, labelings):
        features = np.zeros((len(labelings), self.dim))
        for factor in factors:
            factor.add_features(labelings, features)
        return features

    def _truths(self, i, labelings):
        """Return the 0/1 region marginals of every labeling of sample i."""
        n = len(labelings)
        if isinstance(self.X, list):
            problem = self.model.bind([self.X[i]] * n, list(labelings))
        else:
            problem = self.model.bind(self.X[np.full(n, i)], labelings[:, 0])
        return np.array([problem.truth(k) for k in range(n)])

    def split(self, i, joint):
        """Return what split_marginals of sample i is, table by table."""
        labelings = self.joint.samples[i].labelings
        tables = []
        for nodes in self.tables[i]:
            table = np.zeros([self.states[i][v] for v in nodes])
            np.add.at(table, tuple(labelings[:, nodes].T), joint)
            tables.append(table)
        return tables


def flatten(tables):
    """Return split_marginals of any model as a list of tables."""
    if isinstance(tables, np.ndarray):
        return [tables]
    groups = tables.values() if isinstance(tables, dict) else tables
    return [table for group in groups for table in group]


def full(*states):
    """Return the columns of a table in which every entry has weights of its own."""
    return np.arange(prod(states)).reshape(states)


@st.composite
def rows(draw, n_rows, n_columns):
    """Draw attributes as they are given to the package, dense or CSR, and as an array."""
    x = draw(arrays(float, (n_rows, n_columns), elements=bounded(-2.0, 2.0)))
    return (csr_array(x) if draw(st.booleans()) else x), x


@st.composite
def labels(draw, states):
    """Draw a labeling."""
    return np.array([draw(st.integers(0, k - 1)) for k in states])


def chain_structure(data):
    """Return chains: attributes (A, K) | bias (3, K) | transitions (K, K)."""
    K, A = data.n_states, data.n_features
    factors, tables = [], []
    for x in data.X:
        T = len(x)
        bias = [np.array([1, t == 0, t == T - 1], float) for t in range(T)]
        pairs = [(t, t + 1) for t in range(T - 1)]
        factors.append(
            [Factor((t,), x[t], full(K), 0) for t in range(T)]
            + [Factor((t,), bias[t], full(K), A * K) for t in range(T)]
            + [Factor(pair, np.ones(1), full(K, K), (A + 3) * K) for pair in pairs]
        )
        tables.append([(t,) for t in range(T)] + pairs)
    states = [[K] * len(y) for y in data.Y]
    model = ChainModel(n_states=K, n_features=A)
    return Structure(model, data.inputs, data.Y, states, factors, tables, (A + 3 + K) * K)


@st.composite
def node_counts(draw, n_states, max_nodes=6):
    """Draw a number of nodes with few labelings."""
    return draw(
        st.integers(1, max(t for t in range(1, max_nodes + 1) if n_states**t <= MAX_LABELINGS))
    )


@st.composite
def oriented(draw, edges):
    """Draw the order and the orientation of edges."""
    edges = [edge if draw(st.booleans()) else edge[::-1] for edge in edges]
    return draw(st.permutations(edges))


@st.composite
def forests(draw, n_nodes):
    """Draw the edges of a forest, nodes, edges and ends in any order."""
    name = draw(st.permutations(range(n_nodes)))
    edges = []
    for v in range(1, n_nodes):
        parent = draw(st.integers(-1, v - 1))
        if parent >= 0:
            edges.append((name[parent], name[v]))
    return draw(oriented(edges))


@st.composite
def loops(draw, n_nodes):
    """Draw any edges."""
    pairs = list(combinations(range(n_nodes), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return draw(oriented(edges))


@st.composite
def edge_problems(draw, graphs, make, features=False, types=False, tied=False):
    """Draw nodes (A, K) | edges (R, F, K, K), or (F, columns) if tied."""
    K, A = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    F, R = draw(st.integers(1, 2)) if features else 1, draw(st.integers(2, 3)) if types else 1
    tie, column = draw(ties((K, K))) if tied else (None, full(K, K))
    width = int(column.max()) + 1
    X, Y, states, factors, tables = [], [], [], [], []
    for _ in range(draw(st.integers(1, 3))):
        T = draw(node_counts(K))
        edges = draw(graphs(T))
        given_nodes, nodes = draw(rows(T, A))
        given_edges, attributes = draw(rows(len(edges), F)) if features else (None, None)
        attributes = attributes if features else np.ones((len(edges), 1))
        kinds = [draw(st.integers(0, R - 1)) for _ in edges]
        optional = ([given_edges] if features else []) + ([np.array(kinds, int)] if types else [])
        X.append((given_nodes, np.array(edges, int).reshape(-1, 2), *optional))
        states.append([K] * T)
        Y.append(draw(labels(states[-1])))
        factors.append([Factor((v,), nodes[v], full(K), 0) for v in range(T)])
        for edge, x, r in zip(edges, attributes, kinds, strict=True):
            factors[-1].append(Factor(edge, x, column, A * K + r * F * width))
        tables.append([(v,) for v in range(T)] + [tuple(edge) for edge in edges])
    options = {"n_edge_features": F} if features else {}
    options |= ({"n_edge_types": R} if types else {}) | ({"tied": tie} if tied else {})
    return Structure(make(K, A, **options), X, Y, states, factors, tables, A * K + R * F * width)


@st.composite
def ties(draw, states):
    """Draw `tied` of a Clique, and the column of every entry of its table."""
    if len(states) > 1 and len(set(states)) == 1 and draw(st.booleans()):
        column = np.empty(states, int)
        found = {}
        for y in product(*map(range, states)):
            column[y] = found.setdefault(tuple(sorted(y)), len(found))
        return "symmetric", column
    numbers = draw(arrays(int, states, elements=st.integers(0, 3)))
    column = np.unique(numbers, return_inverse=True)[1].reshape(states)
    return column, column


@st.composite
def kinds(draw, states):
    """Draw a kind of clique over nodes with these states: Clique, F, column of every entry."""
    F = draw(st.sampled_from([None, 1, 2]))
    tied, column = draw(ties(states)) if draw(st.booleans()) else (None, full(*states))
    n_states = states[0] if len(states) == 1 and draw(st.booleans()) else states
    return Clique(n_states, F, tied), F, column


@st.composite
def node_states(draw, palette, max_nodes=6):
    """Draw the numbers of states of the nodes of a graph with few labelings."""
    states = [draw(st.sampled_from(palette))]
    for _ in range(draw(st.integers(0, max_nodes - 1))):
        k = draw(st.sampled_from(palette))
        if prod(states) * k <= MAX_LABELINGS:
            states.append(k)
    return states


@st.composite
def cliques(draw, states):
    """Draw {(states of the nodes, variant): cliques}; every node is in one, none occurs twice."""
    nodes = range(len(states))
    found = {}

    def declare(clique, variant):
        group = found.setdefault((tuple(states[v] for v in clique), variant), [])
        if set(clique) not in map(set, group):
            group.append(tuple(clique))

    for _ in range(draw(st.integers(1, 5))):
        order = draw(st.integers(1, min(3, len(states))))
        clique = draw(st.lists(st.sampled_from(nodes), min_size=order, max_size=order, unique=True))
        declare(clique, draw(st.integers(0, 1)))
    for v in set(nodes) - {v for group in found.values() for clique in group for v in clique}:
        declare((v,), 0)
    return found


@st.composite
def graph_problems(draw):
    """Draw graphs of any cliques: for each kind (F, columns)."""
    palette = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    states = [draw(node_states(palette)) for _ in range(draw(st.integers(1, 3)))]
    found = [draw(cliques(s)) for s in states]
    names = sorted({name for sample in found for name in sample})
    declared = {name: draw(kinds(name[0])) for name in names}
    X, factors, tables = [{} for _ in found], [[] for _ in found], [[] for _ in found]
    dim = 0
    for name, (_, F, column) in declared.items():
        for i, sample in enumerate(found):
            group = sample.get(name, [])
            given_rows, attributes = draw(rows(len(group), F or 1))
            attributes = np.ones((len(group), 1)) if F is None else attributes
            nodes = np.array(group, int).reshape(len(group), len(name[0]))
            if group or draw(st.booleans()):
                X[i][str(name)] = nodes if F is None else (nodes, given_rows)
            factors[i] += [
                Factor(v, x, column, dim) for v, x in zip(group, attributes, strict=True)
            ]
            tables[i] += group
        dim += (F or 1) * (int(column.max()) + 1)
    model = GraphModel({str(name): kind for name, (kind, _, _) in declared.items()})
    return Structure(model, X, [draw(labels(s)) for s in states], states, factors, tables, dim)


@st.composite
def multiclass_problems(draw):
    """Draw single nodes: (A, K)."""
    K, A, n = draw(st.integers(1, 5)), draw(st.integers(1, 3)), draw(st.integers(1, 5))
    X, x = draw(rows(n, A))
    factors = [[Factor((0,), x[i], full(K), 0)] for i in range(n)]
    return Structure(
        MulticlassModel(n_states=K, n_features=A),
        X,
        draw(labels([K] * n)),
        [[K]] * n,
        factors,
        [[(0,)]] * n,
        A * K,
    )


STRUCTURES = {
    "chain": chains().map(chain_structure),
    "tree": edge_problems(forests, TreeModel),
    "tree, edge features": edge_problems(forests, TreeModel, features=True),
    "tree, edge types": edge_problems(forests, TreeModel, types=True),
    "tree, features and types": edge_problems(forests, TreeModel, features=True, types=True),
    "pairwise": edge_problems(loops, PairwiseModel),
    "pairwise, tied": edge_problems(loops, PairwiseModel, features=True, tied=True),
    "graph": graph_problems(),
    "multiclass": multiclass_problems(),
}


@st.composite
def structure_points(draw, name, size=3.0):
    """Draw (structure, w, lam): a primal point."""
    data = draw(STRUCTURES[name])
    return data, draw(weights(data.dim, size)), draw(lambdas())
