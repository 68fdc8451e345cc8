"""Runs that nobody has made, with known rates."""

import numpy as np
from sklearn.utils import Bunch

from sdcastruct.reproduce.solvers import REFERENCES
from sdcastruct.reproduce.store import Record
from sdcastruct.reproduce.verdicts import TaskRuns

N = 10


def decay(rate, epochs=30, optimum=2.0, **columns):
    """Return a run whose relative suboptimality is 10^(1 - rate * epoch)."""
    epoch = np.arange(epochs + 1.0)
    numbers = {
        "epoch": epoch,
        "seconds": 0.5 * epoch,
        "n_updates": N * epoch,
        "n_oracle_calls": 2 * N * epoch,
        "primal": optimum * (1.0 + 10.0 ** (1.0 - rate * epoch)),
        "gap": 10.0 ** (1.0 - rate * epoch),
        "gap_estimate": 10.0 ** (1.0 - rate * epoch),
        "n_unseen": np.where(epoch < 2, 3, 0),
        "n_evaluations": 2.0 * N * epoch,
        "test_error": 0.1 + 0.5 * 0.5**epoch,
    }
    return Record({}, Bunch(**{**numbers, **columns}))


def task_runs(precision=1e-3, table=None, **records):
    """Return runs of a task with optimum 2; underscores of names stand for dashes."""
    sizes = {"n": N, "N": 50, "K": 3, "A": 1000, "a": 10, "n_test": 400, **(table or {})}
    best = Record({"primal": 2.0, "dual": 2.0 - 1e-9, "gap": 1e-9, "n_epochs": 9}, Bunch())
    named = {name.replace("_", "-"): record for name, record in records.items()}
    return TaskRuns(
        {"table": Record(sizes, Bunch()), **dict.fromkeys(REFERENCES, best), **named}, precision
    )
