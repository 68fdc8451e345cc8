"""Trainers on the same problem: seconds and P(w) after every epoch or iteration.

All minimise n P(w) = sum_i -log p(y_i | x_i; w) + 1/2 ||w||^2 over the same weights, those of our
chain model. Ours stores marginals in single precision, as `CRF` does at such tolerances, where
nothing else is said. Clocks count wall time and start when the samples are read and packed; ours,
CRFsuite's and Wapiti's all include the memory that training allocates. What each P(w) is:

- ours is computed from the weights after every epoch, while the clock stands still;
- CRFsuite's L-BFGS and Wapiti log n P(w) themselves, Wapiti with two digits after the point;
- CRFsuite's SGD logs the losses that it met on its way through the epoch, when most of them were
  larger than at its end: its seconds are a bit too large.

After every iteration Wapiti tags its development set, by default all of the training set; here it
is given a single sentence, so that this costs nothing.
"""

import ctypes
import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from sdcastruct.problem import batch
from sdcastruct.reproduce import crfsuite
from sdcastruct.samplers import Gap
from sdcastruct.solvers import SDCA
from suite import corpus, distance
from suite.processes import own_memory, stolen_seconds
from suite.resident_limit import resident_limit

MAX_EPOCHS = 1000
SGD_EPOCHS = 100
# Only L2, and no end before the optimum.
WAPITI_OPTIONS = ("--rho1", "0", "--rho2", "1", "--stopwin", "0", "--stopeps", "0")
WAPITI_PROGRESS = re.compile(r"obj=(?P<objective>[\d.]+) .*time=[\d.]+s/(?P<seconds>[\d.]+)s")


def sdca(report, path, goal, n_jobs=1, **options):
    """Train with SDCA and gap sampling until P(w) is at most `goal`."""
    problem = corpus.load(path).bind()
    solver = SDCA(sampler=Gap(non_uniformity=0.8), random_state=0, **options)
    lam, judging = 1.0 / problem.n_samples, 0.0

    def judge(row):
        nonlocal judging
        w = row.state.w
        primal = batch.losses(problem, w).mean() + 0.5 * lam * (w @ w)
        report(seconds=row.seconds - judging, primal=primal)
        judging += time.perf_counter() - started - row.seconds
        return primal <= goal

    started = time.perf_counter()
    solver.solve(problem, tol=0, max_epochs=MAX_EPOCHS, callback=judge, n_jobs=n_jobs)


def certified_sdca(
    report, path, tol, n_jobs=(1,), resident=None, owned=0.0, random_state=0, **options
):
    """Train until the relative gap `tol` is certified, with each number of threads in turn.

    The seconds are those of all of `solve`. `stolen` is what others have taken meanwhile from all
    processors of this virtual machine, as a part of the time of those that were used; `distance` is
    the longest time that a cache line took from one to another, before and after, see
    `suite.distance`.

    With `resident`, the marginals are mapped from a file and the process may have no more memory
    than this part of their size. With `owned`, it has touched memory of so many times their size
    before.
    """
    problem = corpus.load(path).bind()
    dual_bytes = 8 * problem.n_marginals
    limit = nullcontext()
    if owned:
        own_memory(owned * dual_bytes)
    if resident is not None:
        options["dual_folder"] = Path(path).parent
        limit = resident_limit(Path(path).parent, resident * dual_bytes)
    solver = SDCA(sampler=Gap(non_uniformity=0.8), random_state=random_state, **options)
    with limit:
        for k, n in enumerate(n_jobs):
            if k > 0:  # another one, because `solve` leaves the norms' part of the work in it
                problem = corpus.load(path).bind()
            report(n_jobs=n, **_certified_run(solver, problem, tol, n))


def _certified_run(solver, problem, tol, n_jobs):
    """Return the numbers of a run; its memory is free for the next one then."""
    before = distance.nanoseconds()
    stolen, started = stolen_seconds(), time.perf_counter()
    result = solver.solve(problem, tol=tol, max_epochs=MAX_EPOCHS, n_jobs=n_jobs)
    seconds = time.perf_counter() - started
    stolen = stolen_seconds() - stolen
    if not result.converged:
        raise RuntimeError(f"{solver}: relative gap {result.relative_gap:.1e}, expected {tol:.0e}")
    return {
        "seconds": seconds,
        "primal": result.primal,
        "dual": result.dual,
        "n_epochs": result.n_epochs,
        "stolen": stolen / (n_jobs * seconds),
        "distance": max(before, distance.nanoseconds()),
        "dual_bytes": result.state.alpha.nbytes,
    }


def train_crfsuite(report, path, goal, algorithm, max_iterations):
    """Train with CRFsuite; `goal` is for whoever waits for this process."""
    data = corpus.load(path)
    n = data.n_chains
    trainer = crfsuite.make_trainer(
        data.attribute_names(), data.label_names(), algorithm, max_iterations
    )
    del data
    trainer.report = lambda point: report(seconds=point[0], primal=point[1] / n)
    trainer.train("")  # an empty name: no model file


def wapiti(report, path, goal, n_threads=1):
    """Train with Wapiti's own command line, which its library exports; `goal` as for CRFsuite."""
    train, devel = Path(path).with_suffix(".wapiti"), Path(path).with_suffix(".devel")
    n = _write_for_wapiti(corpus.load(path), train, devel)
    options = *WAPITI_OPTIONS, "--nthread", str(n_threads), "--devel", devel
    words = "wapiti", "train", *options, train, os.devnull  # no model file
    arguments = [os.fsencode(word) for word in words]
    log, end = os.pipe()
    screen = os.dup(2)
    os.dup2(end, 2)  # where Wapiti writes its log
    os.close(end)
    reader = threading.Thread(target=_read_wapiti_log, args=(log, screen, report, n), daemon=True)
    reader.start()
    library = ctypes.CDLL(find_spec("libwapiti").origin)
    code = library.main(len(words), (ctypes.c_char_p * len(words))(*arguments))
    os.dup2(screen, 2)  # closes the pipe: the reader comes to its end
    reader.join()
    if code != 0:
        raise RuntimeError(f"Wapiti ended with code {code}")


def _write_for_wapiti(data, train, devel):
    """Write the corpus, and its first sentence; return the number of sentences."""
    pairs = zip(data.attribute_names(), data.label_names(), strict=True)
    with open(train, "w") as file:
        for i, (sentence, labels) in enumerate(pairs):
            # u: attributes with a weight per label; b: one with a weight per pair of labels.
            lines = [
                " ".join(["u" + name for name in names] + ["b", label])
                for names, label in zip(crfsuite.with_biases(sentence), labels, strict=True)
            ]
            text = "\n".join(lines) + "\n\n"
            file.write(text)
            if i == 0:
                devel.write_text(text)
    return data.n_chains


def _read_wapiti_log(log, screen, report, n):
    """Report every iteration that Wapiti logs; show what it has to complain about."""
    with os.fdopen(log) as lines:
        for line in lines:
            if found := WAPITI_PROGRESS.search(line):
                report(seconds=float(found["seconds"]), primal=float(found["objective"]) / n)
            elif line.startswith(("error", "warning")):
                os.write(screen, line.encode())


def missing():
    """Return the trainers that cannot be run here, and why."""
    return {} if find_spec("libwapiti") else {"wapiti": "pip install libwapiti"}


# What `CRF` chooses for such tolerances.
FLOAT32 = {"dual_dtype": "float32"}
LBFGS = {"algorithm": "lbfgs", "max_iterations": crfsuite.LBFGS_ITERATIONS}
SGD = {"algorithm": "l2sgd", "max_iterations": SGD_EPOCHS}


class Trainer(NamedTuple):
    """What a trainer is called, and what trains it."""

    title: str
    train: Callable
    ours: bool = False


# In this order within a repetition, so that ours and theirs take turns.
TRAINERS = {
    "sdca-1": Trainer("sdcastruct, 1 thread", partial(sdca, **FLOAT32), ours=True),
    "crfsuite-lbfgs": Trainer("CRFsuite L-BFGS", partial(train_crfsuite, **LBFGS)),
    "sdca-2": Trainer("sdcastruct, 2 threads", partial(sdca, n_jobs=2, **FLOAT32), ours=True),
    "wapiti": Trainer("Wapiti L-BFGS", wapiti),
    "sdca-float64": Trainer("sdcastruct, 1 thread, float64", sdca, ours=True),
    "crfsuite-sgd": Trainer("CRFsuite SGD", partial(train_crfsuite, **SGD)),
}
