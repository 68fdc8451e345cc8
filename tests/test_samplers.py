"""Samplers: the sum tree, the probabilities that each sampler promises, and the draws it makes."""

from math import fsum

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import ROUNDING, draw_in_proportion
from strategies import bounded, chains, lambdas

from sdcastruct import duality
from sdcastruct.models import ChainModel
from sdcastruct.samplers import (
    Gap,
    GapImportance,
    Importance,
    MaxGap,
    Sampler,
    Uniform,
    trees,
)
from sdcastruct.solvers import SDCA

WEIGHTS = st.lists(bounded(0, 100), min_size=1, max_size=20).map(np.array)
PROPORTIONAL = [Importance, Gap, GapImportance]
ADAPTIVE = [Gap, GapImportance, MaxGap]


def problem_of(n_samples, n_states=3, seed=0):
    """Return a problem whose samples have distinct radii."""
    rng = np.random.default_rng(seed)
    X = [rng.uniform(0, 1 + i, size=(1 + i % 3, 2)) for i in range(n_samples)]
    Y = [rng.integers(n_states, size=len(x)) for x in X]
    return ChainModel(n_states=n_states, n_features=2).bind(X, Y)


@st.composite
def updated_trees(draw):
    """Draw a sum tree after some updates, with the weights that it should hold."""
    weights = draw(WEIGHTS)
    tree = trees.SumTree(weights.copy())
    position = st.integers(0, len(weights) - 1)
    for i, value in draw(st.lists(st.tuples(position, bounded(0, 100)), max_size=30)):
        tree.update(i, value)
        weights[i] = value
    return tree, weights


@given(updated_trees())
def test_root_is_the_sum_of_the_leaves(case):
    tree, weights = case
    assert_array_equal([tree[i] for i in range(len(weights))], weights)
    # A sum over a binary tree of 20 leaves rounds five times, whatever came before.
    assert_allclose(tree.total, fsum(weights), rtol=1e-15, atol=0)


def test_many_updates_leave_no_drift():
    rng = np.random.default_rng(0)
    weights = rng.random(7)
    tree = trees.SumTree(weights)
    for _ in range(20_000):
        i = int(rng.integers(7))
        weights[i] = 10 ** rng.uniform(-12, 12)
        tree.update(i, weights[i])
    weights[:] = 1e-12
    for i in range(7):
        tree.update(i, weights[i])
    assert_allclose(tree.total, 7e-12, rtol=1e-15)


@given(updated_trees(), st.floats(0, 1, exclude_max=True))
def test_find_inverts_the_cumulative_sum(case, u):
    tree, weights = case
    assume(tree.total > 0)
    ticket = min(u * tree.total, np.nextafter(tree.total, 0))
    i = tree.find(ticket)
    above = np.cumsum(weights)
    slack = ROUNDING * tree.total
    assert above[i] - weights[i] - slack <= ticket <= above[i] + slack
    assert weights[i] > 0


@given(updated_trees())
def test_weights_of_zero_are_never_found(case):
    tree, weights = case
    assume(tree.total > 0)
    edges = np.concatenate([[0], np.cumsum(weights)])
    tickets = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, np.inf)])
    for ticket in np.clip(tickets, 0, np.nextafter(tree.total, 0)):
        assert weights[tree.find(ticket)] > 0


@pytest.mark.parametrize("kind", PROPORTIONAL)
@given(chains(), lambdas(), st.floats(0, 1), st.data())
def test_probabilities(kind, data, lam, non_uniformity, source):
    problem = data.problem
    n = problem.n_samples
    gaps = source.draw(st.lists(bounded(0, 10), min_size=n, max_size=n).map(np.array))
    sampler = kind(non_uniformity=non_uniformity)
    sampler.reset(problem, lam)
    for i, gap in enumerate(gaps):
        sampler.update(i, gap)
    smoothness = lam + problem.radii() / n
    scores = {Importance: smoothness, Gap: gaps, GapImportance: gaps * smoothness}[kind]
    uniform = np.full(n, 1 / n)
    target = scores / scores.sum() if scores.sum() > 0 else uniform
    expected = non_uniformity * target + (1 - non_uniformity) * uniform
    actual = sampler.probabilities()
    assert_allclose(actual, expected, rtol=ROUNDING, atol=ROUNDING)
    assert_allclose(actual.sum(), 1, rtol=ROUNDING)
    assert actual.min() >= (1 - non_uniformity) / n * (1 - ROUNDING)


@given(chains(), lambdas())
def test_uniform_probabilities(data, lam):
    sampler = Uniform()
    sampler.reset(data.problem, lam)
    sampler.update(0, 3.0)
    n = data.problem.n_samples
    assert_allclose(sampler.probabilities(), np.full(n, 1 / n), rtol=ROUNDING)


@pytest.mark.parametrize("non_uniformity", [0.0, 0.8, 1.0])
def test_max_gap_draws_the_largest(non_uniformity):
    sampler = MaxGap(non_uniformity=non_uniformity)
    sampler.reset(problem_of(4), 0.1)
    for i, gap in enumerate([0.5, 3.0, 0.0, 1.0]):
        sampler.update(i, gap)
    expected = np.full(4, (1 - non_uniformity) / 4)
    expected[1] += non_uniformity
    assert_allclose(sampler.probabilities(), expected, rtol=ROUNDING)
    rng = np.random.default_rng(0)
    if non_uniformity == 1:
        assert [sampler.draw(rng) for _ in range(5)] == [1] * 5
        sampler.update(1, 0.1)
        assert [sampler.draw(rng) for _ in range(5)] == [3] * 5


@pytest.mark.parametrize("kind", ADAPTIVE)
def test_adaptive_samplers_start_with_equal_large_gaps(kind):
    # Each sample is met once before a stale gap can decide: an unseen one weighs the most.
    problem = problem_of(6)
    sampler = kind(non_uniformity=1.0)
    sampler.reset(problem, 0.1)
    rng = np.random.default_rng(0)
    seen = set()
    while len(seen) < 6:
        i = sampler.draw(rng)
        assert i not in seen
        seen.add(i)
        sampler.update(i, 0.0)


@pytest.mark.parametrize("kind", ADAPTIVE)
def test_gaps_that_are_all_zero_are_drawn_uniformly(kind):
    sampler = kind(non_uniformity=1.0)
    sampler.reset(problem_of(3), 0.1)
    for i in range(3):
        sampler.update(i, 0.0)
    rng = np.random.default_rng(0)
    assert {sampler.draw(rng) for _ in range(100)} <= {0, 1, 2}


@pytest.mark.parametrize("kind", ADAPTIVE)
def test_reset_forgets(kind):
    problem = problem_of(3)
    sampler = kind(non_uniformity=0.8)
    sampler.reset(problem, 0.1)
    fresh = sampler.probabilities()
    sampler.update(int(fresh.argmax()), 0.001)
    assert not np.allclose(sampler.probabilities(), fresh)
    sampler.reset(problem, 0.1)
    assert_allclose(sampler.probabilities(), fresh, rtol=ROUNDING)


@pytest.mark.parametrize("kind", [*PROPORTIONAL, MaxGap, Uniform])
def test_frequencies_of_draws_are_the_probabilities(kind):
    n, n_draws = 6, 20_000
    sampler = Uniform() if kind is Uniform else kind(non_uniformity=0.7)
    sampler.reset(problem_of(n), 0.1)
    for i in range(n):
        sampler.update(i, 0.5 * i)
    rng = np.random.default_rng(1)
    counts = np.bincount([sampler.draw(rng) for _ in range(n_draws)], minlength=n)
    p = sampler.probabilities()
    deviation = (counts - n_draws * p) / np.sqrt(n_draws * p * (1 - p))
    assert np.abs(deviation).max() < 4.5  # one in 10^4 for six samples; the seed is fixed


@pytest.mark.parametrize("kind", PROPORTIONAL)
@given(st.integers(0, 2**32 - 1), st.floats(0, 1), st.integers(1, 9))
def test_draws_follow_the_random_numbers(kind, seed, non_uniformity, n):
    problem = problem_of(n)
    sampler = kind(non_uniformity=non_uniformity)
    sampler.reset(problem, 0.1)
    gaps = 1 + np.arange(n) % 4
    for i, gap in enumerate(gaps):
        sampler.update(i, gap)
    smoothness = 0.1 + problem.radii() / n
    scores = {Importance: smoothness, Gap: gaps, GapImportance: gaps * smoothness}[kind]
    rng, twin = np.random.default_rng(seed), np.random.default_rng(seed)
    for _ in range(10):
        if non_uniformity > 0 and twin.random() < non_uniformity:
            expected = draw_in_proportion(twin, scores)
        else:
            expected = int(twin.random() * n)
        assert sampler.draw(rng) == expected


def test_uniform_draws_follow_the_random_numbers():
    sampler = Uniform()
    sampler.reset(problem_of(5), 0.1)
    rng, twin = np.random.default_rng(3), np.random.default_rng(3)
    expected = [int(twin.random() * 5) for _ in range(50)]
    assert [sampler.draw(rng) for _ in range(50)] == expected


class InOrder(Sampler):
    """A user's sampler: every sample in turn; remembers the gaps that it is told."""

    def reset(self, problem, lam):
        super().reset(problem, lam)
        self.last = -1
        self.told = []

    def draw(self, rng):
        self.last = (self.last + 1) % self.n_samples
        return self.last

    def update(self, i, gap):
        self.told.append((i, gap))


def test_a_users_sampler_drives_the_solver():
    problem = problem_of(5)
    result = SDCA(sampler=InOrder()).solve(problem, lam=0.2, tol=1e-6, max_epochs=300)
    assert result.converged
    told = result.state.sampler.told
    assert [i for i, _ in told][: 2 * 5] == [0, 1, 2, 3, 4] * 2
    assert len(told) == result.n_updates
    gap = duality.gap(problem, result.w, result.state.alpha, 0.2)
    assert gap <= 1e-6 * duality.primal(problem, result.w, 0.2)


def test_a_users_sampler_makes_the_steps_that_it_orders():
    problem = problem_of(4)
    state = SDCA(sampler=InOrder(), random_state=0).init(problem, 0.2)
    twin = SDCA(sampler=Uniform(), random_state=5).init(problem, 0.2)
    state.epoch()
    for i in range(4):
        twin.step(i)
    assert_array_equal(state.alpha, twin.alpha)
    assert_array_equal(state.w, twin.w)


def test_a_subclass_of_a_compiled_sampler_may_replace_its_draw():
    class Backwards(Gap):
        def draw(self, rng):
            return self.n_samples - 1

    problem = problem_of(4)
    state = SDCA(sampler=Backwards(non_uniformity=1.0), random_state=0).init(problem, 0.2)
    before = state.alpha.copy()
    state.epoch()
    moved = [
        not np.array_equal(state.alpha[problem.block(i)], before[problem.block(i)])
        for i in range(4)
    ]
    assert moved == [False, False, False, True]


def test_a_users_sampler_may_fail():
    class Broken(InOrder):
        def draw(self, rng):
            raise RuntimeError("no more samples")

    with pytest.raises(RuntimeError, match="no more samples"):
        SDCA(sampler=Broken()).solve(problem_of(3), lam=0.1)


@pytest.mark.parametrize("index", [-1, 3, 10])
def test_a_users_sampler_must_stay_in_range(index):
    class Outside(InOrder):
        def draw(self, rng):
            return index

    with pytest.raises((IndexError, ValueError), match=str(index)):
        SDCA(sampler=Outside()).solve(problem_of(3), lam=0.1)
