"""The interface of a solver, and the driver that owns the loop.

A solver says how a run starts (`init`); the state it returns knows how to do one `step`, one
`epoch`, and how to `certify`. The driver `solve` owns everything else: the clock, the history,
stopping, callbacks, progress, checkpoints and Ctrl-C.

Stopping: the running estimate of the gap decides when a full pass is worth its price, and only
that pass, which computes primal and dual exactly, may declare convergence::

    converged  <=>  gap = P(w) - D(alpha) <= tol * P(w)
"""

import os
import time
from abc import ABC, abstractmethod
from numbers import Integral, Real
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch
from tqdm import tqdm

from sdcastruct.problem import batch
from sdcastruct.problem.threads import kept
from sdcastruct.solvers.options import check_integer
from sdcastruct.solvers.result import Certificate, Result

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


class Solver(ABC):
    """An algorithm that minimises lam/2 ||w||^2 - 1/n sum_i log p(y_i | x_i; w)."""

    threads = False  # whether n_jobs may be more than one
    resumes = True  # whether its states can be saved

    @abstractmethod
    def init(self, problem, lam, warm_start=None):
        """Return the state from which training starts; with threads also given ``n_jobs``.

        A state has ``problem``, ``w`` as it is packed (see `Problem`), ``n_updates``,
        ``n_oracle_calls``, ``refresh_every`` and the methods ``epoch()``, ``estimate() -> (dual,
        gap)``, ``certify() -> Certificate`` and ``refresh()``, a certificate that also tells the
        sampler; see `State`.
        """

    def bind(self, model, X, Y):
        """Bind a model to samples, to train on them with this solver."""
        return model.bind(X, Y)

    def check_saving(self, state, checkpoint):
        """Check that a state can be saved: a sampler that cannot be says so now."""
        state.sampler.memory()

    def advance(self, state, after_epoch):
        """Do epochs until `after_epoch()` is true."""
        while True:
            state.epoch()
            if after_epoch():
                return

    def solve(
        self,
        problem,
        lam=None,
        tol=1e-3,
        max_epochs=100,
        callback=None,
        n_jobs=1,
        warm_start=None,
        resume=None,
        checkpoint=None,
        checkpoint_every=1,
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
            Number of threads, -1 for all cores; `SDCA` and `LBFGS` take more than one.
        warm_start : Result, state or array of shape (dim,), optional
            Start from the point that an earlier run reached, of any solver, perhaps with another
            lam or on the first of these samples; or from given weights.
        resume : state, optional
            Go on with the state of an earlier run of this solver, random numbers included; it
            changes. Epochs count from zero.
        checkpoint : str or Path, optional
            A file to go on from if the run is killed. If it exists, the run continues where it
            stands, history included, and ends as if it had not been killed, bit for bit.
        checkpoint_every : int, default 1
            Number of epochs between two checkpoints.
        certify_every : int, optional
            Make a full pass at the start and every so many epochs, for an exact history. By
            default full passes are made only when the gap estimate falls below the tolerance.
        verbose : bool
            Show a progress bar on standard error.

        Returns
        -------
        Result
        """
        lam = _check_arguments(problem, lam, tol, max_epochs, callback, certify_every)
        if n_jobs == -1:
            n_jobs = (os.cpu_count() or 1) if self.threads else 1
        check_integer("n_jobs", n_jobs, 1)
        if n_jobs > 1 and not self.threads:
            raise ValueError(f"n_jobs={n_jobs!r}: expected 1 for {type(self).__name__}")
        if checkpoint is not None and not self.resumes:
            raise ValueError(f"checkpoint={str(checkpoint)!r}: {type(self).__name__} cannot resume")
        self._check_beginning(problem, lam, warm_start, resume, checkpoint, checkpoint_every)
        run = _Run(problem, time.perf_counter(), resume)
        options = _Options(tol, max_epochs, callback, certify_every, checkpoint, checkpoint_every)
        with kept(n_jobs):
            threads = {"n_jobs": n_jobs} if n_jobs > 1 else {}
            state = self.init(problem, lam, warm_start, **threads) if resume is None else resume
            if self.threads:
                state.n_jobs = n_jobs
            self._run_to_end(run, state, options, verbose)
        return run.result(state, tol)

    def _run_to_end(self, run, state, options, verbose):
        """Do epochs from where the state, or a checkpoint, stands; end with a certificate."""
        if options.checkpoint is not None:
            self.check_saving(state, options.checkpoint)
        if options.checkpoint is not None and Path(options.checkpoint).exists():
            run.go_on_from(state.restore(options.checkpoint))
        total, initial = options.max_epochs, run.n_epochs
        with tqdm(total=total, initial=initial, unit="epoch", disable=not verbose) as bar:
            try:
                self._loop(run, state, options, bar)
            except KeyboardInterrupt:
                run.interrupted = True
                run.certificate = None  # the weights may have moved on since the last one
            if run.certificate is None:
                run.certificate = self._last_certificate(run, state)

    def _check_beginning(self, problem, lam, warm_start, resume, checkpoint, checkpoint_every):
        """Check the arguments of `solve` that say where it begins and what it leaves behind."""
        if resume is not None:
            if warm_start is not None:
                raise ValueError("resume and warm_start are both given: expected one of them")
            if type(getattr(resume, "solver", None)) is not type(self):
                expected = f"expected the state of an earlier run of {type(self).__name__}"
                raise TypeError(f"resume={resume!r}: {expected}")
            if resume.problem is not problem or resume.lam != lam:
                raise ValueError(
                    f"resume has another problem or lam={resume.lam!r}: expected this problem and "
                    f"lam={lam!r} (use warm_start to change them)"
                )
        if not isinstance(checkpoint_every, Integral) or checkpoint_every < 1:
            raise ValueError(f"checkpoint_every={checkpoint_every!r}: expected an integer >= 1")
        if checkpoint is not None:
            if not isinstance(checkpoint, str | os.PathLike):
                raise TypeError(f"checkpoint={checkpoint!r}: expected a path, or None")
            folder = Path(checkpoint).absolute().parent
            if not folder.is_dir() or not os.access(folder, os.W_OK):
                raise ValueError(f"checkpoint={str(checkpoint)!r}: cannot write into its folder")

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

    def _loop(self, run, state, options, bar):
        if not run.rows:
            _, estimate = state.estimate()
            if options.certify_every:
                run.certificate = state.certify()
            run.record(state, estimate)
        if run.n_epochs < options.max_epochs and not run.within(options.tol):
            self.advance(state, lambda: self._after_epoch(run, state, options, bar))

    def _after_epoch(self, run, state, options, bar):
        """Look at the state, record it, tell whoever wants to know; return whether to stop."""
        run.certificate = None
        run.n_epochs += 1
        last = run.n_epochs >= options.max_epochs
        dual, estimate = state.estimate()
        promising = estimate <= options.tol * (dual + estimate)
        if _due(run.n_epochs, state.refresh_every):
            run.certificate = state.refresh()
        elif promising or _due(run.n_epochs, options.certify_every) or last:
            run.certificate = state.certify()
        row = run.record(state, estimate)
        _show(bar, row, dual)
        if options.checkpoint is not None and _due(run.n_epochs, options.checkpoint_every):
            state.save(options.checkpoint, run.history())
        stop = options.callback is not None and options.callback(
            Bunch(**row, w=run.problem.unpack(state.w), state=state)
        )
        return bool(stop) or last or run.within(options.tol)


class _Options(NamedTuple):
    """What `solve` was asked to do."""

    tol: float
    max_epochs: int
    callback: object
    certify_every: object
    checkpoint: object
    checkpoint_every: int


class _Run:
    """The clock, the history and the last certificate of one run."""

    def __init__(self, problem, started, resumed):
        self.problem, self.started = problem, started
        # Counters of a state that goes on in another run do not count in this one.
        self.earlier_updates = 0 if resumed is None else resumed.n_updates
        self.earlier_calls = 0 if resumed is None else resumed.n_oracle_calls
        self.certificate = None
        self.n_epochs = 0
        self.interrupted = False
        self.rows = []

    def go_on_from(self, history):
        """Take the history of an interrupted run, if there is any."""
        if not history:
            return
        columns = [history[name].tolist() for name in HISTORY]
        self.rows = [dict(zip(HISTORY, row, strict=True)) for row in zip(*columns, strict=True)]
        last = self.rows[-1]
        self.n_epochs = int(last["epoch"])
        self.started -= last["seconds"]
        if not np.isnan(last["gap"]):
            self.certificate = Certificate(last["primal"], last["dual"], last["gap"])

    def history(self):
        """Return the history so far, {name: array}."""
        return {name: np.array([row[name] for row in self.rows]) for name in HISTORY}

    def within(self, tol):
        """Return whether the last point was certified to the tolerance."""
        return self.certificate is not None and _within(self.certificate, tol)

    def record(self, state, gap_estimate):
        """Append a row to the history and return it."""
        primal, dual, gap = self.certificate or (np.nan, np.nan, np.nan)
        row = dict(
            epoch=self.n_epochs,
            seconds=time.perf_counter() - self.started,
            n_updates=state.n_updates - self.earlier_updates,
            n_oracle_calls=state.n_oracle_calls - self.earlier_calls,
            primal=primal,
            dual=dual,
            gap=gap,
            gap_estimate=gap_estimate,
        )
        self.rows.append(row)
        return row

    def result(self, state, tol):
        primal, dual, gap = self.certificate
        n_updates = state.n_updates - self.earlier_updates
        if self.rows and self.rows[-1]["n_updates"] == n_updates:
            self.rows[-1].update(primal=primal, dual=dual, gap=gap)
        return Result(
            w=self.problem.unpack(state.w),
            primal=primal,
            dual=dual,
            gap=gap,
            converged=_within(self.certificate, tol),
            n_epochs=self.n_epochs,
            n_updates=n_updates,
            n_oracle_calls=state.n_oracle_calls - self.earlier_calls,
            history=Bunch(**self.history()),
            state=state,
            interrupted=self.interrupted,
        )


def gradient_certificate(w, lam, loss, gradient):
    """Return the certificate of weights and the marginals at them.

    g(w, alpha-hat(w)) = ||grad P(w)||^2 / (2 lam), given the mean loss and its gradient.
    """
    primal = loss + 0.5 * lam * batch.squared_norm(w)
    slope = gradient + lam * w
    gap = batch.squared_norm(slope) / (2.0 * lam)
    if not np.isfinite(gap):
        raise ValueError(
            f"the weights overflow: lam={lam!r} is too small or the features are too large"
        )
    return Certificate.of(primal, primal - gap)


def start_of(problem, warm_start):
    """Return (state, packed weights) that a warm start gives; None where it gives none."""
    if isinstance(warm_start, Result):
        warm_start = warm_start.w if warm_start.state is None else warm_start.state
    if warm_start is None:
        return None, None
    state = warm_start if hasattr(warm_start, "certify") else None
    if state is None and np.ndim(warm_start) == 0:
        raise TypeError(f"warm_start={warm_start!r}: expected a result, a state or weights")
    w = warm_start if state is None else state.problem.unpack(state.w)
    w = np.ascontiguousarray(w, dtype=np.float64)
    if w.shape != (problem.dim,):
        raise ValueError(f"warm_start has shape {w.shape}, expected weights ({problem.dim},)")
    if not np.isfinite(w).all():
        raise ValueError("warm_start has weights that are not finite")
    return state, problem.pack(w)


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


def _check_arguments(problem, lam, tol, max_epochs, callback, certify_every):
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
    return float(lam)
