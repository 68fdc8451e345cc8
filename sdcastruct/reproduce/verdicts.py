"""What the runs of a task say, and how a claim of the paper becomes a verdict.

What a run needs is counted in passes over the data (updates or oracle calls divided by n), or in
seconds, until the primal is within a given part of the optimum. A run that does not get there in
all its epochs has failed: it needs infinitely many.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sdcastruct.reproduce.solvers import REFERENCES

ALL = ("OCR", "CONLL", "NER", "POS")
SPARSE = ("CONLL", "NER", "POS")


class TaskRuns:
    """The runs of a task, and what is asked of them.

    Parameters
    ----------
    records : dict
        Record of each run, by name; "table" among them.
    precision : float
        Relative suboptimality at which runs are compared.
    """

    def __init__(self, records, precision):
        self.records, self.precision = records, precision
        self.table = records["table"].results

    @cached_property
    def optimum(self):
        """The optimal primal value: the better of the two that are certified."""
        return min(self.records[name].results["primal"] for name in REFERENCES)

    def __contains__(self, name):
        return name in self.records

    def __getitem__(self, name):
        return self.records[name].columns

    def suboptimality(self, name):
        """Return P(w) / P* - 1 after each epoch."""
        return self[name].primal / self.optimum - 1.0

    def along(self, name, column="n_updates"):
        """Return a column of a run; updates and oracle calls as passes over the data."""
        return self[name][column] / (1.0 if column == "seconds" else self.table["n"])

    def needs(self, name, column="n_updates", precision=None):
        """Return how far along a column the precision is reached, infinity if it is not."""
        precision = self.precision if precision is None else precision
        below, along = self.suboptimality(name), self.along(name, column)
        reached = np.flatnonzero(below <= precision)
        if reached.size == 0:
            return np.inf
        k = reached[0]
        if k == 0:
            return along[0]
        # Straight between two epochs on the logarithmic scale of the figures.
        before, after = np.log(below[k - 1]), np.log(max(below[k], 1e-12))
        share = (before - np.log(precision)) / (before - after)
        return along[k - 1] + share * (along[k] - along[k - 1])

    def ratio(self, slow, fast, column="n_updates"):
        """Return how many times more one run needs than another, and how to say it."""
        most, least = self.needs(slow, column), self.needs(fast, column)
        if np.isfinite(most) and np.isfinite(least):
            return most / least, f"x{most / least:.2f}"
        # Where one of them ended too early, its end bounds the ratio.
        bound = min(most, self.along(slow, column)[-1]) / min(least, self.along(fast, column)[-1])
        if np.isfinite(least) and bound >= 1.0:
            return bound, f"> x{bound:.1f}"
        if np.isfinite(most) and bound <= 1.0:
            return bound, f"< x{bound:.2f}"
        return np.nan, f"ended before they were within {self.precision:g} of the optimum"

    def gap_ratios(self, name):
        """Return estimated over true gap, where every sample has been visited."""
        run = self[name]
        known = run.n_unseen == 0
        return run.gap_estimate[known] / run.gap[known]

    def test_deviation(self, error):
        """Return the standard error of a test error."""
        return np.sqrt(error * (1.0 - error) / self.table["n_test"])


class Outcome(NamedTuple):
    """Whether a claim holds on a task, None if the runs cannot tell, and the numbers."""

    task: str
    holds: bool | None
    evidence: str


@dataclass(frozen=True)
class Verdict:
    """A claim and how it fared."""

    claim: str
    source: str
    outcomes: tuple
    not_run: tuple = ()

    def __str__(self):
        parts = []
        for holds, words in ((True, "holds"), (False, "does not hold here"), (None, "undecided")):
            found = [f"{o.task} ({o.evidence})" for o in self.outcomes if o.holds is holds]
            if found:
                parts.append(f"{words} on {', '.join(found)}")
        if self.not_run:
            parts.append(f"not run on {', '.join(self.not_run)}")
        return f"{self.claim} [{self.source}]: {'; '.join(parts)}"


@dataclass(frozen=True)
class Claim:
    """A statement to judge; ``judge(runs) -> (holds, evidence)`` decides on one task."""

    text: str
    source: str
    judge: Callable
    tasks: tuple = ALL

    def verdict(self, runs):
        """Judge on the tasks that were run, {task: TaskRuns}."""
        known = {task: runs[task] for task in self.tasks if task in runs}
        missing = tuple(task for task in self.tasks if task not in runs)
        return Verdict(self.text, self.source, tuple(self._outcomes(known)), missing)

    def _outcomes(self, runs):
        return [Outcome(task, *self.judge(runs[task])) for task in runs]


class ClaimAcrossTasks(Claim):
    """A statement about the tasks together; ``judge({task: TaskRuns}) -> (holds, evidence)``."""

    def _outcomes(self, runs):
        return [Outcome("the tasks together", *self.judge(runs))] if len(runs) > 1 else []
