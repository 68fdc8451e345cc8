"""The vector kernels of every instruction set, at table widths that fill their registers or not.

How accurate exp and log are is tested in test_vecmath.py.
"""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference import ROUNDING, SINGLE, JointProblem, NaiveSDCA
from scipy.sparse import csr_array

from sdcastruct import duality, entropy
from sdcastruct.models import ChainModel, TreeModel
from sdcastruct.problem import batch
from sdcastruct.simd import kernels, memory
from sdcastruct.solvers import SDCA

EPS = np.finfo(float).eps
WIDTHS = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 20, 22, 26, 30, 33, 37, 44]
# The kernels read no values where all are 1.
ATTRIBUTES = ["dense", "sparse", "binary"]

pytestmark = pytest.mark.usefixtures("instruction_set")


@cache
def enumerated(n_states, binary):
    """Return chains of one and two nodes with many states: X, Y and the enumerated problem."""
    rng = np.random.default_rng(0)
    values = [np.ones((t, 6)) if binary else rng.normal(size=(t, 6)) for t in (2, 1, 2)]
    X = [x * (rng.random(x.shape) < 0.7) for x in values]
    Y = [rng.integers(n_states, size=len(x)) for x in X]
    return X, Y, JointProblem(X, Y, n_states)


def wide_problem(n_states, attributes):
    """Return the compiled problem and its enumerated twin."""
    X, Y, joint = enumerated(n_states, attributes == "binary")
    inputs = X if attributes == "dense" else [csr_array(x) for x in X]
    return ChainModel(n_states=n_states, n_features=6).bind(inputs, Y), joint


def test_selection(instruction_set):
    assert kernels.active() == instruction_set
    with pytest.raises(ValueError, match=r"'abacus'.*expected one of"):
        kernels.select("abacus")
    assert kernels.active() == instruction_set


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [1, 7, 1_000_003])
def test_memory_begins_with_a_cache_line(size, dtype):
    array = memory.empty(size, dtype)
    assert array.shape == (size,)
    assert array.dtype == dtype
    assert array.ctypes.data % memory.CACHE_LINE == 0
    array[:] = 1.0
    assert array.sum() == size


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 31])
def test_lengths_that_do_not_fill_a_register(length):
    x = np.linspace(0.1, 2, length)
    assert_allclose(kernels.exp(x), np.exp(x), rtol=4 * EPS)
    assert_allclose(kernels.log(x), np.log(x), rtol=4 * EPS, atol=EPS)


@pytest.mark.parametrize("attributes", ATTRIBUTES)
@pytest.mark.parametrize("n_states", WIDTHS)
def test_operations_of_a_problem(n_states, attributes):
    problem, joint = wide_problem(n_states, attributes)
    w = np.random.default_rng(1).normal(size=problem.dim)
    for i, sample in enumerate(joint.samples):
        theta = problem.score(i, w)
        mu, log_z = problem.infer(i, theta)
        posterior = sample.posterior(w)
        scale = 1 + (np.abs(sample.features) @ np.abs(w)).max()
        total = np.log(np.exp(sample.features @ w).sum())
        assert_allclose(log_z, total, rtol=0, atol=ROUNDING * scale)
        assert_allclose(mu, sample.marginals(posterior), rtol=0, atol=ROUNDING * scale)
        m = problem.gather(i, mu)
        assert_allclose(theta @ m, w @ problem.features(i, m), rtol=0, atol=ROUNDING * scale)
        expected = posterior @ sample.features
        assert_allclose(problem.features(i, m), expected, rtol=0, atol=ROUNDING * scale)
        assert_allclose(problem.features_norm2(i, m), expected @ expected, rtol=ROUNDING * scale)
    assert (problem.radii() >= joint.radii * (1 - ROUNDING)).all()


@pytest.mark.parametrize("attributes", ATTRIBUTES)
@pytest.mark.parametrize("n_states", WIDTHS)
def test_steps(n_states, attributes):
    problem, joint = wide_problem(n_states, attributes)
    lam = 0.3
    solver = SDCA(subprecision=1e-12, max_newton=100, search_every=1, epsilon=0.1)
    state = solver.init(problem, lam)
    naive = NaiveSDCA(joint, lam, batch.initial_point(problem, 0.1)[0])
    for i in [0, 1, 2, 0, 2, 1]:
        gamma, expected = state.step(i), naive.step(i)
        if n_states > 1:
            assert_allclose(gamma, expected, rtol=0, atol=1e-9)
    assert_allclose(state.alpha, np.concatenate(naive.mu), rtol=0, atol=1e-9)
    assert_allclose(state.w, naive.w, rtol=0, atol=1e-8)
    certificate = state.certify()
    gap = duality.gap(problem, state.w, state.alpha, lam)
    assert_allclose(certificate.gap, gap, rtol=0, atol=ROUNDING * 100)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("spread", [1.0, 60.0])
@pytest.mark.parametrize("n_states", [*WIDTHS, 45, 66])
def test_steps_without_tables(n_states, spread, dtype):
    """Mixing the factors of edges is mixing their tables; with scores far apart they are written.

    Edges of two types, whose rows are the states of the child or of the parent.
    """
    rng = np.random.default_rng(0)
    edges = [[0, 1], [2, 1], [1, 3], [4, 3]]
    model = TreeModel(n_states, n_features=3, n_edge_types=2)
    X = [(rng.normal(size=(5, 3)), edges, [0, 1, 1, 0])]
    problem = model.bind(X, [rng.integers(n_states, size=5)])
    state = SDCA(dual_dtype=dtype, epsilon=0.5, search_every=100).init(problem, 1.0)
    state.step(0)
    state.w[:] += spread * rng.uniform(size=problem.dim)
    before, m, searched = state.alpha.copy(), state.m.copy(), state.n_evaluations
    beta, _ = problem.infer(0, problem.score(0, problem.unpack(state.w)))
    gamma = state.step(0)
    assert state.n_evaluations == searched or n_states == 1
    precision = 1e-14 if dtype == "float64" else 2e-7
    expected = (1 - gamma) * before + gamma * beta
    assert_allclose(state.alpha, expected, rtol=10 * precision, atol=precision / n_states)
    expected = (1 - gamma) * m + gamma * problem.gather(0, beta)
    assert_allclose(state.m, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n_states", [*WIDTHS[1:], 45, 66])
def test_searches_without_tables(n_states, dtype):
    """Divergences of products are those of their tables, and Newton steps find the best gamma."""
    rng = np.random.default_rng(0)
    model = TreeModel(n_states, n_features=3, n_edge_types=2)
    graph = [[0, 1], [2, 1], [1, 3]], [0, 1, 1]
    problem = model.bind([(rng.normal(size=(5, 3)), *graph)], [rng.integers(n_states, size=5)])
    options = {"start": 0.02, "subprecision": 1e-3, "search_every": 1}
    state = SDCA(dual_dtype=dtype, epsilon=0.5, **options).init(problem, 1.0)
    state.w[:] += rng.uniform(size=problem.dim)
    before, m, w = state.alpha.astype(float), state.m.copy(), state.w.copy()
    theta = problem.score(0, problem.unpack(w))
    beta, _ = problem.infer(0, theta)
    change = problem.gather(0, beta) - m
    gamma, counting = state.step(0), problem.counting(0)
    curvature = problem.features_norm2(0, change)
    best, _ = entropy.line_search(counting, before, beta, theta @ change, curvature)
    assert_allclose(gamma, best, rtol=3e-3)
    assert state.n_evaluations > 1
    mixed = (1 - gamma) * before + gamma * beta
    KL = duality.kl(counting, mixed, beta)
    assert 0.0 < state.doubts[0] < 1e-4 * KL + 1e-7 * np.sqrt(KL)  # so it was in single precision
    stored = 0.0 if dtype == "float64" else SINGLE * np.abs(theta).sum()
    H = entropy.entropy(counting, mixed)
    assert_allclose(state.entropies[0], H, rtol=0, atol=state.doubts[0] + stored + 1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n_states", [3, 8, 22])
def test_searches_where_beta_is_too_small_for_single_precision(n_states, dtype):
    """The products of single precision give way to tables, which are written out then."""
    rng = np.random.default_rng(n_states)
    model = ChainModel(n_states, n_features=2)
    problem = model.bind([rng.normal(size=(4, 2))], [rng.integers(n_states, size=4)])
    state = SDCA(dual_dtype=dtype, epsilon=0.5, subprecision=1e-3, search_every=1).init(
        problem, 1.0
    )
    state.w[: 2 * n_states] = 200.0 * rng.uniform(size=2 * n_states)
    before, m = state.alpha.astype(float), state.m.copy()
    theta = problem.score(0, state.w)
    beta, _ = problem.infer(0, theta)
    assert beta.min() < 2.0**-90
    change = problem.gather(0, beta) - m
    gamma, counting = state.step(0), problem.counting(0)
    curvature = problem.features_norm2(0, change)
    best, _ = entropy.line_search(counting, before, beta, theta @ change, curvature)
    assert_allclose(gamma, best, rtol=1e-2, atol=1e-9)
    mixed = (1 - gamma) * before + gamma * beta
    assert_allclose(state.alpha, mixed, rtol=1e-6, atol=1e-12)
    assert state.doubts[0] == 0.0  # so it was done in double precision
    size = np.abs(theta).max() * 4 + 1
    H = entropy.entropy(counting, mixed)
    assert_allclose(
        state.entropies[0], H, rtol=0, atol=size * (1e-6 if dtype == "float32" else 1e-12)
    )


@pytest.mark.parametrize(
    ("options", "tolerance"),
    [
        pytest.param({"step_size": 0.5}, 1e-10, id="given steps"),
        # Steps that gain much are found in single precision.
        pytest.param({}, 1e-6, id="line search"),
    ],
)
def test_instruction_sets_agree(options, tolerance):
    results = []
    for name in kernels.available():
        kernels.select(name)
        problem, _ = wide_problem(17, "sparse")
        results.append(SDCA(random_state=0, **options).solve(problem, lam=0.1, tol=0, max_epochs=3))
    for other in results[1:]:
        assert_allclose(other.w, results[0].w, rtol=0, atol=tolerance)
