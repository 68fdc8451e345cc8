"""SAG: the compiled step is the naive dense step, and its certificates are exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import ROUNDING, JointProblem, NaiveSAG, draw_mixture
from scipy.sparse import csr_array
from states import letters, slots
from strategies import chains, lambdas

from sdcastruct import duality
from sdcastruct.models import ChainModel
from sdcastruct.solvers import LBFGS, SAG

SEEDS = st.integers(0, 2**32 - 1)
OPTIONS = [
    {"sampling": "uniform", "line_search": "always"},
    {"sampling": "nus", "line_search": "always"},
    {"sampling": "nus", "line_search": "skip"},
    {"sampling": "uniform", "line_search": "skip"},
]
SOME = settings(max_examples=settings.default.max_examples // 2)
variants = pytest.mark.parametrize(
    "options", OPTIONS, ids=["SAG", "SAG-NUS", "SAG-NUS*", "SAG, skipping"]
)


def overlapping(n=6, n_features=12, seed=0):
    """Return (X, Y): chains with three attributes each, of which neighbours share some."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for i in range(n):
        x = np.zeros((rng.integers(1, 5), n_features))
        columns = (2 * i + np.arange(3)) % n_features
        x[:, columns] = rng.normal(size=(len(x), 3)) * (rng.random((len(x), 3)) < 0.7)
        X.append(x)
        Y.append(rng.integers(2, size=len(x)))
    return X, Y


def bind(X, Y, sparse, n_states=2):
    model = ChainModel(n_states=n_states, n_features=X[0].shape[1])
    return model.bind([csr_array(x) for x in X] if sparse else X, Y)


def check_equal(state, naive, lam, size):
    """Compare all that a compiled and a naive run know."""
    atol = ROUNDING * 100 * size
    assert state.n_oracle_calls == naive.n_oracle_calls
    assert state.n_seen == (naive.lipschitz > 0).sum()
    assert_allclose(state.w, naive.w, rtol=0, atol=atol / lam)
    # 0.9 and 2 are the only factors, in the same order, and means add in another order.
    assert_allclose(state.lipschitz, naive.lipschitz, rtol=ROUNDING)
    assert_allclose(state.losses, naive.losses, rtol=0, atol=atol)
    assert_allclose(state.direction, naive.gradients.sum(axis=0), rtol=0, atol=atol)
    for i, block in enumerate(slots(state.problem, state.slots)):
        found = state.problem.features(i, block)
        assert_allclose(found, naive.gradients[i], rtol=0, atol=atol)


def run_both(problem, joint, options, lam, seed, epochs=6, least=1e-9):
    """Yield (state, naive) after every epoch, as long as no comparison is close to a tie."""
    state = SAG(**options, random_state=seed).init(problem, lam)
    naive = NaiveSAG(joint, lam, **options)
    rng = np.random.default_rng(seed)
    share = 0.5 if options["sampling"] == "nus" else 0.0
    for _ in range(epochs):
        state.epoch()
        for _ in range(len(joint)):
            # A draw in proportion to nothing is uniform, and costs the ticket all the same.
            naive.step(draw_mixture(rng, share, naive.lipschitz))
        if naive.margin < least:
            return
        yield state, naive


@variants
@SOME
@given(chains(), lambdas(), SEEDS)
def test_compiled_run_is_the_naive_run_under_one_seed(options, data, lam, seed):
    size = 1 + max(np.abs(sample.psi).max() for sample in data.joint.samples) ** 2
    for state, naive in run_both(data.problem, data.joint, options, lam, seed):
        check_equal(state, naive, lam, size)


@variants
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("lam", [1e-3, 0.1, 10.0])
def test_rows_are_brought_up_to_date_just_in_time(options, sparse, lam):
    X, Y = overlapping()
    joint = JointProblem(X, Y, 2)
    n_checked = 0
    for state, naive in run_both(bind(X, Y, sparse), joint, options, lam, 0, epochs=10):
        check_equal(state, naive, min(lam, 1.0), 10)
        n_checked += 1
    assert n_checked >= 4


@variants
@pytest.mark.parametrize("lam", [1e2, 1e5])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_weights_survive_a_scale_that_vanishes(options, lam, sparse):
    # Without a look at w in between, c is the product of all (1 - a lam).
    X, Y = overlapping()
    state = SAG(**options).init(bind(X, Y, sparse), lam)
    naive = NaiveSAG(JointProblem(X, Y, 2), lam, **options)
    log_c, n_flushed = 0.0, 0
    for step, i in enumerate(np.random.default_rng(1).integers(len(X), size=300)):
        size = naive.step(i)
        assert_allclose(state.step(i), size, rtol=ROUNDING)
        log_c += np.log10(1 - size * lam)
        if log_c < -100:
            log_c, n_flushed = 0.0, n_flushed + 1
        assert np.isfinite(state.losses).all()
        assert naive.margin > ROUNDING, step
    assert n_flushed >= 2
    assert_allclose(state.w, naive.w, rtol=0, atol=ROUNDING * 100 / lam)
    check_equal(state, naive, lam, 10)


@variants
def test_a_look_at_the_weights_changes_nothing(options):
    X, Y = overlapping()
    watched, alone = (SAG(**options).init(bind(X, Y, True), 0.1) for _ in range(2))
    for i in np.random.default_rng(0).integers(len(X), size=40):
        watched.step(i)
        assert np.isfinite(watched.w).all()
        alone.step(i)
    assert_allclose(watched.w, alone.w, rtol=0, atol=ROUNDING * 100)
    assert_allclose(watched.lipschitz, alone.lipschitz, rtol=ROUNDING)


@variants
@SOME
@given(chains(), lambdas(), SEEDS)
def test_certificate_is_the_squared_gradient(options, data, lam, seed):
    problem = data.problem
    state = SAG(**options, random_state=seed).init(problem, lam)
    for _ in range(3):
        certificate = state.certify()
        size = 1 + certificate.primal + lam * (state.w @ state.w)
        size *= max(1, np.max([np.abs(s.psi).max() for s in data.joint.samples])) ** 2 / lam
        primal = duality.primal(problem, state.w, lam)
        slope = duality.gradient(problem, state.w, lam)
        gap = duality.gap(problem, state.w, duality.alpha_hat(problem, state.w), lam)
        atol = ROUNDING * size
        assert_allclose(certificate.primal, primal, rtol=0, atol=atol)
        assert_allclose(certificate.gap, slope @ slope / (2 * lam), rtol=0, atol=atol)
        assert_allclose(certificate.gap, gap, rtol=0, atol=atol)
        assert_allclose(certificate.primal - certificate.dual, gap, rtol=0, atol=atol)
        state.epoch()


@variants
def test_estimates_are_those_of_the_stored_gradients(options):
    problem, lam = letters(), 0.1
    state = SAG(**options, random_state=0).init(problem, lam)
    assert state.estimate() == (0.0, 100.0)
    while state.n_seen < 8:
        state.epoch()
    gradient = sum(problem.features(i, g) for i, g in enumerate(slots(problem, state.slots))) / 8
    slope = gradient + lam * state.w
    dual, gap = state.estimate()
    assert_allclose(gap, slope @ slope / (2 * lam), rtol=ROUNDING * 10)
    assert_allclose(dual + gap, state.losses.mean() + lam / 2 * state.w @ state.w, rtol=ROUNDING)
    for _ in range(200):
        state.epoch()
    assert_allclose(state.estimate()[1], state.certify().gap, rtol=0, atol=1e-12)


def test_line_searches_are_skipped_twice_as_often_after_each_success():
    # One sample: its first constant is too small, then 1, 2, 4, ... visits are skipped.
    problem = ChainModel(n_states=2, n_features=1).bind([np.full((1, 1), 0.1)], [[0]])
    state = SAG(random_state=0).init(problem, 1.0)
    searched = []
    for _ in range(12):
        before = state.n_oracle_calls
        state.step(0)
        searched.append(state.n_oracle_calls - before > 1)
    assert_array_equal(np.flatnonzero(searched)[:5], [0, 1, 3, 6, 11])


def test_fewer_calls_with_skips():
    problem = letters(30)
    calls = []
    for line_search in ("always", "skip"):
        result = SAG("nus", line_search, random_state=0).solve(
            problem, lam=0.05, tol=0, max_epochs=20
        )
        assert result.n_updates == 600
        calls.append(result.n_oracle_calls)
    assert calls[0] >= 1200
    assert 600 <= calls[1] < 0.75 * calls[0]


def test_sampling_by_lipschitz_constants():
    problem = letters()
    state = SAG("nus", random_state=0).init(problem, 0.1)
    assert_array_equal(state.sampler.probabilities(), 1 / 8)
    for _ in range(10):
        state.epoch()
    expected = 0.5 * state.lipschitz / state.lipschitz.sum() + 0.5 / 8
    assert_allclose(state.sampler.probabilities(), expected, rtol=ROUNDING)
    assert SAG("uniform").init(problem, 0.1).sampler.non_uniformity == 0.0


@variants
@pytest.mark.parametrize("seed", range(5))
def test_variants_reach_the_optimum_of_lbfgs(options, seed):
    problem = letters(20, seed=seed)
    best = LBFGS().solve(problem, lam=0.05, tol=1e-10, max_epochs=500)
    result = SAG(**options, random_state=seed).solve(problem, lam=0.05, tol=1e-6, max_epochs=300)
    assert best.converged
    assert result.converged
    assert_allclose(result.primal, best.primal, rtol=1e-6)


@variants
def test_a_single_sample(options):
    x = np.array([[1, 2], [-1, 2], [2, 1], [1, -2], [-2, -2]], float)
    problem = bind([x], [[2, 0, 1, 2, 0]], sparse=False, n_states=3)
    result = SAG(**options, random_state=0).solve(problem, lam=0.5, tol=1e-6, max_epochs=1000)
    assert result.converged
