"""Threads with replicas of frequent weights: all changes arrive, and none waits for long."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from states import letters

from sdcastruct.models import ChainModel
from sdcastruct.problem import batch, gram, replicas
from sdcastruct.samplers import Sampler
from sdcastruct.solvers import SAG, SDCA


@pytest.fixture(scope="module")
def words():
    """Chains whose attributes are as frequent as words are, from everywhere to hardly anywhere."""
    problem = ChainModel(3, 60).bind(*zip(*samples(800), strict=True))
    problem.attributes.prepare_norms()
    return problem


def samples(n_samples, n_features=60, n_states=3):
    rng = np.random.default_rng(0)
    chances = 1.0 / np.arange(1, n_features + 1)
    for length in rng.integers(1, 7, size=n_samples):
        present = rng.random((length, n_features)) < chances
        x = csr_array(present * rng.choice([1.0, -0.5], size=present.shape))
        yield x, rng.integers(n_states, size=length)


def frequencies(problem, which=range(800)):
    """Return how often each attribute of the first template occurs in a sample."""
    return problem.attributes.templates[0].frequencies(np.array(which))


def conjugate(state):
    """Return the weights that belong to the dual point of a state."""
    w = np.empty(state.problem.dim)
    batch.conjugate_weights(state.problem, state.m, state.lam, w)
    return w


@pytest.mark.parametrize("n_jobs", [2, 3, 4])
@pytest.mark.parametrize("dual_dtype", ["float64", "float32"])
def test_no_change_of_the_weights_is_lost(words, n_jobs, dual_dtype):
    """After an epoch, w is conjugate to what the steps have left, without being rebuilt."""
    state = SDCA(random_state=0, dual_dtype=dual_dtype).init(words, 0.01)
    state.n_jobs = n_jobs
    for _ in range(5):
        state.epoch()
        assert_allclose(state.w, conjugate(state), rtol=1e-10, atol=1e-10)


def test_the_number_of_threads_may_change(words):
    state = SDCA(random_state=0).init(words, 0.01)
    for n_jobs in (1, 2, 4, 3, 1):
        state.n_jobs = n_jobs
        state.epoch()
    assert_allclose(state.w, conjugate(state), rtol=1e-10, atol=1e-10)


def test_frequent_rows_have_replicas_most_frequent_first(words):
    made = replicas.Replicas(words, 2)
    assert made.n_levels > 1
    for template, rows in zip(words.attributes.templates, made.rows, strict=True):
        frequency = template.frequencies(np.arange(words.n_samples))
        longest = 2 ** (made.n_levels - 1)
        expected = np.flatnonzero(frequency >= replicas.OCCURRENCES / (2 * longest))
        assert_array_equal(np.sort(rows), expected)
        assert (np.diff(frequency[rows]) <= 0).all()
    assert 0 < made.rows[0].size < 63  # some are shared


def test_rows_are_counted_in_some_samples(words, monkeypatch):
    monkeypatch.setattr(replicas, "COUNTED", 1)
    found = replicas.Replicas(words, 2).rows[0]
    assert found.size > 0
    assert any(set(found) == set(np.flatnonzero(frequencies(words, [i]))) for i in range(800))


@pytest.mark.parametrize("which", [range(800), [0], [799], range(3, 800, 7)])
def test_frequencies(words, which):
    found = frequencies(words, which)
    X = [x for x, _ in samples(800)]
    X = [X[i] for i in which]
    counts = sum(np.bincount(x.indices, minlength=60) for x in X)
    assert_allclose(found[:60], counts / len(X), rtol=1e-12)
    assert_allclose(found[60:], [np.mean([x.shape[0] for x in X]), 1, 1], rtol=1e-12)  # biases


def test_renumbered(words):
    template = words.attributes.templates[0]
    number = np.random.default_rng(1).permutation(63).astype(np.int32)
    renumbered = template.renumbered(number)
    which = np.arange(words.n_samples)
    assert_array_equal(renumbered.frequencies(which)[number], template.frequencies(which))


@pytest.mark.parametrize("n_threads", [2, 8, 100])
@pytest.mark.parametrize("n_samples", [1, 30, 500, 10**4])
def test_no_row_waits_for_long(n_samples, n_threads):
    """All threads together are never more than a small part of an epoch ahead of a row."""
    problem = ChainModel(2, 1).bind([np.ones((1, 1))] * n_samples, [[0]] * n_samples)
    made = replicas.Replicas(problem, n_threads)
    longest = 2 ** (made.n_levels - 1)
    assert longest == 1 or longest * n_threads <= replicas.MOST_STEPS
    assert longest == 1 or longest * n_threads <= replicas.PART * n_samples


def test_replicas_read_and_write_instead_of_the_weights(words):
    """Two threads that add what they like: each sees its own, and in the end all is there."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=words.dim)
    expected, shared = w.copy(), w.copy()
    made = replicas.Replicas(words, 2)
    made.begin(shared)
    one, other = made.problems
    assert_allclose(one.score(3, shared), words.score(3, w), atol=1e-12)
    m = rng.normal(size=words.n_slot_marginals)
    for k in range(50):
        samples = 10 * k, 10 * k + 10
        batch._add_features(made.problems[k % 2], m, 0.1, shared, *samples, words.workspace())
        batch._add_features(words, m, 0.1, expected, *samples, words.workspace())
        if k % 7 == 0:
            made.threads[k % 2].end()
    assert np.abs(other.score(3, shared) - words.score(3, expected)).max() > 1e-3
    for replica in (*made.threads, *made.threads):  # now each has what the other has given
        replica.end()
    for i in range(20):
        assert_allclose(other.score(i, shared), words.score(i, expected), atol=1e-12)
    made.end(shared)
    assert_allclose(shared, expected, atol=1e-12)
    made.begin(shared)
    for i in range(20):
        assert_allclose(other.score(i, shared), words.score(i, expected), atol=1e-12)


def test_rows_are_exchanged_the_sooner_the_more_frequent_they_are(words):
    """After 2^l steps of both threads, all rows of level l are the same for both."""
    w = np.random.default_rng(0).normal(size=words.dim)
    m = np.random.default_rng(1).normal(size=words.n_slot_marginals)
    template, frequent = words.attributes.templates[0], replicas.Replicas(words, 2).rows[0]
    table = w[template.weights[0]].reshape(-1, 3)
    frequency = frequencies(words)[frequent]
    for n_steps in (1, 2, 4, 8):
        made, shared = replicas.Replicas(words, 2), w.copy()
        made.begin(shared)
        space = words.workspace()
        batch._add_features(made.problems[0], m, 0.1, shared, 0, words.n_samples, space)
        for _ in range(n_steps):
            for replica in made.threads:
                replica.count_step()
        found = np.asarray(made.parts(made.common)[0]).reshape(-1, 3)
        changed = (found != table[frequent]).any(axis=1)
        assert_array_equal(changed, frequency >= replicas.OCCURRENCES / (2 * n_steps))


@pytest.mark.parametrize("n_samples", [4, 5, 9])
def test_few_samples(n_samples):
    state = SDCA(random_state=0).init(letters(n_samples), 0.1)
    state.n_jobs = 2
    state.epoch(n_steps=100)
    assert_allclose(state.w, conjugate(state), rtol=1e-10, atol=1e-10)


def test_changes_before_an_error_are_kept(words):
    class Ending(Sampler):
        def reset(self, problem, lam):
            super().reset(problem, lam)
            self.left = 300

        def draw(self, rng):
            self.left -= 1
            if self.left < 0:
                raise RuntimeError("no more")
            return rng.integers(self.n_samples)

    state = SDCA(Ending(), random_state=0).init(words, 0.01)
    state.n_jobs = 2
    before = state.w.copy()
    with pytest.raises(RuntimeError, match="no more"):
        state.epoch()
    assert np.abs(state.w - before).max() > 0.01
    assert_allclose(state.w, conjugate(state), rtol=1e-10, atol=1e-10)


def test_solvers_without_threads_refuse_them(words):
    state = SAG(random_state=0).init(words, 0.01)
    state.n_jobs = 2
    with pytest.raises(ValueError, match="n_jobs=2: expected 1 for SAG"):
        state.epoch()


def test_numbers_of_attributes_do_not_run_out(words):
    """After two thousand million attributes the marks of earlier samples are forgotten."""
    template = words.attributes.templates[0]
    offsets = np.arange(template.n_slots)
    attributes = template.of_samples()
    expected = gram.gram(lambda: attributes, words.n_samples, offsets)
    attributes.base = 2**31 - 100
    found = gram.gram(lambda: attributes, words.n_samples, offsets)
    assert attributes.base < 2**31 - 100
    for name in expected:
        assert_array_equal(found[name], expected[name])
