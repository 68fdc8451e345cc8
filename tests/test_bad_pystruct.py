"""Samples and models of pystruct that `wrap` refuses, and which wrapper takes the others."""

import numpy as np
import pytest

pytest.importorskip("pystruct")

from pystruct import models
from pystruct.models import (
    BinaryClf,
    ChainCRF,
    DirectionalGridCRF,
    EdgeFeatureGraphCRF,
    GraphCRF,
    GridCRF,
    LatentGraphCRF,
    MultiClassClf,
    MultiLabelClf,
    NodeTypeEdgeFeatureGraphCRF,
)

from sdcastruct.interop.pystruct import wrap
from sdcastruct.interop.pystruct.any_model import EnumeratedModel, PotentialModel
from sdcastruct.interop.pystruct.known_models import EdgeFeatureGraph, MultiClass
from sdcastruct.interop.pystruct.wrap import KNOWN

NODES = np.ones((3, 2))
EDGES = np.array([[0, 1], [1, 2]])


@pytest.mark.parametrize("path", [wrap, PotentialModel])
@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 1], [1, 0]], r"edges\[1\] = \[1, 0\] duplicates edges\[0\] = \[0, 1\]"),
        ([[0, 1], [2, 2]], r"edges\[1\] = \[2, 2\] joins a node to itself"),
        ([[0, 1], [1, 3]], r"edges\[1\] = \[1, 3\] has node 3: expected a node from 0 to 2"),
        ([[0, -1]], r"edges\[0\] = \[0, -1\] has node -1: expected a node from 0 to 2"),
        ([[0, 1, 2], [1, 2, 0]], r"edges has shape \(2, 3\), expected \(number of edges, 2\)"),
    ],
)
def test_bad_edges(path, edges, message):
    X = [(NODES, EDGES), (NODES, np.array(edges))]
    with pytest.raises(ValueError, match=r"X\[1\]: " + message):
        path(GraphCRF(n_states=2, n_features=2)).bind(X, [np.zeros(3, int)] * 2)


@pytest.mark.parametrize(
    ("model", "X", "Y", "message"),
    [
        (
            ChainCRF(n_states=2, n_features=2),
            [NODES],
            [[0, 1, 2]],
            r"Y\[0\]\[2\] is 2, expected a label from 0 to 1",
        ),
        (
            GraphCRF(n_states=2, n_features=2),
            [(NODES, EDGES)],
            [[0, -1, 1]],
            r"Y\[0\]\[1\] is -1, expected a label from 0 to 1",
        ),
        (
            GraphCRF(n_states=2, n_features=2),
            [(NODES, EDGES)] * 2,
            [[0, 1, 1]],
            r"Y has 1 samples but X has 2",
        ),
        (
            GridCRF(n_states=2, n_features=2),
            [np.ones((2, 2, 2))],
            [[[0, 1, 1]]],
            r"Y\[0\] has 3 labels but X\[0\] has 4 nodes",
        ),
        (
            EdgeFeatureGraphCRF(n_states=2, n_features=2, n_edge_features=1),
            [(NODES, EDGES, np.ones((1, 1)))],
            [[0, 1, 1]],
            r"X\[0\]\[2\] has 1 rows of features but X\[0\] has 2 edges",
        ),
        (
            DirectionalGridCRF(n_states=2, n_features=2, neighborhood=8),
            [np.ones((2, 2, 2))],
            [[[0, 1], [1, 0]]],
            r"X\[0\]\[2\] has 2 columns, expected 4",  # a fault of pystruct
        ),
        (
            MultiLabelClf(n_labels=2, n_features=2),
            NODES,
            [[0, 1], [1, 1], [2, 0]],
            r"Y\[2\]\[0\] is 2, expected a label from 0 to 1",
        ),
        (
            MultiLabelClf(n_labels=2, n_features=2),
            np.full((1, 2), np.nan),
            [[0, 1]],
            r"X contains nan: expected finite numbers",
        ),
        (
            MultiLabelClf(n_labels=2, n_features=3),
            NODES,
            [[0, 1]] * 3,
            r"X has 2 columns, expected 3",
        ),
        (
            MultiClassClf(n_features=2, n_classes=2),
            NODES,
            [0, 1, 2],
            r"Y\[2\]\[0\] is 2, expected a label from 0 to 1",
        ),
        (BinaryClf(n_features=2), NODES, [1, -1, 0], r"Y\[2\] is 0, expected -1 or 1"),
        (BinaryClf(n_features=2), NODES, [1, -1], r"Y has 2 samples but X has 3"),
        (BinaryClf(n_features=2), NODES * np.inf, [1, -1, 1], r"X contains inf"),
        (BinaryClf(n_features=2), [], [], r"X has shape \(0,\)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_bad_samples(model, X, Y, message):
    Y = [np.array(y) for y in Y]
    with pytest.raises(ValueError, match=message):
        wrap(model).bind(X, Y)


@pytest.mark.parametrize("path", [wrap, PotentialModel, EnumeratedModel])
@pytest.mark.parametrize("model", sorted(KNOWN))
def test_models_that_do_not_know_their_sizes(path, model):
    with pytest.raises(ValueError, match=rf"{model} does not know its sizes: give them"):
        path(getattr(models, model)()).bind([NODES], [np.zeros(3, int)])


def test_models_that_are_not_supported():
    with pytest.raises(ValueError, match=r"rescale_C=True: .* MultiClassClf depend on the true"):
        wrap(MultiClassClf(n_features=2, n_classes=2, rescale_C=True))
    with pytest.raises(TypeError, match=r"'LatentGraphCRF': models with latent variables are not"):
        wrap(LatentGraphCRF(n_labels=2, n_features=2))
    typed = NodeTypeEdgeFeatureGraphCRF(1, [2], [2], np.array([[1]]))
    with pytest.raises(TypeError, match=r"'NodeTypeEdgeFeatureGraphCRF': expected .* n_states"):
        wrap(typed)
    with pytest.raises(TypeError, match=r"model is 'ChainCRF': expected .* an object"):
        wrap(ChainCRF)


def test_wrappers_by_class():
    sizes = {"n_states": 2, "n_features": 2}
    free = EdgeFeatureGraphCRF(**sizes, n_edge_features=2)
    mixed = EdgeFeatureGraphCRF(**sizes, n_edge_features=2, symmetric_edge_features=[1])
    assert type(wrap(free)) is EdgeFeatureGraph
    assert type(wrap(mixed)) is PotentialModel
    assert type(wrap(MultiClassClf(n_features=2, n_classes=2))) is MultiClass
    assert repr(wrap(ChainCRF(**sizes))).startswith("wrap(ChainCRF(n_states: 2")
