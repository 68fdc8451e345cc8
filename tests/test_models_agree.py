"""The same CRF written as several models has one optimum, and warm starts keep graphs apart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import ROUNDING, Sample
from scipy.special import logsumexp, softmax
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from strategies import chains, lambdas, weights
from threadpoolctl import threadpool_limits

from sdcastruct import duality
from sdcastruct.models import (
    ChainModel,
    Clique,
    GraphModel,
    Model,
    MulticlassModel,
    PairwiseModel,
    TreeModel,
)
from sdcastruct.solvers import SDCA


class PythonChain(Model):
    """Chains by enumeration: the weights, slots and regions of `ChainModel`."""

    def __init__(self, n_states, n_features):
        self.n_states, self.n_features = n_states, n_features

    def templates(self):
        K = self.n_states
        return {"nodes": (self.n_features + 3, K), "transitions": (1, K * K)}

    def slots(self, x):
        return {"nodes": with_bias(x), "transitions": np.ones((min(len(x) - 1, 1), 1))}

    def regions(self, x):
        K, T = self.n_states, len(x)
        nodes, transitions = np.arange(T * K), T * K + np.arange(K * K)
        return self._sample(x).counting, np.concatenate([nodes, *[transitions] * (T - 1)])

    def states(self, x):
        return np.full(len(x), self.n_states)

    def infer(self, x, theta):
        scores = self._scores(x, theta)
        return softmax(scores) @ self._sample(x).regions, logsumexp(scores)

    def argmax(self, x, theta):
        return self._sample(x).labelings[self._scores(x, theta).argmax()]

    def truth(self, x, y):
        sample = self._sample(x)
        return sample.regions[sample.row_of(y)]

    def _sample(self, x):
        return Sample(np.zeros((len(x), 0)), np.zeros(len(x), int), self.n_states)

    def _scores(self, x, theta):
        return self._sample(x).regions @ theta[self.regions(x)[1]]


def with_bias(x):
    """Return attributes with the bias of a chain: any, first and last node."""
    bias = np.zeros((len(x), 3))
    bias[:, 0] = bias[0, 1] = bias[-1, 2] = 1
    return np.hstack([x, bias])


def path(n_nodes):
    """Return the edges of a chain."""
    return np.array([(t, t + 1) for t in range(n_nodes - 1)], int).reshape(-1, 2)


# What the chain model is, in other words; the weights are laid out alike in all of them.
TWINS = {
    "tree": (
        lambda K, A: TreeModel(K, A + 3),
        lambda x: (with_bias(x), path(len(x))),
    ),
    "tree, edge features": (
        lambda K, A: TreeModel(K, A + 3, n_edge_features=1),
        lambda x: (with_bias(x), path(len(x)), np.ones((len(x) - 1, 1))),
    ),
    "pairwise": (
        lambda K, A: PairwiseModel(K, A + 3),
        lambda x: (with_bias(x), path(len(x))),
    ),
    "pairwise, tied one by one": (
        lambda K, A: PairwiseModel(K, A + 3, tied=np.arange(K * K).reshape(K, K)),
        lambda x: (with_bias(x), path(len(x))),
    ),
    "graph": (
        lambda K, A: GraphModel({"node": Clique(K, A + 3), "edge": Clique((K, K), 1)}),
        lambda x: {
            "node": (np.arange(len(x))[:, None], with_bias(x)),
            "edge": (path(len(x)), np.ones((len(x) - 1, 1))),
        },
    ),
    "python": (PythonChain, lambda x: x),
}


def twin_of(data, name):
    """Return the other model and its inputs."""
    make, convert = TWINS[name]
    return make(data.n_states, data.n_features), [convert(x) for x in data.X]


@pytest.mark.parametrize("name", TWINS)
@settings(max_examples=settings.default.max_examples // 4)
@given(source=st.data(), lam=lambdas())
def test_chains_by_any_model_are_one_problem(name, source, lam):
    data = source.draw(chains(max_nodes=4))
    model, X = twin_of(data, name)
    w = source.draw(weights(data.joint.dim))
    problem = model.bind(X, data.Y)
    scale = 1 + lam * (w @ w) + max((abs(s.psi) @ abs(w)).max() for s in data.joint.samples)
    for function in (duality.primal, duality.gradient):
        expected = function(data.problem, w, lam)
        assert_allclose(function(problem, w, lam), expected, rtol=0, atol=ROUNDING * 10 * scale)
    for i, sample in enumerate(data.joint.samples):
        scores = sample.features @ w
        for y in (model.decode(X, w)[i], data.model.decode(data.inputs, w)[i]):
            assert scores[sample.row_of(y)] >= scores.max() - ROUNDING * scale


@pytest.mark.parametrize("name", TWINS)
@settings(max_examples=settings.default.max_examples // 4)
@given(data=chains(max_nodes=4, max_samples=3), lam=lambdas())
def test_chains_by_any_model_have_one_optimum(name, data, lam):
    model, X = twin_of(data, name)
    first, second = (
        SDCA(random_state=0).solve(problem, lam=lam, tol=1e-11, max_epochs=2000)
        for problem in (data.problem, model.bind(X, data.Y))
    )
    assert first.converged
    assert second.converged
    assert_allclose(second.primal, first.primal, rtol=0, atol=1e-8)
    # lam/2 ||w - w*||^2 <= gap <= 1e-11 P, for both.
    bound = 2 * np.sqrt(2 * 1e-11 * (first.primal + ROUNDING) / lam) + ROUNDING
    assert np.linalg.norm(second.w - first.w) <= bound


def test_longer_chains_by_any_model_have_one_optimum():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(rng.integers(1, 12), 3)) for _ in range(10)]
    Y = [rng.integers(4, size=len(x)) for x in X]
    solver = SDCA(random_state=0)
    best = solver.solve(ChainModel(4, 3).bind(X, Y), lam=0.05, tol=1e-10, max_epochs=2000)
    for name in set(TWINS) - {"python"}:
        make, convert = TWINS[name]
        problem = make(4, 3).bind([convert(x) for x in X], Y)
        other = solver.solve(problem, lam=0.05, tol=1e-10, max_epochs=2000)
        assert best.converged
        assert other.converged
        assert_allclose(other.primal, best.primal, rtol=0, atol=1e-8, err_msg=name)


def test_multiclass_is_logistic_regression():
    X, y = load_digits(return_X_y=True)
    X, lam = X / 16, 0.1
    n = len(X)
    model = MulticlassModel(n_states=10, n_features=64)
    problem = model.bind(X, y)
    ours = SDCA(random_state=0).solve(problem, lam=lam, tol=1e-7, max_epochs=300)
    theirs = LogisticRegression(fit_intercept=False, C=1 / (lam * n), tol=1e-6, max_iter=2000)
    with threadpool_limits(1):
        theirs.fit(X, y)
    w = np.ascontiguousarray(theirs.coef_.T).ravel()
    log_p = np.log(softmax(X @ theirs.coef_.T, axis=1)[np.arange(n), y])
    reference = lam / 2 * (w @ w) - log_p.mean()
    assert_allclose(duality.primal(problem, w, lam), reference, rtol=ROUNDING * 100)
    assert ours.converged, f"gap {ours.gap:g} of {ours.primal:.12g}"
    assert abs(ours.primal - reference) <= 1e-6 * reference, (
        f"SDCA {ours.primal:.12g}, LogisticRegression {reference:.12g}"
    )
    assert ours.dual <= reference * (1 + ROUNDING), (
        f"dual {ours.dual:.12g}, primal {reference:.12g}"
    )
    assert_array_equal(model.decode(X, w), theirs.predict(X))
    assert_allclose(model.marginals(X, w), theirs.predict_proba(X), rtol=0, atol=ROUNDING)


def order(*nodes):
    """Return an elimination order that does not look at the graph."""
    return lambda n_nodes, cliques: list(nodes)


NODES = np.random.default_rng(0).normal(size=(4, 2))
RING, OTHER_RING = [[0, 1], [1, 2], [2, 3], [3, 0]], [[0, 2], [2, 1], [1, 3], [3, 0]]
PATH = [[0, 1], [1, 2], [2, 3]]
RING_GRAPH = {"edge": RING}

# Two problems with dual points of the same length, and different graphs.
DIFFERENT = {
    "tree, other edges": (TreeModel(2, 2), (NODES, PATH), (NODES, [[1, 0], [0, 2], [2, 3]])),
    "tree, other names": (TreeModel(2, 2), (NODES, PATH), (NODES, [[2, 1], [1, 0], [0, 3]])),
    "tree, turned edge": (TreeModel(2, 2), (NODES, PATH), (NODES, [[0, 1], [2, 1], [2, 3]])),
    "tree, order of edges": (TreeModel(2, 2), (NODES, PATH), (NODES, [[1, 2], [0, 1], [2, 3]])),
    "ring, other edges": (PairwiseModel(2, 2), (NODES, RING), (NODES, OTHER_RING)),
    "ring, turned edge": (PairwiseModel(2, 2), (NODES, RING), (NODES, [*RING[:3], [0, 3]])),
    "ring, order of edges": (PairwiseModel(2, 2), (NODES, RING), (NODES, RING[::-1])),
    "cliques, order of nodes": (
        GraphModel({"triple": Clique((2, 2, 2))}),
        {"triple": [[0, 1, 2]]},
        {"triple": [[1, 0, 2]]},
    ),
}


def labels_of(model, x):
    return np.arange(len(model.states(x))) % 2


@pytest.mark.parametrize("name", DIFFERENT)
def test_warm_starts_keep_graphs_apart(name):
    model, first, second = DIFFERENT[name]
    refuse_warm_start(model.bind([first], [labels_of(model, first)]), model, second)


@pytest.mark.parametrize(
    ("model", "other"),
    [
        (
            GraphModel({"edge": Clique((2, 2))}, elimination_order=order(0, 1, 2, 3)),
            GraphModel({"edge": Clique((2, 2))}, elimination_order=order(1, 0, 2, 3)),
        ),
        (
            GraphModel({"edge": Clique((2, 2), tied=[[0, 1], [1, 1]])}),
            GraphModel({"edge": Clique((2, 2), tied=[[0, 0], [0, 1]])}),
        ),
    ],
    ids=["elimination order", "ties"],
)
def test_warm_starts_keep_models_apart(model, other):
    # Tables of the same sizes over other nodes, or summed over other entries.
    refuse_warm_start(model.bind([RING_GRAPH], [[0, 1, 0, 1]]), other, RING_GRAPH)


def refuse_warm_start(problem, other, x):
    """See the dual point of a problem refused by that of another model and input."""
    second = other.bind([x], [labels_of(other, x)])
    assert problem.n_marginals == second.n_marginals
    result = SDCA(random_state=0).solve(problem, lam=0.1, max_epochs=3)
    with pytest.raises(ValueError, match=r"warm_start has .*expected .* and the same graphs"):
        SDCA().solve(second, lam=0.1, warm_start=result)


@pytest.mark.parametrize("name", DIFFERENT)
def test_warm_starts_go_between_problems_of_one_graph(name):
    model, x, _ = DIFFERENT[name]
    y = labels_of(model, x)
    problem, again = model.bind([x, x], [y, 1 - y]), model.bind([x, x], [y, 1 - y])
    result = SDCA(random_state=0).solve(problem, lam=0.1, tol=1e-6, max_epochs=2000)
    warm = SDCA(random_state=0).solve(again, lam=0.1, tol=1e-5, warm_start=result)
    assert result.converged
    assert warm.converged
    assert warm.n_epochs <= 1
