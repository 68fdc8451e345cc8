"""Maps between tables over nodes in any order, and the inference that runs on them."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import ROUNDING
from scipy.special import logsumexp, softmax

from sdcastruct.inference import junction_tree
from sdcastruct.models import Clique, GraphModel
from sdcastruct.simd import kernels

EPS = np.finfo(float).eps


@st.composite
def nested_nodes(draw):
    """Draw (states of all nodes, nodes of a large table, nodes of a small one), in any order."""
    states = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    large = draw(st.permutations(range(len(states))))[: draw(st.integers(1, len(states)))]
    small = draw(st.permutations(large))[: draw(st.integers(0, len(large)))]
    return states, large, small


def entries(states, large, small):
    """Return the entry of the small table that each entry of the large one belongs to."""
    labels = dict(zip(large, np.indices([states[v] for v in large]), strict=True))
    if not small:
        return np.zeros(junction_tree.table_size(states, large), int)
    shape = [states[v] for v in small]
    return np.ravel_multi_index([labels[v] for v in small], shape).ravel()


def unrolled(states, large, small, columns=None):
    """Return the same, from a map."""
    sizes, axes = tuple(states[v] for v in large), tuple(large.index(v) for v in small)
    tied = columns is not None
    run, constant, outer, inner = junction_tree.table_map(sizes, axes, tied)
    assert outer.dtype == inner.dtype == np.int32
    base = np.add.outer(outer, inner).ravel()
    base = columns[base] if tied else base
    step = np.zeros(run, int) if constant else np.arange(run)
    return (base[:, None] + step).ravel()


@given(nested_nodes())
def test_maps_know_the_entry_of_the_small_table(tables):
    assert_array_equal(unrolled(*tables), entries(*tables))


@given(nested_nodes(), st.data())
def test_maps_of_tied_entries(tables, source):
    states, _, small = tables
    size = junction_tree.table_size(states, small)
    columns = np.array(source.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)))
    assert_array_equal(unrolled(*tables, columns), columns[entries(*tables)])


def test_maps_of_large_tables_are_short():
    run, _, outer, inner = junction_tree.table_map((2,) * 20, (19, 3))
    assert run * outer.size * inner.size == 2**20
    assert outer.size + inner.size <= 2**11


@given(nested_nodes())
def test_maps_reduce_and_expand_as_einsum_does(tables):
    states, large, small = tables
    rng = np.random.default_rng(0)
    table = rng.integers(100, size=[states[v] for v in large])
    x = rng.integers(100, size=[states[v] for v in small])
    j = unrolled(states, large, small)
    total = np.bincount(j, table.ravel(), junction_tree.table_size(states, small))
    assert_array_equal(total.reshape(x.shape), np.einsum(table, large, small))
    expanded = np.einsum(x, small, np.ones_like(table), large, large)
    assert_array_equal(x.ravel()[j], expanded.ravel())


@given(nested_nodes())
def test_strides_are_those_of_numpy(tables):
    states, large, _ = tables
    table = np.zeros([states[v] for v in large])
    assert junction_tree.table_size(states, large) == table.size
    # NumPy may give axes of length one any stride.
    wide = np.array(table.shape) > 1
    assert_array_equal(
        np.array(junction_tree.strides(states, large))[wide], np.array(table.strides)[wide] // 8
    )


def declare(states, cliques, elimination_order=None):
    """Return the model and input with one kind of clique, with features, for each tuple."""
    kinds = {str(v): Clique(tuple(states[u] for u in v), n_features=1) for v in cliques}
    x = {str(v): (np.array([v]), np.ones((1, 1))) for v in cliques}
    options = {} if elimination_order is None else {"elimination_order": elimination_order}
    return GraphModel(kinds, **options), x


def enumerated(states, cliques, tables):
    """Return the scores of all labelings, an axis for each node, by einsum."""
    axes = list(range(len(states)))
    ones = np.ones(states)
    return sum(
        np.einsum(table, list(v), ones, axes, axes)
        for v, table in zip(cliques, tables, strict=True)
    )


def check(states, cliques, size=3.0, elimination_order=None, seed=0):
    """Compare log Z, the table of every clique and the best labeling with sums over all axes."""
    model, x = declare(states, cliques, elimination_order)
    rng = np.random.default_rng(seed)
    tables = [size * rng.normal(size=[states[u] for u in v]) for v in cliques]
    problem = model.bind([x])
    theta = problem.score(0, np.concatenate([table.ravel() for table in tables]))
    scores = enumerated(states, cliques, tables)
    tolerance = 64 * EPS * (1 + sum(np.abs(table).max() for table in tables))
    mu, log_z = problem.infer(0, theta)
    assert_allclose(log_z, logsumexp(scores), rtol=0, atol=tolerance)
    joint = softmax(scores)
    for v, (table,) in zip(cliques, model.split_marginals(x, mu).values(), strict=True):
        expected = np.einsum(joint, range(len(states)), list(v))
        assert_allclose(table, expected, rtol=0, atol=tolerance)
    assert scores[tuple(problem.decode(0, theta))] >= scores.max() - tolerance


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_factors_in_every_order_of_their_axes(instruction_set, order):
    # One clique of three nodes, and a factor over each part of it, in this order of axes.
    states = [2, 3, 5]
    pairs = [(order[0], order[1]), (order[2], order[0]), (order[1], order[2])]
    check(states, [(0, 1, 2), *pairs, *((v,) for v in order)])
    check(states, [order, *pairs])


@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_separators_in_every_order_of_their_axes(instruction_set, order):
    # Two cliques of three nodes that share two; the separator is or is not a factor itself.
    a, b, c, d = order
    states = [3, 2, 4, 2]
    check(states, [(a, b, c), (d, c, b)])
    check(states, [(b, a, c), (c, d, b), (b, c)])


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33])
def test_axes_that_fill_a_register_or_not(instruction_set, width):
    for axis in range(3):
        states = [2, 3, 2]
        states[axis] = width
        check(states, [(0, 1), (1, 2), (2, 0)])
        check(states, [(1, 0), (2, 1), (0, 2)], size=1e4)
        check(states, [(0, 1), (2, 1)])


@given(st.data())
def test_any_cliques_under_any_elimination_order(source):
    states = source.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    nodes = range(len(states))
    drawn = st.lists(st.sampled_from(nodes), min_size=1, max_size=4, unique=True).map(tuple)
    cliques = source.draw(st.lists(drawn, min_size=1, max_size=6, unique=True))
    cliques += [(v,) for v in nodes if not any(v in clique for clique in cliques)]
    order = source.draw(st.permutations(nodes))
    size = source.draw(st.sampled_from([1.0, 10.0, 1e4]))
    check(
        states, cliques, size, lambda n_nodes, cliques: order, seed=source.draw(st.integers(0, 9))
    )


def test_instruction_sets_agree():
    states = [3, 5, 2, 4]
    model, x = declare(states, [(0, 1), (2, 1), (3, 2), (0, 3), (1, 3, 0)])
    problem, found = model.bind([x]), []
    before = kernels.active()
    w = np.random.default_rng(0).normal(size=problem.dim)
    for name in kernels.available():
        kernels.select(name)
        found.append(np.append(*problem.infer(0, problem.score(0, w))))
    kernels.select(before)
    for other in found[1:]:
        assert_allclose(other, found[0], rtol=ROUNDING)
