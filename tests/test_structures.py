"""All structures x all solvers: inference, features and training against all labelings."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import ROUNDING, NaiveSDCA, divergence, entropy
from scipy.special import logsumexp
from states import dual_point
from strategies import bounded, distributions, lambdas, weights
from structures import STRUCTURES, flatten, structure_points

from sdcastruct import duality
from sdcastruct.problem import batch
from sdcastruct.samplers import Gap, GapImportance, Importance, MaxGap, Uniform
from sdcastruct.solvers import LBFGS, OEG, SAG, SDCA

EPS = np.finfo(float).eps


class Entry(NamedTuple):
    """A solver: how to make one from a seed, and whether its state has a dual point that climbs."""

    name: str
    make: object
    climbs: bool = False


SOLVERS = [
    Entry("SDCA", lambda seed: SDCA(random_state=seed)),
    Entry("SDCA-climbing", lambda seed: SDCA(search_every=2, random_state=seed), climbs=True),
    Entry("OEG", lambda seed: OEG(random_state=seed), climbs=True),
    Entry("OEG-gap", lambda seed: OEG(Gap(), random_state=seed), climbs=True),
    Entry("SAG", lambda seed: SAG("uniform", "always", random_state=seed)),
    Entry("SAG-NUS", lambda seed: SAG("nus", "always", random_state=seed)),
    Entry("SAG-NUS*", lambda seed: SAG("nus", "skip", random_state=seed)),
    Entry("L-BFGS", lambda seed: LBFGS()),
]
# Some uniform draws are needed: a gap that was zero when it was last seen is not drawn again.
SAMPLERS = [Uniform(), Importance(1.0), Gap(0.8), GapImportance(0.8), MaxGap(0.6)]

EXAMPLES = settings.default.max_examples
SOME = settings(max_examples=EXAMPLES // 4)
FEW = settings(max_examples=EXAMPLES // 10)

structures = pytest.mark.parametrize("name", STRUCTURES)
solvers = pytest.mark.parametrize("solver", SOLVERS, ids=lambda entry: entry.name)
climbing = pytest.mark.parametrize(
    "solver", [entry for entry in SOLVERS if entry.climbs], ids=lambda entry: entry.name
)


def extreme_weights(dim):
    """Draw weights whose scores no exponential survives."""
    return st.lists(
        st.one_of(bounded(-1e4, 1e4), st.sampled_from([-1e4, 0.0, 1e4])),
        min_size=dim,
        max_size=dim,
    ).map(np.array)


def magnitude(data, w, lam):
    """Return the sum of magnitudes behind P(w), D and the gap."""
    sizes = [data.size(i, w) for i in range(len(data.states))]
    entropies = [np.log(len(sample.labelings)) for sample in data.joint.samples]
    return lam * (w @ w) + 2 * max(sizes) + max(entropies)


def feature_size(data):
    """Return the largest feature of a sample, or 1."""
    return 1 + max(np.abs(sample.features).max() for sample in data.joint.samples)


def check_oracle(data, w):
    """Compare log Z and the tables of all cliques; scores of size s carry an error of eps s."""
    predicted = data.model.marginals(data.X, w)
    for i, sample in enumerate(data.joint.samples):
        mu, log_z = data.problem.infer(i, data.problem.score(i, w))
        tolerance = 64 * EPS * data.size(i, w)
        assert np.isfinite(log_z)
        assert_allclose(log_z, logsumexp(sample.features @ w), rtol=0, atol=tolerance)
        assert np.isfinite(mu).all()
        assert mu.min() >= 0
        m, total = data.problem.expect(i, data.problem.score(i, w))
        assert total == log_z
        assert_allclose(m, data.problem.gather(i, mu), rtol=0, atol=tolerance)
        tables = flatten(data.model.split_marginals(data.X[i], mu))
        for table, expected in zip(tables, data.split(i, sample.posterior(w)), strict=True):
            assert table.shape == expected.shape
            assert_allclose(table, expected, rtol=0, atol=tolerance)
        for table, expected in zip(flatten(predicted[i]), tables, strict=True):
            assert_array_equal(table, expected)


@structures
@SOME
@given(source=st.data())
def test_sizes(name, source):
    data = source.draw(STRUCTURES[name])
    problem = data.problem
    assert problem.dim == data.model.dim == data.dim
    assert problem.n_samples == len(data.states)
    for i, states in enumerate(data.states):
        assert problem.n_nodes(i) == len(states)
        assert_array_equal(data.model.states(data.X[i]), states)
        n_parts = problem.counting(i) @ problem.truth(i)
        assert n_parts == connected_parts(len(states), data.tables[i])


def connected_parts(n_nodes, cliques):
    """Return the number of connected parts of a graph."""
    part = list(range(n_nodes))
    for clique in cliques:
        for v in clique:
            part = [part[clique[0]] if p == part[v] else p for p in part]
    return len(set(part))


@structures
@SOME
@given(source=st.data())
def test_oracle(name, source):
    data, w, _ = source.draw(structure_points(name))
    check_oracle(data, w)


@structures
@SOME
@given(source=st.data())
def test_oracle_at_extreme_scores(name, source):
    data = source.draw(STRUCTURES[name])
    check_oracle(data, source.draw(extreme_weights(data.dim)))


@structures
@SOME
@given(source=st.data(), extreme=st.booleans())
def test_decoding_finds_the_best_labeling(name, source, extreme):
    data = source.draw(STRUCTURES[name])
    w = source.draw(extreme_weights(data.dim) if extreme else weights(data.dim))
    decoded = data.model.decode(data.X, w)
    for i, sample in enumerate(data.joint.samples):
        scores = sample.features @ w
        row = sample.row_of(decoded[i])
        assert scores[row] >= scores.max() - 64 * EPS * data.size(i, w)


@structures
@SOME
@given(source=st.data())
def test_entropy_and_divergence(name, source):
    data, w, _ = source.draw(structure_points(name, size=1.0))
    other = source.draw(weights(data.dim, 1.0))
    for i, sample in enumerate(data.joint.samples):
        c = data.problem.counting(i)
        mu, _ = data.problem.infer(i, data.problem.score(i, w))
        nu, _ = data.problem.infer(i, data.problem.score(i, other))
        p, q = sample.posterior(w), sample.posterior(other)
        size = np.abs(c).max() * (data.size(i, w) + data.size(i, other))
        assert_allclose(duality.entropy(c, mu), entropy(p), rtol=0, atol=ROUNDING * size)
        assert_allclose(duality.kl(c, mu, nu), divergence(p, q), rtol=0, atol=ROUNDING * size)


@structures
@SOME
@given(source=st.data())
def test_features_and_radii(name, source):
    data, w, _ = source.draw(structure_points(name))
    problem = data.problem
    assert (problem.radii() >= data.joint.radii * (1 - ROUNDING)).all()
    for i, sample in enumerate(data.joint.samples):
        mu, _ = problem.infer(i, problem.score(i, w))
        for marginals, expected in (
            (mu, sample.posterior(w) @ sample.features),
            (problem.truth(i), sample.features[sample.truth]),
        ):
            m = problem.gather(i, marginals)
            size = feature_size(data) * data.size(i, w)
            assert_allclose(problem.features(i, m), expected, rtol=0, atol=ROUNDING * size)
            norm2 = problem.features_norm2(i, m)
            assert_allclose(norm2, expected @ expected, rtol=0, atol=ROUNDING * size**2)


@structures
@SOME
@given(source=st.data())
def test_primal_and_gradient(name, source):
    data, w, lam = source.draw(structure_points(name))
    tolerance = ROUNDING * magnitude(data, w, lam)
    primal = duality.primal(data.problem, w, lam)
    assert_allclose(primal, data.joint.primal(w, lam), rtol=0, atol=tolerance)
    gradient = duality.gradient(data.problem, w, lam)
    expected = lam * (w - data.joint.w_hat(data.joint.alpha_hat(w), lam))
    assert_allclose(gradient, expected, rtol=0, atol=feature_size(data) * tolerance)


@structures
@SOME
@given(source=st.data(), n_jobs=st.integers(1, 3))
def test_loss_and_gradient_over_threads(name, source, n_jobs):
    data, w, _ = source.draw(structure_points(name))
    loss, gradient = batch.loss_and_gradient(data.problem, w, n_jobs)
    tolerance = ROUNDING * magnitude(data, w, 0.0)
    assert_allclose(loss, duality.primal(data.problem, w, 0.0), rtol=0, atol=tolerance)
    expected = duality.gradient(data.problem, w, 0.0)
    assert_allclose(gradient, expected, rtol=0, atol=feature_size(data) * tolerance)


@structures
@FEW
@given(source=st.data())
def test_marginals_stand_for_the_joint_of_largest_entropy(name, source):
    data, w, _ = source.draw(structure_points(name, size=1.0))
    assume(max(len(sample.labelings) for sample in data.joint.samples) <= 100)
    for i, sample in enumerate(data.judge.samples):
        mu, _ = data.problem.infer(i, data.problem.score(i, w))
        size = data.size(i, w)
        assert_allclose(mu, sample.marginals(sample.posterior(w)), rtol=0, atol=64 * EPS * size)
        # Any joint: that of the same marginals which factorises has at least its entropy.
        p = source.draw(distributions(len(sample.labelings)))
        mu = sample.marginals(p)
        factorised = sample.joint(mu)
        assert_allclose(factorised.sum(), 1, rtol=ROUNDING * 10)
        assert_allclose(sample.marginals(factorised), mu, rtol=0, atol=ROUNDING * 10)
        value = duality.entropy(sample.counting, mu)
        assert_allclose(value, entropy(factorised), rtol=0, atol=ROUNDING * 10)
        assert value >= entropy(p) - ROUNDING * 10


@structures
@SOME
@given(source=st.data(), epsilon=st.floats(0, 1))
def test_the_initial_point_mixes_truth_and_uniform(name, source, epsilon):
    data = source.draw(STRUCTURES[name])
    problem = data.problem
    alpha, m, entropies = batch.initial_point(problem, epsilon)
    for i, sample in enumerate(data.judge.samples):
        joint = np.full(len(sample.labelings), epsilon / len(sample.labelings))
        joint[sample.truth] += 1 - epsilon
        mu = sample.marginals(joint)
        assert_allclose(alpha[problem.block(i)], mu, rtol=0, atol=ROUNDING)
        assert_allclose(entropies[i], duality.entropy(sample.counting, mu), rtol=0, atol=ROUNDING)
        slots = slice(*problem.attributes.slot_ptr[i : i + 2])
        assert_allclose(m[slots], problem.gather(i, mu), rtol=0, atol=ROUNDING)


@structures
@FEW
@given(source=st.data(), lam=lambdas(), seed=st.integers(0, 2**32 - 1))
def test_compiled_steps_are_naive_steps(name, source, lam, seed):
    data = source.draw(STRUCTURES[name])
    assume(max(len(sample.labelings) for sample in data.joint.samples) <= 100)
    n = len(data.states)
    solver = SDCA(subprecision=1e-12, max_newton=100, search_every=1, epsilon=0.01)
    state = solver.init(data.problem, lam)
    naive = NaiveSDCA(data.judge, lam, batch.initial_point(data.problem, 0.01)[0])
    for i in np.random.default_rng(seed).integers(n, size=2 * n):
        state.step(i)
        naive.step(i)
        # Below such gaps rounding leaves the line search without a definite answer.
        if naive.gaps[i] < 1e-10:
            return
    assert_allclose(state.gaps[i], naive.gaps[i], rtol=0, atol=1e-9 / lam)
    assert_allclose(state.alpha, np.concatenate(naive.mu), rtol=0, atol=1e-9 / lam)
    assert_allclose(state.w, naive.w, rtol=0, atol=1e-8 / lam)


@climbing
@structures
@SOME
@given(source=st.data(), lam=lambdas(), seed=st.integers(0, 2**32 - 1))
def test_the_dual_climbs_and_the_weights_stay_conjugate(name, solver, source, lam, seed):
    data = source.draw(STRUCTURES[name])
    problem = data.problem
    state = solver.make(seed).init(problem, lam)
    before = -np.inf
    for _ in range(4):
        alpha = dual_point(state)
        dual = duality.dual(problem, alpha, lam)
        tolerance = ROUNDING * 10 * magnitude(data, state.w, lam)
        assert dual >= before - tolerance
        conjugate = duality.w_hat(problem, alpha, lam)
        assert_allclose(state.w, conjugate, rtol=0, atol=ROUNDING * 10 * feature_size(data) / lam)
        gap = duality.gap(problem, conjugate, alpha, lam)
        gaps = duality.block_gaps(problem, conjugate, alpha)
        assert_allclose(gap, gaps.mean(), rtol=0, atol=tolerance)
        before = dual
        state.epoch()


@solvers
@structures
@FEW
@given(source=st.data(), lam=lambdas(), seed=st.integers(0, 2**32 - 1))
def test_the_certified_dual_is_that_of_joint_distributions(name, solver, source, lam, seed):
    data = source.draw(STRUCTURES[name])
    assume(max(len(sample.labelings) for sample in data.joint.samples) <= 100)
    result = solver.make(seed).solve(data.problem, lam=lam, tol=0, max_epochs=2)
    alpha = dual_point(result.state)
    joints = [
        sample.joint(alpha[data.problem.block(i)]) for i, sample in enumerate(data.judge.samples)
    ]
    tolerance = ROUNDING * 100 * magnitude(data, result.w, lam)
    assert_allclose(result.dual, data.judge.dual(joints, lam), rtol=0, atol=tolerance)


@solvers
@structures
@SOME
@given(
    source=st.data(),
    lam=lambdas(),
    seed=st.integers(0, 2**32 - 1),
    tol=st.sampled_from([1e-2, 1e-5, 1e-9]),
)
def test_certified_means_certified(name, solver, source, lam, seed, tol):
    data = source.draw(STRUCTURES[name])
    result = solver.make(seed).solve(data.problem, lam=lam, tol=tol, max_epochs=3000)
    tolerance = ROUNDING * 10 * magnitude(data, result.w, lam)
    primal = data.joint.primal(result.w, lam)
    assert_allclose(result.primal, primal, rtol=0, atol=tolerance)
    best = data.joint.primal(data.joint.optimum(lam), lam)
    assert result.dual - tolerance <= best <= result.primal + tolerance
    assert_allclose(result.gap, result.primal - result.dual, rtol=0, atol=tolerance)
    assert result.converged == (result.gap <= tol * result.primal)
    assert result.converged


@solvers
@structures
@SOME
@given(source=st.data(), lam=lambdas())
def test_the_optimum_is_that_of_newton(name, solver, source, lam):
    data = source.draw(STRUCTURES[name])
    result = solver.make(0).solve(data.problem, lam=lam, tol=1e-13, max_epochs=3000)
    w = data.joint.optimum(lam)
    best = data.joint.primal(w, lam)
    size = magnitude(data, w, lam)
    assert result.converged
    assert_allclose(result.primal, best, rtol=0, atol=1e-13 * result.primal + ROUNDING * size)
    # lam/2 ||w - w*||^2 <= gap.
    bound = np.sqrt(2 * (1e-13 * result.primal + ROUNDING * size) / lam)
    assert np.linalg.norm(result.w - w) <= bound


@structures
@FEW
@given(source=st.data(), lam=lambdas(), seed=st.integers(0, 2**32 - 1))
def test_every_sampler_reaches_the_optimum(name, source, lam, seed):
    data = source.draw(STRUCTURES[name])
    best = data.joint.primal(data.joint.optimum(lam), lam)
    for sampler in SAMPLERS:
        solver = SDCA(sampler, random_state=seed)
        result = solver.solve(data.problem, lam=lam, tol=1e-9, max_epochs=3000)
        slack = ROUNDING * magnitude(data, result.w, lam)
        assert result.converged, sampler
        assert best - slack <= result.primal <= best * (1 + 2e-9) + slack, sampler


@solvers
@structures
@FEW
@given(source=st.data(), lam=lambdas(), seed=st.integers(0, 2**32 - 1))
def test_same_seed_same_bits(name, solver, source, lam, seed):
    data = source.draw(STRUCTURES[name])
    first, second = (
        solver.make(seed).solve(data.model.bind(data.X, data.Y), lam=lam, tol=0, max_epochs=3)
        for _ in range(2)
    )
    assert_array_equal(first.w, second.w)
    assert (first.primal, first.dual) == (second.primal, second.dual)
    assert_array_equal(first.history.gap_estimate, second.history.gap_estimate)
