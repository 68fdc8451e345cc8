"""What must be right in the benchmarks for their numbers to mean anything."""

import os
import resource
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import Bunch

from sdcastruct.models import ChainModel
from sdcastruct.reproduce.store import Record
from sdcastruct.solvers import SDCA

pytest.importorskip("pycrfsuite")
BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))  # as for the scripts there

from suite import corpus, distance, tables, trainers  # noqa: E402
from suite.laboratory import Laboratory  # noqa: E402
from suite.numpy_sdca import NumpySDCA  # noqa: E402
from suite.processes import measure  # noqa: E402


def words(n=12, n_states=5, n_features=7):
    """Return binary chains of one to six nodes."""
    rng = np.random.default_rng(0)
    X = [(rng.random((t, n_features)) < 0.5).astype(float) for t in rng.integers(1, 7, size=n)]
    return X, [rng.integers(n_states, size=len(x)) for x in X]


def task(X, Y, n_states=5):
    """Return samples as `sdcastruct.reproduce.tasks` does."""
    return SimpleNamespace(name="words", X=X, Y=Y, model=ChainModel(n_states, X[0].shape[1]))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A corpus in a file, with the value of its optimum."""
    data = corpus.synthetic(n_chains=30, length=4, n_states=3, n_features=20)
    path = tmp_path_factory.mktemp("corpora") / "small.npz"
    data.save(path)
    return path, SDCA(random_state=0).solve(data.bind(), tol=1e-9, max_epochs=2000).primal


def test_numpy_sdca_takes_the_steps_of_ours():
    X, Y = words()
    lam = 1 / len(X)
    numpy = NumpySDCA(X, Y, 5, lam, epsilon=0.01, subprecision=1e-13)
    solver = SDCA(subprecision=1e-13, max_newton=100, search_every=1, epsilon=0.01)
    state = solver.init(ChainModel(5, 7).bind(X, Y), lam)
    for i in np.random.default_rng(1).integers(len(X), size=60):
        assert_allclose(numpy.step(i), state.step(i), rtol=0, atol=1e-9)
        assert_allclose(numpy.gaps[i], state.gaps[i], rtol=0, atol=1e-9)


def test_corpus_keeps_the_samples(tmp_path):
    X, Y = words()
    corpus.from_task(task(X, Y)).save(tmp_path / "words.npz")
    found = corpus.load(tmp_path / "words.npz")
    for chains in (found.chains(), found.every(3).chains()):
        step = len(X) // len(chains[0])
        for ours, theirs in zip(chains, (X[::step], Y[::step]), strict=True):
            for a, b in zip(ours, theirs, strict=True):
                assert_array_equal(a, b)
    names = [[[str(a) for a in np.flatnonzero(node)] for node in x] for x in X]
    assert list(found.attribute_names()) == names
    assert list(found.label_names()) == [[str(k) for k in y] for y in Y]


def test_corpus_leaves_out_labels_that_do_not_occur():
    X, Y = words()
    found = corpus.from_task(task(X, [2 * y for y in Y], n_states=10))
    assert found.n_states == 5
    assert_array_equal(found.labels, np.concatenate(Y))


def test_corpus_refuses_values():
    X, Y = words()
    with pytest.raises(ValueError, match="words has attributes with values other than 1"):
        corpus.from_task(task([0.5 * x for x in X], Y))


@pytest.mark.parametrize("name", [name for name in trainers.TRAINERS if name != "crfsuite-sgd"])
def test_trainers_have_one_optimum(name, small):
    if name in trainers.missing():
        pytest.skip(trainers.missing()[name])
    path, optimum = small
    record = measure(trainers.TRAINERS[name].train, path, optimum * (1 + 1e-7), max_seconds=60)
    # Wapiti logs n P(w) with two digits after the point.
    assert_allclose(record.columns.primal[-1], optimum, rtol=1e-6, atol=0.005 / 30)
    assert (np.diff(record.columns.seconds) >= 0).all()


def test_certified_sdca(small):
    path, optimum = small
    started = time.perf_counter()
    found = measure(trainers.certified_sdca, path, 1e-5).columns
    elapsed = time.perf_counter() - started
    assert found.dual[0] <= optimum * (1 + 1e-9)
    assert found.primal[0] - found.dual[0] <= 1e-5 * found.primal[0]
    assert 0.0 <= found.stolen[0] * found.seconds[0] <= os.cpu_count() * elapsed


def test_disturbed_runs_are_repeated(tmp_path, monkeypatch):
    stolen = iter([[0.0, 0.5], [0.1, 0.0], [0.3, 0.2], [0.0, 0.3], [0.0, 0.0]])

    def record(task, name, *arguments, **settings):
        return Bunch(columns=Bunch(stolen=np.array(next(stolen)), name=name))

    laboratory = Laboratory(tmp_path, None, repeats=2, slow_repeats=1)
    monkeypatch.setattr(laboratory, "record", record)
    monkeypatch.setattr(laboratory, "corpus", lambda task: None)
    monkeypatch.setattr("suite.laboratory.ATTEMPTS", 4)
    found = [r.columns.name for r in laboratory.threads("OCR")]
    assert found == ["certified-threads-0-1", "certified-threads-1-0"]


def test_certified_sdca_with_threads_in_turn(small):
    path, _ = small
    train = partial(trainers.certified_sdca, n_jobs=(2, 1), owned=2.0)
    found = measure(train, path, 1e-5)
    assert_array_equal(found.columns.n_jobs, [2, 1])
    assert (found.columns.primal - found.columns.dual <= 1e-5 * found.columns.primal).all()
    found.columns.seconds = np.array([2.0, 3.0])
    again = Record({}, Bunch(**{**found.columns, "seconds": np.array([4.0, 8.0])}))
    found.columns.distance = again.columns.distance = np.array([30.0, 200.0])
    head, row = tables.threads({"OCR": [found, again]})
    assert row[1:6] == ("all", "5.5 s", "3 s", "1.75", "1.62 to 1.88")
    assert row[-1] == 2
    assert len(head) == len(row)
    again.columns.distance = np.array([200.0, 30.0])  # of two threads, of one
    _, _, near, far = tables.threads({"OCR": [found, again]})
    assert near[:5] == ("OCR", "share a cache", "3 s", "2 s", "1.50")
    assert far[:5] == ("OCR", "far apart", "8 s", "4 s", "2.00")


def test_distance_of_processors(monkeypatch):
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    found = distance.nanoseconds()
    if before is None or len(before) < 2:
        assert np.isnan(found)
        return
    assert 1.0 < found < 1e6
    assert os.sched_getaffinity(0) == before
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert np.isnan(distance.nanoseconds())


def test_distance_without_a_compiler(monkeypatch):
    monkeypatch.setattr("sysconfig.get_config_var", lambda name: "no-such-compiler -O2")
    assert distance._bounce.__wrapped__() is None


def count(report, last, pause=0.0):
    """Report the squares of 1, ..., last."""
    block = np.ones(10_000_000)
    for k in range(1, last + 1):
        report(k=k, square=k * k * block[0])
        time.sleep(pause)


def fail(report):
    """End without a word."""
    sys.exit(3)


def test_measure_collects_rows_and_memory():
    record = measure(count, 3)
    assert_array_equal(record.columns.k, [1, 2, 3])
    assert_array_equal(record.columns.square, [1, 4, 9])
    assert record.results["peak"] > 8e7


def test_measure_ends_a_process():
    assert len(measure(count, 100, 0.05, enough=lambda row: row.k == 2).columns.k) == 2
    with pytest.raises(RuntimeError, match=r"count.* has reported nothing in 0.1 seconds"):
        measure(count, 100, max_seconds=0.1)


def test_measure_names_what_failed():
    with pytest.raises(RuntimeError, match=r"fail.* ended with code 3"):
        measure(fail)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_pages_that_are_given_up_keep_their_numbers(tmp_path):
    from suite.resident_limit import give_up_pages

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    numbers = np.memmap(tmp_path / "numbers", float, "w+", shape=10_000_000)
    numbers[:] = np.arange(numbers.size)
    before = resident()
    give_up_pages(tmp_path)
    assert resident() < before - 0.9 * numbers.nbytes
    assert_array_equal(numbers, np.arange(numbers.size))


def test_certified_sdca_in_a_mapped_file(small):
    path, _ = small
    mapped, plain = (
        measure(partial(trainers.certified_sdca, **how), path, 1e-5).columns
        for how in ({"resident": 0.5}, {})
    )
    assert mapped.primal[0] == plain.primal[0]
    assert mapped.dual[0] == plain.dual[0]


def trace(seconds, primal, peak=1e6):
    """Return the record of a run."""
    return Record({"peak": peak}, Bunch(seconds=np.array(seconds), primal=np.array(primal)))


def test_table_of_times():
    ours = [trace([1.0, 2.0], [1.05, 1.00005]), trace([1.0, 4.0], [1.05, 1.00005])]
    theirs = [trace([10.0, 20.0, 60.0], [1.09, 1.009, 1.0009])]
    found = {"sdca-1": ours, "crfsuite-lbfgs": theirs}
    head, first, second = tables.times({"OCR": (1.0, found)})
    assert head[2:6] == ("to 1e-01", "to 1e-02", "to 1e-03", "to 1e-04")
    assert first[2:8] == ("1 s", "3 s", "3 s", "3 s", "1", "-")
    # The ratio is that of the one repetition that both have done.
    assert second[2:8] == ("10 s", "20 s", "60 s", "-", "30", "-")
    assert (first[-1], second[-1]) == (2, 1)


def test_table_of_dense_products():
    times = {"score": 2e-6, "numpy_score": 3e-6, "add": 4e-6, "numpy_add": 2e-6, "epoch": 5e-6}
    columns = Bunch(**{name: np.full(3, seconds) for name, seconds in times.items()})
    _, score, add, update = tables.dense({9: columns})
    assert score == (9, "scores", "2.0 µs", "3.0 µs", "0.67", 3)
    assert add[2:] == ("4.0 µs", "2.0 µs", "2.00", 3)
    assert update[2:] == ("5.0 µs", "-", "-", 3)


def test_exponents_of_growth():
    points = [("T", size, np.array([3.0 * size**1.5] * 3)) for size in (10, 20, 80)]
    _, row = tables.scaling(points, "OCR")
    assert row[-2:] == ("1.50", "1.50")


def run_all(folder, *arguments):
    """Run the script as a person would."""
    command = [sys.executable, BENCHMARKS / "run_all.py", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_run_all_goes_on_where_it_ended(tmp_path):
    arguments = ["--tasks", "OCR", "--sentences", "20", "--repeats", "1", "--epochs", "1"]
    arguments += ["--parts", "time", "numpy", "--peers", "crfsuite-lbfgs"]
    first = run_all(tmp_path, *arguments)
    assert first.returncode == 0, first.stderr
    assert "| OCR | CRFsuite L-BFGS |" in first.stdout
    assert "| task | sdcastruct | NumPy | ratio | runs |" in first.stdout
    results = tmp_path / "benchmark-results"
    assert (results / "convergence.png").stat().st_size > 0
    assert (results / "tables.md").read_text().strip() in first.stdout
    again = run_all(tmp_path, *arguments)
    assert again.stdout == first.stdout
    assert not again.stderr
    other = run_all(tmp_path, *arguments, "--sentences", "21")
    assert "has sentences 20, expected 21" in other.stderr


def test_run_all_refuses_nonsense(tmp_path):
    found = run_all(tmp_path, "--sentences", "0")
    assert found.returncode == 2
    assert "'0': expected an integer >= 1" in found.stderr
