"""CoNLL-2000 on clusters of Dask: this machine's, and one of 64 workers as it would be.

    python benchmarks/dask_cluster.py              one process, then 2 and 4 worker processes
    python benchmarks/dask_cluster.py --simulate   the parts of 4 to 64 workers, one after another
    python benchmarks/dask_cluster.py --memory     the driver's memory on one corpus, two and four

lam = 1/n; the attributes that occur at least three times. The simulation runs the same code with
all parts on one worker: rounds, bytes and the seconds of every part's steps are measured; what a
network adds is computed. (A script called dask.py would hide the package of that name.)
"""

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster
from suite.processes import peak_bytes

from sdcastruct import datasets
from sdcastruct.distributed import DaskSDCA, bind, from_files
from sdcastruct.models import ChainModel
from sdcastruct.reproduce import tasks
from sdcastruct.solvers import SDCA

NETWORKS = {"1 Gbit/s": 125e6, "10 Gbit/s": 1.25e9}
LATENCY = 1e-3  # seconds for a call and its answer
MEMORY = ("process", "python", "kept", "messages")


def chunking(sentences):
    """Return the model and samples of CoNLL-2000, all of them or the first ones."""
    task = tasks.load("CONLL", sentences)
    return task.model, task.X, task.Y


def cluster(n_workers, processes=True):
    """Start workers of one thread."""
    options = {"processes": processes, "dashboard_address": ":0"}
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, **options)


def measure(options):
    """Compare one process with worker processes on this machine."""
    model, X, Y = chunking(options.sentences)
    started = time.perf_counter()
    problem = model.bind(X, Y)
    n, dim = problem.n_samples, problem.dim
    print(f"{n} sentences, {dim} weights, tolerance {options.tol:g}")
    print("workers  epochs  rounds  seconds  loading       n P       n D  relative gap")
    one = SDCA(random_state=0).solve(problem, tol=options.tol)
    loading = time.perf_counter() - started - one.history.seconds[-1]
    show("none", one, 0, one.history.seconds[-1], loading, n)
    del problem
    for n_workers in options.workers:
        with cluster(n_workers) as local, Client(local, direct_to_workers=True) as client:
            started = time.perf_counter()
            solver = DaskSDCA(client, rounds=options.rounds, random_state=0)
            result = solver.solve(bind(model, X, Y), tol=options.tol)
            loading = result.history.seconds[0]
            seconds = time.perf_counter() - started - loading
            rounds = result.state.rounds
            show(n_workers, result, rounds.seconds.size, seconds, loading, n)
            print(
                f"         a round: {rounds.seconds.mean():.3f} s, of these steps "
                f"{rounds.work.mean():.3f} s; {rounds.bytes_out.mean() / 1e6:.1f} MB out, "
                f"{rounds.bytes_in.mean() / 1e6:.1f} MB in; sigma' {rounds.coupling.mean():.2f}, "
                f"drops of the dual {result.state.coupling.n_drops}"
            )
            difference = abs(result.primal - one.primal) / one.primal
            verdict = "the same" if difference <= options.tol else "NOT the same"
            print(f"         {verdict} optimum: {difference:.1e} apart")
            del result, rounds


def show(workers, result, n_rounds, seconds, loading, n):
    """Print a line of the table."""
    print(
        f"{workers!s:>7} {result.n_epochs:7d} {n_rounds:7d} {seconds:8.1f} {loading:8.1f} "
        f"{n * result.primal:9.2f} {n * result.dual:9.2f} {result.relative_gap:13.2e}",
        flush=True,
    )


def simulate(options):
    """Run the parts of many workers one after the other, and add what a network would."""
    problem = bind(*chunking(options.sentences))
    print(f"{problem.n_samples} sentences, {problem.dim} weights, tolerance {options.tol:g}")
    names = "".join(f"  {name:>10}" for name in NETWORKS)
    print(f"workers  epochs  rounds  steps s/round  driver s/round   MB/round{names}")
    with cluster(1, processes=False) as local, Client(local) as client:
        for n_parts in options.parts:
            solver = DaskSDCA(client, n_partitions=n_parts, rounds=options.rounds, random_state=0)
            result = solver.solve(problem, tol=options.tol, max_epochs=options.max_epochs)
            state, rounds = result.state, result.state.rounds
            started = time.perf_counter()
            changed = state.w != state.sent
            for member in state.team.members:
                member.news(state.w, changed)
            state._rebuild()
            driver = time.perf_counter() - started
            traffic = rounds.bytes_out + rounds.bytes_in
            seconds = [
                (rounds.work + driver + LATENCY + traffic / bandwidth).sum()
                for bandwidth in NETWORKS.values()
            ]
            print(
                f"{n_parts:7d} {result.n_epochs:7d} {rounds.work.size:7d} "
                f"{rounds.work.mean():14.4f} {driver:15.4f} {traffic.mean() / 1e6:10.1f}"
                + "".join(f"  {s:8.1f} s" for s in seconds)
                + f"   relative gap {result.relative_gap:.1e}",
                flush=True,
            )
            del result, state


def memory(options):
    """Print the driver's memory on shards, and on shards that say all of it several times."""
    corpus = datasets.load_conll2000()
    print("Memory of the driver in MB, medians of 3 runs (least to most)")
    print("sentences  weights     peak of the process          peak of Python    kept  messages")
    with tempfile.TemporaryDirectory() as folder:
        for copies in options.copies:
            for k in range(4):
                sentences = corpus.tokens[: options.sentences][k::4]
                text = "".join("".join(" ".join(t) + "\n" for t in s) + "\n" for s in sentences)
                Path(folder, f"shard-{k}.txt").write_text(text * copies, encoding="utf-8")
            # As all attributes occur so many times as often, the same ones are left.
            given = ["--driver", str(Path(folder, "*.txt")), "--min-freq", f"{3 * copies}"]
            command = [sys.executable, __file__, *given]
            runs = [subprocess.run(command, check=True, stdout=subprocess.PIPE) for _ in range(3)]
            show_memory([json.loads(run.stdout) for run in runs])


def show_memory(runs):
    """Print a line of the table."""
    values = {name: np.array([run[name] for run in runs]) / 1e6 for name in MEMORY}
    line = f"{runs[0]['sentences']:9d} {runs[0]['weights']:8d}"
    for name in ("process", "python"):
        spread = f"({values[name].min():.1f} to {values[name].max():.1f})"
        line += f"{np.median(values[name]):8.1f} {spread:16}"
    line += f"{np.median(values['kept']):7.1f} {np.median(values['messages']):9.1f}"
    print(line, flush=True)


def drive(options):
    """Train on the files of a pattern; print what that took of this process, in bytes.

    That is the peak of its resident memory, the peak of what Python and NumPy have allocated, what
    of this is left at the end of training, and the messages of a round.
    """
    with cluster(2) as local, Client(local, direct_to_workers=True) as client:
        tracemalloc.start()
        known = from_files(options.driver).learn(client, options.min_freq)
        model = ChainModel(len(known.encoder.classes_), len(known.vocabulary))
        result = DaskSDCA(client, random_state=0).solve(known.bind(model), tol=0, max_epochs=1)
        gc.collect()
        kept, most = tracemalloc.get_traced_memory()
        rounds = result.state.rounds
        found = {
            "sentences": known.n_samples,
            "weights": model.dim,
            "process": peak_bytes(),
            "python": most,
            "kept": kept,
            "messages": int(np.median(rounds.bytes_out + rounds.bytes_in)),
        }
        print(json.dumps(found))


def main():
    """Do what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulate", action="store_true", help="many workers, one after the other")
    parser.add_argument("--memory", action="store_true", help="the driver's memory, from files")
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 2, 4], help="for --memory")
    parser.add_argument("--driver", help=argparse.SUPPRESS)
    parser.add_argument("--min-freq", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--parts", type=int, nargs="+", default=[4, 16, 64])
    parser.add_argument("--rounds", type=int, default=8, help="in an epoch (%(default)s)")
    parser.add_argument("--tol", type=float, default=1e-3, help="relative gap (%(default)s)")
    parser.add_argument("--max-epochs", type=int, default=100)
    parser.add_argument("--sentences", type=int, help="so many instead of all")
    options = parser.parse_args()
    chosen = drive if options.driver else memory if options.memory else None
    (chosen or (simulate if options.simulate else measure))(options)


if __name__ == "__main__":
    main()
