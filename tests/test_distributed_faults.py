"""Workers that die or hang in the middle of a round: real processes, real signals."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from distributed import Client, LocalCluster
from failing import Failing
from states import samples

from sdcastruct.distributed import DaskSDCA, bind
from sdcastruct.distributed.cluster import addresses
from sdcastruct.models import ChainModel
from sdcastruct.solvers import SDCA

TESTS = Path(__file__).parent
SECONDS = 60
N = 60
OPTIONS = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 60}

pytestmark = pytest.mark.usefixtures("time_limit")


@pytest.fixture(scope="module")
def cluster_with_nannies():
    """Return the client of a cluster whose nannies restart workers that die."""
    with LocalCluster(n_workers=2, **OPTIONS) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture
def nannies(cluster_with_nannies):
    """Return that client when all workers are back that an earlier test may have killed."""
    cluster_with_nannies.wait_for_workers(2, timeout=SECONDS)
    return cluster_with_nannies


@contextlib.contextmanager
def workers_without_nanny(n_workers):
    """Start workers that stay dead."""
    path = os.pathsep.join([str(TESTS), *sys.path])
    command = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-nanny"]
    options = ["--nthreads", "1", "--no-dashboard"]
    with LocalCluster(n_workers=0, **OPTIONS) as cluster, Client(cluster) as client:
        processes = [
            subprocess.Popen(
                [*command, *options, cluster.scheduler_address],
                env={**os.environ, "PYTHONPATH": path},
                cwd=TESTS,  # not where the package may lie unbuilt
                stderr=subprocess.DEVNULL,
            )
            for _ in range(n_workers)
        ]
        try:
            client.wait_for_workers(n_workers, timeout=SECONDS)
            yield client
        finally:
            for process in processes:
                process.kill()
                process.wait()


def problem():
    X, Y = samples(N, n_states=4, n_features=6)
    model = ChainModel(n_states=4, n_features=6)
    return model, X, Y


def light(folder, *fuses):
    """Light fuses as soon as the first epoch is over."""

    def callback(row):
        if row.epoch == 1:
            for fuse in fuses:
                (folder / fuse).touch()

    return callback


def pids(folder):
    return [int(pid) for pid in (folder / "pids").read_text().split()]


def check(result, least_losses):
    """Check that a run ended certified, at the optimum of one process, after these losses.

    There may be more: a worker that has just died may be chosen once more.
    """
    model, X, Y = problem()
    one = SDCA(random_state=0).solve(model.bind(X, Y), tol=1e-6)
    assert result.converged
    assert one.dual <= result.primal <= one.primal * (1.0 + 2e-3)
    assert result.dual <= one.primal
    assert result.state.n_losses >= least_losses


def solve(folder, client, fuses, sampler=None, timeout=30.0, **options):
    sampler = Failing(folder) if sampler is None else sampler
    solver = DaskSDCA(client, sampler, rounds=2, timeout=timeout, random_state=0)
    callback = light(folder, *fuses)
    return solver.solve(bind(*problem()), tol=1e-3, callback=callback, **options)


def test_a_killed_worker_is_replaced(nannies, tmp_path):
    before = set(addresses(nannies))
    result = solve(tmp_path, nannies, ["kill-1"])
    check(result, least_losses=1)
    assert len(pids(tmp_path)) == 1
    holders = {member.address for member in result.state.team.members}
    assert len(holders & before) == 1


def test_a_killed_worker_goes_on_from_its_checkpoint(nannies, tmp_path):
    folder = tmp_path / "checkpoint"
    result = solve(tmp_path, nannies, ["kill-1"], checkpoint=folder, checkpoint_every=1)
    check(result, least_losses=1)
    assert sorted(path.name for path in folder.iterdir()) == [
        "part-00000.npz",
        "part-00001.npz",
        "run.npz",
    ]


def test_a_hanging_worker_is_given_up(nannies, tmp_path):
    try:
        result = solve(tmp_path, nannies, ["hang-1"], timeout=20.0)
        assert os.getpgid(pids(tmp_path)[0])  # it is still there
    finally:
        os.kill(pids(tmp_path)[0], signal.SIGCONT)
    check(result, least_losses=1)
    assert len(result.state.team.given_up) == 1


def test_two_of_three_workers_without_nannies_may_die(tmp_path):
    with workers_without_nanny(3) as client:
        result = solve(tmp_path, client, ["kill-1", "kill-2"])
        check(result, least_losses=2)
        assert len(set(pids(tmp_path))) == 2
        assert len({member.address for member in result.state.team.members}) == 1


def test_the_last_worker_must_not_die(tmp_path):
    with (
        workers_without_nanny(1) as client,
        pytest.raises(RuntimeError, match=r"no worker is left after .*timeout=15\.0"),
    ):
        solve(tmp_path, client, ["kill-1"], timeout=15.0)


def test_a_folder_that_cannot_be_written_into_is_an_error_at_the_start(nannies):
    def never(row):
        raise AssertionError("training has begun")

    with pytest.raises(ValueError, match=r"checkpoint='/proc/self.*': .*cannot"):
        DaskSDCA(nannies).solve(bind(*problem()), checkpoint="/proc/self", callback=never)


def test_a_folder_that_only_the_driver_reaches(nannies, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"the worker tcp://.* cannot: .*No such file"):
        DaskSDCA(nannies).solve(bind(*problem()), checkpoint="/proc/self/cwd/run")


DRIVER = """
import os, signal, sys, threading
from distributed import Client, LocalCluster
import test_distributed_faults as faults

def stop(row):
    if row.epoch == 3:
        {action}

if __name__ == "__main__":
    with LocalCluster(n_workers=2, **faults.OPTIONS) as cluster, Client(cluster) as client:
        solver = faults.DaskSDCA(client, rounds=2, random_state=0)
        problem = faults.bind(*faults.problem())
        result = solver.solve(problem, tol={tol}, callback=stop, checkpoint={folder!r})
    print(result.interrupted, result.n_epochs, result.gap > 0)
"""


def run_driver(place, **words):
    """Run a driver as a process of its own, which does something after the third epoch."""
    script = place / "driver.py"
    script.write_text(DRIVER.format(**words))
    return subprocess.run(
        [sys.executable, script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        capture_output=True,
        text=True,
        start_new_session=True,
    )


def test_ctrl_c_in_a_terminal_returns_a_certified_result(tmp_path):
    # The driver, the scheduler and all workers get the signal, in the middle of a round.
    action = "threading.Timer(0.02, os.killpg, (0, signal.SIGINT)).start()"
    process = run_driver(tmp_path, action=action, tol=0, folder=None)
    interrupted, n_epochs, certified = process.stdout.split()
    assert interrupted == certified == "True"
    assert 3 <= int(n_epochs) < 100


def test_a_driver_that_died_goes_on_from_its_checkpoint(nannies, tmp_path):
    folder = tmp_path / "checkpoint"
    action = "os.kill(os.getpid(), signal.SIGKILL)"
    process = run_driver(tmp_path, action=action, tol=1e-3, folder=str(folder))
    assert process.returncode == -signal.SIGKILL
    solver = DaskSDCA(nannies, rounds=2, random_state=0)
    result = solver.solve(bind(*problem()), tol=1e-3, checkpoint=folder)
    check(result, least_losses=0)
    assert result.history.epoch[:4].tolist() == [0, 1, 2, 3]
    straight = solver.solve(bind(*problem()), tol=1e-3)
    np.testing.assert_array_equal(result.w, straight.w)
