"""Runs of a solver: results, histories, warm starts, callbacks, progress and Ctrl-C."""

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import ROUNDING
from states import SOLVERS as EVERY
from states import dual_point

from sdcastruct import duality
from sdcastruct.models import ChainModel
from sdcastruct.samplers import Gap, Sampler
from sdcastruct.solvers import SDCA

HISTORY = {
    "epoch",
    "seconds",
    "n_updates",
    "n_oracle_calls",
    "primal",
    "dual",
    "gap",
    "gap_estimate",
}


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(rng.integers(1, 6), 4)) for _ in range(8)]
    Y = [rng.integers(3, size=len(x)) for x in X]
    return ChainModel(n_states=3, n_features=4).bind(X, Y)


def check_certificate(problem, result, lam):
    """Compare the certificate of a result with the reference."""
    assert_allclose(result.primal, duality.primal(problem, result.w, lam), rtol=ROUNDING)
    gap = duality.gap(problem, result.w, result.state.alpha, lam)
    assert_allclose(result.gap, gap, rtol=0, atol=ROUNDING * 100)


def test_result_and_history(problem):
    result = SDCA(random_state=0).solve(problem, lam=0.1, tol=1e-5, max_epochs=500)
    check_certificate(problem, result, 0.1)
    assert result.w.shape == (problem.dim,)
    assert set(result.history) == HISTORY
    epochs = np.arange(result.n_epochs + 1)
    assert {len(column) for column in result.history.values()} == {len(epochs)}
    assert_array_equal(result.history.epoch, epochs)
    assert_array_equal(result.history.n_updates, 8 * epochs)
    assert_array_equal(result.history.n_oracle_calls, 8 * epochs)
    assert (np.diff(result.history.seconds) >= 0).all()
    assert result.n_updates == result.n_oracle_calls == 8 * result.n_epochs
    last = [result.history[name][-1] for name in ("primal", "dual", "gap")]
    assert last == [result.primal, result.dual, result.gap]
    assert_allclose(result.primal - result.dual, result.gap, rtol=0, atol=ROUNDING)


def test_estimates_only_trigger_certificates(problem):
    result = SDCA(random_state=0).solve(problem, lam=0.1, tol=1e-5, max_epochs=500)
    certified = ~np.isnan(result.history.gap)
    promising = result.history.gap_estimate <= 1e-5 * result.primal
    assert certified[-1]
    assert_array_equal(certified, promising)


def test_estimates_are_those_of_the_steps_and_not_of_the_certificate(problem):
    # Fresh gaps would be exact: the history must show what was known before the full pass.
    result = SDCA(random_state=0).solve(problem, lam=0.1, tol=0, max_epochs=5, certify_every=1)
    assert (result.history.gap_estimate != result.history.gap).all()


def test_certify_every_fills_the_history(problem):
    result = SDCA(random_state=0).solve(problem, lam=0.1, tol=0, max_epochs=7, certify_every=3)
    certified = np.flatnonzero(~np.isnan(result.history.gap))
    assert certified.tolist() == [0, 3, 6, 7]
    assert not result.converged
    assert (np.diff(result.history.dual[certified]) > 0).all()


@pytest.mark.parametrize("max_epochs", [0, 1, 3])
def test_epochs_are_limited(problem, max_epochs):
    result = SDCA(random_state=0).solve(problem, lam=0.1, tol=1e-9, max_epochs=max_epochs)
    assert result.n_epochs == max_epochs
    assert not result.converged
    assert result.gap > 1e-9 * result.primal
    check_certificate(problem, result, 0.1)


def test_default_regularisation_is_one_over_n(problem):
    result = SDCA(random_state=0).solve(problem)
    assert result.state.lam == 1 / 8
    check_certificate(problem, result, 1 / 8)


@pytest.mark.parametrize("take", [lambda result: result, lambda result: result.state])
def test_warm_start_continues(problem, take):
    first = SDCA(random_state=0).solve(problem, lam=0.1, tol=1e-3)
    kept = first.state.alpha.copy(), first.state.gaps.copy()
    again = SDCA(random_state=1).solve(
        problem, lam=0.1, tol=1e-7, max_epochs=300, warm_start=take(first), certify_every=1
    )
    assert_allclose(again.history.primal[0], first.primal, rtol=ROUNDING)
    assert_allclose(again.history.gap[0], first.gap, rtol=1e-9)
    assert again.converged
    assert again.n_updates == 8 * again.n_epochs
    assert_array_equal(first.state.alpha, kept[0])
    assert_array_equal(first.state.gaps, kept[1])


def test_warm_start_hands_over_the_gaps(problem):
    first = SDCA(random_state=0).solve(problem, lam=0.1, tol=1e-3)
    state = SDCA(Gap(1.0)).init(problem, 0.1, warm_start=first.state)
    assert_allclose(state.sampler.weights(), first.state.gaps, rtol=ROUNDING)


def test_warm_start_along_a_path_of_regularisations(problem):
    strong = SDCA(random_state=0).solve(problem, lam=1.0, tol=1e-6, max_epochs=300)
    weak = SDCA(random_state=0).solve(problem, lam=0.5, tol=1e-6, max_epochs=300, warm_start=strong)
    assert weak.converged
    check_certificate(problem, weak, 0.5)
    cold = SDCA(random_state=0).solve(problem, lam=0.5, tol=1e-6, max_epochs=300)
    assert_allclose(weak.primal, cold.primal, rtol=2e-6)


def test_result_does_not_change_when_its_state_moves_on(problem):
    result = SDCA(random_state=0).solve(problem, lam=0.1, tol=1e-2)
    w = result.w.copy()
    result.state.epoch()
    assert_array_equal(result.w, w)


def test_callback_sees_every_epoch(problem):
    rows = []
    result = SDCA(random_state=0).solve(
        problem, lam=0.1, tol=0, max_epochs=4, callback=lambda row: rows.append(row)
    )
    assert [row.epoch for row in rows] == [1, 2, 3, 4]
    for name in ("seconds", "n_updates", "gap_estimate"):
        assert [row[name] for row in rows] == result.history[name][1:].tolist()
    assert all(row.w.shape == (problem.dim,) for row in rows)
    assert rows[-1].state is result.state


def test_callback_may_keep_the_weights(problem):
    kept = []
    SDCA(random_state=0).solve(
        problem, lam=0.1, tol=0, max_epochs=3, callback=lambda row: kept.append(row.w)
    )
    assert not np.array_equal(kept[0], kept[-1])


def test_callback_may_stop(problem):
    result = SDCA(random_state=0).solve(
        problem, lam=0.1, tol=1e-9, callback=lambda row: row.epoch == 3
    )
    assert result.n_epochs == 3
    assert not result.converged
    assert not result.interrupted
    check_certificate(problem, result, 0.1)


def test_errors_of_a_callback_are_not_hidden(problem):
    def fail(row):
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        SDCA(random_state=0).solve(problem, lam=0.1, callback=fail)


def test_interrupt_in_a_callback_returns_the_current_result(problem):
    def interrupt(row):
        if row.epoch == 2:
            raise KeyboardInterrupt

    result = SDCA(random_state=0).solve(problem, lam=0.1, tol=1e-9, callback=interrupt)
    assert result.interrupted
    assert not result.converged
    assert result.n_epochs == 2
    assert result.n_updates == 16
    check_certificate(problem, result, 0.1)
    assert len({len(column) for column in result.history.values()}) == 1


@pytest.mark.parametrize("certify_every", [None, 1])
def test_interrupt_in_the_middle_of_an_epoch_returns_the_current_result(problem, certify_every):
    class Interrupting(Sampler):
        def reset(self, problem, lam):
            super().reset(problem, lam)
            self.n_draws = 0

        def draw(self, rng):
            self.n_draws += 1
            if self.n_draws == 13:
                signal.raise_signal(signal.SIGINT)
            return self.n_draws % self.n_samples

    result = SDCA(Interrupting()).solve(problem, lam=0.1, tol=1e-9, certify_every=certify_every)
    assert result.interrupted
    assert result.n_epochs == 1
    assert result.n_updates == 12
    check_certificate(problem, result, 0.1)


@pytest.mark.parametrize("name", EVERY)
def test_interrupts_return_the_certified_result_of_every_solver(problem, name):
    def interrupt(row):
        if row.epoch == 2:
            raise KeyboardInterrupt

    result = EVERY[name]().solve(problem, lam=0.1, tol=1e-9, callback=interrupt)
    assert result.interrupted
    assert not result.converged
    assert result.n_epochs == 2
    assert_allclose(result.primal, duality.primal(problem, result.w, 0.1), rtol=ROUNDING)
    gap = duality.gap(problem, result.w, dual_point(result.state), 0.1)
    assert_allclose(result.gap, gap, rtol=0, atol=ROUNDING * 100)


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
@pytest.mark.parametrize(
    ("solver", "n_jobs"), [("SDCA", 1), ("SDCA", 2), ("OEG", 1), ("SAG", 1), ("LBFGS", 1)]
)
def test_ctrl_c_ends_a_compiled_epoch(tmp_path, solver, n_jobs):
    script = """
        import os, signal, threading
        import numpy as np
        from sdcastruct.models import ChainModel
        from sdcastruct.solvers import SOLVER

        n, K, T = 4000, 20, 10
        labels = np.random.default_rng(0).integers(K, size=(n, T))
        problem = ChainModel(n_states=K, n_features=1).bind([np.ones((T, 1))] * n, list(labels))

        def press(row):
            if row.epoch == 1:
                threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()

        options = dict(lam=1e-6, tol=0, max_epochs=10**6, n_jobs=N_JOBS)
        result = SOLVER().solve(problem, callback=press, **options)
        again = result.state.certify()
        # L-BFGS counts whole iterations, and may not have ended its second.
        n_least = result.history.n_updates[1] + (SOLVER.__name__ != "LBFGS")
        print(result.interrupted, result.n_updates >= n_least)
        print(result.gap == again.gap, result.primal == again.primal)
        print(not any("Pool" in thread.name for thread in threading.enumerate()))
    """
    script = textwrap.dedent(script).replace("SOLVER", solver).replace("N_JOBS", str(n_jobs))
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["True"] * 5


def test_progress_bar(problem, capfd):
    SDCA(random_state=0).solve(problem, lam=0.1, tol=1e-4, max_epochs=200, verbose=True)
    shown = capfd.readouterr()
    assert shown.out == ""
    for word in ("epoch", "primal", "dual", "gap"):
        assert word in shown.err


def test_silence(problem, capfd):
    SDCA(random_state=0).solve(problem, lam=0.1, tol=1e-4, max_epochs=200)
    assert capfd.readouterr() == ("", "")
