"""Threads change how fast a run is and which steps it takes, not what it proves."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from states import letters
from strategies import chains, lambdas

from sdcastruct import CRF, duality
from sdcastruct.models import ChainModel, GraphModel
from sdcastruct.models.clique import Clique
from sdcastruct.problem import attributes, batch
from sdcastruct.problem.threads import STRETCHES, kept, share, spread, started
from sdcastruct.samplers import Gap, MaxGap, Sampler, Uniform
from sdcastruct.solvers import LBFGS, OEG, SDCA

THREADS = (2, 3, 8)


@pytest.mark.parametrize("n_jobs", THREADS)
@pytest.mark.parametrize("sampler", [Gap(), Uniform(), MaxGap(0.5)], ids=repr)
def test_same_optimum(n_jobs, sampler):
    problem = letters(60)
    optimum = LBFGS().solve(problem, tol=1e-9).primal
    result = SDCA(sampler, random_state=0).solve(problem, tol=1e-6, max_epochs=2000, n_jobs=n_jobs)
    assert result.converged
    assert result.dual <= optimum * (1 + 1e-12)
    assert optimum <= result.primal * (1 + 1e-9)


@given(chains(min_states=2, max_samples=6), lambdas(), st.integers(2, 6))
def test_certificates_are_exact(data, lam, n_jobs):
    """What a run says of its dual point is what the readable reference says."""
    problem = data.problem
    result = SDCA(random_state=0).solve(problem, lam=lam, tol=0, max_epochs=3, n_jobs=n_jobs)
    alpha = result.state.alpha
    assert_allclose(result.w, duality.w_hat(problem, alpha, lam), rtol=1e-9, atol=1e-9)
    assert_allclose(result.primal, duality.primal(problem, result.w, lam), rtol=1e-9, atol=1e-9)
    assert_allclose(result.dual, duality.dual(problem, alpha, lam), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_jobs", THREADS)
def test_estimates_beside_other_threads(n_jobs):
    """They miss what others do during a step, which is little; a certificate makes up for it."""
    state = SDCA(random_state=0).init(letters(60), 0.02, n_jobs=n_jobs)
    state.epoch()
    state.certify()
    for _ in range(20):
        state.epoch()
    dual, _ = state.estimate()
    certificate = state.certify()
    assert_allclose(dual, certificate.dual, rtol=0.1)
    assert_allclose(state.norm2, state.w @ state.w, rtol=1e-12)
    assert_allclose(state.estimate()[0], certificate.dual, rtol=1e-12)


@pytest.mark.parametrize("n_jobs", THREADS)
def test_certificates_are_the_same_each_time(n_jobs):
    """Weights are rebuilt by any number of threads beside those that compute slot marginals."""
    state = SDCA(random_state=0).init(letters(60), 0.02)
    state.epoch()
    alone = state.certify()
    w = state.w.copy()
    state.n_jobs = n_jobs
    certificate, first = state.certify(), state.w.copy()
    assert_allclose(first, w, rtol=1e-12, atol=1e-13)
    for _ in range(5):
        assert state.certify() == certificate
        assert_array_equal(state.w, first)
    if n_jobs == 2:
        assert certificate == alone
        assert_array_equal(first, w)


def test_a_dual_method_that_rebuilds_weights_later():
    """`recompute` may leave alone what it is told to do beside."""
    state = OEG(random_state=0).init(letters(20), 0.05)
    state.epoch()
    certificate, w = state.certify(), state.w.copy()
    state.w[:] = np.nan
    assert state.certify() == certificate
    assert_array_equal(state.w, w)


def test_weights_that_are_rebuilt_are_not_counted_twice():
    state = SDCA(random_state=0).init(letters(60), 0.02, n_jobs=8)
    state.epoch()
    assert_allclose(state.norm2, state.w @ state.w, rtol=1e-12)


@pytest.mark.parametrize("n_jobs", THREADS)
def test_the_start_does_not_depend_on_threads(n_jobs):
    problem = letters(30)
    one, many = (SDCA().init(letters(30), 0.1, n_jobs=jobs) for jobs in (1, n_jobs))
    assert_allclose(many.w, one.w, rtol=1e-12, atol=1e-13)
    assert_allclose(many.norm2, one.norm2, rtol=1e-12)
    if n_jobs == 2:  # one of the two adds
        assert_array_equal(many.w, one.w)
    for name in ("alpha", "m", "entropies"):
        assert_array_equal(getattr(many, name), getattr(one, name))
    m = np.random.default_rng(0).random(problem.attributes.slot_ptr[1])
    assert many.problem.features_norm2(0, m) == one.problem.features_norm2(0, m)


def test_norms_that_fail_beside_the_start(monkeypatch):
    def no_room(*args):
        raise MemoryError("no room for norms")

    monkeypatch.setattr(attributes, "gram", no_room)
    with pytest.raises(MemoryError, match="no room for norms"):
        SDCA().init(letters(30), 0.1, n_jobs=2)


def test_the_dual_point_stays_feasible():
    """No two threads are ever at the same sample: its marginals would no longer agree."""
    problem = letters(20, n_states=4)
    state = SDCA(random_state=0).init(problem, 0.01)
    state.n_jobs = 8
    for _ in range(50):
        state.epoch()
    for i in range(problem.n_samples):
        mu = state.alpha[problem.block(i)]
        T = problem.n_nodes(i)
        nodes, pairs = mu[: 4 * T].reshape(T, 4), mu[4 * T :].reshape(T - 1, 4, 4)
        assert_allclose(nodes.sum(axis=1), 1.0, atol=1e-12)
        assert_allclose(pairs.sum(axis=2), nodes[:-1], atol=1e-12)
        assert_allclose(pairs.sum(axis=1), nodes[1:], atol=1e-12)
        assert_allclose(problem.gather(i, mu), state.m[slots_of(problem, i)], atol=1e-12)


def slots_of(problem, i):
    ptr = problem.attributes.slot_ptr
    return slice(ptr[i], ptr[i + 1])


def test_every_step_is_counted():
    problem = letters(50)
    solver = SDCA(search_every=1, random_state=0)
    result = solver.solve(problem, tol=0, max_epochs=7, n_jobs=3)
    assert result.n_updates == result.n_oracle_calls == 7 * 50
    assert_array_equal(result.history.n_updates, 50 * np.arange(8))
    assert result.state.n_evaluations >= 7 * 50


def test_the_largest_gap_is_one_sample():
    """Threads that would all take the same sample take others beside it."""
    result = SDCA(MaxGap(1.0), random_state=0).solve(letters(), tol=0, max_epochs=20, n_jobs=4)
    assert result.n_updates == 20 * 8


@pytest.mark.parametrize("n_samples", [1, 2, 3, 4, 5])
def test_more_threads_than_samples(n_samples):
    problem = letters(n_samples)
    result = SDCA(random_state=0).solve(problem, tol=1e-6, max_epochs=500, n_jobs=8)
    assert result.converged


@pytest.mark.parametrize("n_jobs", THREADS)
def test_norms_do_not_depend_on_threads(n_jobs):
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 30, size=20)  # attributes of long chains occur often
    X = [csr_array(rng.random((t, 6)) * (rng.random((t, 6)) < 0.6)) for t in lengths]
    problem = ChainModel(n_states=3, n_features=6).bind(X, [[0] * t for t in lengths])
    problem.attributes.prepare_norms(n_jobs)
    for i in range(problem.n_samples):
        m = rng.normal(size=len(problem.score(i, np.zeros(problem.dim))))
        features = problem.features(i, m)
        assert_allclose(problem.features_norm2(i, m), features @ features, rtol=1e-12)


@pytest.mark.parametrize("n_jobs", THREADS)
def test_passes_do_not_depend_on_threads(n_jobs):
    problem = letters(30)
    w = np.random.default_rng(0).normal(size=problem.dim)
    alpha = batch.marginals(problem, w)
    assert_array_equal(alpha, batch.marginals(problem, w, n_jobs=n_jobs))
    for found, expected in zip(
        batch.initial_point(problem, 0.1, n_jobs=n_jobs),
        batch.initial_point(problem, 0.1),
        strict=True,
    ):
        assert_array_equal(found, expected)
    m, again = np.empty((2, problem.n_slot_marginals))
    entropies, entropies_again = np.empty((2, problem.n_samples))
    batch.summarise(problem, alpha, m, entropies)
    batch.summarise(problem, alpha, again, entropies_again, n_jobs)
    assert_array_equal(m, again)
    assert_array_equal(entropies, entropies_again)
    one, many = np.empty((2, problem.dim))
    batch.conjugate_weights(problem, m, 0.1, one)
    batch.conjugate_weights(problem, m, 0.1, many, n_jobs)
    assert_allclose(one, many, rtol=1e-12, atol=1e-13)
    assert_array_equal(
        batch.losses_and_gaps(problem, w, m, entropies),
        batch.losses_and_gaps(problem, w, m, entropies, n_jobs),
    )


@pytest.mark.parametrize("n_jobs", THREADS)
def test_weights_that_threads_sum(n_jobs):
    """More of them than fit into a cache; the same bit for bit each time."""
    rng = np.random.default_rng(0)
    X = [csr_array(rng.random((3, 9000)) * (rng.random((3, 9000)) < 0.01)) for _ in range(20)]
    problem = ChainModel(n_states=3, n_features=9000).bind(X, [[0, 1, 2]] * 20)
    m = rng.normal(size=problem.n_slot_marginals)
    one, many, again = np.empty((3, problem.dim))
    norm2 = batch.conjugate_weights(problem, m, 0.1, one)
    assert_allclose(norm2, one @ one, rtol=1e-12)
    norm2_of_many = batch.conjugate_weights(problem, m, 0.1, many, n_jobs)
    assert_allclose(many, one, rtol=1e-12, atol=1e-13)
    assert_allclose(norm2_of_many, norm2, rtol=1e-12)
    for _ in range(5):
        assert batch.conjugate_weights(problem, m, 0.1, again, n_jobs) == norm2_of_many
        assert_array_equal(again, many)


def test_samplers_and_junction_trees():
    """A sampler in Python takes part under the lock; engines have memory for every thread."""

    class RoundRobin(Sampler):
        def reset(self, problem, lam):
            super().reset(problem, lam)
            self.last, self.seen = -1, np.zeros(problem.n_samples, int)

        def draw(self, rng):
            self.last = (self.last + 1) % self.n_samples
            return self.last

        def update(self, i, gap):
            self.seen[i] += 1

    model = GraphModel({"node": Clique(3, n_features=2), "edge": Clique((3, 3))})
    rng = np.random.default_rng(0)
    square = [[0, 1], [1, 2], [2, 3], [3, 0]]
    X = [{"node": ([[0], [1], [2], [3]], rng.normal(size=(4, 2))), "edge": square}] * 12
    problem = model.bind(X, [rng.integers(3, size=4) for _ in X])
    result = SDCA(RoundRobin(), random_state=0).solve(problem, tol=1e-5, max_epochs=500, n_jobs=3)
    assert result.converged
    assert result.state.sampler.seen.sum() == result.n_updates


def test_an_error_in_a_thread_ends_the_run():
    class Broken(Sampler):
        def draw(self, rng):
            return 10**6

    with pytest.raises(IndexError, match=r"Broken\.draw returned 1000000, expected an index"):
        SDCA(Broken(), random_state=0).solve(letters(), n_jobs=2)


def test_estimator():
    X = [[["the"], ["cat"]], [["a"], ["dog"]], [["the"], ["dog"]]] * 5
    y = [["DET", "NOUN"]] * 15
    crf = CRF(n_jobs=2, random_state=0, tol=1e-5).fit(X, y)
    assert crf.converged_
    assert crf.predict(X) == y


@pytest.mark.parametrize("n", [1, 2, 3, 10])
@pytest.mark.parametrize("n_jobs", [1, 2, 3, 5])
def test_stretches_follow_each_other(n, n_jobs):
    found = spread(lambda first, last: (first, last), n, n_jobs)
    assert [k for first, last in found for k in range(first, last)] == list(range(n))
    assert len(found) == min(n, n_jobs)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("n_jobs", [1, 2, 3, 5])
def test_threads_share_all_stretches(n, n_jobs):
    found = share(list, n, n_jobs)
    assert sorted(k for part in found for first, last in part for k in range(first, last)) == list(
        range(n)
    )
    assert len(found) == min(n, n_jobs)


def test_a_slow_thread_leaves_more_to_the_others():
    both_have_one, all_taken = threading.Barrier(2, timeout=60), threading.Event()

    def work(stretches):
        next(stretches)
        both_have_one.wait()
        if threading.current_thread() is threading.main_thread():
            all_taken.wait(60)
        n_taken = 1 + len(list(stretches))
        all_taken.set()
        return n_taken

    assert share(work, 1000, 2) == [1, 2 * STRETCHES - 1]


def test_nobody_goes_on_with_a_pass_that_has_failed():
    both_have_one, failed = threading.Barrier(2, timeout=60), threading.Event()
    taken = []

    def work(stretches):
        taken.append(next(stretches))
        both_have_one.wait()
        if threading.current_thread() is threading.main_thread():
            failed.wait(60)
            time.sleep(0.1)
            taken.extend(stretches)
            return
        failed.set()
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        share(work, 1000, 2)
    assert len(taken) == 2


@pytest.mark.parametrize("n", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("n_jobs", THREADS)
@pytest.mark.parametrize("n_functions", [1, 2, 3])
def test_what_follows_a_stretch(n, n_jobs, n_functions):
    """Functions take turns; each has its stretches in order, one at a time, when they are done."""
    followed, at_work, done = [[] for _ in range(n_functions)], set(), set()

    def work(stretches):
        for stretch in stretches:
            time.sleep(1e-4 * (stretch[0] % 3))
            done.add(stretch)

    def function(k):
        def follow(*stretch):
            assert k not in at_work
            assert stretch in done
            at_work.add(k)
            followed[k].append(stretch)
            time.sleep(1e-4)
            at_work.remove(k)

        return follow

    share(work, n, n_jobs, [function(k) for k in range(n_functions)])
    stretches = sorted(done)
    assert [k for first, last in stretches for k in range(first, last)] == list(range(n))
    assert followed == [stretches[k::n_functions] for k in range(n_functions)]


@pytest.mark.parametrize("n", [1, 2, 1000])
@pytest.mark.parametrize("n_jobs", [1, *THREADS])
def test_one_thread_does_something_else_first(n, n_jobs):
    done = []

    def first():
        time.sleep(0.01)
        done.append(threading.current_thread())

    def work(stretches):
        if threading.current_thread() is not threading.main_thread():
            assert len(done) == 1 or n_jobs > 2  # the others need not wait
        return list(stretches)

    found = share(work, n, n_jobs, first=first)
    assert len(done) == 1
    assert sum(last - first for part in found for first, last in part) == n


@pytest.mark.parametrize("n_jobs", THREADS)
def test_what_is_done_beside_fails(n_jobs):
    failed, others = threading.Event(), []

    def fail(*stretch):
        failed.set()
        raise RuntimeError("no more")

    def slow(*stretch):
        others.append(stretch)
        failed.wait(60)
        time.sleep(0.1)

    with pytest.raises(RuntimeError, match="no more"):
        share(list, 1000, n_jobs, [fail, slow])
    assert len(others) <= 1
    with pytest.raises(RuntimeError, match="no more"):
        share(list, 1000, n_jobs, first=fail)


@pytest.mark.parametrize("which", [0, 1])
def test_a_failed_pass_ends_when_all_threads_have(which):
    """Nobody goes on writing to arrays that the caller has back."""
    done = []

    def work(first, last):
        if first == which:
            raise RuntimeError("no more")
        time.sleep(0.1)
        done.append(first)

    with pytest.raises(RuntimeError, match="no more"):
        spread(work, 2, 2)
    assert done == [1 - which]


def test_a_thread_that_cannot_start(monkeypatch):
    """Those that have started come to their end before the error is raised."""
    done, start, started_before = [], threading.Thread.start, []

    def start_one(thread):
        if started_before:
            raise RuntimeError("can't start new thread")
        started_before.append(thread)
        start(thread)

    def work(k):
        time.sleep(0.1)
        done.append(k)

    monkeypatch.setattr(threading.Thread, "start", start_one)
    with pytest.raises(RuntimeError, match="can't start"), started(work, [(0,), (1,)]):
        raise AssertionError("not all have started")
    assert 0 in done


@pytest.mark.parametrize("n_others", [1, 2])
def test_threads_are_kept_as_long_as_asked_for(n_others):
    def at_work(first, last):
        time.sleep(0.01)
        return threading.current_thread()

    def threads_of_two_passes():
        return {thread for _ in range(2) for thread in spread(at_work, 9, 1 + n_others)}

    with kept(n_others):
        with kept(1):  # a run inside of another has its own
            spread(at_work, 9, 2)
        assert len(threads_of_two_passes()) == 1 + n_others
    assert len(threads_of_two_passes()) == 1 + 2 * n_others
    assert not any("Pool" in thread.name for thread in threading.enumerate())


FORK = """
import os
from sdcastruct.problem.threads import kept, spread

with kept(2):
    print(spread(lambda first, last: last, 4, 2), flush=True)
    child = os.fork()
    print(spread(lambda first, last: last, 4, 2), flush=True)
    if child == 0:
        os._exit(0)
    assert os.wait()[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_has_threads_of_its_own(tmp_path):
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK]
    run = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout == "[2, 4]\n" * 3
