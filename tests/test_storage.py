"""Dual points in single precision and in files: less memory, certificates as exact as ever."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import ROUNDING, entropy
from states import letters
from strategies import distributions, lambdas
from structures import STRUCTURES
from test_check_model import Triangle

from sdcastruct import duality
from sdcastruct.problem import batch, stored
from sdcastruct.solvers import SDCA

SOME = settings(max_examples=settings.default.max_examples // 4)
structures = pytest.mark.parametrize("name", STRUCTURES)


@structures
@SOME
@given(st.data())
def test_calibrated_marginals_are_those_of_a_distribution(name, data):
    """Rounded tables become the marginals of the joint distribution that they define."""
    point = data.draw(STRUCTURES[name])
    for i, sample in enumerate(point.judge.samples):
        mu = sample.marginals(data.draw(distributions(len(sample.labelings))))
        rounded = mu.astype(np.float32).astype(float)
        calibrated = point.problem.calibrate(i, rounded)
        assert_allclose(calibrated, mu, rtol=0, atol=1e-6)
        joint = sample.joint(calibrated)
        assert_allclose(joint.sum(), 1.0, rtol=ROUNDING)
        assert_allclose(sample.marginals(joint), calibrated, rtol=0, atol=ROUNDING)
        assert_allclose(point.problem.calibrate(i, calibrated), calibrated, rtol=0, atol=ROUNDING)


@structures
@SOME
@given(st.data())
def test_calibrating_zeros(name, data):
    """Tables with zeros, among them states of a separator that never occur."""
    point = data.draw(STRUCTURES[name])
    for i, sample in enumerate(point.judge.samples):
        mu = sample.marginals(data.draw(distributions(len(sample.labelings), positive=False)))
        calibrated = point.problem.calibrate(i, mu)
        assert_allclose(calibrated, mu, rtol=0, atol=ROUNDING)


@structures
@SOME
@given(st.data(), lambdas())
def test_certificates_are_exact(name, data, lam):
    """P, D and P - D of the dual point that the stored numbers stand for."""
    point = data.draw(STRUCTURES[name])
    problem = point.problem
    state = SDCA(dual_dtype="float32", random_state=0).init(problem, lam)
    for _ in range(3):
        state.epoch()
    alpha = np.concatenate(
        [problem.calibrate(i, state.alpha[problem.block(i)]) for i in range(problem.n_samples)]
    )
    certificate = state.certify()
    w = duality.w_hat(problem, alpha, lam)
    scale = 1 + abs(certificate.primal) + lam * (w @ w)
    assert_allclose(state.w, w, rtol=0, atol=ROUNDING * scale / lam)
    assert_allclose(certificate.primal, duality.primal(problem, w, lam), atol=ROUNDING * scale)
    assert_allclose(certificate.dual, duality.dual(problem, alpha, lam), atol=ROUNDING * scale)
    joints = [s.joint(alpha[problem.block(i)]) for i, s in enumerate(point.judge.samples)]
    assert_allclose(state.entropies, [entropy(joint) for joint in joints], atol=ROUNDING * 10)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_both_reach_the_same_optimum(dtype):
    problem = letters(60)
    reference = SDCA(random_state=0).solve(problem, tol=1e-9, max_epochs=500)
    result = SDCA(dual_dtype=dtype, random_state=1).solve(problem, tol=1e-6, max_epochs=500)
    assert result.converged
    assert result.state.alpha.dtype == dtype
    assert result.dual <= reference.primal
    assert_allclose(result.primal, reference.primal, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_kept_entropies_are_right_however_small_the_gap(dtype):
    problem = letters(20)
    state = SDCA(dual_dtype=dtype, search_every=2, random_state=0).init(problem, 0.05)
    for _ in range(200):
        state.epoch()
    assert np.all(state.doubts < 1e-12)
    exact = [
        duality.entropy(problem.counting(i), state.alpha[problem.block(i)].astype(float))
        for i in range(problem.n_samples)
    ]
    atol = 1e-12 if dtype == "float64" else 1e-5
    assert_allclose(state.entropies, exact, rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_marginals_in_a_file(tmp_path, dtype):
    problem = letters(30)
    options = {"dual_dtype": dtype, "random_state": 0}
    expected = SDCA(**options).solve(problem, tol=1e-4, max_epochs=300)
    result = SDCA(dual_folder=tmp_path, **options).solve(problem, tol=1e-4, max_epochs=300)
    assert isinstance(result.state.alpha, np.memmap)
    assert_array_equal(result.w, expected.w)
    assert list(tmp_path.iterdir()) == []


def test_checkpoints_in_single_precision(tmp_path):
    solver = SDCA(dual_dtype="float32", random_state=0)
    path = tmp_path / "run.checkpoint"
    problem = letters(30)
    run = {"lam": 0.1, "tol": 0, "certify_every": 3}
    expected = solver.solve(problem, max_epochs=6, **run)
    solver.solve(problem, max_epochs=3, checkpoint=path, **run)
    result = solver.solve(problem, max_epochs=6, checkpoint=path, **run)
    assert_array_equal(result.w, expected.w)


@pytest.mark.parametrize(("first", "second"), [("float64", "float32"), ("float32", "float64")])
def test_warm_starts_change_the_precision(first, second):
    problem = letters(30)
    solver = SDCA(dual_dtype=first, random_state=0)
    start = solver.solve(problem, lam=0.1, tol=1e-3, max_epochs=300)
    state = SDCA(dual_dtype=second).init(problem, 0.1, warm_start=start)
    assert state.alpha.dtype == second
    certificate = state.certify()
    assert certificate.gap <= 1.01e-3 * certificate.primal


def test_models_in_python_need_double_precision():
    problem = Triangle().bind([np.ones((3, 2))], [np.zeros(3, int)])
    with pytest.raises(ValueError, match="dual_dtype='float32': CallbackEngine cannot"):
        SDCA(dual_dtype="float32").init(problem, 0.1)


def test_bad_options(tmp_path):
    with pytest.raises(ValueError, match="dual_dtype='float16': expected 'float64' or 'float32'"):
        SDCA(dual_dtype="float16")
    with pytest.raises(ValueError, match="dual_folder='nowhere': expected a folder"):
        SDCA(dual_folder="nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="expected a folder in which files can be made"):
        SDCA(dual_folder=tmp_path / "file")


def test_bad_dual_points():
    problem = letters(3)
    with pytest.raises(TypeError, match="alpha is an array of int64"):
        batch.initial_point(problem, 0.1, np.zeros(problem.n_marginals, np.int64))
    with pytest.raises(ValueError, match=r"alpha has shape \(3,\), expected"):
        batch.initial_point(problem, 0.1, stored.empty(3, "float64"))
