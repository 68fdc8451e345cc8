"""The chain oracle: log-partition, marginals and decoding, against sums over all labelings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from reference import ROUNDING, Sample, slot_scores
from scipy.special import logsumexp, softmax
from strategies import bounded, chains, points

from sdcastruct.models import ChainModel

EPS = np.finfo(float).eps


def one_chain(n_nodes, n_states):
    """Return the compiled problem and the enumerated sample of one chain."""
    x, y = np.ones((n_nodes, 1)), np.zeros(n_nodes, dtype=np.intp)
    problem = ChainModel(n_states=n_states, n_features=1).bind([x], [y])
    return problem, Sample(x, y, n_states)


def slot_size(n_nodes, n_states):
    """Return the number of slot scores; a chain of one node has no transitions."""
    return n_nodes * n_states + (n_states**2 if n_nodes > 1 else 0)


def slot_thetas(n_nodes, n_states, elements):
    """Draw slot scores: T K unary, then K K transitions if there are any."""
    return arrays(float, slot_size(n_nodes, n_states), elements=elements)


@st.composite
def oracles(draw, elements):
    """Draw (problem, sample, theta)."""
    n_nodes, n_states = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    theta = draw(slot_thetas(n_nodes, n_states, elements))
    return *one_chain(n_nodes, n_states), theta


MODERATE = oracles(bounded(-10, 10))
EXTREME = oracles(st.one_of(bounded(-1e4, 1e4), st.sampled_from([-1e4, 0.0, 1e4])))


def check_against_enumeration(problem, sample, theta):
    """Compare log Z and all marginals; scores of size s carry an error of eps s each."""
    scores = slot_scores(sample.labelings, theta, sample.n_states)
    mu, log_z = problem.infer(0, theta)
    scale = 1 + 2 * sample.labelings.shape[1] * np.abs(theta).max()
    assert_allclose(log_z, logsumexp(scores), rtol=0, atol=16 * EPS * scale)
    assert_allclose(mu, sample.marginals(softmax(scores)), rtol=0, atol=64 * EPS * scale)
    m, total = problem.expect(0, theta)
    assert total == log_z
    assert_allclose(m, problem.gather(0, mu), rtol=0, atol=64 * EPS * scale)


@given(MODERATE)
def test_oracle_against_enumeration(oracle):
    check_against_enumeration(*oracle)


@given(EXTREME)
def test_oracle_at_extreme_scores(oracle):
    problem, _, theta = oracle
    mu, log_z = problem.infer(0, theta)
    assert np.isfinite(log_z)
    assert np.isfinite(mu).all()
    assert mu.min() >= 0
    check_against_enumeration(*oracle)


@pytest.mark.parametrize("n_nodes", [1, 2])
@pytest.mark.parametrize("n_states", [1, 2, 3])
def test_oracle_of_single_nodes_and_pairs(n_nodes, n_states):
    problem, sample = one_chain(n_nodes, n_states)
    theta = np.random.default_rng(0).normal(size=slot_size(n_nodes, n_states))
    check_against_enumeration(problem, sample, theta)


def test_oracle_of_a_long_chain_neither_overflows_nor_underflows():
    # 2000 independent nodes: log Z is the sum of the nodes' own.
    n_nodes, n_states = 2000, 4
    x, y = np.ones((n_nodes, 1)), np.zeros(n_nodes, dtype=np.intp)
    problem = ChainModel(n_states=n_states, n_features=1).bind([x], [y])
    unary = np.random.default_rng(1).normal(scale=50, size=(n_nodes, n_states))
    mu, log_z = problem.infer(0, np.concatenate([unary.ravel(), np.zeros(n_states**2)]))
    assert_allclose(log_z, logsumexp(unary, axis=1).sum(), rtol=ROUNDING)
    nodes = softmax(unary, axis=1)
    assert_allclose(mu[: nodes.size].reshape(nodes.shape), nodes, rtol=1e-11, atol=1e-300)
    pairs = mu[nodes.size :].reshape(n_nodes - 1, n_states, n_states)
    assert_allclose(pairs, nodes[:-1, :, None] * nodes[1:, None, :], rtol=1e-11, atol=1e-300)


@given(st.one_of(MODERATE, EXTREME))
def test_marginals_are_locally_consistent(oracle):
    problem, sample, theta = oracle
    n_nodes, n_states = sample.labelings.shape[1], sample.n_states
    mu, _ = problem.infer(0, theta)
    nodes = mu[: n_nodes * n_states].reshape(n_nodes, n_states)
    pairs = mu[n_nodes * n_states :].reshape(n_nodes - 1, n_states, n_states)
    assert_allclose(nodes.sum(axis=1), 1, rtol=0, atol=32 * EPS)
    assert_allclose(pairs.sum(axis=2), nodes[:-1], rtol=0, atol=32 * EPS)
    assert_allclose(pairs.sum(axis=1), nodes[1:], rtol=0, atol=32 * EPS)


@given(MODERATE, st.data())
def test_gradient_of_the_log_partition_is_the_marginals(oracle, source):
    # A central difference errs by h^2/6 times the third cumulant (at most range^3) of the score,
    # and by the rounding of log Z over h.
    problem, sample, theta = oracle
    n_nodes, n_states = sample.labelings.shape[1], sample.n_states
    u = source.draw(slot_thetas(n_nodes, n_states, bounded(-1, 1)))
    h = 1e-5
    above, below = problem.infer(0, theta + h * u)[1], problem.infer(0, theta - h * u)[1]
    mu, _ = problem.infer(0, theta)
    slope = u @ problem.gather(0, mu)
    spread = np.ptp(slot_scores(sample.labelings, u, n_states))
    scale = 1 + 2 * n_nodes * np.abs(theta).max()
    tolerance = h**2 / 6 * spread**3 + 16 * EPS * scale / h
    assert_allclose((above - below) / (2 * h), slope, rtol=0, atol=tolerance)


@given(points(), st.data())
def test_features_are_the_adjoint_of_scores(point, source):
    data, w, _ = point
    for i in range(data.problem.n_samples):
        theta = data.problem.score(i, w)
        m = source.draw(arrays(float, len(theta), elements=bounded(-2, 2)))
        scale = 1 + np.abs(theta) @ np.abs(m) + 60 * np.abs(w).max()
        features = data.problem.features(i, m)
        assert_allclose(theta @ m, w @ features, rtol=0, atol=ROUNDING * scale)


@given(points())
def test_scores_against_the_feature_map(point):
    data, w, _ = point
    for i, sample in enumerate(data.joint.samples):
        actual = slot_scores(sample.labelings, data.problem.score(i, w), data.n_states)
        scale = 1 + (np.abs(sample.features) @ np.abs(w)).max()
        assert_allclose(actual, sample.features @ w, rtol=0, atol=ROUNDING * scale)


@given(points())
def test_decoding_finds_the_best_labeling(point):
    data, w, _ = point
    decoded = data.model.decode(data.inputs, w)
    for sample, labels in zip(data.joint.samples, decoded, strict=True):
        scores = sample.features @ w
        row = int(np.flatnonzero((sample.labelings == labels).all(axis=1))[0])
        scale = 1 + (np.abs(sample.features) @ np.abs(w)).max()
        assert scores[row] >= scores.max() - ROUNDING * scale


def test_decoding_follows_transitions():
    # No attribute tells the labels apart; alternating ones win by the transitions alone.
    model = ChainModel(n_states=2, n_features=1)
    w = np.zeros(model.dim)
    w[2 * 1 + 2] = 0.5  # the first node prefers state 0
    w[-4:] = [0.0, 1.0, 1.0, 0.0]
    (labels,) = model.decode([np.zeros((5, 1))], w)
    assert labels.tolist() == [0, 1, 0, 1, 0]


@given(points())
def test_marginals_of_new_inputs(point):
    data, w, _ = point
    tables = data.model.marginals(data.inputs, w)
    for sample, (nodes, pairs) in zip(data.joint.samples, tables, strict=True):
        n_nodes = sample.labelings.shape[1]
        assert nodes.shape == (n_nodes, data.n_states)
        assert pairs.shape == (n_nodes - 1, data.n_states, data.n_states)
        expected = sample.marginals(sample.posterior(w))
        actual = np.concatenate([nodes.ravel(), pairs.ravel()])
        assert_allclose(actual, expected, rtol=0, atol=ROUNDING * 100)


@given(chains())
def test_oracle_at_zero_is_uniform(data):
    for i, sample in enumerate(data.joint.samples):
        theta = data.problem.score(i, np.zeros(data.problem.dim))
        assert not theta.any()
        mu, log_z = data.problem.infer(i, theta)
        assert_allclose(log_z, np.log(len(sample.labelings)), rtol=ROUNDING)
        uniform = np.full(len(sample.labelings), 1 / len(sample.labelings))
        assert_allclose(mu, sample.marginals(uniform), rtol=ROUNDING)
