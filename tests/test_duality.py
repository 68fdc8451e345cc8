"""Section 2 and Appendix D of the paper: every identity of primal, dual and their gap."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import ROUNDING, divergence
from strategies import bounded, chains, dual_points, joints, lambdas, points, weights

from sdcastruct import duality


def magnitude(data, w, lam):
    """Return the sum of magnitudes behind P(w), D and the gap: what rounding is relative to."""
    scores = [np.abs(sample.psi) @ np.abs(w) for sample in data.joint.samples]
    entropies = [np.log(len(sample.labelings)) for sample in data.joint.samples]
    return 1 + lam * (w @ w) + max(s.max() for s in scores) + max(entropies)


def markov(data, distributions):
    """Return the joints with the same marginals that factorise over the chain."""
    samples = data.joint.samples
    return [s.joint(s.marginals(a)) for s, a in zip(samples, distributions, strict=True)]


@given(points())
def test_primal_is_the_regularised_negative_log_likelihood(point):
    data, w, lam = point
    expected = data.joint.primal(w, lam)
    assert_allclose(
        duality.primal(data.problem, w, lam),
        expected,
        rtol=0,
        atol=ROUNDING * magnitude(data, w, lam),
    )


@given(dual_points(positive=False))
def test_dual_on_marginals_is_the_dual_of_the_factorising_joint(point):
    data, alpha, lam = point
    mu = data.joint.marginals(alpha)
    scale = magnitude(data, data.joint.w_hat(alpha, lam), lam)
    expected = data.joint.dual(markov(data, alpha), lam)
    assert_allclose(duality.dual(data.problem, mu, lam), expected, rtol=0, atol=ROUNDING * scale)


@given(dual_points(positive=False))
def test_dual_on_marginals_bounds_every_joint_with_these_marginals(point):
    # The paper recovers alpha_i from its marginals. That is exact only where alpha_i factorises
    # over the graph, and a mixture of two such joints does not: the marginals stand for the
    # joint of largest entropy, so their dual is the larger one.
    data, alpha, lam = point
    mu = data.joint.marginals(alpha)
    scale = magnitude(data, data.joint.w_hat(alpha, lam), lam)
    assert duality.dual(data.problem, mu, lam) >= data.joint.dual(alpha, lam) - ROUNDING * scale


@given(dual_points(positive=False))
def test_conjugate_weights(point):
    data, alpha, lam = point
    expected = data.joint.w_hat(alpha, lam)
    actual = duality.w_hat(data.problem, data.joint.marginals(alpha), lam)
    largest = max(np.abs(sample.features).max() for sample in data.joint.samples)
    assert_allclose(actual, expected, rtol=0, atol=ROUNDING * (1 + largest) / lam)


@given(points())
def test_conjugate_probabilities(point):
    data, w, _ = point
    expected = data.joint.marginals(data.joint.alpha_hat(w))
    assert_allclose(duality.alpha_hat(data.problem, w), expected, rtol=0, atol=ROUNDING * 100)


@given(points())
def test_gradient_is_the_derivative_of_the_primal(point):
    data, w, lam = point
    scale = 1 + max(np.abs(sample.psi).max() for sample in data.joint.samples)
    expected = data.joint.gradient(w, lam)
    actual = duality.gradient(data.problem, w, lam)
    assert_allclose(actual, expected, rtol=0, atol=ROUNDING * 100 * scale)


@given(points())
def test_gradient_is_the_distance_to_the_fixed_point(point):
    data, w, lam = point
    target = duality.w_hat(data.problem, duality.alpha_hat(data.problem, w), lam)
    scale = 1 + max(np.abs(sample.psi).max() for sample in data.joint.samples)
    actual = duality.gradient(data.problem, w, lam)
    assert_allclose(actual, lam * (w - target), rtol=0, atol=ROUNDING * scale)


@given(points(), st.floats(0, 1))
def test_gradient_descent_is_a_relaxed_fixed_point_update(point, gamma):
    data, w, lam = point
    descended = w - gamma * data.joint.gradient(w, lam)
    target = duality.w_hat(data.problem, duality.alpha_hat(data.problem, w), lam)
    scale = 1 + max(np.abs(sample.psi).max() for sample in data.joint.samples)
    relaxed = (1 - gamma * lam) * w + gamma * lam * target
    assert_allclose(descended, relaxed, rtol=0, atol=ROUNDING * 100 * scale)


@given(points())
def test_gap_of_weights_and_their_conjugate_probabilities(point):
    data, w, lam = point
    problem = data.problem
    alpha = duality.alpha_hat(problem, w)
    target = duality.w_hat(problem, alpha, lam)
    gradient = data.joint.gradient(w, lam)
    scale = magnitude(data, w, lam) + magnitude(data, target, lam)
    gap = duality.gap(problem, w, alpha, lam)
    assert_allclose(gap, lam / 2 * np.sum((w - target) ** 2), rtol=0, atol=ROUNDING * 10 * scale)
    assert_allclose(gap, gradient @ gradient / (2 * lam), rtol=0, atol=ROUNDING * 100 * scale / lam)


@given(dual_points())
def test_gap_of_probabilities_and_their_conjugate_weights(point):
    data, alpha, lam = point
    problem, mu = data.problem, data.joint.marginals(alpha)
    w = duality.w_hat(problem, mu, lam)
    gap = duality.gap(problem, w, mu, lam)
    tolerance = ROUNDING * 10 * magnitude(data, w, lam)
    assert_allclose(gap, duality.block_gaps(problem, w, mu).mean(), rtol=0, atol=tolerance)
    beta = duality.alpha_hat(problem, w)
    assume(beta.min() > 1e-290)  # a divergence from probabilities that underflow is not seen
    divergences = [
        duality.kl(problem.counting(i), mu[problem.block(i)], beta[problem.block(i)])
        for i in range(problem.n_samples)
    ]
    assert_allclose(gap, np.mean(divergences), rtol=0, atol=tolerance)


@given(st.data())
def test_block_gaps_are_fenchel_gaps_and_divergences_at_any_weights(source):
    # F_i = phi(s) + phi*(alpha) - s.alpha: Section 2.5 prints + s.alpha.
    data = source.draw(chains())
    w = source.draw(weights(data.joint.dim))
    alpha = markov(data, source.draw(joints(data.joint)))
    gaps = duality.block_gaps(data.problem, w, data.joint.marginals(alpha))
    tolerance = ROUNDING * 10 * magnitude(data, w, 0)
    assert_allclose(gaps, data.joint.fenchel_gaps(w, alpha), rtol=0, atol=tolerance)
    beta = data.joint.alpha_hat(w)
    assert_allclose(gaps, list(map(divergence, alpha, beta)), rtol=0, atol=tolerance)
    assert gaps.min() >= -tolerance


@given(st.data())
def test_weak_duality(source):
    data = source.draw(chains())
    w, lam = source.draw(weights(data.joint.dim)), source.draw(lambdas())
    mu = data.joint.marginals(source.draw(joints(data.joint, positive=False)))
    scale = magnitude(data, w, lam) + magnitude(data, duality.w_hat(data.problem, mu, lam), lam)
    gap = duality.gap(data.problem, w, mu, lam)
    assert gap >= -ROUNDING * scale
    # The gap is at least the distance of w to either conjugate, by strong convexity.
    distance = lam / 2 * np.sum((w - duality.w_hat(data.problem, mu, lam)) ** 2)
    assert gap >= distance - ROUNDING * 10 * scale


@given(chains(), lambdas())
def test_truth_zero_and_uniform_are_conjugate(data, lam):
    # Appendix A.1: delta -> w_hat = 0 -> alpha_hat = uniform, D(delta) = 0, P(0) = N/n log K.
    problem, joint = data.problem, data.joint
    truth = np.concatenate([problem.truth(i) for i in range(len(joint))])
    assert_allclose(duality.w_hat(problem, truth, lam), 0, rtol=0, atol=0)
    assert duality.dual(problem, truth, lam) == 0
    uniform = [np.full(len(s.labelings), 1 / len(s.labelings)) for s in joint.samples]
    conjugate = duality.alpha_hat(problem, np.zeros(joint.dim))
    assert_allclose(conjugate, joint.marginals(uniform), rtol=ROUNDING)
    n_nodes = sum(map(len, data.Y))
    expected = n_nodes / len(joint) * np.log(data.n_states)
    assert_allclose(duality.primal(problem, np.zeros(joint.dim), lam), expected, rtol=ROUNDING)


@given(points(max_samples=3, max_nodes=4))
def test_primal_suboptimality_bounds_the_gap(point):
    # Appendix D needs the smoothness L of P. The Hessian is lam I + 1/n sum_i Cov(F), and along
    # a unit vector Var(F) <= E[psi^2] <= R_i: so L = lam + mean R_i, which is <= lam + max R_i.
    data, w, lam = point
    smoothness = lam + data.joint.radii.mean()
    best = data.joint.primal(data.joint.optimum(lam), lam)
    gap = duality.gap(data.problem, w, duality.alpha_hat(data.problem, w), lam)
    suboptimality = duality.primal(data.problem, w, lam) - best
    tolerance = ROUNDING * 100 * magnitude(data, w, lam)
    assert suboptimality >= lam / smoothness * gap - tolerance
    assert suboptimality <= gap + tolerance


@given(dual_points(max_samples=3, max_nodes=4))
def test_dual_suboptimality_bounds_the_gap(point):
    data, alpha, lam = point
    mu = data.joint.marginals(alpha)
    w = duality.w_hat(data.problem, mu, lam)
    best = data.joint.primal(data.joint.optimum(lam), lam)
    step = 1 / (1 + data.joint.radii.max() / (lam * len(data.joint)))
    gap = duality.gap(data.problem, w, mu, lam)
    suboptimality = best - duality.dual(data.problem, mu, lam)
    tolerance = ROUNDING * 100 * magnitude(data, w, lam)
    assert suboptimality >= step / len(data.joint) * gap - tolerance
    assert suboptimality <= gap + tolerance


@given(points(max_samples=3, max_nodes=4))
def test_conjugates_of_the_optimum_are_the_optimum(point):
    data, _, lam = point
    w = data.joint.optimum(lam)
    alpha = duality.alpha_hat(data.problem, w)
    scale = 1 + max(np.abs(sample.psi).max() for sample in data.joint.samples)
    target = duality.w_hat(data.problem, alpha, lam)
    assert_allclose(target, w, rtol=0, atol=ROUNDING * 100 * scale / lam)
    assert duality.gap(data.problem, w, alpha, lam) <= ROUNDING * 10 * magnitude(data, w, lam)


@given(st.lists(bounded(0, 10), min_size=1, max_size=30))
def test_non_uniformity_lies_between_one_and_root_n(gaps):
    chi = duality.non_uniformity(np.array(gaps))
    assert 1 - ROUNDING <= chi <= np.sqrt(len(gaps)) * (1 + ROUNDING)


@given(st.integers(1, 50), st.floats(1e-10, 1e10))
def test_non_uniformity_of_evenly_spread_gaps(n, a):
    gaps = a * np.arange(1, n + 1)
    expected = 2 / 3 * (2 * n + 1) / (n + 1)
    assert_allclose(duality.non_uniformity(gaps) ** 2, expected, rtol=ROUNDING)


@given(st.integers(1, 50), st.data())
def test_non_uniformity_of_k_equal_gaps(n, source):
    # chi^2 = n/k; for k = 1 this is n, where the appendix says that chi^2 is worth sqrt n.
    k = source.draw(st.integers(1, n))
    gaps = np.concatenate([np.full(k, 0.3), np.zeros(n - k)])
    assert_allclose(duality.non_uniformity(gaps) ** 2, n / k, rtol=ROUNDING)


def test_non_uniformity_of_no_gap():
    assert duality.non_uniformity(np.zeros(3)) == 1
