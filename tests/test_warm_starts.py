"""Warm starts: from any solver to any other, along lam, to more samples; and resumed runs."""

import pickle
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import ROUNDING
from states import SOLVERS, dual_point, letters, samples, slots

from sdcastruct import duality
from sdcastruct.datasets import load_ocr
from sdcastruct.models import ChainModel
from sdcastruct.solvers import LBFGS, OEG, SAG, SDCA

DUAL = ["SDCA", "OEG", "OEG-gap"]
RESUMING = [name for name in SOLVERS if name != "L-BFGS"]
LAM = 0.1


def check_first_row(solver, problem, lam, start):
    """Check the certificate of the start against its definition; return the result."""
    state = solver.init(problem, lam, warm_start=start)
    w, alpha = state.w.copy(), dual_point(state)
    result = solver.solve(
        problem, lam=lam, tol=1e-7, max_epochs=1000, warm_start=start, certify_every=1
    )
    history = result.history
    atol = ROUNDING * 100 * (1 + history.primal[0] + lam * (w @ w)) / min(lam, 1)
    assert_allclose(history.primal[0], duality.primal(problem, w, lam), rtol=0, atol=atol)
    assert_allclose(history.gap[0], duality.gap(problem, w, alpha, lam), rtol=0, atol=atol)
    assert result.converged
    return result


@pytest.fixture(scope="module")
def problem():
    return letters()


@pytest.fixture(scope="module")
def best(problem):
    return {
        lam: LBFGS().solve(problem, lam=lam, tol=1e-12, max_epochs=500).primal
        for lam in (LAM, LAM / 2, 2 * LAM)
    }


@pytest.fixture(scope="module")
def rough(problem):
    """Results of all solvers, far from the optimum."""
    return {
        name: make().solve(problem, lam=LAM, tol=1e-2, max_epochs=100)
        for name, make in SOLVERS.items()
    }


@pytest.mark.parametrize("factor", [1, 2, 0.5])
@pytest.mark.parametrize(("old", "new"), list(product(SOLVERS, SOLVERS)))
def test_from_any_solver_to_any_other(problem, best, rough, old, new, factor):
    kept = rough[old].state.w.copy()
    result = check_first_row(SOLVERS[new](1), problem, factor * LAM, rough[old])
    assert_allclose(result.primal, best[factor * LAM], rtol=1e-6)
    assert_array_equal(rough[old].state.w, kept)


@pytest.mark.parametrize("name", SOLVERS)
def test_what_a_warm_start_takes(problem, rough, name):
    make, first = SOLVERS[name], rough[name]
    state = make().init(problem, LAM, first)
    same = make().init(problem, LAM, first.state)
    assert_allclose(state.w, first.w, rtol=0, atol=ROUNDING * 10)
    assert_array_equal(state.w, same.w)
    assert state.w is not first.state.w
    assert state.n_updates == 0
    state.certify()
    if name != "L-BFGS":
        state.epoch()
        assert_array_equal(first.w, first.state.w)


@pytest.mark.parametrize("name", SOLVERS)
def test_from_weights(problem, best, rough, name):
    # A pickled result has weights and no state.
    for start in (rough["L-BFGS"].w, list(rough["SAG"].w), pickle.loads(pickle.dumps(rough[name]))):
        result = check_first_row(SOLVERS[name](), problem, LAM, start)
        assert_allclose(result.primal, best[LAM], rtol=1e-6)
    primal = SOLVERS[name]().solve(problem, lam=LAM, warm_start=rough["SAG"].w, max_epochs=0)
    if name not in DUAL:
        assert_array_equal(primal.w, rough["SAG"].w)


@pytest.mark.parametrize("name", DUAL)
def test_a_dual_start_from_weights_is_their_marginals(problem, rough, name):
    w = rough["L-BFGS"].w
    state = SOLVERS[name]().init(problem, LAM, w)
    alpha = duality.alpha_hat(problem, w)
    assert_allclose(dual_point(state), alpha, rtol=0, atol=ROUNDING)
    assert_allclose(state.w, duality.w_hat(problem, alpha, LAM), rtol=0, atol=ROUNDING * 100)
    gaps = duality.block_gaps(problem, state.w, alpha)
    assert_allclose(state.gaps, gaps, rtol=0, atol=ROUNDING * 100)


@pytest.mark.parametrize("name", ["SDCA", "OEG-gap"])
def test_another_lam_tells_the_sampler_the_gaps(problem, rough, name):
    state = SOLVERS[name]().init(problem, LAM / 2, rough[name])
    gaps = duality.block_gaps(problem, state.w, dual_point(rough[name].state))
    assert_allclose(state.gaps, gaps, rtol=0, atol=ROUNDING * 100)
    assert_allclose(state.sampler.weights(), gaps, rtol=0, atol=ROUNDING * 100)
    assert_allclose(dual_point(state), dual_point(rough[name].state), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize(("old", "new"), list(product(SOLVERS, SOLVERS)))
def test_samples_may_be_added(rough, old, new):
    more = letters(12)
    result = check_first_row(SOLVERS[new](1), more, LAM, rough[old])
    best = LBFGS().solve(more, lam=LAM, tol=1e-12, max_epochs=500).primal
    assert_allclose(result.primal, best, rtol=1e-6)


@pytest.mark.parametrize("name", DUAL)
def test_old_samples_keep_their_dual_point(rough, name):
    more, old = letters(12), rough[name].state
    state = SOLVERS[name]().init(more, LAM, old)
    n = old.problem.n_marginals
    assert_allclose(dual_point(state)[:n], dual_point(old), rtol=0, atol=ROUNDING)
    fresh = SOLVERS[name]().init(more, LAM)
    assert_array_equal(dual_point(state)[n:], dual_point(fresh)[n:])
    if name != "SDCA":
        assert_array_equal(state.etas, [*old.etas, *[0.5] * 4])
        assert_array_equal(slots(more, state.theta)[0], slots(old.problem, old.theta)[0])


@pytest.mark.parametrize("name", DUAL)
def test_other_graphs_are_refused(rough, name):
    X, Y = samples(8)
    model = ChainModel(n_states=3, n_features=4)
    for order in (slice(None, None, -1), slice(7)):
        other = model.bind(X[order], Y[order])
        with pytest.raises(ValueError, match=r"warm_start has a dual point for 8 samples .* same"):
            SOLVERS[name]().solve(other, lam=LAM, warm_start=rough[name])


@pytest.mark.parametrize("name", ["OEG", "SAG", "SAG-NUS*", "L-BFGS"])
def test_weights_of_another_length_are_refused(rough, name):
    wide = letters(n_features=5)
    expected = rf"warm_start has shape \(30,\), expected weights \({wide.dim},\)"
    for start in (rough["L-BFGS"], rough["SDCA"].state, rough["SAG"].state, rough["SAG"].w):
        with pytest.raises(ValueError, match=expected):
            SOLVERS[name]().solve(wide, lam=LAM, warm_start=start)


@pytest.mark.parametrize("name", ["SDCA", "OEG-gap"])
def test_twice_the_cost_needs_fewer_epochs_from_half_of_it(name):
    ocr = load_ocr()
    fold = np.flatnonzero(ocr.folds == 0)
    X, Y, n = [ocr.X[i] for i in fold], [ocr.y[i] for i in fold], len(fold)
    problem = ChainModel(n_states=26, n_features=128).bind(X, Y)
    solver, options = SOLVERS[name](), {"tol": 1e-3, "max_epochs": 100}
    half = solver.solve(problem, lam=1 / n, **options)
    warm = solver.solve(problem, lam=0.5 / n, warm_start=half, **options)
    cold = solver.solve(problem, lam=0.5 / n, **options)
    assert warm.converged
    assert cold.converged
    assert warm.n_epochs <= 0.6 * cold.n_epochs


@pytest.mark.parametrize("name", RESUMING)
def test_a_resumed_run_is_the_run(problem, name):
    options = {"lam": LAM, "tol": 0, "certify_every": 1}
    whole = SOLVERS[name]().solve(problem, max_epochs=7, **options)
    part = SOLVERS[name]().solve(problem, max_epochs=3, **options)
    rest = SOLVERS[name](99).solve(problem, max_epochs=4, resume=part.state, **options)
    assert rest.state is part.state
    assert rest.n_epochs == 4
    assert_array_equal(rest.w, whole.w)
    assert_array_equal(rest.history.primal, whole.history.primal[3:])
    assert_array_equal(rest.history.gap_estimate[1:], whole.history.gap_estimate[4:])
    # What was done before does not count.
    assert rest.n_updates == whole.n_updates - part.n_updates == 4 * 8
    calls = whole.history.n_oracle_calls
    assert_array_equal(rest.history.n_oracle_calls, calls[3:] - calls[3])
    assert rest.n_oracle_calls == calls[7] - calls[3]


def test_resume_takes_the_state_of_this_run(problem):
    state = SDCA().init(problem, LAM)
    with pytest.raises(ValueError, match=r"resume and warm_start"):
        SDCA().solve(problem, lam=LAM, resume=state, warm_start=state)
    with pytest.raises(TypeError, match=r"resume=3: expected the state"):
        SDCA().solve(problem, lam=LAM, resume=3)
    with pytest.raises(ValueError, match=r"resume has .*lam=0.1.*expected .*lam=0.2"):
        SDCA().solve(problem, lam=0.2, resume=state)
    with pytest.raises(ValueError, match=r"resume has another problem"):
        SDCA().solve(letters(), lam=LAM, resume=state)


@pytest.mark.parametrize(("old", "new"), [(OEG, SDCA), (SDCA, LBFGS), (LBFGS, SDCA), (LBFGS, SAG)])
def test_resume_takes_no_state_of_another_solver(problem, old, new):
    state = old().init(problem, LAM)
    with pytest.raises((TypeError, ValueError), match=rf"resume.*{new.__name__}"):
        new().solve(problem, lam=LAM, resume=state)
