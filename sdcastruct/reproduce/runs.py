"""Train and measure: one function per kind of run, each returns a `Record`.

Seconds are those of the processor, which other work on the machine hardly changes, and of the
solver alone: after every epoch the clock stands still while the weights are judged by the exact
primal, a pass over the training samples, and by the error on the test sequences. The solver's own
certificate is not used for that, because it would freshen the gaps from which the solver estimates
its total gap, and the estimate is one of the things to measure.
"""

import time
from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch

from sdcastruct.problem import batch
from sdcastruct.reproduce.solvers import CRFSUITE, REFERENCES, SOLVERS, sdca
from sdcastruct.reproduce.store import Record
from sdcastruct.samplers import Uniform

TABLE, LINE_SEARCH_SECONDS = "table", "line-search-seconds"


class Settings(NamedTuple):
    """How long and on how much.

    Attributes
    ----------
    size : int or None
        Number of training and of test sequences; None for all.
    precision : float
        Runs are compared by what they need to get the primal within this part of the optimum.
    stop : float
        Runs end when the primal is within this part of the optimum,
    max_epochs : int
        or after so many epochs.
    repeats : int
        Epochs of which the time of the line search is the median.
    """

    size: int | None = None
    precision: float = 1e-4
    stop: float = 1e-6
    max_epochs: int = 100
    repeats: int = 9


QUICK = Settings(size=150, precision=1e-2, stop=1e-3, max_epochs=25, repeats=5)
REFERENCE_EPOCHS = 5000
WARM_UP_EPOCHS = 3
HIGHER_PRECISION = 1e-12


def identity(name, settings, wsj=None):
    """Return what a stored run must have been to stand for this one."""
    how = {"size": settings.size, "wsj": None if wsj is None else str(wsj)}
    if name in SOLVERS:
        how.update(solver=repr(SOLVERS[name]), stop=settings.stop, max_epochs=settings.max_epochs)
    elif name in REFERENCES:
        how.update(solver=repr(REFERENCES[name][0]), tol=REFERENCES[name][1])
    elif name in CRFSUITE:
        how.update(stop=settings.precision, max_epochs=settings.max_epochs)
    elif name == LINE_SEARCH_SECONDS:
        how.update(repeats=settings.repeats)
    return how


def execute(task, name, settings, optimum):
    """Do a run by name.

    Parameters
    ----------
    task : Task
    name : str
    settings : Settings
    optimum : float or None
        Optimal primal value, where it is known.
    """
    if name == TABLE:
        return describe(task)
    if name == LINE_SEARCH_SECONDS:
        return time_line_search(task, settings.repeats)
    if name in REFERENCES:
        solver, tol = REFERENCES[name]
        # L-BFGS counts iterations by the hundred; its epochs need not all be looked at.
        every = 10 if name == "optimum-LBFGS" else 1
        return train(task, solver, REFERENCE_EPOCHS, tol=tol, every=every)
    if name in CRFSUITE:
        from sdcastruct.reproduce import crfsuite  # needs python-crfsuite, which is optional

        goal = optimum * (1.0 + settings.precision)
        return crfsuite.train(task, CRFSUITE[name], goal, settings.max_epochs)
    return train(task, SOLVERS[name], settings.max_epochs, optimum * (1.0 + settings.stop))


def describe(task):
    """Record the task's column of Table 1, and the number of test nodes."""
    return Record({**task.summary(), "n_test": task.truth.size}, Bunch())


def train(task, solver, max_epochs, goal=-np.inf, tol=0.0, every=1):
    """Train until the primal is at most `goal` or the relative gap `tol`; record each epoch."""
    problem = task.problem  # packed before the clock starts
    started = time.process_time()
    state = solver.init(problem, 1.0 / problem.n_samples)
    rows = []

    def look(epoch, gap_estimate):
        nonlocal started
        arrived = time.process_time()
        rows.append(_look(task, state, epoch, arrived - started, gap_estimate))
        started += time.process_time() - arrived

    def callback(row):
        if row.epoch % every == 0:
            look(row.epoch, row.gap_estimate)
        return rows[-1]["primal"] <= goal

    look(0, state.estimate()[1])
    result = solver.solve(problem, tol=tol, max_epochs=max_epochs, callback=callback, resume=state)
    if result.interrupted:
        raise KeyboardInterrupt
    results = {name: getattr(result, name) for name in ("primal", "dual", "gap", "n_epochs")}
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return Record(results, Bunch(**columns))


def _look(task, state, epoch, seconds, gap_estimate):
    """Return what is known of a state; NaN where a solver has no such thing."""
    problem, w = task.problem, state.w
    primal = batch.losses(problem, w).mean() + 0.5 * state.lam * (w @ w)
    visits = getattr(state, "visits", None)
    return {
        "epoch": epoch,
        "seconds": seconds,
        "n_updates": state.n_updates,
        "n_oracle_calls": state.n_oracle_calls,
        "primal": primal,
        "gap": primal - _dual(state),
        "gap_estimate": gap_estimate,
        "n_unseen": np.nan if visits is None else np.count_nonzero(visits == 0),
        "n_evaluations": getattr(state, "n_evaluations", np.nan),
        "test_error": task.test_error(problem.unpack(w)),
    }


def _dual(state):
    """Return the exact dual of a state, NaN if it has none; the state keeps what it believes."""
    if not hasattr(state, "entropies"):
        return np.nan
    entropies = state.entropies
    if hasattr(state, "alpha"):
        m, entropies = np.empty_like(state.m), np.empty_like(entropies)
        batch.summarise(state.problem, state.alpha, m, entropies)
    return entropies.mean() - 0.5 * state.lam * (state.w @ state.w)


def time_line_search(task, repeats):
    """Record seconds and Newton iterations of epochs at the paper's and at a higher precision.

    The epochs alternate, from the same point.
    """
    lam = 1.0 / task.problem.n_samples
    paper = sdca(Uniform()).init(task.problem, lam)
    for _ in range(WARM_UP_EPOCHS):
        paper.epoch()
    precise = sdca(Uniform(), subprecision=HIGHER_PRECISION)
    precise = precise.init(task.problem, lam, warm_start=paper)
    rows = [(*_time_epoch(paper), *_time_epoch(precise)) for _ in range(repeats)]
    names = ("seconds", "iterations", "seconds_precise", "iterations_precise")
    return Record({}, Bunch(**dict(zip(names, np.array(rows).T, strict=True))))


def _time_epoch(state):
    """Return the seconds of an epoch and its Newton iterations per update."""
    before, started = state.n_evaluations, time.process_time()
    state.epoch()
    seconds = time.process_time() - started
    return seconds, (state.n_evaluations - before) / state.problem.n_samples
