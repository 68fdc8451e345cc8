"""What a run proves and returns."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch


class Certificate(NamedTuple):
    """Exact objective values of one point: gap = primal - dual bounds its suboptimality."""

    primal: float
    dual: float
    gap: float

    @classmethod
    def of(cls, primal, dual):
        """Return the certificate of two objective values.

        A difference below its own rounding error proves no more than that error. A dual above the
        primal is no certificate at all: weak duality says that one of them is wrong.
        """
        primal, dual = float(primal), float(dual)
        if primal - dual < -1e-9 * (1.0 + abs(primal) + abs(dual)):
            raise RuntimeError(
                f"the dual objective {dual!r} is above the primal {primal!r}: the dual point or "
                "the inference of the model is wrong (see sdcastruct.testing.check_model)"
            )
        gap = max(primal - dual, 4.0 * np.finfo(np.float64).eps * primal)
        return cls(primal, dual, float(gap))


@dataclass(frozen=True, eq=False)
class Result:
    """What `Solver.solve` returns; a pickled result has no `state`.

    Attributes
    ----------
    w : array of shape (dim,)
        Trained weights.
    primal, dual, gap : float
        Objective values certified by a full pass at `w`; the optimum lies between dual and primal.
    converged : bool
        Whether gap <= tol * primal.
    n_epochs, n_updates, n_oracle_calls : int
        Work done in this run; passes that only certify do not count as oracle calls.
    history : Bunch of arrays of equal length
        One row per epoch, row 0 is the start: epoch, seconds, n_updates, n_oracle_calls, primal,
        dual, gap (NaN where no full pass was made), gap_estimate.
    state : object
        The solver's state, for a warm start.
    interrupted : bool
        Whether Ctrl-C ended the run.
    """

    w: np.ndarray
    primal: float
    dual: float
    gap: float
    converged: bool
    n_epochs: int
    n_updates: int
    n_oracle_calls: int
    history: Bunch = field(repr=False)
    state: object = field(repr=False)
    interrupted: bool = False

    def __getstate__(self):
        return {**self.__dict__, "state": None}

    @property
    def relative_gap(self):
        """The gap as a part of the primal objective."""
        return self.gap / self.primal if self.primal > 0 else self.gap
