"""Weights of samples: counting a sample k times is repeating it k times."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import ROUNDING
from strategies import chains, lambdas

from sdcastruct import duality
from sdcastruct.models import MulticlassModel
from sdcastruct.samplers import Gap, Importance
from sdcastruct.solvers import LBFGS, OEG, SAG, SDCA

SOLVERS = [
    SDCA(random_state=0),
    SDCA(Importance(0.5), random_state=0),
    OEG(Gap(), random_state=0),
    SAG(random_state=0),
    SAG(sampling="uniform", line_search="always", random_state=0),
    LBFGS(),
]


@st.composite
def repeated(draw):
    """Draw (weighted problem, problem with repeated samples, ratio of their sizes)."""
    data = draw(chains(min_states=2, max_samples=3))
    n = len(data.Y)
    times = np.array(draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    again = np.repeat(np.arange(n), times)
    problem = data.model.bind([data.X[i] for i in again], [data.Y[i] for i in again])
    return data.problem.weighted(times), problem, times.sum() / n


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@settings(max_examples=10)
@given(repeated(), lambdas())
def test_weights_repeat_samples(solver, problems, lam):
    weighted, problem, ratio = problems
    result = solver.solve(weighted, lam=lam, tol=1e-7, max_epochs=3000)
    expected = LBFGS().solve(problem, lam=lam / ratio, tol=1e-9, max_epochs=3000)
    assert result.converged
    slack = ROUNDING * (1 + expected.primal)
    assert expected.dual * ratio - slack <= result.primal
    assert result.dual <= expected.primal * ratio + slack
    assert_allclose(result.primal, duality.primal(weighted, result.w, lam), rtol=ROUNDING)


@given(repeated(), lambdas(), st.integers(0, 2**32 - 1))
def test_certificate_with_weights(problems, lam, seed):
    weighted, _, _ = problems
    state = SDCA(random_state=seed).init(weighted, lam)
    for _ in range(2):
        state.epoch()
    assert_allclose(state.norm2, state.w @ state.w, rtol=1e-9, atol=100 * ROUNDING / lam**2)
    primal, dual, gap = state.certify()
    scale = 1 + primal + lam * (state.w @ state.w)
    w, alpha = state.w, state.alpha
    assert_allclose(w, duality.w_hat(weighted, alpha, lam), rtol=0, atol=100 * ROUNDING / lam)
    assert_allclose(dual, duality.dual(weighted, alpha, lam), rtol=0, atol=100 * ROUNDING * scale)
    gaps = duality.block_gaps(weighted, w, alpha)
    assert_allclose(gap, gaps.mean(), rtol=0, atol=100 * ROUNDING * scale)
    assert_allclose(state.gaps, gaps, rtol=0, atol=100 * ROUNDING * scale)


@given(repeated(), lambdas(), st.sampled_from([1, 16]))
def test_weighted_steps_climb(problems, lam, search_every):
    weighted, _, _ = problems
    state = SDCA(search_every=search_every, random_state=0).init(weighted, lam)
    for i in range(weighted.n_samples):
        before = duality.dual(weighted, state.alpha, lam)
        state.step(i)
        scale = 1 + lam * (state.w @ state.w) + abs(before)
        assert duality.dual(weighted, state.alpha, lam) >= before - 10 * ROUNDING * scale


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"weights has shape \(1,\), expected \(2,\)"),
        ([1.0, 0.0], r"weights\[1\] is 0.0: expected a finite number > 0"),
        ([np.nan, 1.0], r"weights\[0\] is nan"),
        ([1.0, np.inf], r"weights\[1\] is inf"),
    ],
)
def test_bad_weights(weights, message):
    problem = MulticlassModel(2, 2).bind(np.eye(2), [0, 1])
    with pytest.raises(ValueError, match=message):
        problem.weighted(weights)
