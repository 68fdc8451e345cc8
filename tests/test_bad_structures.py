"""Bad graphs and bad models are refused by an error that says what, where and what else."""

import re
import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array

from sdcastruct.models import (
    Clique,
    GraphModel,
    MulticlassModel,
    PairwiseModel,
    TreeModel,
)

NAN, INF = float("nan"), float("inf")
NODES = np.ones((4, 2))
PATH = [[0, 1], [2, 1], [2, 3]]
FEATURES = np.ones((3, 2))

TREE = TreeModel(n_states=3, n_features=2)
TREE_FEATURES = TreeModel(3, 2, n_edge_features=2)
TREE_TYPES = TreeModel(3, 2, n_edge_types=2)
TREE_BOTH = TreeModel(3, 2, n_edge_features=2, n_edge_types=2)
PAIRWISE = PairwiseModel(n_states=3, n_features=2)
PAIRWISE_FEATURES = PairwiseModel(3, 2, n_edge_features=2)


def refuse(model, x, error, message):
    """Bind x as the last of three samples, and see it refused."""
    good = {
        TREE: (NODES, PATH),
        TREE_FEATURES: (NODES, PATH, FEATURES),
        TREE_TYPES: (NODES, PATH, [0, 1, 0]),
        TREE_BOTH: (NODES, PATH, FEATURES, [0, 1, 0]),
        PAIRWISE: (NODES, PATH),
        PAIRWISE_FEATURES: (NODES, PATH, FEATURES),
    }[model]
    with pytest.raises(error, match=message):
        model.bind([good, good, x])


def with_value(table, value, sparse=False):
    """Return a copy of a table with one bad value."""
    table = table.copy()
    table[2, 1] = value
    return csr_array(table) if sparse else table


edge_models = pytest.mark.parametrize("model", [TREE, PAIRWISE], ids=["tree", "pairwise"])
feature_models = pytest.mark.parametrize(
    "model", [TREE_FEATURES, PAIRWISE_FEATURES], ids=["tree", "pairwise"]
)


@edge_models
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_attributes_of_nodes_must_be_finite(model, value, sparse):
    refuse(
        model, (with_value(NODES, value, sparse), PATH), ValueError, rf"X\[2\].* {value}.*finite"
    )


@feature_models
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_attributes_of_edges_must_be_finite(model, value, sparse):
    x = (NODES, PATH, with_value(FEATURES, value, sparse))
    refuse(model, x, ValueError, rf"X\[2\].* {value}.*finite")


@edge_models
@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 1], [2, 4]], r"\[1\] = \[2, 4\] has node 4: expected a node from 0 to 3"),
        ([[0, 1], [-1, 2]], r"\[1\] = \[-1, 2\] has node -1: expected a node from 0 to 3"),
        ([[0, 10**12]], r"has node 1000000000000: expected a node from 0 to 3"),
        ([[0, 1], [3, 3]], r"\[1\] = \[3, 3\] joins a node to itself"),
        ([[0, 1], [1, 2], [0, 1]], r"\[2\] = \[0, 1\] duplicates .*\[0\] = \[0, 1\]"),
        ([[0, 1], [1, 2], [2, 1]], r"\[2\] = \[2, 1\] duplicates .*\[1\] = \[1, 2\]"),
        ([[0, 1, 2]], r"has shape \(1, 3\), expected \(.*, 2\)"),
        ([0, 1], r"has shape \(2,\), expected \(.*, 2\)"),
        (np.ones((0, 3), int), r"has shape \(0, 3\), expected \(.*, 2\)"),
        (None, r"has shape \(\), expected \(.*, 2\)"),
        ([[0, 1], [2]], r"is ragged: expected rows of 2 nodes"),
    ],
)
def test_edges(model, edges, message):
    name = r"X\[2\]\[1\]" if model is TREE else r"X\[2\]: edges"
    refuse(model, (NODES, edges), ValueError, name + ".*" + message)


@edge_models
@pytest.mark.parametrize("dtype", [float, str, bool, object])
def test_nodes_must_be_integers(model, dtype):
    edges = np.array(PATH).astype(dtype)
    refuse(model, (NODES, edges), TypeError, r"X\[2\].* has dtype .*expected integers")


def test_cycles_are_for_graphs():
    edges = [[0, 1], [3, 2], [2, 1], [0, 2]]
    refuse(
        TREE,
        (NODES, edges),
        ValueError,
        r"X\[2\]\[1\]\[3\] = \[0, 2\] closes a cycle: expected a forest \(GraphModel and Pairwise",
    )
    PAIRWISE.bind([(NODES, edges)])


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (TREE, r"nodes, edges\)"),
        (TREE_FEATURES, r"nodes, edges, edge_features\)"),
        (TREE_TYPES, r"nodes, edges, edge_types\)"),
        (TREE_BOTH, r"nodes, edges, edge_features, edge_types\)"),
        (PAIRWISE, r"nodes, edges\)"),
        (PAIRWISE_FEATURES, r"nodes, edges, edge_features\)"),
    ],
)
@pytest.mark.parametrize("items", [(), (NODES,), (NODES, PATH, FEATURES, [0], [0]), NODES, None, 3])
def test_numbers_of_items(model, expected, items):
    found = f"{len(items)} items" if isinstance(items, tuple) else type(items).__name__
    refuse(model, items, TypeError, rf"X\[2\].*{found}, expected a tuple \({expected}")


def test_one_sample_is_not_a_list_of_samples():
    with pytest.raises(TypeError, match=r"X\[0\] is ndarray, expected a tuple \(nodes, edges\)"):
        TREE.bind((NODES, PATH))
    with pytest.raises(TypeError, match=r"X\[0\] is str: expected a mapping .*\['pair'\]"):
        GraphModel({"pair": Clique((2, 2))}).bind({"pair": [[0, 1]]})


@edge_models
@pytest.mark.parametrize(
    ("nodes", "error", "message"),
    [
        (np.ones((4, 3)), ValueError, "has 3 columns, expected 2 .*n_features=2"),
        (np.ones((4, 2), complex), TypeError, "has dtype complex128, expected real numbers"),
        (np.ones((4, 2, 1)), ValueError, r"has shape \(4, 2, 1\), expected \(.*, 2\)"),
        ([[1.0, 2.0], [3.0], [4.0, 5.0], [6.0, 7.0]], ValueError, "is ragged: expected rows"),
        (None, TypeError, "has dtype object, expected real numbers"),
    ],
)
def test_tables_of_nodes(model, nodes, error, message):
    refuse(model, (nodes, PATH), error, r"X\[2\].*" + message)


@edge_models
def test_a_graph_has_nodes(model):
    refuse(
        model, (np.ones((0, 2)), []), ValueError, r"X\[2\].* has no (rows|cliques).*at least one"
    )


@feature_models
@pytest.mark.parametrize("n_rows", [0, 2, 4])
def test_numbers_of_edges_and_features_must_match(model, n_rows):
    x = (NODES, PATH, np.ones((n_rows, 2)))
    refuse(model, x, ValueError, rf"X\[2\].* has {n_rows} rows .* 3 (edges|cliques)")


@feature_models
def test_tables_of_edges(model):
    x = (NODES, PATH, np.ones((3, 1)))
    refuse(model, x, ValueError, r"X\[2\].* has 1 columns, expected 2 .*features=2")
    refuse(
        model, (NODES, PATH, np.ones(3)), ValueError, r"X\[2\].* has shape \(3,\), expected \(.*, 2"
    )


@pytest.mark.parametrize("model", [TREE_TYPES, TREE_BOTH])
@pytest.mark.parametrize(
    ("types", "error", "message"),
    [
        ([0, 2, 0], ValueError, r"\[1\] is 2, expected an edge type from 0 to 1 \(n_edge_types=2"),
        ([0, 0, -1], ValueError, r"\[2\] is -1, expected an edge type from 0 to 1"),
        ([0, 1], ValueError, r" has shape \(2,\), expected \(3,\)"),
        ([[0], [1], [0]], ValueError, r" has shape \(3, 1\), expected \(3,\)"),
        ([0.0, 1.0, 0.0], TypeError, r" has dtype float64, expected integers"),
        ([[0], 1, 0], ValueError, r" is ragged: expected one type per edge"),
    ],
)
def test_edge_types(model, types, error, message):
    x = (NODES, PATH, types) if model is TREE_TYPES else (NODES, PATH, FEATURES, types)
    refuse(model, x, error, rf"X\[2\]\[{len(x) - 1}\]" + message)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda value: TreeModel(value, 1), "n_states"),
        (lambda value: TreeModel(2, value), "n_features"),
        (lambda value: TreeModel(2, 1, n_edge_features=value), "n_edge_features"),
        (lambda value: TreeModel(2, 1, n_edge_types=value), "n_edge_types"),
        (lambda value: PairwiseModel(value, 1), "n_states"),
        (lambda value: PairwiseModel(2, value), "n_features"),
        (lambda value: PairwiseModel(2, 1, n_edge_features=value), "n_features"),
        (lambda value: MulticlassModel(value, 1), "n_states"),
        (lambda value: MulticlassModel(2, value), "n_features"),
        (lambda value: Clique((2, value)), "n_states"),
        (lambda value: Clique(2, value), "n_features"),
        (lambda value: GraphModel({"a": Clique(2)}, max_table_bytes=value), "max_table_bytes"),
    ],
)
@pytest.mark.parametrize(("value", "error"), [(-1, ValueError), (1.5, TypeError), ("2", TypeError)])
def test_sizes_of_models(make, name, value, error):
    with pytest.raises(error, match=rf"{name}={value!r}: expected"):
        make(value)


@pytest.mark.parametrize(
    ("tied", "message"),
    [
        ("mirrored", r"tied='mirrored': expected 'symmetric', an int array or None"),
        ([[0, 1], [1, 0]], r"tied has shape \(2, 2\) of int64, expected \(2, 3\) integers"),
        (3, r"tied has shape \(\) of int64, expected \(2, 3\) integers"),
        (np.zeros((2, 3)), r"tied has shape \(2, 3\) of float64, expected \(2, 3\) integers"),
        (np.eye(2, 3, dtype=bool), r"tied has shape \(2, 3\) of bool, expected \(2, 3\) integers"),
        ([[0, 1, 3], [1, 3, 0]], r"tied has the numbers \[0, 1, 3\]: expected 0, 1, 2"),
        ([[0, 1, -1], [1, 1, 0]], r"tied has the numbers \[-1, 0, 1\]: expected 0, 1, 2"),
        ([[1, 2, 1], [1, 1, 2]], r"tied has the numbers \[1, 2\]: expected 0, 1, 2"),
        ([[0, 1], [0, 1, 0]], r"tied is ragged: expected \(2, 3\) integers"),
        ("symmetric", r"tied='symmetric': expected nodes with equal states, got \(2, 3\)"),
    ],
)
def test_ties(tied, message):
    with pytest.raises(ValueError, match=message):
        Clique((2, 3), tied=tied)


@pytest.mark.parametrize("cliques", [None, {}, [Clique(2)], {"a": (2, 2)}, {"a": Clique}])
def test_kinds_of_cliques_must_be_cliques(cliques):
    with pytest.raises(TypeError, match=r"cliques.*=.*: expected a (dict of )?Clique"):
        GraphModel(cliques)


def test_options_of_a_graph():
    with pytest.raises(ValueError, match=r"n_states=\(\): expected at least one node"):
        Clique(())
    with pytest.raises(TypeError, match=r"elimination_order='min_fill': expected a callable"):
        GraphModel({"a": Clique(2)}, elimination_order="min_fill")
    with pytest.raises(ValueError, match=r"max_table_bytes=\d+: expected at most 2\*\*34"):
        GraphModel({"a": Clique(2)}, max_table_bytes=2**60)


MIXED = GraphModel(
    {"pair": Clique((2, 2)), "mixed": Clique((2, 3)), "node": Clique(3, n_features=2)}
)
GRAPH = {"pair": [[0, 1]], "mixed": [[1, 2]], "node": ([[2]], np.ones((1, 2)))}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"triple": [[0, 1, 2]]}, ValueError, r"has cliques 'triple': expected \['pair', 'mixed'"),
        ({"pair": [[0, 4]]}, ValueError, r"has node 4 but node 3 in no clique: expected every"),
        ({"pair": [[0, 10**12]]}, ValueError, r"has node 10{12} but node 3 in no clique"),
        ({"pair": [[1, 3]]}, ValueError, r"has node 3 but node 0 in no clique: expected every"),
        ({"pair": [[0, -1]]}, ValueError, r"\['pair'\]\[0\] = \[0, -1\] has node -1: expected"),
        ({"pair": [[1, 1]]}, ValueError, r"\['pair'\]\[0\] = \[1, 1\] joins a node to itself"),
        ({"pair": [[0, 1], [1, 0]]}, ValueError, r"\['pair'\]\[1\] = \[1, 0\] duplicates .*\[0\]"),
        ({"pair": [[0, 1, 2]]}, ValueError, r"\['pair'\] has shape \(1, 3\), expected \(.*, 2\)"),
        ({"pair": [[0.0, 1.0]]}, TypeError, r"\['pair'\] has dtype float64, expected integers"),
        ({"pair": [[0, 1], [0, 2]]}, ValueError, r"\[0\] gives node 2 3 states, .* gives it 2"),
        ({"mixed": [[1, 0]]}, ValueError, r"\['mixed'\]\[0\] gives node 0 3 states, .* it 2"),
        ({"node": [[2]]}, TypeError, r"\['node'\]: expected a tuple \(nodes, features\)"),
        (
            {"node": ([[2]], np.ones((2, 2)))},
            ValueError,
            r"\['node'\]\[1\] has 2 rows .* 1 cliques",
        ),
        ({"node": ([[2]], np.ones((1, 3)))}, ValueError, r"\['node'\].* has 3 columns, expected 2"),
        ({"node": ([[2]], [[1.0, NAN]])}, ValueError, r"\['node'\].* contains nan: .*finite"),
        ({"node": ([[2]], None)}, TypeError, r"\['node'\].* has dtype object, expected real"),
    ],
)
def test_cliques_of_a_graph(change, error, message):
    with pytest.raises(error, match=r"X\[1\].*" + message):
        MIXED.bind([GRAPH, GRAPH | change])


@pytest.mark.parametrize("x", [{}, {"pair": []}, {"node": ()}])
def test_a_graph_has_cliques(x):
    with pytest.raises(ValueError, match=r"X\[1\] has no cliques: expected at least one"):
        MIXED.bind([GRAPH, x])


@pytest.mark.parametrize("x", [None, 3, [[0, 1]], ([[0, 1]],)])
def test_a_graph_is_a_mapping(x):
    found = type(x).__name__
    with pytest.raises(
        TypeError, match=rf"X\[1\] is {found}: expected a mapping .*'pair', 'mixed'"
    ):
        MIXED.bind([GRAPH, x])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 2, 0], r"Y\[1\]\[1\] is 2, expected a label from 0 to 1 \(n_states=2\)"),
        ([0, 0, 3], r"Y\[1\]\[2\] is 3, expected a label from 0 to 2 \(n_states=3\)"),
        ([-1, 0, 2], r"Y\[1\]\[0\] is -1, expected a label from 0 to 1"),
        ([0, 0], r"Y\[1\] has 2 labels but X\[1\] has 3 nodes"),
        ([[0, 0, 0]], r"Y\[1\] has shape \(1, 3\) but X\[1\] has 3 nodes"),
    ],
)
def test_labels_of_a_graph(y, message):
    with pytest.raises(ValueError, match=message):
        MIXED.bind([GRAPH, GRAPH], [[0, 1, 2], y])


def test_labels_of_trees():
    with pytest.raises(ValueError, match=r"Y\[0\]\[3\] is 3, expected a label from 0 to 2"):
        TREE.bind([(NODES, PATH)], [[0, 1, 2, 3]])
    with pytest.raises(ValueError, match=r"Y\[0\] has 3 labels but X\[0\] has 4 nodes"):
        PAIRWISE.bind([(NODES, PATH)], [[0, 1, 2]])


@pytest.mark.parametrize(
    ("X", "Y", "error", "message"),
    [
        (np.ones(2), [0, 1], ValueError, r"X has shape \(2,\), expected \(n_samples, 2\)"),
        (np.ones((2, 3)), [0, 1], ValueError, r"X has 3 columns, expected 2 \(n_features=2\)"),
        (np.ones((0, 2)), [], ValueError, r"X has no rows: expected at least one sample"),
        ([[1.0, INF]], [0], ValueError, r"X contains inf: expected finite numbers"),
        (np.ones((2, 2)), [0, 3], ValueError, r"Y\[1\].* is 3, expected a label from 0 to 2"),
        (np.ones((2, 2)), [0, -1], ValueError, r"Y\[1\].* is -1, expected a label from 0 to 2"),
        (np.ones((2, 2)), [0], ValueError, r"Y has 1 samples but X has 2"),
        (np.ones((2, 2)), [0.0, 1.0], TypeError, r"Y.* has dtype float64, expected integers"),
        (np.ones((2, 2)), [[0, 1], [1, 0]], ValueError, r"Y\[0\] has 2 labels but X\[0\] has 1"),
        (np.ones((2, 2)), [[0], 1], ValueError, r"Y is ragged: expected one label per sample"),
        (np.ones((2, 2)), 1, TypeError, r"Y=.*1.*: expected a list"),
    ],
)
def test_samples_of_a_multiclass_model(X, Y, error, message):
    with pytest.raises(error, match=message):
        MulticlassModel(n_states=3, n_features=2).bind(X, Y)


def grid(k):
    """Return the edges of a k x k grid."""
    nodes = np.arange(k * k).reshape(k, k)
    pairs = [(nodes[:, :-1], nodes[:, 1:]), (nodes[:-1], nodes[1:])]
    return np.concatenate([np.stack(pair, axis=-1).reshape(-1, 2) for pair in pairs])


WIDE = re.compile(
    rf"X\[1\] has .*width (\d+): .* (\d+) bytes, .* (\d+), but max_table_bytes={2**30}"
)


def refuse_grid(k):
    """Bind a k x k grid of nodes with three states, and see it refused; return its width."""
    with pytest.raises(ValueError, match=WIDE) as caught:
        PairwiseModel(3, 1).bind([(np.ones((4, 1)), grid(2)), (np.ones((k * k, 1)), grid(k))])
    width, largest, total = map(int, WIDE.fullmatch(str(caught.value)).groups())
    assert largest == 8 * 3 ** (width + 1) <= total
    return width


def test_too_wide_a_graph_is_refused():
    assert refuse_grid(40) >= 40  # the treewidth of the grid


def test_too_wide_a_graph_takes_no_memory():
    tracemalloc.start()
    refuse_grid(16)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**24


def test_the_limit_is_what_it_says():
    edges = grid(3)
    needed = PairwiseModel(2, 1).junction_tree((np.ones((9, 1)), edges)).table_bytes
    X, Y = [(np.ones((9, 1)), edges)], [[0] * 9]
    PairwiseModel(2, 1, max_table_bytes=needed).bind(X, Y)
    with pytest.raises(ValueError, match=rf"X\[0\] .*max_table_bytes={needed - 1}"):
        PairwiseModel(2, 1, max_table_bytes=needed - 1).bind(X, Y)


def test_errors_of_cliques_of_are_those_of_a_sample():
    class Pairs(GraphModel):
        def cliques_of(self, x):
            if len(x) != 2:
                raise ValueError(f"{len(x)} nodes")
            return {"pair": [x]}

    model = Pairs({"pair": Clique((2, 2))})
    with pytest.raises(ValueError, match=r"X\[1\]: 3 nodes"):
        model.bind([(0, 1), (0, 1, 2)])
