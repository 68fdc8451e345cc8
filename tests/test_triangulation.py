"""From graphs to junction trees: elimination orders, chordal graphs, running intersection."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdcastruct.inference.triangulation import (
    check_order,
    check_running_intersection,
    junction_tree,
    min_fill,
)
from sdcastruct.models import Clique, GraphModel


@st.composite
def graphs(draw, max_nodes=9):
    """Draw (n_nodes, cliques of one to four nodes)."""
    n_nodes = draw(st.integers(1, max_nodes))
    nodes = st.integers(0, n_nodes - 1)
    cliques = st.lists(st.lists(nodes, min_size=1, max_size=4, unique=True), max_size=12)
    return n_nodes, draw(cliques)


@st.composite
def ordered_graphs(draw):
    """Draw (n_nodes, cliques, any elimination order)."""
    n_nodes, cliques = draw(graphs())
    return n_nodes, cliques, draw(st.permutations(range(n_nodes)))


def neighbours_of(n_nodes, cliques):
    """Return the neighbours of every node, a list of sets."""
    near = [set() for _ in range(n_nodes)]
    for clique in cliques:
        for v in clique:
            near[v] |= set(clique) - {v}
    return near


def lacking(near, v):
    """Return the pairs of neighbours of v that are not joined."""
    return [(a, b) for a, b in combinations(sorted(near[v]), 2) if b not in near[a]]


def eliminate(near, v):
    """Join all neighbours of v and take v out; return v and these neighbours."""
    for a, b in lacking(near, v):
        near[a].add(b)
        near[b].add(a)
    clique = {v, *near[v]}
    for u in near[v]:
        near[u].remove(v)
    near[v] = set()
    return clique


def filled(n_nodes, cliques, order):
    """Return the edges of the graph that elimination leaves behind."""
    near = neighbours_of(n_nodes, cliques)
    found = [eliminate(near, v) for v in order]
    return {pair for clique in found for pair in combinations(sorted(clique), 2)}


def maximal_cliques(n_nodes, cliques, order):
    return junction_tree(n_nodes, cliques, order)[0]


def edges_of(cliques):
    return {pair for clique in cliques for pair in combinations(sorted(clique), 2)}


def connected(nodes, edges):
    """Return whether a non-empty set of nodes is connected by edges between them."""
    reached, waiting = set(), [next(iter(nodes))]
    while waiting:
        v = waiting.pop()
        reached.add(v)
        for a, b in edges:
            waiting += [u for u, w in ((a, b), (b, a)) if w == v and u in nodes - reached]
    return reached == nodes


@given(graphs())
def test_min_fill_is_the_naive_order(graph):
    check_min_fill(*graph)


@pytest.mark.parametrize("density", [0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9])
def test_min_fill_is_the_naive_order_on_larger_graphs(density):
    rng = np.random.default_rng(0)
    for n_nodes in range(2, 18):
        pairs = list(combinations(range(n_nodes), 2))
        check_min_fill(n_nodes, [pair for pair in pairs if rng.random() < density])


def check_min_fill(n_nodes, cliques):
    near, left = neighbours_of(n_nodes, cliques), set(range(n_nodes))
    for v in min_fill(n_nodes, cliques):
        assert v == min(left, key=lambda u: (len(lacking(near, u)), u))
        eliminate(near, v)
        left.remove(v)
    assert not left


@given(ordered_graphs())
def test_cliques_are_the_maximal_ones_of_the_filled_graph(graph):
    n_nodes, cliques, order = graph
    found = maximal_cliques(n_nodes, cliques, order)
    sets = [frozenset(clique) for clique in found]
    assert all(len(s) == len(clique) for s, clique in zip(sets, found, strict=True))
    assert set().union(*sets) == set(range(n_nodes))
    assert all(any(s >= set(clique) for s in sets) for clique in cliques)
    assert not any(a <= b for a in sets for b in sets if a is not b)
    assert edges_of(found) == filled(n_nodes, cliques, order)
    rank = {v: k for k, v in enumerate(order)}
    assert all(list(clique) == sorted(clique, key=rank.get) for clique in found)


@given(ordered_graphs())
def test_the_filled_graph_is_chordal(graph):
    # A graph is chordal iff nodes can be taken away, each with neighbours that are all joined.
    n_nodes, cliques, order = graph
    near = neighbours_of(n_nodes, maximal_cliques(n_nodes, cliques, order))
    left = set(range(n_nodes))
    while left:
        v = next((v for v in left if not lacking(near, v)), None)
        assert v is not None
        eliminate(near, v)
        left.remove(v)


@given(ordered_graphs())
def test_chordal_graphs_are_not_filled(graph):
    n_nodes, cliques, order = graph
    found = maximal_cliques(n_nodes, cliques, order)
    again = maximal_cliques(n_nodes, found, min_fill(n_nodes, found))
    assert set(map(frozenset, again)) == set(map(frozenset, found))


@given(ordered_graphs())
def test_running_intersection(graph):
    n_nodes, cliques, order = graph
    found, parent = junction_tree(n_nodes, cliques, order)
    assert all(p < 0 or c < p for c, p in enumerate(parent))
    edges = [(c, p) for c, p in enumerate(parent) if p >= 0]
    assert all(set(found[c]) & set(found[p]) for c, p in edges)
    for v in range(n_nodes):
        assert connected({c for c, clique in enumerate(found) if v in clique}, edges)


@given(ordered_graphs())
def test_no_spanning_tree_has_larger_separators(graph):
    found, parent = junction_tree(*graph)
    sets = [set(clique) for clique in found]
    total = sum(len(sets[c] & sets[p]) for c, p in enumerate(parent) if p >= 0)
    # Prim's algorithm, on the complete graph of all cliques.
    left, largest = set(range(1, len(sets))), 0
    joined = {0}
    while left:
        weight, c = max((len(sets[a] & sets[b]), b) for a in joined for b in left)
        largest += weight
        joined.add(c)
        left.remove(c)
    assert total == largest


@given(ordered_graphs(), st.data())
def test_running_intersection_is_checked(graph, source):
    found, parent = junction_tree(*graph)
    sets = [set(clique) for clique in found]
    separators = [sets[c] & sets[p] if p >= 0 else set() for c, p in enumerate(parent)]
    check_running_intersection(found, separators)
    c = source.draw(st.integers(0, len(found) - 1))
    separators[c] ^= {source.draw(st.sampled_from(sorted(sets[c])))}
    with pytest.raises(ValueError, match="are not connected: no junction tree"):
        check_running_intersection(found, separators)


@pytest.mark.parametrize("n", [10, 3000])
def test_hubs_are_no_trouble(n):
    # All pairs of 3000 cliques would be 4.5 million.
    cliques, parent = junction_tree(n + 1, [(0, v) for v in range(1, n + 1)], [*range(1, n + 1), 0])
    assert len(cliques) == n
    assert parent.count(-1) == 1


def tree_width(n_nodes, cliques, order=None):
    order = min_fill(n_nodes, cliques) if order is None else order
    return max(map(len, maximal_cliques(n_nodes, cliques, order))) - 1


def grid(k):
    """Return the edges of a k x k grid, nodes row by row."""
    nodes = np.arange(k * k).reshape(k, k)
    across = np.stack([nodes[:, :-1], nodes[:, 1:]], axis=-1).reshape(-1, 2)
    down = np.stack([nodes[:-1], nodes[1:]], axis=-1).reshape(-1, 2)
    return np.concatenate([across, down]).tolist()


@given(st.integers(2, 12), st.data())
def test_the_width_of_a_tree_is_one(n_nodes, source):
    name = source.draw(st.permutations(range(n_nodes)))
    parents = [source.draw(st.integers(0, v - 1)) for v in range(1, n_nodes)]
    edges = [(name[p], name[v]) for v, p in enumerate(parents, start=1)]
    assert tree_width(n_nodes, edges) == 1


@pytest.mark.parametrize("n", [3, 4, 5, 10, 50])
def test_the_width_of_a_ring_is_two(n):
    assert tree_width(n, [(v, (v + 1) % n) for v in range(n)]) == 2


@pytest.mark.parametrize("k", [2, 3, 4, 6, 9])
def test_the_width_of_a_grid_eliminated_in_rows(k):
    assert tree_width(k * k, grid(k), range(k * k)) == k
    assert tree_width(k * k, grid(k)) <= 2 * k


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_the_width_of_a_complete_graph(n):
    edges = list(combinations(range(n), 2))
    assert tree_width(n, edges) == n - 1
    assert tree_width(n, [range(n)]) == n - 1


def test_nodes_without_cliques_are_alone():
    assert min_fill(3, []) == [0, 1, 2]
    cliques, parent = junction_tree(3, [], [2, 0, 1])
    assert sorted(cliques) == [(0,), (1,), (2,)]
    assert parent == [-1, -1, -1]


BAD_ORDERS = [
    [0, 1, 2],
    [0, 1, 2, 3, 4],
    [0, 1, 2, 2],
    [1, 2, 3, 4],
    [-1, 0, 1, 2],
    [[0, 1, 2, 3]],
    [0.5, 1.0, 2.0, 3.0],
    "0123",
    None,
    3,
]
RING = {"edge": [[0, 1], [1, 2], [2, 3], [3, 0]]}


def ring_model(order=min_fill, **options):
    return GraphModel({"edge": Clique((2, 2), **options)}, elimination_order=order)


@pytest.mark.parametrize("order", BAD_ORDERS, ids=str)
def test_orders_must_name_every_node_once(order):
    model = ring_model(lambda n_nodes, cliques: order)
    message = r"elimination_order returned .*expected each node from 0 to 3 once"
    for call in (model.bind, lambda X: model.junction_tree(X[0])):
        with pytest.raises(ValueError, match=message):
            call([RING])


def test_orders_may_be_any_sequence_of_integers():
    for order in ([3, 1, 0, 2], (3, 1, 0, 2), np.array([3, 1, 0, 2], np.int8)):
        assert check_order(order, 4) == [3, 1, 0, 2]


def test_the_order_is_asked_for_the_graph_as_declared():
    asked = []

    def order(n_nodes, cliques):
        asked.append((n_nodes, [list(clique) for clique in cliques]))
        return [1, 3, 0, 2]

    tree = ring_model(order).junction_tree(RING)
    assert asked == [(4, RING["edge"])]
    assert list(tree.elimination_order) == [1, 3, 0, 2]
    assert set(map(frozenset, tree.cliques)) == {frozenset({0, 1, 2}), frozenset({0, 2, 3})}
    assert sorted(map(sorted, tree.separators)) == [[], [0, 2]]
    assert (tree.width, tree.largest_table_bytes, tree.table_bytes) == (2, 64, 128)


@pytest.mark.parametrize("n_features", [None, 1])
def test_samples_with_the_same_graph_share_one_schedule(n_features):
    calls = []

    def order(n_nodes, cliques):
        calls.append(n_nodes)
        return min_fill(n_nodes, cliques)

    def sample(nodes):
        nodes = np.array(nodes)
        return nodes if n_features is None else (nodes, np.ones((len(nodes), 1)))

    path, ring = RING["edge"][:3], RING["edge"]
    X = [{"edge": sample(edges)} for edges in [ring, path, ring, ring, path, ring[::-1]]]
    ring_model(order, n_features=n_features).bind(X, [[0, 1, 0, 1]] * 6)
    assert len(calls) == 3
