"""Entropy, divergence and line search from marginals, against sums over all labelings."""

import numpy as np
import pytest
import reference
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import ROUNDING, SINGLE, Sample
from scipy.special import entr
from strategies import distributions, weights

from sdcastruct import duality, entropy

IMPLEMENTATIONS = pytest.mark.parametrize("module", [entropy, duality])
STEPS = st.floats(0, 1)
STARTS = st.floats(0.001, 1)
CURVATURES = st.floats(0, 1e4)


@st.composite
def samples(draw, min_states=1):
    """Draw a chain without data: its labelings and regions."""
    n_nodes, n_states = draw(st.integers(1, 5)), draw(st.integers(min_states, 3))
    return Sample(np.ones((n_nodes, 1)), np.zeros(n_nodes, dtype=np.intp), n_states)


@st.composite
def marginals(draw, sample, positive=True):
    """Draw marginals of an arbitrary joint distribution."""
    return sample.marginals(draw(distributions(len(sample.labelings), positive)))


@st.composite
def segments(draw, min_states=1):
    """Draw (sample, a, b): two vectors of marginals in the interior."""
    sample = draw(samples(min_states))
    return sample, draw(marginals(sample)), draw(marginals(sample))


def mix(a, b, gamma):
    """Return the point of the segment from a to b."""
    return (1 - gamma) * a + gamma * b


@given(samples(), st.data())
def test_joint_from_marginals(sample, source):
    w = source.draw(weights(sample.features.shape[1]))
    joint = sample.posterior(w)
    assert_allclose(sample.joint(sample.marginals(joint)), joint, rtol=ROUNDING * 100)


@given(samples(), st.data())
def test_joint_from_marginals_keeps_the_marginals_and_has_the_largest_entropy(sample, source):
    # A joint that does not factorise over the chain is not recovered, but replaced by the one
    # of largest entropy: "joint from marginals" of the paper holds for factorising joints only.
    joint = source.draw(distributions(len(sample.labelings), positive=False))
    mu = sample.marginals(joint)
    factorised = sample.joint(mu)
    assert_allclose(sample.marginals(factorised), mu, rtol=0, atol=ROUNDING)
    assert reference.entropy(factorised) >= reference.entropy(joint) - ROUNDING


@IMPLEMENTATIONS
@given(samples(), st.data())
def test_entropy_from_marginals(module, sample, source):
    mu = source.draw(marginals(sample, positive=False))
    expected = reference.entropy(sample.joint(mu))
    assert_allclose(module.entropy(sample.counting, mu), expected, rtol=0, atol=ROUNDING * 10)


@given(samples(), st.data())
def test_divergence_from_marginals(sample, source):
    a = source.draw(marginals(sample, positive=False))
    b = source.draw(marginals(sample))
    expected = sample.divergence(a, b)
    assert_allclose(duality.kl(sample.counting, a, b), expected, rtol=0, atol=ROUNDING * 10)


@given(samples(), st.data())
def test_divergence_of_a_point_from_itself_is_zero(sample, source):
    mu = source.draw(marginals(sample, positive=False))
    assert duality.kl(sample.counting, mu, mu.copy()) == 0


def test_divergence_from_a_point_without_mass_is_infinite():
    sample = Sample(np.ones((2, 1)), np.zeros(2, dtype=np.intp), 2)
    uniform, corner = sample.regions.mean(axis=0), sample.regions[0]
    assert duality.kl(sample.counting, uniform, corner) == np.inf
    assert_allclose(duality.kl(sample.counting, corner, uniform), np.log(4), rtol=ROUNDING)


@given(samples(min_states=2), st.data())
def test_divergence_of_neighbours_keeps_its_digits(sample, source):
    # KL(p_w || p_{w + h u}) = h^2/2 Var(u.F), up to a factor exp(+-h range). At h = 1e-7 this is
    # of size 1e-14; the plain sum of a log(a/b) has an error of 1e-16, the stable one of 1e-22.
    h = 1e-7
    dim = sample.features.shape[1]
    w, u = source.draw(weights(dim)), source.draw(weights(dim))
    scores = sample.features @ u
    spread = np.ptp(scores)
    joint = sample.posterior(w)
    expected = h**2 / 2 * (joint @ (scores - joint @ scores) ** 2)
    neighbour = joint * np.exp(h * (scores - scores.max()))
    a, b = sample.marginals(joint), sample.marginals(neighbour / neighbour.sum())
    actual = duality.kl(sample.counting, a, b)
    assert actual >= -1e-22
    assert_allclose(actual, expected, rtol=3 * h * spread, atol=1e-21 * (1 + spread))


@given(segments(), STEPS)
def test_entropy_along_a_segment(segment, gamma):
    sample, a, b = segment
    value, _, _ = entropy.entropy_along(sample.counting, a, b, gamma)
    expected = reference.entropy(sample.joint(mix(a, b, gamma)))
    assert_allclose(value, expected, rtol=0, atol=ROUNDING * 10)


@given(segments(), STEPS)
def test_slope_of_the_entropy_along_a_segment(segment, gamma):
    sample, a, b = segment
    _, slope, _ = entropy.entropy_along(sample.counting, a, b, gamma)
    h = 1e-30
    log_joint = sample.regions @ (sample.counting * np.log(mix(a, b, gamma + 1j * h)))
    expected = -(np.exp(log_joint) @ log_joint).imag / h
    assert_allclose(slope, expected, rtol=0, atol=ROUNDING * 100)


@given(segments(), STEPS)
def test_curvature_of_the_entropy_along_a_segment(segment, gamma):
    sample, a, b = segment
    _, _, curvature = entropy.entropy_along(sample.counting, a, b, gamma)
    h = 1e-30
    log_mixed = np.log(mix(a, b, gamma + 1j * h))
    expected = -(sample.counting * (b - a) @ log_mixed).imag / h
    scale = np.abs(sample.counting) @ ((b - a) ** 2 / mix(a, b, gamma))
    assert_allclose(curvature, expected, rtol=0, atol=ROUNDING * (1 + scale))
    assert curvature <= 0


@given(segments(), STEPS, st.floats(-12, 0))
def test_divergence_along_a_segment_keeps_its_digits_in_single_precision(segment, gamma, size):
    sample, a, b = segment
    a = mix(b, a, 10**size)  # perhaps very near
    value, first, second = entropy.divergence_along(sample.counting, a, b, gamma)
    c, m = sample.counting, mix(a, b, gamma)
    x = mix(a - b, 0, gamma) / b  # m / b - 1 with all its digits
    small = np.abs(x) < 1e-4
    phi = np.where(small, x**2 / 2 - x**3 / 6, (1 + x) * np.log1p(x) - x)
    terms = [b * phi, (b - a) * np.log1p(x), (b - a) ** 2 / m]
    # Terms of the value are differences of what is up to 5 times as large, if m / b is 0.7 or 1.4.
    for found, own, lost in zip((value, first, second), terms, (2, 1, 1), strict=True):
        assert_allclose(found, c @ own, rtol=0, atol=lost * SINGLE * np.abs(own).sum() + 1e-35)


@pytest.mark.parametrize("tiny", [0.0, 1e-30, 1e-28, 1e-25])
@pytest.mark.parametrize("gamma", [0.0, 1e-9, 0.5, 1.0])
def test_divergence_along_a_segment_from_the_border(tiny, gamma):
    # Where alpha vanishes, m / beta is gamma, and m log(m / beta) is 0 at gamma = 0.
    c, a, b = np.ones(3), np.array([1 - tiny, tiny, 0.0]), np.array([0.5, 0.4, 0.1])
    value, first, second = entropy.divergence_along(c, a, b, gamma)
    m = mix(a, b, gamma)
    assert_allclose(value, duality.kl(c, m, b), rtol=SINGLE, atol=1e-12)
    if gamma > 0:
        assert_allclose(first, (b - a) @ np.log(m / b), rtol=SINGLE, atol=SINGLE)
        assert_allclose(second, np.sum((b - a) ** 2 / m), rtol=1e-5)
    else:
        assert np.isfinite(first)
        assert np.isfinite(second)


@pytest.mark.parametrize("beta", [0.0, 1e-300, 1e-100, 1e-28])
def test_divergence_from_what_is_too_small_for_single_precision_is_not_known(beta):
    c, b = np.ones(2), np.array([1 - beta, beta])
    for gamma in (0.0, 0.5):
        assert entropy.divergence_along(c, np.array([0.9, 0.1]), b, gamma) is None
        assert entropy.divergence_along(c, np.array([1 - 1e-12, 1e-12]), b, gamma) is None
        value, _, _ = entropy.divergence_along(c, np.array([1.0, 0.0]), b, gamma)
        assert 0.0 <= value < 2e-28


@pytest.mark.parametrize("tiny", [1e-10, 1e-20, 1e-100, 1e-280])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1 - 1e-9, 1.0])
def test_entropy_along_a_segment_to_the_border(tiny, gamma):
    # (1 - gamma) a + gamma b keeps the digits of a tiny b; a + gamma (b - a) loses them all.
    c, a, b = np.ones(2), np.array([0.5, 0.5]), np.array([1 - tiny, tiny])
    mixed, delta = mix(a, b, gamma), b - a
    expected = [entr(mixed).sum(), -delta @ np.log(mixed), -np.sum(delta**2 / mixed)]
    assert_allclose(entropy.entropy_along(c, a, b, gamma), expected, rtol=ROUNDING, atol=1e-15)


@given(segments())
def test_slope_of_the_line_search_at_both_ends(segment):
    # f'(0) = KL(a||b) + KL(b||a) and f'(1) = 0, before the quadratic term.
    sample, a, b = segment
    _, start, _ = entropy.entropy_along(sample.counting, a, b, 0.0)
    both = sample.divergence(a, b) + sample.divergence(b, a)
    tolerance = ROUNDING * 100
    assert_allclose(start + slope_of(sample, a, b), both, rtol=0, atol=tolerance)
    _, end, _ = entropy.entropy_along(sample.counting, a, b, 1.0)
    assert_allclose(end + slope_of(sample, a, b), 0, atol=tolerance)


def slope_of(sample, a, b):
    """Return <theta, E_delta> where b is the distribution of the scores theta."""
    return sample.counting * (b - a) @ np.log(b)


def search(segment, curvature, **options):
    """Return what the compiled line search finds on a segment."""
    sample, a, b = segment
    options = {"subprecision": 1e-9, "max_newton": 100, **options}
    return entropy.line_search(sample.counting, a, b, slope_of(*segment), curvature, **options)


@given(segments(min_states=2), CURVATURES, STARTS)
def test_line_search_against_a_fine_grid(segment, curvature, start):
    sample, a, b = segment
    gamma, _ = search(segment, curvature, start=start)
    assert 0 <= gamma <= 1

    def f(g):
        return -duality.kl(sample.counting, mix(a, b, g), b) - curvature * g**2 / 2

    best = max(map(f, np.linspace(0, 1, 201)))
    assert f(gamma) >= best - ROUNDING * (1 + curvature)


@given(segments(min_states=2), CURVATURES, STARTS)
def test_line_search_finds_the_root_of_the_slope(segment, curvature, start):
    sample, a, b = segment
    assume(sample.divergence(a, b) > 1e-6)
    gamma, _ = search(segment, curvature, start=start)
    expected = reference.line_search(sample.counting, a, b, curvature)
    assert_allclose(gamma, expected, rtol=0, atol=1e-8)


@given(segments(min_states=2), CURVATURES, STARTS, st.sampled_from([0.1, 0.01, 0.001]))
def test_line_search_stops_where_the_next_step_is_short(segment, curvature, start, subprecision):
    # As in the paper, the size of the step is all that is promised: close to the border of the
    # simplex the entropy bends so much that the maximum may be further away.
    sample, a, b = segment
    assume(sample.divergence(a, b) > 1e-6)
    gamma, _ = search(segment, curvature, start=start, subprecision=subprecision)
    first = reference.line_search_slope(sample.counting, a, b, curvature, gamma)
    second = -(sample.counting @ ((b - a) ** 2 / mix(a, b, gamma))) - curvature
    assert abs(first / second) <= subprecision * gamma * (1 + 1e-6)


@given(segments(min_states=2), CURVATURES, STARTS)
def test_line_search_returns_the_entropy_at_its_step(segment, curvature, start):
    sample, a, b = segment
    gamma, value = search(segment, curvature, start=start, subprecision=0.1)
    expected = reference.entropy(sample.joint(mix(a, b, gamma)))
    assert_allclose(value, expected, rtol=0, atol=ROUNDING * 10)


@given(segments(min_states=2), CURVATURES, STARTS, st.sampled_from([1.0, 0.1, 1e-3]))
def test_line_search_never_descends(segment, curvature, start, subprecision):
    sample, a, b = segment
    gamma, _ = search(segment, curvature, start=start, subprecision=subprecision)
    c = sample.counting
    gain = duality.kl(c, a, b) - duality.kl(c, mix(a, b, gamma), b) - curvature * gamma**2 / 2
    assert gain >= -ROUNDING


@given(segments(min_states=2))
def test_line_search_without_curvature_goes_to_the_end(segment):
    sample, a, b = segment
    assume(sample.divergence(a, b) > 1e-6)
    assert_allclose(search(segment, 0.0)[0], 1, rtol=0, atol=1e-8)
