"""The interface of a solver, and the driver that owns the loop.

A solver says how a run starts (`init`); the state it returns knows how to do one `step`, one
`epoch`, and how to `certify`. The driver `solve` owns everything else: the clock, the history,
stopping, callbacks, progress and Ctrl-C.

Stopping: the running estimate of the gap decides when a full pass is worth its price, and only
that pass, which computes primal and dual exactly, may declare convergence::

    converged  <=>  gap = P(w) - D(alpha) <= tol * P(w)
"""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch
from tqdm import tqdm

HISTORY = (
    "epoch",
    "seconds",
    "n_updates",
    "n_oracle_calls",
    "primal",
    "dual",
    "gap",
    "gap_estimate",
)


class Certificate(NamedTuple):
    """Exact objective values of one point: gap = primal - dual bounds its suboptimality."""

    primal: float
    dual: float
    gap: float


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


class Solver(ABC):
    """An algorithm that minimises lam/2 ||w||^2 - 1/n sum_i log p(y_i | x_i; w)."""

    @abstractmethod
    def init(self, problem, lam, warm_start=None):
        """Return the state from which training starts.

        A state has ``w``, ``n_updates``, ``n_oracle_calls``, ``sampler`` and the methods
        ``epoch()``, ``estimate() -> (dual, gap)``, ``certify() -> Certificate`` and
        ``refresh()``, a certificate that also tells the sampler.
        """

    def solve(
        self,
        problem,
        lam=None,
        tol=1e-3,
        max_epochs=100,
        callback=None,
        n_jobs=1,
        warm_start=None,
        certify_every=None,
        verbose=False,
    ):
        """Train until the certified gap is at most ``tol * primal``.

        Parameters
        ----------
        problem : Problem
            A model bound to labelled samples.
        lam : float, optional
            Strength of the regulariser; None means 1 / n.
        tol : float
            Relative gap to certify; 0 runs all epochs.
        max_epochs : int
            An epoch is n updates.
        callback : callable, optional
            Called as ``callback(row)`` after every epoch with the new row of the history, which
            also has ``w`` and ``state``; a true return value ends the run.
        n_jobs : int
            Number of threads; only 1 so far.
        warm_start : Result or state, optional
            Start from the point that an earlier run on the same samples reached, perhaps with
            another lam.
        certify_every : int, optional
            Make a full pass at the start and every so many epochs, for an exact history. By
            default full passes are made only when the gap estimate falls below the tolerance.
        verbose : bool
            Show a progress bar on standard error.

        Returns
        -------
        Result
        """
        lam = _check_arguments(problem, lam, tol, max_epochs, callback, n_jobs, certify_every)
        run = _Run(time.perf_counter())
        state = self.init(problem, lam, warm_start)
        with tqdm(total=max_epochs, unit="epoch", disable=not verbose) as bar:
            try:
                self._loop(run, state, tol, max_epochs, callback, certify_every, bar)
            except KeyboardInterrupt:
                run.interrupted = True
            if run.certificate is None:
                run.certificate = self._last_certificate(run, state)
        return run.result(state, tol)

    def _last_certificate(self, run, state):
        """Certify where the run has ended, even if Ctrl-C comes in between; a second one raises."""
        try:
            return state.certify()
        except KeyboardInterrupt:
            run.interrupted = True
            return state.certify()

    def __repr__(self):
        options = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({options})"

    def _loop(self, run, state, tol, max_epochs, callback, certify_every, bar):
        _, estimate = state.estimate()
        if certify_every:
            run.certificate = state.certify()
        run.record(state, estimate)
        for epoch in range(1, max_epochs + 1):
            run.certificate = None
            state.epoch()
            run.n_epochs = epoch
            dual, estimate = state.estimate()
            promising = estimate <= tol * (dual + estimate)
            if _due(epoch, state.sampler.refresh_every):
                run.certificate = state.refresh()
            elif promising or _due(epoch, certify_every) or epoch == max_epochs:
                run.certificate = state.certify()
            row = run.record(state, estimate)
            _show(bar, row, dual)
            stop = callback is not None and callback(Bunch(**row, w=state.w.copy(), state=state))
            if stop or (run.certificate is not None and _within(run.certificate, tol)):
                return


class _Run:
    """The clock, the history and the last certificate of one run."""

    def __init__(self, started):
        self.started = started
        self.certificate = None
        self.n_epochs = 0
        self.interrupted = False
        self.rows = []

    def record(self, state, gap_estimate):
        """Append a row to the history and return it."""
        primal, dual, gap = self.certificate or (np.nan, np.nan, np.nan)
        row = dict(
            epoch=self.n_epochs,
            seconds=time.perf_counter() - self.started,
            n_updates=state.n_updates,
            n_oracle_calls=state.n_oracle_calls,
            primal=primal,
            dual=dual,
            gap=gap,
            gap_estimate=gap_estimate,
        )
        self.rows.append(row)
        return row

    def result(self, state, tol):
        primal, dual, gap = self.certificate
        if self.rows and self.rows[-1]["n_updates"] == state.n_updates:
            self.rows[-1].update(primal=primal, dual=dual, gap=gap)
        return Result(
            w=state.w.copy(),
            primal=primal,
            dual=dual,
            gap=gap,
            converged=_within(self.certificate, tol),
            n_epochs=self.n_epochs,
            n_updates=state.n_updates,
            n_oracle_calls=state.n_oracle_calls,
            history=Bunch(**{name: np.array([row[name] for row in self.rows]) for name in HISTORY}),
            state=state,
            interrupted=self.interrupted,
        )


def _due(epoch, every):
    return every is not None and epoch % every == 0


def _within(certificate, tol):
    return bool(certificate.gap <= tol * certificate.primal)


def _show(bar, row, dual_estimate):
    """Show primal, dual and gap; a tilde marks estimates."""
    if np.isnan(row["gap"]):
        gap = row["gap_estimate"]
        mark, primal, dual = "~", dual_estimate + gap, dual_estimate
    else:
        mark, primal, dual, gap = "", row["primal"], row["dual"], row["gap"]
    bar.set_postfix_str(
        f"primal {mark}{primal:.6g}, dual {mark}{dual:.6g}, gap {mark}{gap:.3g}", refresh=False
    )
    bar.update()


def _check_arguments(problem, lam, tol, max_epochs, callback, n_jobs, certify_every):
    """Check the arguments of `solve`; return lam."""
    if not getattr(problem, "labelled", False):
        raise ValueError(f"problem={problem!r}: expected a model bound to samples with labels")
    lam = 1.0 / problem.n_samples if lam is None else lam
    if not isinstance(lam, Real) or not 0 < lam < np.inf:
        raise ValueError(f"lam={lam!r}: expected a finite number > 0, or None for 1/n")
    if not isinstance(tol, Real) or not 0 <= tol < np.inf:
        raise ValueError(f"tol={tol!r}: expected a finite number >= 0")
    if not isinstance(max_epochs, Integral) or max_epochs < 0:
        raise ValueError(f"max_epochs={max_epochs!r}: expected an integer >= 0")
    if certify_every is not None and (not isinstance(certify_every, Integral) or certify_every < 1):
        raise ValueError(f"certify_every={certify_every!r}: expected an integer >= 1, or None")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback={callback!r}: expected a callable, or None")
    if n_jobs != 1:
        raise ValueError(f"n_jobs={n_jobs!r}: expected 1")
    return float(lam)
