"""Sections 3 and 5 and Appendix F: what one step of SDCA is worth, whichever sample it takes.

With c_i = 1 + R_i/(lam n) the ascent lemma says, for every sample i and step gamma in [0, 1],

    n (D(alpha+) - D(alpha)) >= gamma g_i + gamma/2 (1 - gamma c_i) ||beta_i - alpha_i||_1^2

(the general lemma of the appendix lacks the bracket around E[D(alpha+)] - D(alpha)).
"""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import ROUNDING
from strategies import dual_points

from sdcastruct import duality
from sdcastruct.samplers import Gap, GapImportance, Importance, Uniform
from sdcastruct.solvers import SDCA

STEPS = st.floats(0, 1)


class Block:
    """The block step of one sample at a dual point, with its exact dual improvement."""

    def __init__(self, data, mu, lam, i):
        self.data, self.mu, self.lam, self.i = data, mu, lam, i
        problem = data.problem
        self.sample = data.joint.samples[i]
        self.w = duality.w_hat(problem, mu, lam)
        self.alpha = mu[problem.block(i)]
        self.beta, _ = problem.infer(i, problem.score(i, self.w))
        self.gap = max(duality.block_gaps(problem, self.w, mu)[i], 0.0)
        self.residual = np.abs(self.sample.joint(self.beta) - self.sample.joint(self.alpha)).sum()
        self.conditioning = 1 + self.sample.radius / (lam * problem.n_samples)

    def improvement(self, gamma):
        """Return n (D(alpha+) - D(alpha))."""
        moved = self.mu.copy()
        moved[self.data.problem.block(self.i)] = (1 - gamma) * self.alpha + gamma * self.beta
        after = duality.dual(self.data.problem, moved, self.lam)
        return (after - duality.dual(self.data.problem, self.mu, self.lam)) * len(self.data.joint)

    def guarantee(self, gamma):
        """Return the right-hand side of the ascent lemma."""
        second = gamma / 2 * (1 - gamma * self.conditioning) * self.residual**2
        return gamma * self.gap + second

    @property
    def rounding(self):
        """Return a bound of the error of `improvement`: the terms of n D, times rounding."""
        size = self.lam * (self.w @ self.w) + np.log(len(self.sample.labelings)) + 1
        scores = np.abs(self.sample.psi @ self.w).max()
        return ROUNDING * 10 * len(self.data.joint) * (size + scores)


def blocks_of(point):
    """Return the marginals of a dual point and its blocks."""
    data, alpha, lam = point
    mu = data.joint.marginals(alpha)
    return [Block(data, mu, lam, i) for i in range(len(data.joint))]


@given(dual_points(), STEPS)
def test_ascent_lemma_on_joint_distributions(point, gamma):
    # The paper's own statement, on the simplex of all labelings; R_i is exact here.
    data, alpha, lam = point
    joint, n = data.joint, len(data.joint)
    w = joint.w_hat(alpha, lam)
    before, beta = joint.dual(alpha, lam), joint.alpha_hat(w)
    gaps = joint.fenchel_gaps(w, alpha)
    for i, sample in enumerate(joint.samples):
        moved = list(alpha)
        moved[i] = (1 - gamma) * alpha[i] + gamma * beta[i]
        improvement = n * (joint.dual(moved, lam) - before)
        residual = np.abs(beta[i] - alpha[i]).sum()
        conditioning = 1 + sample.radius / (lam * n)
        bound = gamma * gaps[i] + gamma / 2 * (1 - gamma * conditioning) * residual**2
        scale = 1 + n * lam * (w @ w) + n * np.log(len(sample.labelings))
        assert improvement >= bound - ROUNDING * 10 * scale


@given(dual_points(), STEPS)
def test_ascent_lemma_on_marginals(point, gamma):
    # Mixing marginals gains at least as much as mixing the joints that they stand for.
    for block in blocks_of(point):
        assert block.improvement(gamma) >= block.guarantee(gamma) - block.rounding


@given(dual_points(), STEPS)
def test_improvement_is_the_drop_of_the_divergence_minus_the_quadratic(point, gamma):
    data, _, lam = point
    for block in blocks_of(point):
        assume(block.beta.min() > 1e-290)  # else the divergence from beta is not seen
        n = len(data.joint)
        c = block.sample.counting
        mixed = (1 - gamma) * block.alpha + gamma * block.beta
        delta = data.problem.gather(block.i, block.beta - block.alpha)
        v = -data.problem.features(block.i, delta) / (lam * n)
        drop = duality.kl(c, block.alpha, block.beta) - duality.kl(c, mixed, block.beta)
        expected = drop - lam * n * gamma**2 * (v @ v) / 2
        assert_allclose(block.improvement(gamma), expected, rtol=0, atol=block.rounding)


@given(dual_points())
def test_every_compiled_step_ascends(point):
    data, alpha, lam = point
    state = start_at(data, alpha, lam)
    for i in [*range(len(data.joint))] * 2:
        block = Block(data, state.alpha.copy(), lam, i)
        gamma = state.step(i)
        assert 0 <= gamma <= 1
        improvement = block.improvement(gamma)
        assert improvement >= -block.rounding
        # The line search is at least as good as the step of the theorems, up to its precision.
        safe = 1 / block.conditioning
        slack = 1e-3 * block.gap + block.rounding
        assert improvement >= block.improvement(safe) - slack


@given(dual_points())
def test_compiled_step_is_a_relaxed_fixed_point_update(point):
    data, alpha, lam = point
    state = start_at(data, alpha, lam)
    for i in range(len(data.joint)):
        before = state.alpha.copy()
        fixed_point = duality.alpha_hat(data.problem, duality.w_hat(data.problem, before, lam))
        gamma = state.step(i)
        block = data.problem.block(i)
        expected = before.copy()
        expected[block] = (1 - gamma) * before[block] + gamma * fixed_point[block]
        assert_allclose(state.alpha, expected, rtol=0, atol=ROUNDING * 100 / lam)
        others = np.delete(np.arange(len(before)), np.arange(len(before))[block])
        assert_array_equal(state.alpha[others], before[others])
        conjugate = duality.w_hat(data.problem, state.alpha, lam)
        assert_allclose(state.w, conjugate, rtol=0, atol=ROUNDING * 100 / lam)


def start_at(data, alpha, lam):
    """Return the state of SDCA at a dual point."""
    solver = SDCA(sampler=Uniform(), subprecision=1e-3, search_every=1)
    state = solver.init(data.problem, lam)
    state.start_from(data.joint.marginals(alpha))
    return state


def expected_improvement(blocks, probabilities, steps):
    """Return n E[D(alpha+) - D(alpha)] over the choice of the sample."""
    gains = [block.improvement(step) for block, step in zip(blocks, steps, strict=True)]
    return float(probabilities @ gains)


@given(dual_points())
def test_expected_improvement_of_uniform_sampling(point):
    blocks = blocks_of(point)
    n, gaps = len(blocks), np.array([block.gap for block in blocks])
    step = 1 / max(block.conditioning for block in blocks)
    actual = expected_improvement(blocks, np.full(n, 1 / n), [step] * n)
    assert actual >= step * gaps.mean() - blocks[0].rounding


@given(dual_points())
def test_expected_improvement_of_importance_sampling(point):
    blocks = blocks_of(point)
    conditioning = np.array([block.conditioning for block in blocks])
    gaps = np.array([block.gap for block in blocks])
    actual = expected_improvement(blocks, conditioning / conditioning.sum(), 1 / conditioning)
    assert actual >= gaps.mean() / conditioning.mean() - blocks[0].rounding


@given(dual_points(min_states=2))
def test_expected_improvement_of_gap_sampling(point):
    # The first display of the proof in the appendix has one 1/n too many.
    blocks = blocks_of(point)
    gaps = np.array([block.gap for block in blocks])
    step = 1 / max(block.conditioning for block in blocks)
    p = proportional(gaps)
    actual = expected_improvement(blocks, p, [step] * len(blocks))
    chi = duality.non_uniformity(gaps)
    assert actual >= chi**2 * step * gaps.mean() - max(block.rounding for block in blocks)


@given(dual_points(min_states=2))
def test_expected_improvement_of_lipschitz_gap_sampling(point):
    # c_i = 1 + R_i/(lam n): the proof in the appendix prints R for R_i.
    blocks = blocks_of(point)
    gaps = np.array([block.gap for block in blocks])
    conditioning = np.array([block.conditioning for block in blocks])
    actual = expected_improvement(blocks, proportional(gaps * conditioning), 1 / conditioning)
    chi = duality.non_uniformity(gaps)
    quadratic_mean = np.sqrt(np.mean(conditioning**2))
    rounding = max(block.rounding for block in blocks)
    assert actual >= chi / quadratic_mean * gaps.mean() - rounding


def proportional(scores):
    """Return the probabilities proportional to scores; uniform if all are zero."""
    return scores / scores.sum() if scores.sum() > 0 else np.full(len(scores), 1 / len(scores))


@pytest.mark.parametrize("kind", [Importance, Gap, GapImportance])
@given(dual_points(min_states=2))
def test_samplers_have_the_probabilities_of_the_theorems(kind, point):
    # p_i ~ c_i, g_i, g_i c_i. The package's radii are upper bounds, so c_i is taken from them.
    data, _, lam = point
    gaps = np.array([block.gap for block in blocks_of(point)])
    c = 1 + data.problem.radii() / (lam * len(gaps))
    sampler = kind(non_uniformity=1.0)
    sampler.reset(data.problem, lam)
    for i, gap in enumerate(gaps):
        sampler.update(i, gap)
    scores = {Importance: c, Gap: gaps, GapImportance: gaps * c}[kind]
    assert_allclose(sampler.probabilities(), proportional(scores), rtol=ROUNDING, atol=ROUNDING)
