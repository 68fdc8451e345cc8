"""SDCA: the compiled step is Algorithm 2, and what `solve` promises holds."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import ROUNDING, SINGLE, NaiveSDCA, draw_in_proportion
from scipy.optimize import minimize
from sdcastruct.entropy import entropy
from strategies import chains, lambdas
from structures import STRUCTURES

from sdcastruct import duality
from sdcastruct.models import ChainModel
from sdcastruct.problem import batch
from sdcastruct.samplers import Gap, GapImportance, Importance, MaxGap, Uniform
from sdcastruct.solvers import SDCA

SEEDS = st.integers(0, 2**32 - 1)
SAMPLERS = [Uniform(), Importance(0.5), Gap(0.8), GapImportance(1.0), MaxGap(0.6)]


def letters(n_samples=8, n_states=3, seed=0, scale=1.0):
    """Return a problem of moderate size."""
    rng = np.random.default_rng(seed)
    X = [scale * rng.normal(size=(rng.integers(1, 6), 4)) for _ in range(n_samples)]
    Y = [rng.integers(n_states, size=len(x)) for x in X]
    return ChainModel(n_states=n_states, n_features=4).bind(X, Y)


def naive_draw(sampler, rng, problem, lam, gaps):
    """Draw by the sampler's rule with probability non_uniformity, else uniformly."""
    n = problem.n_samples
    if sampler.non_uniformity == 0 or rng.random() >= sampler.non_uniformity:
        return int(rng.random() * n)
    smoothness = lam + problem.radii() / n
    match sampler:
        case MaxGap():
            return int(gaps.argmax())
        case Importance():
            return draw_in_proportion(rng, smoothness)
        case GapImportance():
            return draw_in_proportion(rng, smoothness * gaps)
        case Gap():
            return draw_in_proportion(rng, gaps)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: type(s).__name__)
@given(chains(min_states=2), lambdas(), SEEDS)
def test_compiled_run_is_the_naive_run_under_one_seed(sampler, data, lam, seed):
    exact = {"subprecision": 1e-12, "max_newton": 100, "search_every": 1}
    solver = SDCA(sampler, **exact, epsilon=0.01, random_state=seed)
    state = solver.init(data.problem, lam)
    naive = NaiveSDCA(data.joint, lam, batch.initial_point(data.problem, 0.01)[0])
    rng = np.random.default_rng(seed)
    for _ in range(3):
        state.epoch()
        for _ in range(len(data.joint)):
            i = naive_draw(sampler, rng, data.problem, lam, naive.gaps)
            naive.step(i)
            # With delta^2 near rounding the line search has no definite answer: its slope errs by
            # 1e-15, so gamma by 1e-15/delta^2. Below such gaps the runs may part.
            if naive.gaps[i] < 1e-10:
                return
        assert_allclose(state.gaps, naive.gaps, rtol=0, atol=1e-9 / lam)
        assert_allclose(state.alpha, np.concatenate(naive.mu), rtol=0, atol=1e-9 / lam)
        assert_allclose(state.w, naive.w, rtol=0, atol=1e-8 / lam)


@given(chains(), lambdas(), st.floats(0.01, 1))
def test_fixed_step_is_the_naive_step(data, lam, gamma):
    state = SDCA(step_size=gamma, epsilon=0.01).init(data.problem, lam)
    naive = NaiveSDCA(data.joint, lam, batch.initial_point(data.problem, 0.01)[0])
    for i in [*range(len(data.joint))] * 2:
        assert state.step(i) == gamma
        naive.step(i, gamma)
    assert_allclose(state.alpha, np.concatenate(naive.mu), rtol=0, atol=ROUNDING * 100 / lam)
    scale = 1 + max(np.abs(sample.psi).max() for sample in data.joint.samples)
    assert_allclose(state.w, naive.w, rtol=0, atol=ROUNDING * 100 * scale / lam)


@given(chains(), lambdas())
def test_safe_step_keeps_the_promise_of_the_theory(data, lam):
    problem, n = data.problem, len(data.joint)
    state = SDCA(step_size="safe").init(problem, lam)
    safe = 1 / (1 + problem.radii().max() / (lam * n))
    for i in range(n):
        before = duality.dual(problem, state.alpha, lam)
        scale = 1 + lam * (state.w @ state.w) + np.log(len(data.joint.samples[i].labelings))
        assert_allclose(state.step(i), safe, rtol=ROUNDING)
        gained = n * (duality.dual(problem, state.alpha, lam) - before)
        assert gained >= safe * state.gaps[i] - ROUNDING * n * scale


@given(chains(), lambdas(), SEEDS)
def test_weights_stay_conjugate_and_gaps_are_block_gaps(data, lam, seed):
    state = SDCA(search_every=1, random_state=seed).init(data.problem, lam)
    for _ in range(3):
        state.epoch()
    scale = 1 + max(np.abs(sample.psi).max() for sample in data.joint.samples)
    conjugate = duality.w_hat(data.problem, state.alpha, lam)
    assert_allclose(state.w, conjugate, rtol=0, atol=ROUNDING * 10 * scale / lam)
    assert_allclose(state.norm2, state.w @ state.w, rtol=1e-9, atol=ROUNDING * (scale / lam) ** 2)
    expected = [
        duality.entropy(data.problem.counting(i), state.alpha[data.problem.block(i)])
        for i in range(len(data.joint))
    ]
    tolerance = ROUNDING * 100 * scale**2 / lam
    assert np.all(np.abs(state.entropies - expected) <= state.doubts + tolerance)
    state.certify()
    assert_allclose(state.entropies, expected, rtol=0, atol=tolerance)
    gaps = duality.block_gaps(data.problem, state.w, state.alpha)
    assert_allclose(state.gaps, gaps, rtol=0, atol=tolerance)


@given(chains(), lambdas(), SEEDS, st.sampled_from([1e-2, 1e-4, 1e-6]))
def test_converged_means_a_certified_gap(data, lam, seed, tol):
    problem = data.problem
    result = SDCA(random_state=seed).solve(problem, lam=lam, tol=tol, max_epochs=60)
    alpha = result.state.alpha
    scale = 1 + abs(result.primal) + lam * (result.w @ result.w)
    assert_allclose(
        result.primal, duality.primal(problem, result.w, lam), rtol=0, atol=ROUNDING * scale
    )
    assert_allclose(
        result.dual, duality.dual(problem, alpha, lam), rtol=0, atol=ROUNDING * 10 * scale
    )
    gap = duality.gap(problem, result.w, alpha, lam)
    assert_allclose(result.gap, gap, rtol=0, atol=ROUNDING * 10 * scale)
    assert result.converged == (result.gap <= tol * result.primal)
    assert result.converged or result.n_epochs == 60
    assert result.history.gap[-1] == result.gap
    best = data.joint.primal(data.joint.optimum(lam), lam)
    slack = ROUNDING * 100 * scale
    assert result.dual - slack <= best <= result.primal + slack


@pytest.mark.parametrize("scale", [1, 30, 300, 3000, 30000])
def test_certificate_is_exact_however_small_the_probabilities(scale):
    # Large features make posteriors underflow; a divergence from zero must not be cut off.
    problem, lam = letters(5, scale=scale), 0.2
    state = SDCA(random_state=0).init(problem, lam)
    for _ in range(4):
        certificate = state.certify()
        primal = duality.primal(problem, state.w, lam)
        dual = duality.dual(problem, state.alpha, lam)
        tolerance = ROUNDING * (1 + primal + lam * (state.w @ state.w))
        assert_allclose(certificate.primal, primal, rtol=0, atol=tolerance)
        assert_allclose(certificate.dual, dual, rtol=0, atol=tolerance)
        assert_allclose(certificate.gap, primal - dual, rtol=0, atol=tolerance)
        state.epoch()


def test_optimum_is_that_of_lbfgs():
    problem, lam = letters(), 0.1
    reference = minimize(
        lambda w: duality.primal(problem, w, lam),
        np.zeros(problem.dim),
        jac=lambda w: duality.gradient(problem, w, lam),
        method="L-BFGS-B",
        options={"ftol": 1e-16, "gtol": 1e-10, "maxiter": 2000},
    )
    result = SDCA(random_state=0).solve(problem, lam=lam, tol=1e-13, max_epochs=2000)
    assert result.converged
    assert_allclose(result.primal, reference.fun, rtol=1e-12)
    # lam/2 ||w - w*||^2 <= gap <= 1e-13 P bounds the distance by about 3e-6.
    assert_allclose(result.w, reference.x, rtol=0, atol=1e-6)


@pytest.mark.parametrize("sampler", SAMPLERS[:4], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize(
    "options",
    [
        {"start": "previous"},
        {"start": 0.5},
        {"subprecision": 1e-6},
        {"max_newton": 1},
        {"epsilon": 0.1},
        {"epsilon": 1e-9},
        {"epsilon": 1.0},
    ],
    ids=str,
)
def test_every_option_finds_the_optimum(sampler, options):
    problem = letters(6)
    best = SDCA(random_state=0).solve(problem, lam=0.1, tol=1e-8, max_epochs=1000)
    other = SDCA(sampler, random_state=1, **options).solve(
        problem, lam=0.1, tol=1e-6, max_epochs=1000
    )
    assert best.converged
    assert other.converged
    assert best.dual - 1e-12 <= other.primal <= best.primal + other.gap + 1e-12


def test_one_newton_step_evaluates_twice():
    # Once where it starts and once where it lands.
    problem = letters()
    options = {"subprecision": 1e-9, "start": 0.5, "search_every": 1, "random_state": 0}
    state = SDCA(max_newton=1, **options).init(problem, 0.1)
    for _ in range(3):
        state.epoch()
    assert state.n_evaluations <= 2 * state.n_updates
    searched = SDCA(max_newton=50, **options).init(problem, 0.1)
    for _ in range(3):
        searched.epoch()
    assert searched.n_evaluations > 2 * searched.n_updates


@pytest.mark.parametrize("every", [2, 5])
def test_rare_searches_find_the_same_optimum_with_fewer_evaluations(every):
    problem = letters()
    best, rare = (
        SDCA(subprecision=1e-6, search_every=k, random_state=0).solve(
            problem, lam=0.1, tol=1e-8, max_epochs=1000
        )
        for k in (1, every)
    )
    assert rare.converged
    assert_allclose(rare.primal, best.primal, rtol=2e-8)
    per_step = [r.state.n_evaluations / r.n_updates for r in (best, rare)]
    assert per_step[1] < per_step[0]


@pytest.mark.parametrize("every", [1, 2, 3])
def test_searches_come_at_least_on_every_so_many_visits_of_a_sample(every):
    state = SDCA(Uniform(), search_every=every, random_state=0).init(letters(), 1e-4)
    visits, searched = [0] * 8, [[] for _ in range(8)]
    for i in np.random.default_rng(0).integers(8, size=60):
        before = state.n_evaluations
        state.step(i)
        if state.n_evaluations > before:
            searched[i].append(visits[i])
        visits[i] += 1
    for i in range(8):
        assert set(range(every - 1, visits[i], every)) <= set(searched[i])
    assert (sum(map(len, searched)) == 60) == (every == 1)


def test_gaps_that_are_not_known_well_are_computed():
    """Each step without a search leaves a doubt; 8 times the gap is too much."""
    state = SDCA(search_every=1000, random_state=0).init(letters(), 0.1)
    for i in np.random.default_rng(0).integers(8, size=400):
        before, doubt, first = state.n_evaluations, state.doubts[i], state.visits[i] == 0
        entropy_before = state.entropies[i]
        exact = duality.block_gaps(state.problem, state.w, state.alpha)[i]
        gamma = state.step(i)
        gap = state.gaps[i]
        if state.n_evaluations == before:
            assert doubt <= 8.0 * gap
            added = gap * gamma * (1 - gamma)
            if first:
                added = min(added, 8.0 * (1 - gamma) * entropy_before)
            else:
                added *= min(1.0, 0.5 * np.sqrt(gap))
            assert_allclose(state.doubts[i], doubt + added)
        else:
            assert_allclose(gap, exact, rtol=SINGLE * 20, atol=1e-14)
    assert 0 < state.n_evaluations < 200


@pytest.mark.parametrize("structure", STRUCTURES)
@given(source=st.data(), dtype=st.sampled_from(["float64", "float32"]))
def test_entropies_after_first_steps_are_known(structure, dtype, source):
    """They leave vertices, where few logarithms say all, but for what epsilon adds."""
    data = source.draw(STRUCTURES[structure])
    problem = data.problem
    assume(dtype == "float64" or problem.engine.calibrates)
    state = SDCA(epsilon=1e-9, dual_dtype=dtype, random_state=0).init(problem, 0.5)
    for i in range(problem.n_samples):
        state.step(i)
        found = state.entropies[i], state.doubts[i]
        exact = entropy(problem.counting(i), state.alpha[problem.block(i)].astype(float))
        assert found[1] <= 1e-6
        assert_allclose(found[0], exact, rtol=0, atol=1e-6 if dtype == "float64" else 1e-4)


def test_first_steps_from_other_vertices_are_not_taken_for_steps_from_the_truth():
    X = [np.random.default_rng(T).normal(size=(T, 2)) for T in (1, 2, 5)]
    model = ChainModel(n_states=2, n_features=2)
    truth, wrong = (model.bind(X, [np.full(len(x), y) for x in X]) for y in (0, 1))
    state = SDCA(random_state=0).init(truth, 0.5)
    state.start_from(batch.initial_point(wrong, 1e-9)[0])
    for i in range(len(X)):
        gamma = state.step(i)
        assert_allclose(state.doubts[i], state.gaps[i] * gamma * (1 - gamma))


def test_doubts_are_seldom_too_small():
    problem = letters(100)
    state = SDCA(search_every=1000, random_state=0).init(problem, 1e-2)
    for _ in range(6):
        state.epoch()
        exact = [
            entropy(problem.counting(i), state.alpha[problem.block(i)])
            for i in range(problem.n_samples)
        ]
        assert np.mean(np.abs(state.entropies - exact) <= state.doubts + 1e-9) > 0.95


@given(chains(min_states=2), lambdas(), SEEDS)
def test_steps_without_a_search_raise_the_dual(data, lam, seed):
    """By at least gamma^2 g, as the quadratic model starts below the bound of the theory."""
    problem, n = data.problem, len(data.joint)
    state = SDCA(search_every=2, random_state=seed).init(problem, lam)
    for i in np.random.default_rng(seed).integers(n, size=4 * n):
        before, n_evaluations = duality.dual(problem, state.alpha, lam), state.n_evaluations
        gap = duality.block_gaps(problem, state.w, state.alpha)[i]
        gamma = state.step(i)
        gained = n * (duality.dual(problem, state.alpha, lam) - before)
        size = 1 + n * abs(before) + lam * n * (state.w @ state.w)
        assert gained >= -SINGLE * size
        if state.n_evaluations == n_evaluations:
            assert gained >= gamma**2 * gap - 1e-3 * gap - SINGLE * size


def test_line_search_starts_where_it_is_told():
    # A precision of 100 % accepts the first Newton step at most; the starts must differ.
    problem = letters()
    sizes = {}
    for start in ("quadratic", "previous", 0.5, 0.01):
        solver = SDCA(max_newton=1, subprecision=1e-12, start=start, search_every=1)
        state = solver.init(problem, 0.1)
        sizes[start] = [state.step(0), state.step(0)]
    assert sizes["previous"][0] == sizes[0.5][0]
    assert sizes["previous"][1] != sizes[0.5][1]
    assert len({tuple(pair) for pair in sizes.values()}) == 4


def test_start_is_a_mixture_of_truth_and_uniform():
    problem = letters()
    state = SDCA(epsilon=0.25).init(problem, 0.1)
    assert_array_equal(state.alpha, batch.initial_point(problem, 0.25)[0])
    conjugate = duality.w_hat(problem, state.alpha, 0.1)
    assert_allclose(state.w, conjugate, rtol=0, atol=ROUNDING * 100)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: type(s).__name__)
def test_same_seed_gives_the_same_bits(sampler):
    solver = SDCA(sampler, random_state=3)
    first, second = (solver.solve(letters(), lam=0.1, tol=0, max_epochs=5) for _ in range(2))
    assert_array_equal(first.w, second.w)
    assert_array_equal(first.state.alpha, second.state.alpha)
    assert_array_equal(first.history.gap_estimate, second.history.gap_estimate)
    other = SDCA(sampler, random_state=4).solve(letters(), lam=0.1, tol=0, max_epochs=5)
    assert not np.array_equal(first.w, other.w)


def test_a_generator_may_be_the_random_state():
    seeded = SDCA(random_state=3).solve(letters(), lam=0.1, tol=0, max_epochs=3)
    rng = np.random.default_rng(3)
    shared = SDCA(random_state=rng).solve(letters(), lam=0.1, tol=0, max_epochs=3)
    assert_array_equal(seeded.w, shared.w)


@pytest.mark.parametrize("coupling", [1.0, 3.0])
def test_steps_know_the_norm_of_the_weights(coupling):
    state = SDCA(random_state=0).init(letters(), 0.1)
    state.coupling = coupling
    for _ in range(20):
        state.epoch()
    assert_allclose(state.norm2, state.w @ state.w, rtol=1e-10)


def test_refresh_tells_the_sampler_all_gaps():
    problem, lam = letters(), 0.1
    solver = SDCA(Gap(refresh_every=2), random_state=0)
    fresh = solver.solve(problem, lam=lam, tol=0, max_epochs=2)
    gaps = duality.block_gaps(problem, fresh.w, fresh.state.alpha)
    assert_allclose(fresh.state.sampler.weights(), gaps, rtol=0, atol=ROUNDING * 100)
    stale = solver.solve(problem, lam=lam, tol=0, max_epochs=3)
    gaps = duality.block_gaps(problem, stale.w, stale.state.alpha)
    assert np.abs(stale.state.sampler.weights() - gaps).max() > 1e-3
    certified = ~np.isnan(stale.history.gap)
    assert certified.tolist() == [False, False, True, True]


@given(chains(), lambdas())
def test_one_state_is_solved_at_once(data, lam):
    assume(data.n_states == 1)
    result = SDCA(random_state=0).solve(data.problem, lam=lam, tol=1e-6)
    assert result.converged
    assert_allclose([result.primal, result.gap], 0, rtol=0, atol=ROUNDING)
