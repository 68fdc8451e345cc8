"""OEG: the compiled step is the naive step, its gaps are lower bounds, and the dual climbs."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import ROUNDING, NaiveOEG, draw_mixture, enumerate_labelings, slot_scores
from states import dual_point, letters, slots
from strategies import chains, lambdas
from structures import STRUCTURES

from sdcastruct import duality
from sdcastruct.samplers import Gap, Uniform
from sdcastruct.solvers import OEG

SEEDS = st.integers(0, 2**32 - 1)
SOME = settings(max_examples=settings.default.max_examples // 2)
FEW = settings(max_examples=settings.default.max_examples // 10)


def bonus_on_the_truth(y, n_states, bonus):
    """Return the scores of all labelings where every label and transition of y has a bonus."""
    unary = np.zeros((len(y), n_states))
    unary[np.arange(len(y)), y] = bonus
    transitions = np.zeros((n_states, n_states))
    transitions[y[:-1], y[1:]] = bonus
    theta = np.concatenate([unary.ravel(), transitions.ravel()])
    return slot_scores(enumerate_labelings(len(y), n_states), theta, n_states)


def feature_size(joint):
    """Return the largest corrected feature, or 1."""
    return 1 + max(np.abs(sample.psi).max() for sample in joint.samples)


def check_equal(state, naive, scores, lam):
    """Compare all that a compiled and a naive run know; errors of w come back divided by lam."""
    size = feature_size(naive) ** 2 / lam
    assert state.n_oracle_calls == naive.n_oracle_calls
    assert_array_equal(state.etas, naive.etas)
    assert_allclose(state.w, naive.w, rtol=0, atol=ROUNDING * 1e3 * size)
    assert_allclose(state.gaps, naive.gaps, rtol=0, atol=ROUNDING * 1e3 * size)
    for found, expected in zip(scores, naive.scores, strict=True):
        assert_allclose(found, expected, rtol=0, atol=ROUNDING * 1e3 * size)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("sampler", [Uniform(), Gap(0.8)], ids=["uniform", "gap"])
@SOME
@given(chains(min_states=2), lambdas(), SEEDS)
def test_compiled_run_is_the_naive_run_under_one_seed(sampler, exact, data, lam, seed):
    n, K, epsilon = len(data.joint), data.n_states, 0.01
    state = OEG(sampler, exact, epsilon, random_state=seed).init(data.problem, lam)
    bonus = [bonus_on_the_truth(y, K, -np.log(epsilon)) for y in data.Y]
    naive = NaiveOEG(data.joint, lam, bonus)
    rng = np.random.default_rng(seed)
    for _ in range(4):
        state.epoch()
        for _ in range(n):
            naive.step(draw_mixture(rng, sampler.non_uniformity, naive.gaps), exact)
        # Gains near rounding decide by chance, and gaps near rounding draw by chance.
        if min(naive.margin, *naive.gaps) < 1e-9:
            return
        scores = [
            slot_scores(sample.labelings, theta, K)
            for sample, theta in zip(
                data.joint.samples, slots(data.problem, state.theta), strict=True
            )
        ]
        check_equal(state, naive, scores, lam)


@pytest.mark.parametrize("name", STRUCTURES)
@FEW
@given(source=st.data(), lam=lambdas(), seed=SEEDS)
def test_compiled_steps_are_naive_steps(name, source, lam, seed):
    data = source.draw(STRUCTURES[name])
    assume(max(len(sample.labelings) for sample in data.joint.samples) <= 100)
    problem, n = data.problem, len(data.states)
    counts = [
        np.array([problem.gather(i, mu) for mu in sample.regions])
        for i, sample in enumerate(data.judge.samples)
    ]
    state = OEG(epsilon=0.01).init(problem, lam)
    bonus = [
        -np.log(0.01) * c @ (c[s.truth] > 0)
        for c, s in zip(counts, data.judge.samples, strict=True)
    ]
    naive = NaiveOEG(data.judge, lam, bonus)
    for i in np.random.default_rng(seed).integers(n, size=3 * n):
        state.step(i)
        naive.step(i)
        if naive.margin < 1e-9:
            return
    scores = [c @ theta for c, theta in zip(counts, slots(problem, state.theta), strict=True)]
    check_equal(state, naive, scores, lam)


@given(chains(), lambdas(), SEEDS, st.booleans())
def test_a_step_never_lowers_the_dual_and_bounds_the_gap_from_below(data, lam, seed, bold):
    problem = data.problem
    state = OEG(epsilon=0.01).init(problem, lam)
    size = ROUNDING * 100 * feature_size(data.joint) ** 2 / lam
    for i in np.random.default_rng(seed).integers(problem.n_samples, size=8):
        if bold:
            state.etas[i] = 1.0
        alpha = dual_point(state)
        before = duality.dual(problem, alpha, lam)
        true_gap = duality.block_gaps(problem, state.w, alpha)[i]
        eta = state.step(i)
        assert 0 <= state.gaps[i] <= true_gap + size
        if eta == 1:
            assert_allclose(state.gaps[i], true_gap, rtol=0, atol=size)
        assert duality.dual(problem, dual_point(state), lam) >= before - size


def test_a_full_step_knows_the_gap_exactly_and_others_do_not():
    # Strong regularisation accepts full steps.
    problem, lam = letters(), 10.0
    exact, bounded = OEG(epsilon=0.01).init(problem, lam), OEG(epsilon=0.01).init(problem, lam)
    exact.etas[:] = 1.0
    gaps = duality.block_gaps(problem, exact.w, dual_point(exact))
    assert exact.step(0) == 1.0
    assert_allclose(exact.gaps[0], gaps[0], rtol=ROUNDING * 10)
    assert bounded.step(0) < 1.0
    assert 0 < bounded.gaps[0] < gaps[0] * (1 - 1e-3)


@given(chains(), lambdas(), SEEDS)
def test_exact_gaps_are_block_gaps(data, lam, seed):
    problem = data.problem
    state = OEG(exact_gaps=True, epsilon=0.01).init(problem, lam)
    size = ROUNDING * 100 * feature_size(data.joint) ** 2 / lam
    for i in np.random.default_rng(seed).integers(problem.n_samples, size=8):
        gaps = duality.block_gaps(problem, state.w, dual_point(state))
        state.step(i)
        assert_allclose(state.gaps[i], gaps[i], rtol=0, atol=size)


@given(chains(), lambdas(), SEEDS)
def test_all_that_is_kept_belongs_to_theta(data, lam, seed):
    problem = data.problem
    state = OEG(Gap(), random_state=seed).init(problem, lam)
    for _ in range(3):
        state.epoch()
    size = ROUNDING * 100 * feature_size(data.joint) ** 2 / lam
    for i, (theta, m) in enumerate(
        zip(slots(problem, state.theta), slots(problem, state.m), strict=True)
    ):
        mu, log_z = problem.infer(i, theta)
        entropy = duality.entropy(problem.counting(i), mu)
        assert_allclose(state.log_z[i], log_z, rtol=0, atol=size)
        assert_allclose(state.entropies[i], entropy, rtol=0, atol=size)
        assert_allclose(m, problem.gather(i, mu), rtol=0, atol=size)
    alpha = dual_point(state)
    assert_allclose(state.w, duality.w_hat(problem, alpha, lam), rtol=0, atol=size)
    assert_allclose(state.norm2, state.w @ state.w, rtol=1e-9, atol=size / lam)
    certificate = state.certify()
    assert_allclose(certificate.primal, duality.primal(problem, state.w, lam), rtol=0, atol=size)
    assert_allclose(certificate.dual, duality.dual(problem, alpha, lam), rtol=0, atol=size)
    gaps = duality.block_gaps(problem, state.w, alpha)
    assert_allclose(state.gaps, gaps, rtol=0, atol=size)
    assert_allclose(certificate.gap, gaps.mean(), rtol=0, atol=size)


def test_rejected_steps_are_calls_of_the_oracle():
    problem = letters()
    state = OEG(random_state=0).init(problem, 0.01)
    state.etas[:] = 1.0
    sizes = np.array([state.step(i) for i in range(8)])
    halvings = -np.log2(sizes)
    assert_array_equal(halvings, np.round(halvings))
    assert halvings.max() >= 1
    assert state.n_oracle_calls == 8 + halvings.sum()
    assert state.n_updates == 8
    assert_allclose(state.etas, np.minimum(1.05 * sizes, 1), rtol=ROUNDING)


def test_the_start_is_a_bonus_on_the_true_labels():
    problem = letters()
    state = OEG(epsilon=0.25).init(problem, 0.1)
    for i, theta in enumerate(slots(problem, state.theta)):
        truth = problem.gather(i, problem.truth(i))
        assert_allclose(theta, np.log(4) * (truth > 0), rtol=ROUNDING)


def test_gap_sampling_follows_the_bounds():
    problem = letters()
    state = OEG(Gap(1.0), random_state=0).init(problem, 0.1)
    assert_array_equal(state.sampler.weights(), 100.0)
    for _ in range(5):
        state.epoch()
    assert_array_equal(state.sampler.weights(), state.gaps)
    state.refresh()
    gaps = duality.block_gaps(problem, state.w, dual_point(state))
    assert_allclose(state.sampler.weights(), gaps, rtol=0, atol=ROUNDING * 100)
