"""Checkpoints: a run that was killed goes on and ends, bit for bit, as if it had never stopped."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from states import SOLVERS, letters, samples

from sdcastruct.models import ChainModel
from sdcastruct.samplers import Gap, MaxGap, Sampler, Uniform
from sdcastruct.solvers import LBFGS, OEG, SAG, SDCA

RESUMING = [name for name in SOLVERS if name != "L-BFGS"]
RUN = {"lam": 0.1, "tol": 0}

# Dies in the middle of the epoch that follows `last`, if one is given.
TRAINING = """
import os, signal, sys, threading, time
import numpy as np
from sdcastruct.models import ChainModel
from sdcastruct.samplers import Gap
from sdcastruct.solvers import OEG, SAG, SDCA

N, K, T = 800, 10, 8


def die_after(state, n_updates):
    while state.n_updates < n_updates:
        time.sleep(1e-4)
    os.kill(os.getpid(), signal.SIGKILL)


def train(solver, checkpoint=None, last=None):
    labels = np.random.default_rng(0).integers(K, size=(N, T))
    problem = ChainModel(n_states=K, n_features=1).bind([np.ones((T, 1))] * N, list(labels))

    def watch(row):
        print(row.epoch, flush=True)
        if row.epoch == last:
            task = threading.Thread(target=die_after, args=(row.state, (last + 0.3) * N))
            task.daemon = True
            task.start()

    return solver.solve(problem, tol=0, max_epochs=6, checkpoint=checkpoint, checkpoint_every=2,
                        certify_every=4, callback=watch)


if __name__ == "__main__":
    result = train(eval(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    np.savez(sys.argv[4], w=result.w, work=[result.n_updates, result.n_oracle_calls],
             **result.history)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")
@pytest.mark.parametrize(
    "solver", ["SDCA(random_state=0)", "OEG(Gap(), random_state=0)", "SAG(random_state=0)"]
)
def test_a_killed_process_goes_on_as_if_nothing_had_happened(tmp_path, solver):
    script, saved = tmp_path / "training.py", tmp_path / "checkpoint.npz"
    script.write_text(TRAINING)

    def run(last):
        return subprocess.run(
            [sys.executable, script, solver, saved, str(last), tmp_path / "result.npz"],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )

    killed = run(3)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert killed.stdout.split() == ["1", "2", "3"]
    assert not (tmp_path / "result.npz").exists()
    resumed = run(-1)
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout.split() == ["3", "4", "5", "6"]
    names = {"__name__": "training"}
    exec(TRAINING, names)
    whole = names["train"](eval(solver, names))
    with np.load(tmp_path / "result.npz") as found:
        assert_array_equal(found["w"], whole.w)
        assert found["work"].tolist() == [whole.n_updates, whole.n_oracle_calls]
        for name, column in whole.history.items():
            if name != "seconds":
                assert_array_equal(found[name], column, err_msg=name)
        assert (np.diff(found["seconds"]) >= 0).all()


class Stop(Exception):
    """Ends a run as a crash would."""


def crash(epoch):
    def callback(row):
        if row.epoch == epoch:
            raise Stop

    return callback


def check_equal(found, expected):
    """Compare two results, but for the clock."""
    assert_array_equal(found.w, expected.w)
    assert (found.primal, found.dual, found.gap) == (expected.primal, expected.dual, expected.gap)
    assert (found.n_epochs, found.converged) == (expected.n_epochs, expected.converged)
    assert (found.n_updates, found.n_oracle_calls) == (expected.n_updates, expected.n_oracle_calls)
    for name, column in expected.history.items():
        if name != "seconds":
            assert_array_equal(found.history[name], column, err_msg=name)


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("name", RESUMING)
def test_every_solver_goes_on(tmp_path, name, every):
    problem, path = letters(), tmp_path / "checkpoint"
    whole = SOLVERS[name]().solve(problem, **RUN, max_epochs=9)
    options = {"checkpoint": path, "checkpoint_every": every, "max_epochs": 9}
    for epoch in (4, 8):
        with pytest.raises(Stop):
            SOLVERS[name]().solve(problem, **RUN, **options, callback=crash(epoch))
    # Another seed: the random numbers are those of the file.
    check_equal(SOLVERS[name](99).solve(letters(), **RUN, **options), whole)
    assert os.listdir(tmp_path) == ["checkpoint"]


class RoundRobin(Sampler):
    """A sampler in Python, with a memory."""

    def reset(self, problem, lam):
        super().reset(problem, lam)
        self.last = -1

    def draw(self, rng):
        self.last = (self.last + 1) % (self.n_samples - 1)
        return self.last

    def memory(self):
        return {"last": np.array(self.last)}

    def remember(self, memory):
        self.last = int(memory["last"])


@pytest.mark.parametrize(
    "make",
    [
        lambda: SDCA(MaxGap(0.5), random_state=0),
        lambda: SDCA(Gap(refresh_every=2), random_state=0),
        lambda: SDCA(Uniform(), search_every=3, start="previous", random_state=0),
        lambda: SDCA(random_state=np.random.Generator(np.random.MT19937(1))),
        lambda: OEG(random_state=np.random.Generator(np.random.Philox(1))),
        lambda: SAG(random_state=np.random.Generator(np.random.SFC64(1))),
        lambda: SDCA(RoundRobin()),
        lambda: OEG(RoundRobin(), exact_gaps=True),
    ],
)
def test_samplers_and_random_numbers_go_on(tmp_path, make):
    problem, path = letters(), tmp_path / "checkpoint"
    whole = make().solve(problem, **RUN, max_epochs=7)
    with pytest.raises(Stop):
        make().solve(problem, **RUN, checkpoint=path, callback=crash(5))
    check_equal(make().solve(problem, **RUN, checkpoint=path, max_epochs=7), whole)


@pytest.mark.parametrize("name", RESUMING)
def test_save_and_restore(tmp_path, name):
    problem, path = letters(), tmp_path / "state"
    state = SOLVERS[name]().init(problem, 0.1)
    for _ in range(3):
        state.epoch()
    state.save(path)
    other = SOLVERS[name](7).init(problem, 0.1)
    other.epoch()
    assert other.restore(path) == {}
    for _ in range(3):
        assert state.counters() == other.counters()
        for key, array in state.arrays().items():
            assert_array_equal(other.arrays()[key], array, err_msg=key)
        state.epoch()
        other.epoch()
    results = [
        SOLVERS[name]().solve(problem, **RUN, max_epochs=3, resume=s) for s in (state, other)
    ]
    check_equal(*results)


def test_a_finished_run_is_not_run_again(tmp_path):
    problem, path, epochs = letters(), tmp_path / "checkpoint", []
    options = {"lam": 0.1, "tol": 1e-4, "checkpoint": path}
    first = SDCA(random_state=0).solve(problem, **options)
    again = SDCA(random_state=0).solve(problem, **options, callback=epochs.append)
    assert first.converged
    assert epochs == []
    check_equal(again, first)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A checkpoint of SDCA."""
    path = tmp_path_factory.mktemp("checkpoints") / "good.npz"
    SDCA(random_state=0).solve(letters(), **RUN, max_epochs=2, checkpoint=path)
    return path


def refuse(path, match, solver=None, problem=None, lam=0.1):
    """Check that a run refuses to go on from a file, names it, and leaves it alone."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ValueError, match=match) as caught:
        (solver or SDCA(random_state=0)).solve(
            problem or letters(), lam=lam, tol=0, max_epochs=3, checkpoint=path
        )
    assert str(path) in str(caught.value)
    assert before is None or path.read_bytes() == before


def edited(path, written, drop=(), **changes):
    """Write a copy of a checkpoint with another header."""
    with np.load(written) as file:
        arrays = dict(file)
    header = {**json.loads(str(arrays["header"])), **changes}
    header = {name: value for name, value in header.items() if name not in drop}
    arrays = {name: array for name, array in arrays.items() if name not in drop}
    arrays["header"] = np.array(json.dumps(header))
    np.savez(path, **arrays)
    return path


def test_truncated_files_are_refused(tmp_path, written):
    content, path = written.read_bytes(), tmp_path / "cut.npz"
    for length in (0, 1, 3, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        refuse(path, "no readable checkpoint")


def test_damaged_files_are_refused_or_harmless(tmp_path, written):
    content, path, problem = written.read_bytes(), tmp_path / "damaged.npz", letters()
    good = SDCA().init(problem, 0.1)
    good.restore(written)
    # All of the last bytes, where the archive lists its parts, and some of the others.
    for position in [*range(0, len(content), 97), *range(len(content) - 300, len(content))]:
        damaged = bytearray(content)
        damaged[position] ^= 1 + position % 255
        path.write_bytes(damaged)
        state = SDCA().init(problem, 0.1)
        message = None
        try:
            state.restore(path)
        except ValueError as error:
            message = str(error)
        if message is not None:
            assert str(path) in message
            continue
        for key, array in good.arrays().items():
            assert_array_equal(state.arrays()[key], array)


FOREIGN = {
    "text": lambda path: path.write_text("epoch 1\n"),
    "npy": lambda path: np.save(path.open("wb"), np.ones(3)),
    "npz": lambda path: np.savez(path.open("wb"), a=np.ones(3)),
    "npz with a number as header": lambda path: np.savez(path.open("wb"), header=np.array(3)),
    "npz with a list as header": lambda path: np.savez(path.open("wb"), header=np.array("[1]")),
    "npz of another format": lambda path: np.savez(
        path.open("wb"), header=np.array('{"format": "other", "version": 1}')
    ),
    "directory": lambda path: path.mkdir(),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_files_are_refused(tmp_path, kind):
    path = tmp_path / "foreign"
    FOREIGN[kind](path)
    refuse(path, "no readable checkpoint")


def test_checkpoints_of_other_runs_are_refused(tmp_path, written):
    X, Y = samples(8)
    model = ChainModel(n_states=3, n_features=4)
    relabelled = model.bind(X, [(y + 1) % 3 for y in Y])
    scaled = model.bind([2 * x for x in X], Y)
    # The same entries in a wider table are other weights.
    wide = [csr_array((x.ravel(), np.tile(range(4), len(x)), 4 * np.arange(len(x) + 1)),
                      shape=(len(x), 6)) for x in X]  # fmt: skip
    wider = ChainModel(n_states=3, n_features=6).bind(wide, Y)
    for problem in (letters(seed=1), letters(9), letters(7), relabelled, scaled, wider):
        refuse(written, "another run: its problem", problem=problem)
    refuse(written, r"another run: its lam is 0\.1, expected 0\.2", lam=0.2)
    refuse(written, "another run: its solver is 'SDCA', expected 'OEG'", solver=OEG())
    refuse(written, "another run: its solver is 'SDCA', expected 'SAG'", solver=SAG())
    for option in ({"sampler": Uniform()}, {"sampler": Gap(0.5)}, {"subprecision": 0.1}):
        refuse(written, f"another run: its options .*{next(iter(option))}", solver=SDCA(**option))
    refuse(edited(tmp_path / "new.npz", written, version=4), "has version 4, expected 3")


@pytest.mark.parametrize("name", ["lam", "counters", "random", "state/w", "sampler/weights"])
def test_incomplete_checkpoints_are_refused(tmp_path, written, name):
    refuse(edited(tmp_path / "part.npz", written, drop=[name]), "checkpoint")


def test_other_random_numbers_are_refused(written):
    rng = np.random.Generator(np.random.MT19937(0))
    refuse(written, "checkpoint", solver=SDCA(random_state=rng))


def test_a_saved_state_without_a_history_starts_one(tmp_path):
    problem, path = letters(), tmp_path / "state"
    state = SDCA(random_state=0).init(problem, 0.1)
    state.epoch()
    state.save(path)
    result = SDCA().solve(problem, **RUN, max_epochs=3, checkpoint=path)
    assert result.n_updates == 4 * 8
    assert_array_equal(result.history.epoch, [0, 1, 2, 3])


def test_a_missing_file_is_not_restored(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        SDCA().init(letters(), 0.1).restore(tmp_path / "nothing")


def test_a_write_that_fails_leaves_the_previous_checkpoint(tmp_path, monkeypatch):
    problem, path = letters(), tmp_path / "checkpoint"
    whole = SDCA(random_state=0).solve(problem, **RUN, max_epochs=6)
    with pytest.raises(Stop):
        SDCA(random_state=0).solve(problem, **RUN, checkpoint=path, callback=crash(3))
    before = path.read_bytes()
    savez = np.savez

    def full_disk(file, **arrays):
        savez(file, **arrays)
        file.seek(100)
        file.truncate()
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(OSError, match="no space left"):
        SDCA(random_state=0).solve(problem, **RUN, checkpoint=path)
    assert path.read_bytes() == before
    monkeypatch.undo()
    check_equal(SDCA(random_state=0).solve(problem, **RUN, checkpoint=path, max_epochs=6), whole)


def test_what_a_killed_write_left_behind_does_no_harm(tmp_path):
    problem, path = letters(), tmp_path / "checkpoint"
    Path(f"{path}.part").write_bytes(b"half of a checkpoint")
    first = SDCA(random_state=0).solve(problem, **RUN, checkpoint=path, max_epochs=3)
    check_equal(SDCA(random_state=0).solve(problem, **RUN, checkpoint=path, max_epochs=3), first)
    assert os.listdir(tmp_path) == ["checkpoint"]


def untouched(problem):
    """Return a sampler that fails as soon as training starts."""

    class Untouched(Gap):
        def draw(self, rng):
            raise AssertionError("training has started")

    return Untouched()


def test_folders_are_checked_before_training(tmp_path, monkeypatch):
    problem = letters()
    solver = SDCA(untouched(problem))
    (tmp_path / "file").write_text("")
    for folder in ("missing", "file"):
        path = tmp_path / folder / "checkpoint"
        with pytest.raises(ValueError, match=r"checkpoint='.*checkpoint': cannot write") as caught:
            solver.solve(problem, checkpoint=path)
        assert str(path) in str(caught.value)
    # The superuser may write anywhere: what others hear.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ValueError, match=r"checkpoint=.*: cannot write"):
        solver.solve(problem, checkpoint=tmp_path / "checkpoint")


@pytest.mark.parametrize("value", [3, True, [1]])
def test_checkpoint_must_be_a_path(value):
    with pytest.raises(TypeError, match=r"checkpoint=.*expected"):
        SDCA().solve(letters(), checkpoint=value)


@pytest.mark.parametrize("value", [0, -1, 1.5, "often"])
def test_checkpoint_every(tmp_path, value):
    with pytest.raises(ValueError, match=rf"checkpoint_every={value!r}: expected an integer >= 1"):
        SDCA().solve(letters(), checkpoint=tmp_path / "x", checkpoint_every=value)


def test_lbfgs_cannot_resume(tmp_path):
    with pytest.raises(ValueError, match=r"checkpoint=.*LBFGS cannot resume"):
        LBFGS().solve(letters(), checkpoint=tmp_path / "checkpoint")
    assert os.listdir(tmp_path) == []


class Forgetful(Sampler):
    """A sampler in Python whose memory nobody can save."""

    def reset(self, problem, lam):
        super().reset(problem, lam)
        self.last = -1

    def draw(self, rng):
        self.last = (self.last + 1) % self.n_samples
        return self.last


class ForgetfulGap(Gap):
    """A sampler in Python with more to remember than what it inherits."""

    def reset(self, problem, lam):
        super().reset(problem, lam)
        self.last = -1

    draw = Forgetful.draw


@pytest.mark.parametrize("kind", [Forgetful, ForgetfulGap])
def test_a_sampler_that_cannot_be_saved(tmp_path, kind):
    # Without a checkpoint it serves.
    assert SDCA(kind()).solve(letters(), **RUN, max_epochs=2).n_epochs == 2
    with pytest.raises(NotImplementedError, match=rf"{kind.__name__} .*memory\(\).*remember"):
        SDCA(kind()).solve(letters(), **RUN, max_epochs=2, checkpoint=tmp_path / "x")
    assert os.listdir(tmp_path) == []
