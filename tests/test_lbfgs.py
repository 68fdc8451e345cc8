"""L-BFGS: certificates of its iterates, threads, and the optimum that all solvers reach."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import ROUNDING
from states import SOLVERS, dual_point, letters

from sdcastruct import duality
from sdcastruct.datasets import load_ocr
from sdcastruct.models import ChainModel
from sdcastruct.solvers import LBFGS
from sdcastruct.solvers.result import Certificate


@pytest.fixture(scope="module")
def words():
    """Forty words of the OCR letters."""
    ocr = load_ocr()
    return ChainModel(n_states=26, n_features=128).bind(ocr.X[:40], ocr.y[:40])


@pytest.fixture(scope="module")
def optimum(words):
    """The primal of L-BFGS, certified to 1e-10."""
    result = LBFGS().solve(words, tol=1e-10, max_epochs=500)
    assert result.converged
    return result.primal


@pytest.mark.parametrize("name", SOLVERS)
def test_all_solvers_reach_the_optimum_of_lbfgs_on_letters(words, optimum, name):
    result = SOLVERS[name]().solve(words, tol=1e-6, max_epochs=300)
    assert result.converged
    assert optimum * (1 - 1e-10) <= result.primal <= optimum * (1 + 1e-6)
    assert result.dual <= optimum * (1 + ROUNDING)
    assert_allclose(result.primal, duality.primal(words, result.w, 1 / 40), rtol=ROUNDING)
    gap = duality.gap(words, result.w, dual_point(result.state), 1 / 40)
    assert_allclose(result.gap, gap, rtol=0, atol=ROUNDING * 100 * result.primal)


def test_certificate_of_every_iterate_is_the_squared_gradient():
    problem, lam, rows = letters(), 0.1, []
    result = LBFGS().solve(
        problem, lam=lam, tol=1e-12, max_epochs=100, certify_every=1, callback=rows.append
    )
    assert result.converged
    assert len(rows) == result.n_epochs > 5
    for row in rows:
        slope = duality.gradient(problem, row.w, lam)
        gap = duality.gap(problem, row.w, duality.alpha_hat(problem, row.w), lam)
        assert_allclose(row.primal, duality.primal(problem, row.w, lam), rtol=ROUNDING)
        atol = ROUNDING * 10 * row.primal
        assert_allclose(row.gap, slope @ slope / (2 * lam), rtol=0, atol=atol)
        assert_allclose(row.gap, gap, rtol=0, atol=atol)
        assert_allclose(row.gap_estimate, row.gap, rtol=0, atol=atol)
    assert (np.diff(result.history.primal) < 0).all()


def test_threads_change_nothing_but_the_order_of_sums(words):
    # Few iterations: rounding grows with every one of them.
    one, two, again = (
        LBFGS().solve(words, tol=0, max_epochs=5, n_jobs=n_jobs) for n_jobs in (1, 2, 2)
    )
    assert_array_equal(two.w, again.w)
    assert (two.primal, two.dual) == (again.primal, again.dual)
    assert_allclose(one.w, two.w, rtol=0, atol=ROUNDING * 1e3 * np.abs(one.w).max())
    assert_allclose(one.primal, two.primal, rtol=ROUNDING)
    assert one.n_oracle_calls == two.n_oracle_calls


def test_more_threads_than_samples():
    problem = letters(3)
    one, many = (
        LBFGS().solve(problem, lam=0.1, tol=1e-8, max_epochs=200, n_jobs=n_jobs)
        for n_jobs in (1, 8)
    )
    assert many.converged
    assert_allclose(one.primal, many.primal, rtol=2e-8)


def test_same_bits_again():
    first, second = (LBFGS().solve(letters(), lam=0.1, tol=1e-9) for _ in range(2))
    assert_array_equal(first.w, second.w)
    assert_array_equal(first.history.gap_estimate, second.history.gap_estimate)


@pytest.mark.parametrize("name", [n for n in SOLVERS if n not in ("L-BFGS", "SDCA")])
def test_other_solvers_refuse_threads(name):
    solver = SOLVERS[name]()
    with pytest.raises(ValueError, match=rf"n_jobs=2: expected 1 for {type(solver).__name__}"):
        solver.solve(letters(), n_jobs=2)


def test_an_epoch_is_an_iteration_and_its_passes_are_counted():
    problem = letters()
    result = LBFGS().solve(problem, lam=0.1, tol=0, max_epochs=7)
    assert result.n_epochs == result.n_updates == 7
    assert_array_equal(result.history.n_updates, np.arange(8))
    assert result.n_oracle_calls >= 8 * 8
    assert result.n_oracle_calls % 8 == 0
    assert result.history.n_oracle_calls[-1] == result.n_oracle_calls


def test_rounding_ends_a_run_without_a_tolerance():
    result = LBFGS().solve(letters(), lam=0.1, tol=0, max_epochs=10**6)
    assert result.n_epochs < 1000
    assert not result.converged
    assert result.relative_gap < 1e-12
    assert result.history.gap[-1] == result.gap


def test_memory_is_that_of_past_gradients():
    runs = [LBFGS(memory).solve(letters(20), lam=0.01, tol=0, max_epochs=6) for memory in (1, 10)]
    assert not np.allclose(runs[0].w, runs[1].w, rtol=1e-3)


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e6])
def test_a_dual_above_the_primal_is_no_certificate(size):
    certificate = Certificate.of(size, size)
    assert 0 < certificate.gap <= ROUNDING * size
    assert Certificate.of(size, size * (1 + 4e-16)).gap == certificate.gap
    assert Certificate.of(2 * size, size) == (2 * size, size, size)
    with pytest.raises(RuntimeError, match=r"the dual objective .* is above the primal"):
        Certificate.of(size, size + 1e-6 * (1 + size))
