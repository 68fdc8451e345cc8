"""Forbidden transitions and the n best labellings of a chain, against all labellings."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import ROUNDING
from scipy.special import logsumexp, softmax

from sdcastruct import duality
from sdcastruct.inference.n_best import n_best
from sdcastruct.models import ChainModel
from sdcastruct.problem import batch, stored
from sdcastruct.solvers import LBFGS, OEG, SAG, SDCA


@st.composite
def chains_with_rules(draw):
    """Draw (number of nodes, of states, forbidden transitions, seed of scores, their size)."""
    T, K = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    pairs = list(product([None, *range(K)], range(K)))
    forbidden = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=len(pairs)))
    size = draw(st.sampled_from([0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0]))
    return T, K, forbidden, draw(st.integers(0, 2**32 - 1)), size


def allowed_labelings(T, K, forbidden):
    """Return all labelings that have no forbidden transition, shape (number, T)."""
    rules = set(forbidden)
    found = [
        y for y in product(range(K), repeat=T) if not rules & set(zip((None, *y), y, strict=False))
    ]
    return np.array(found, int).reshape(-1, T)


def scores_of(labelings, nodes, transitions):
    T = labelings.shape[1]
    pairs = transitions[labelings[:, :-1], labelings[:, 1:]].sum(axis=1)
    return nodes[np.arange(T), labelings].sum(axis=1) + pairs


@given(chains_with_rules())
def test_oracle_sums_over_what_is_allowed(chain):
    T, K, forbidden, seed, size = chain
    rng = np.random.default_rng(seed)
    nodes, transitions = size * rng.normal(size=(T, K)), size * rng.normal(size=(K, K))
    theta = np.concatenate([nodes.ravel(), transitions.ravel() if T > 1 else []])
    problem = ChainModel(K, 1, forbidden=forbidden).bind([np.ones((T, 1))])
    labelings = allowed_labelings(T, K, forbidden)
    if not len(labelings):
        for use in (problem.infer, problem.decode):
            with pytest.raises(ValueError, match="sample 0 has no labelling that is allowed"):
                use(0, theta)
        return
    scores = scores_of(labelings, nodes, transitions)
    tolerance = ROUNDING * (1 + np.abs(theta).sum())
    mu, log_z = problem.infer(0, theta)
    assert_allclose(log_z, logsumexp(scores), rtol=0, atol=tolerance)
    expected = np.zeros((T, K))
    for y, p in zip(labelings, softmax(scores), strict=True):
        expected[np.arange(T), y] += p
    assert_allclose(mu[: T * K].reshape(T, K), expected, rtol=0, atol=tolerance)
    pairs = mu[T * K :].reshape(-1, K, K)
    assert_allclose(pairs.sum(axis=2), expected[:-1], rtol=0, atol=tolerance)
    assert_allclose(pairs.sum(axis=1), expected[1:], rtol=0, atol=tolerance)
    for before, after in forbidden:
        assert not (mu[:K][after] if before is None else pairs[:, before, after]).any()
    best = problem.decode(0, theta)
    assert (labelings == best).all(axis=1).any()
    assert scores_of(best[None], nodes, transitions)[0] >= scores.max() - tolerance


@given(chains_with_rules(), st.integers(1, 20))
def test_n_best_are_the_first_of_all(chain, n):
    T, K, forbidden, seed, _ = chain
    rng = np.random.default_rng(seed)
    model = ChainModel(K, 1, forbidden=forbidden)
    nodes, transitions = rng.normal(size=(T, K)), rng.normal(size=(K, K))
    labels, scores = n_best(*model.forbid(nodes, transitions), n)
    labelings = allowed_labelings(T, K, forbidden)
    every = scores_of(labelings, nodes, transitions)
    order = np.argsort(-every)[:n]
    assert_allclose(scores, every[order], rtol=0, atol=ROUNDING)
    assert_array_equal(labels, labelings[order])


@pytest.mark.parametrize(
    "solver",
    [SDCA(random_state=0), OEG(random_state=0), SAG(random_state=0), LBFGS()],
    ids=lambda solver: type(solver).__name__,
)
def test_training_obeys_the_rules(solver):
    rng = np.random.default_rng(0)
    forbidden = [(0, 2), (None, 1)]
    X, Y = [], []
    for _ in range(15):
        T = rng.integers(1, 6)
        labelings = allowed_labelings(T, 3, forbidden)
        X.append(rng.normal(size=(T, 2)))
        Y.append(labelings[rng.integers(len(labelings))])
    problem = ChainModel(3, 2, forbidden=forbidden).bind(X, Y)
    result = solver.solve(problem, lam=0.1, tol=1e-6, max_epochs=2000)
    assert result.converged
    losses = []
    model = ChainModel(3, 2)
    free = model.bind(X, Y)
    for i, x in enumerate(X):
        theta = free.score(i, result.w)
        T = len(x)
        transitions = theta[3 * T :].reshape(3, 3) if T > 1 else np.zeros((3, 3))
        scores = scores_of(
            allowed_labelings(T, 3, forbidden), theta[: 3 * T].reshape(T, 3), transitions
        )
        losses.append(logsumexp(scores) - theta @ free.gather(i, free.truth(i)))
    primal = np.mean(losses) + 0.05 * result.w @ result.w
    assert_allclose(result.primal, primal, rtol=ROUNDING)
    assert_allclose(duality.primal(problem, result.w, 0.1), primal, rtol=ROUNDING)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", ROUNDING), ("float32", 1e-6)])
def test_the_initial_point_obeys_the_rules(dtype, tolerance):
    """What is known of it is what a pass over it finds."""
    Y = [[0], [0, 1], [2, 2, 1, 0, 0]]
    model = ChainModel(3, 1, forbidden=[(0, 2), (None, 1)])
    problem = model.bind([np.ones((len(y), 1)) for y in Y], Y)
    out = stored.empty(problem.n_marginals, dtype)
    alpha, m, entropies = batch.initial_point(problem, 0.3, out)
    assert np.count_nonzero(alpha[problem.block(0)]) == 2  # of the states of a first node
    found, exact = np.empty_like(m), np.empty_like(entropies)
    batch.summarise(problem, alpha, found, exact)
    assert_allclose(m, found, rtol=0, atol=tolerance)
    assert_allclose(entropies, exact, rtol=0, atol=tolerance)


def test_two_halves_that_disagree():
    """Messages get far smaller than any number of single precision, without any wide score."""
    T, y = 40, np.zeros(40, int)
    problem = ChainModel(2, 1, forbidden=[(0, 1), (1, 0)]).bind(
        [np.repeat([[1.0], [-1.0]], T // 2, axis=0)], [y]
    )
    state = SDCA(dual_dtype="float32", epsilon=0.5, search_every=100).init(problem, 1.0)
    state.step(0)
    state.recompute()  # so that there is no doubt
    state.w[:2] = 5.0, 0.0
    searched = state.n_evaluations
    state.step(0)
    assert state.n_evaluations == searched
    assert np.isfinite(state.alpha).all()


@pytest.mark.parametrize(
    ("forbidden", "message"),
    [
        ([(0, 5)], r"forbidden has \(0, 5\): expected \(from, to\) with labels from 0 to 2"),
        ([(0, 1, 2)], r"forbidden has \(0, 1, 2\)"),
        ([(0.5, 1)], r"forbidden has \(0.5, 1\)"),
        ([(0, None)], r"forbidden has \(0, None\): expected a label to end with"),
    ],
)
def test_bad_rules(forbidden, message):
    with pytest.raises(ValueError, match=message):
        ChainModel(3, 1, forbidden=forbidden)


def test_labels_must_obey_the_rules():
    model = ChainModel(3, 1, forbidden=[(0, 2), (None, 1)])
    x = np.ones((3, 1))
    with pytest.raises(ValueError, match=r"Y\[1\]\[2\]: the transition \(0, 2\) is forbidden"):
        model.bind([x, x], [[0, 0, 0], [0, 0, 2]])
    with pytest.raises(ValueError, match=r"Y\[1\]\[0\]: the transition \(None, 1\) is forbidden"):
        model.bind([x, x], [[0, 0, 0], [1, 0, 0]])
    model.bind([x, x], [[0, 0, 0], [2, 1, 2]])
