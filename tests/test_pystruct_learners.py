"""pystruct's own learners on our models, and weights that go from one library to the other."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sdcastruct import CRFLearner
from sdcastruct.interop.pystruct import wrap
from sdcastruct.interop.pystruct.base import unary_order
from sdcastruct.models import (
    ChainModel,
    Clique,
    GraphModel,
    MulticlassModel,
    PairwiseModel,
    TreeModel,
)

pystruct_learners = pytest.importorskip("pystruct.learners")
pystruct_models = pytest.importorskip("pystruct.models")

N, K = 12, 3


def labellings(rng, n_nodes):
    return [rng.integers(K, size=rng.integers(1, n_nodes + 1)) for _ in range(N)]


def noisy(rng, y):
    """Return attributes that tell the label of a node."""
    return np.eye(K)[y] + rng.uniform(-0.3, 0.3, size=(*np.shape(y), K))


def path(y):
    return np.stack([np.arange(len(y) - 1), np.arange(1, len(y))], axis=1)


def ring(y):
    edges = path(y)
    return np.vstack([edges, [[len(y) - 1, 0]]]) if len(y) > 2 else edges


def make_chains(rng):
    Y = labellings(rng, 5)
    return ChainModel(K, K), [noisy(rng, y) for y in Y], Y


def make_trees(rng):
    Y = labellings(rng, 5)
    X = [(noisy(rng, y), np.array([(v, 0) for v in range(1, len(y))], int)) for y in Y]
    return TreeModel(K, K), X, Y


def make_rings(rng):
    Y = labellings(rng, 5)
    return PairwiseModel(K, K, tied="symmetric"), [(noisy(rng, y), ring(y)) for y in Y], Y


def make_votes(rng):
    """Two voters with two states and a chair with three; only what they do together has scores."""
    model = GraphModel({"voter": Clique(2, n_features=2), "all": Clique((2, 2, 3))})
    X, Y = [], []
    for _ in range(N):
        y = rng.integers(2, size=2)
        rows = np.eye(2)[y] + rng.uniform(-0.3, 0.3, size=(2, 2))
        X.append({"voter": ([[0], [1]], rows), "all": [[0, 1, 2]]})
        Y.append(np.append(y, y.sum()))
    return model, X, Y


def make_classes(rng):
    y = rng.integers(K, size=N)
    return MulticlassModel(K, K), noisy(rng, y), y


MODELS = {
    "chain": make_chains,
    "tree": make_trees,
    "pairwise": make_rings,
    "graph": make_votes,
    "multiclass": make_classes,
}
LEARNERS = {
    "FrankWolfeSSVM": {"max_iter": 15, "random_state": 0},
    "FrankWolfeSSVM in batches": {"max_iter": 50, "batch_mode": True},
    "OneSlackSSVM": {"max_iter": 50, "inference_cache": 5},
    "NSlackSSVM": {"max_iter": 15},
    "SubgradientSSVM": {"max_iter": 15},
    "SubgradientSSVM in batches": {"max_iter": 15, "batch_size": 4},
    "StructuredPerceptron": {"max_iter": 15},
}


def make_learner(name, model):
    return getattr(pystruct_learners, name.split()[0])(model, **LEARNERS[name])


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("kind", MODELS)
def test_learners_train_our_models(kind, name):
    model, X, Y = MODELS[kind](np.random.default_rng(0))
    learner = make_learner(name, model).fit(X, Y)
    assert learner.w.shape == (model.dim,)
    assert learner.score(X, Y) == 1.0
    for y, found in zip(Y, learner.predict(X), strict=True):
        assert np.shape(found) == np.shape(y)


def hard_chains(n_states):
    """Return chains whose attributes tell little, so that the hinge losses stay above zero."""
    rng = np.random.default_rng(0)
    Y = [rng.integers(n_states, size=rng.integers(1, 6)) for _ in range(N)]
    return [rng.normal(size=(len(y), 2)) + y[:, None] for y in Y], Y


def twins(n_states):
    """Return our model and pystruct's of the same chains, and the order that w has in ours."""
    ours = ChainModel(n_states, 2, bias=False)
    theirs = pystruct_models.ChainCRF(n_states=n_states, n_features=2)
    return ours, theirs, unary_order(n_states, 2, n_states**2)


def test_features_and_energies_are_those_of_pystruct():
    X, Y = hard_chains(3)
    ours, _, order = twins(3)
    theirs = pystruct_models.ChainCRF(n_states=3, n_features=2, inference_method="lp")
    w = np.random.default_rng(1).normal(size=ours.dim)
    for x, y in zip(X, Y, strict=True):
        features = theirs.joint_feature(x, y)
        assert_allclose(ours.joint_feature(x, y), features[order])
        assert_allclose(wrap(theirs).joint_feature(x, y), features)
        for method, arguments in (("inference", (x,)), ("loss_augmented_inference", (x, y))):
            found, energy = getattr(theirs, method)(*arguments, w, return_energy=True)
            expected = getattr(ours, method)(*arguments, w[order], return_energy=True)
            assert_array_equal(found, expected[0])
            assert_allclose(energy, expected[1], rtol=1e-6)


@pytest.mark.parametrize("name", ["FrankWolfeSSVM", "NSlackSSVM", "SubgradientSSVM"])
def test_same_weights_as_with_a_pystruct_model(name):
    """With two states no two labellings of a node are equally wrong, and nothing is left open."""
    X, Y = hard_chains(2)
    ours, theirs, order = twins(2)
    a, b = (make_learner(name, model).fit(X, Y) for model in (ours, theirs))
    assert_allclose(a.w, b.w[order], rtol=0, atol=1e-6 * np.abs(b.w).max())
    assert_allclose(a.objective_curve_, b.objective_curve_, rtol=1e-6)
    assert a._objective(X, Y) > 1.0
    assert a.score(X, Y) == b.score(X, Y)


def test_same_objective_as_with_a_pystruct_model():
    """Where ties are broken in other ways, the optimum lies between the same bounds."""
    X, Y = hard_chains(3)
    ours, theirs, order = twins(3)
    a, b = (
        pystruct_learners.OneSlackSSVM(model, C=1.0, tol=1e-3, max_iter=500).fit(X, Y)
        for model in (ours, theirs)
    )
    gap = max(s.primal_objective_curve_[-1] - s.objective_curve_[-1] for s in (a, b))
    assert gap < 0.01
    assert_allclose(a._objective(X, Y), b._objective(X, Y), rtol=0, atol=gap)
    b.w, objective = a.w[np.argsort(order)], a._objective(X, Y)
    assert_allclose(b._objective(X, Y), objective, rtol=1e-12)


def test_weights_go_from_pystruct_to_us_and_back():
    X, Y = hard_chains(3)
    model = pystruct_models.ChainCRF(n_states=3, n_features=2)
    svm = make_learner("FrankWolfeSSVM", model).fit(X, Y)
    crf = CRFLearner(model, tol=1e-6, max_iter=1000, random_state=0)
    crf.w = svm.w
    assert crf.score(X, Y) == svm.score(X, Y)
    for ours, theirs in zip(crf.predict(X), svm.predict(X), strict=True):
        assert_array_equal(ours, theirs)
    cold = CRFLearner(model, tol=1e-6, max_iter=1000, random_state=0).fit(X, Y)
    crf.fit(X, Y, warm_start=True)
    assert crf.converged_
    assert_allclose(crf.w, cold.w, rtol=0, atol=1e-2 * np.abs(cold.w).max())
    assert_allclose(crf.primal_objective_curve_[-1], cold.primal_objective_curve_[-1], rtol=2e-6)
    svm.w = crf.w
    assert svm.score(X, Y) == crf.score(X, Y)
    for ours, theirs in zip(crf.predict(X), svm.predict(X), strict=True):
        assert_array_equal(ours, theirs)
