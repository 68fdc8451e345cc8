"""pystruct's models under `wrap`: their features, potentials and optima, found by enumeration."""

import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import ROUNDING
from scipy.special import logsumexp
from strategies import lambdas, weights

pytest.importorskip("pystruct")

from pystruct.inference import compute_energy, inference_dispatch
from pystruct.learners import FrankWolfeSSVM, OneSlackSSVM, SubgradientSSVM
from pystruct.models import (
    ChainCRF,
    GraphCRF,
    GridCRF,
    MultiLabelClf,
)
from pystruct.utils import exhaustive_inference
from pystruct_problems import IDS, PATHS, PROBLEMS, instance

from sdcastruct.interop.pystruct import wrap
from sdcastruct.interop.pystruct.any_model import PotentialModel
from sdcastruct.interop.pystruct.known_models import Chain, Graph
from sdcastruct.solvers import LBFGS, OEG, SAG, SDCA
from sdcastruct.testing import check_model

EXAMPLES = settings.default.max_examples
SOME = settings(max_examples=EXAMPLES // 4)
FEW = settings(max_examples=EXAMPLES // 10)
TOLERANCE = 100 * ROUNDING

SOLVERS = {
    "SDCA": SDCA(random_state=0),
    "OEG": OEG(random_state=0),
    "SAG": SAG(random_state=0),
    "L-BFGS": LBFGS(),
}

paths = pytest.mark.parametrize(("name", "path"), PATHS, ids=IDS)


@st.composite
def points(draw, name):
    """Draw a problem and weights."""
    data = draw(PROBLEMS[name])
    return data, data.reachable(draw(weights(data.joint.dim)))


def energies(model, x, w, labelings):
    """Return what pystruct says of the score of every labelling, by its potentials."""
    unary, pairwise = model._get_unary_potentials(x, w), model._get_pairwise_potentials(x, w)
    edges = model._get_edges(x)
    return [compute_energy(unary, pairwise, edges, y) for y in labelings]


@paths
@SOME
@given(source=st.data())
def test_features_and_scores_of_every_labelling(name, path, source):
    data, w = source.draw(points(name))
    model = path(data.model)
    for x, sample in zip(data.X, data.joint.samples, strict=True):
        n = len(sample.labelings)
        Y = [data.labelling(x, y) for y in sample.labelings]
        problem = model.bind([x] * n, Y)
        scores = []
        for k in range(n):
            m = problem.gather(k, problem.truth(k))
            assert_allclose(problem.features(k, m), sample.features[k], rtol=0, atol=TOLERANCE)
            scores.append(problem.score(k, w) @ m)
        assert_allclose(scores, sample.features @ w, rtol=0, atol=TOLERANCE)
        if hasattr(data.model, "_get_edges"):
            expected = energies(data.model, x, w, sample.labelings)
            assert_allclose(scores, expected, rtol=0, atol=TOLERANCE)


@paths
@SOME
@given(source=st.data())
def test_oracle_and_gradient(name, path, source):
    data, w = source.draw(points(name))
    model = path(data.model)
    problem, marginals = model.bind(data.X, data.Y), model.marginals(data.X, w)
    gradient = np.zeros(problem.dim)
    for i, (x, sample) in enumerate(zip(data.X, data.joint.samples, strict=True)):
        posterior = sample.posterior(w)
        mu, log_z = problem.infer(i, problem.score(i, w))
        assert_allclose(log_z, logsumexp(sample.features @ w), rtol=0, atol=TOLERANCE)
        features = problem.features(i, problem.gather(i, mu))
        assert_allclose(features, posterior @ sample.features, rtol=0, atol=TOLERANCE)
        gradient += features - problem.features(i, problem.gather(i, problem.truth(i)))
        if hasattr(data.model, "_get_edges"):
            check_tables(data, i, posterior, marginals[i])
            nodes, edges = marginals[i]
            flat = nodes, edges.reshape(-1, data.n_states**2)
            assert_allclose(data.model.joint_feature(x, flat), features, rtol=0, atol=TOLERANCE)
        else:
            assert_allclose(marginals[i], posterior, rtol=0, atol=TOLERANCE)
    expected = data.joint.gradient(w, lam=0.0)  # by complex steps
    assert_allclose(gradient / len(data.labels), expected, rtol=0, atol=TOLERANCE)


def check_tables(data, i, posterior, marginals):
    """Compare marginals of nodes and edges with sums over all labellings."""
    labelings, K = data.joint.samples[i].labelings, data.n_states
    nodes = np.zeros((labelings.shape[1], K))
    for v, states in enumerate(labelings.T):
        np.add.at(nodes[v], states, posterior)
    edges = np.zeros((len(data.model._get_edges(data.X[i])), K, K))
    for e, (a, b) in enumerate(data.model._get_edges(data.X[i])):
        np.add.at(edges[e], (labelings[:, a], labelings[:, b]), posterior)
    for found, expected in zip(marginals, (nodes, edges), strict=True):
        assert found.shape == expected.shape
        assert_allclose(found, expected, rtol=0, atol=TOLERANCE)


@paths
@SOME
@given(source=st.data())
def test_decoding(name, path, source):
    data, w = source.draw(points(name))
    decoded = path(data.model).decode(data.X, w)
    for x, y, sample in zip(data.X, decoded, data.joint.samples, strict=True):
        assert np.shape(y) == np.shape(data.labelling(x, sample.labelings[0]))
        best = (sample.features @ w).max()
        assert_allclose(w @ data.model.joint_feature(x, y), best, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", PROBLEMS)
@SOME
@given(source=st.data(), seed=st.integers(0, 2**32 - 1))
def test_decoding_scores_as_pystructs_own(name, source, seed):
    # Its max-product on trees may mix solutions that tie: random numbers do not tie.
    data, rng = source.draw(PROBLEMS[name]), np.random.default_rng(seed)
    w = data.reachable(rng.normal(size=data.joint.dim))
    if isinstance(data.X, np.ndarray):
        data.X = rng.normal(size=data.X.shape)
    else:
        data.X = [with_noise(x, rng) for x in data.X]
    for x, y in zip(data.X, wrap(data.model).decode(data.X, w), strict=True):
        theirs, slack = inference_of_pystruct(data.model, x, w)
        if theirs is not None:
            found, expected = (w @ data.model.joint_feature(x, z) for z in (y, theirs))
            assert_allclose(found, expected, rtol=0, atol=slack)


def with_noise(x, rng):
    """Return an input with random features of nodes."""
    if isinstance(x, tuple):
        return rng.normal(size=x[0].shape), *x[1:]
    return rng.normal(size=x.shape)


def inference_of_pystruct(model, x, w):
    """Return the best labelling by pystruct and its precision; None if it is not known exactly."""
    if not hasattr(model, "_get_edges"):
        return model.inference(x, w), TOLERANCE
    unary, pairwise = model._get_unary_potentials(x, w), model._get_pairwise_potentials(x, w)
    edges = model._get_edges(x)
    forest = len(edges) and len(edges) == np.linalg.matrix_rank(incidence(edges, len(unary)))
    if forest:
        y = inference_dispatch(unary, pairwise, edges, "max-product")
        return y, TOLERANCE
    nodes, _ = inference_dispatch(unary, pairwise, edges, "lp", relaxed=True)
    integral = (nodes.max(axis=1) > 1 - 1e-3).all()
    return (nodes.argmax(axis=1), TOLERANCE) if integral else (None, None)


def incidence(edges, n_nodes):
    """Return the incidence matrix of a graph; its rank is the size of a spanning forest."""
    matrix = np.zeros((len(edges), n_nodes))
    rows = np.arange(len(edges))
    matrix[rows, edges[:, 0]], matrix[rows, edges[:, 1]] = 1.0, -1.0
    return matrix


@paths
@SOME
@given(source=st.data())
def test_decoding_with_loss(name, path, source):
    data, w = source.draw(points(name))
    # With one label only, MultiLabelClf looks for the weight of a second one.
    assume(not isinstance(data.model, MultiLabelClf) or data.model.n_labels > 1)
    model = path(data.model)
    for x, y, sample in zip(data.X, data.Y, data.joint.samples, strict=True):
        found, energy = model.loss_augmented_inference(x, y, w, return_energy=True)
        losses = [data.model.loss(y, data.labelling(x, z)) for z in sample.labelings]
        best = (sample.features @ w + losses).max()
        value = w @ data.model.joint_feature(x, found) + data.model.loss(y, found)
        assert_allclose([value, -energy], best, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", [name for name, path in PATHS if path is wrap][:-1])
def test_check_model(name):
    data = instance(name)  # BinaryClf, the last, has labels that check_model does not know
    check_model(wrap(data.model), data.X, data.Y if name == "MultiClassClf" else data.labels)


@pytest.mark.parametrize("learner", [FrankWolfeSSVM, OneSlackSSVM, SubgradientSSVM])
def test_learners_of_pystruct_take_wrapped_models(learner):
    X, Y = rings()
    model = wrap(GraphCRF(n_states=3, n_features=2))
    ssvm = learner(model, max_iter=20).fit(X, Y)
    assert ssvm.w.shape == (model.dim,)
    assert 0 < ssvm.score(X, Y) <= 1
    for x, y in zip(X, ssvm.predict(X), strict=True):
        expected = exhaustive_inference(model.model, x, ssvm.w)
        scores = [ssvm.w @ model.joint_feature(x, z) for z in (y, expected)]
        assert_allclose(*scores, rtol=TOLERANCE)


@paths
@FEW
@given(source=st.data())
def test_all_solvers_reach_the_optimum(name, path, source):
    data, lam = source.draw(PROBLEMS[name]), source.draw(lambdas())
    problem = path(data.model).bind(data.X, data.Y)
    w = data.joint.optimum(lam)
    best = data.joint.primal(w, lam)
    for solver in SOLVERS.values():
        result = solver.solve(problem, lam=lam, tol=1e-7, max_epochs=3000)
        assert result.converged, solver
        assert result.gap <= 1e-7 * result.primal
        assert_allclose(result.primal, data.joint.primal(result.w, lam), rtol=TOLERANCE)
        assert -TOLERANCE <= result.primal - best <= 1e-6 * best
        assert result.dual <= best + TOLERANCE
        assert_allclose(result.w, w, rtol=0, atol=np.sqrt(2e-7 * result.primal / lam) + TOLERANCE)


@paths
def test_checkpoints_and_fingerprints(name, path, tmp_path):
    data, file = instance(name), tmp_path / "checkpoint.npz"

    def bind():
        return path(pickle.loads(pickle.dumps(data.model))).bind(data.X, data.Y)

    def stop(row):
        if row.epoch == 3:
            raise RuntimeError("stopped")

    run = {"lam": 0.1, "tol": 0, "max_epochs": 6}
    whole = SDCA(random_state=0).solve(bind(), **run)
    with pytest.raises(RuntimeError, match="stopped"):
        SDCA(random_state=0).solve(bind(), **run, checkpoint=file, callback=stop)
    resumed = SDCA(random_state=0).solve(bind(), **run, checkpoint=file)
    assert_array_equal(resumed.w, whole.w)
    assert bind().fingerprint() == bind().fingerprint()
    other = path(data.model).bind(others(data.X), data.Y)
    with pytest.raises(ValueError, match="belongs to another run: its problem is"):
        SDCA(random_state=0).solve(other, **run, checkpoint=file)


def others(X):
    """Return inputs with other features of nodes."""
    if isinstance(X, np.ndarray):
        return X + 1.0
    return [(x[0] + 1.0, *x[1:]) if isinstance(x, tuple) else x + 1.0 for x in X]


@paths
def test_warm_starts_from_any_solver(name, path):
    data = instance(name)
    problem = path(data.model).bind(data.X, data.Y)
    run = {"lam": 0.5, "max_epochs": 1000, "certify_every": 1}
    for solver in SOLVERS.values():
        first = solver.solve(problem, tol=1e-8, **run)
        for other in SOLVERS.values():
            again = other.solve(problem, tol=1e-6, warm_start=first, **run)
            assert again.converged
            assert again.n_epochs <= 1


def small_samples(seed=0, n=6):
    """Return words of three letters with noise on two pixels each, and their labels."""
    rng = np.random.default_rng(seed)
    Y = [rng.permutation(3)[: rng.integers(1, 4)] for _ in range(n)]
    Y[0] = np.arange(3)
    return [np.eye(3)[y] + 0.3 * rng.normal(size=(len(y), 3)) for y in Y], Y


@pytest.mark.parametrize("directed", [True, False])
def test_weights_predict_under_pystruct(directed):
    X, Y = small_samples()
    crf = ChainCRF(directed=directed)
    crf.initialize(X, Y)
    model = wrap(crf)
    result = SDCA(random_state=0).solve(model.bind(X, Y))
    crf._check_size_w(result.w)
    for x, found in zip(X, model.decode(X, result.w), strict=True):
        assert_array_equal(crf.inference(x, result.w), found)


class OtherLoss(ChainCRF):
    def loss(self, y, y_hat):
        return float(np.any(y != y_hat))


class WithSquares(GraphCRF):
    """Nodes have their features and the squares of them."""

    def _get_features(self, x):
        return np.hstack([x[0], x[0] ** 2])


class WithBias(GraphCRF):
    """A weight for every state that all nodes share, at the end of w."""

    def _set_size_joint_feature(self):
        super()._set_size_joint_feature()
        self.size_joint_feature += self.n_states

    def _check_size_w(self, w):
        assert w.shape in ((self.size_joint_feature,), (self.size_joint_feature - self.n_states,))

    def _get_unary_potentials(self, x, w):
        return super()._get_unary_potentials(x, w) + w[-self.n_states :]

    def _get_pairwise_potentials(self, x, w):
        return super()._get_pairwise_potentials(x, w[: -self.n_states])

    def joint_feature(self, x, y):
        features = super().joint_feature(x, y)
        nodes = y[0] if isinstance(y, tuple) else np.eye(self.n_states)[y]
        return np.hstack([features, nodes.sum(axis=0)])


def rings(seed=0, n=4):
    """Return labelled rings of four nodes and one of them with a chord."""
    rng = np.random.default_rng(seed)
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
    X = [(rng.normal(size=(4, 2)), edges[: 4 + i % 2]) for i in range(n)]
    return X, [rng.permutation([0, 1, 2, 1]) for _ in range(n)]


def check_features(model, X, Y):
    """Compare the features of bound labels with joint_feature."""
    problem = wrap(model).bind(X, Y)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        features = problem.features(i, problem.gather(i, problem.truth(i)))
        assert_allclose(features, model.joint_feature(x, y), rtol=0, atol=TOLERANCE)
    return problem


def test_subclass_with_another_loss_stays_compiled():
    X, Y = small_samples()
    model = OtherLoss(n_states=3, n_features=3)
    assert type(wrap(model)) is Chain
    check_features(model, X, Y)


def test_subclass_with_other_features_stays_compiled():
    X, Y = rings()
    model = WithSquares(n_states=3, n_features=4)
    assert type(wrap(model)) is Graph
    check_features(model, X, Y)


def test_subclass_with_other_potentials_goes_through_its_methods():
    X, Y = rings()
    model = WithBias(n_states=3, n_features=2, directed=True)
    assert type(wrap(model)) is PotentialModel
    problem = check_features(model, X, Y)
    plain = GraphCRF(n_states=3, n_features=3, directed=True)
    constant = [(np.hstack([x, np.ones((4, 1))]), edges) for x, edges in X]
    found, expected = (
        SDCA(random_state=0).solve(p, tol=1e-8, max_epochs=1000)
        for p in (problem, wrap(plain).bind(constant, Y))
    )
    assert_allclose(found.primal, expected.primal, rtol=1e-8)
    unary, bias, pairwise = found.w[:6], found.w[-3:], found.w[6:-3]
    found_w = np.hstack([np.column_stack([unary.reshape(3, 2), bias]).ravel(), pairwise])
    assert_allclose(found_w, expected.w, rtol=0, atol=1e-3)


def test_subclass_whose_potentials_and_features_disagree():
    class Forgot(GraphCRF):
        def _get_unary_potentials(self, x, w):
            return 2.0 * super()._get_unary_potentials(x, w)

    X, Y = rings()
    with pytest.raises(ValueError, match=r"the potentials of Forgot for the labels Y\[0\] add up"):
        wrap(Forgot(n_states=3, n_features=2)).bind(X, Y)


def test_wide_graphs_are_refused_unless_their_tables_may_be_larger():
    x = np.zeros((5, 5, 1))
    y = np.arange(25).reshape(5, 5) % 4
    model = GridCRF(n_states=4, n_features=1)
    message = r"X\[0\] has a junction tree of width 5: .* but max_table_bytes=8192"
    for path in (wrap, PotentialModel):
        with pytest.raises(ValueError, match=message):
            path(model, max_table_bytes=8192).bind([x], [y])
        assert path(model, max_table_bytes=2**20).bind([x], [y]).n_samples == 1
