"""What a worker holds: the packed samples of one part, and their block of the dual point.

In a round it takes the weights w of all parts and does steps of SDCA on its own samples. Its steps
move its copy of the weights sigma' times as far as the weights of all will move through it::

    w_k = w + sigma' (u_k - u_k before),     u_k = 1/(lam n) sum_i s_i (F(x_i, y_i) - E_alpha_i[F])

with the sum over its own samples. Steps are those of `SDCA`, with `coupling` = sigma' and with
lam n of the whole problem. What it returns is absolute, u_k and the entropies of its block, so
that w = sum_k u_k and the dual follow from the last answer of every part and from nothing else.
"""

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from distributed import get_worker

from sdcastruct.distributed.changes import Changes
from sdcastruct.problem import batch


class Sums(NamedTuple):
    """What a block knows of its part: all that the driver needs for w and for the dual.

    u_k on the support of the part, ||change of u_k||^2 since the last sums, sum_i s_i H(alpha_i),
    sum of the last known block gaps, steps and calls of the oracle since the last sums, seconds of
    work.
    """

    u: Changes
    moved: float
    entropy: float
    gap: float
    n_updates: int
    n_oracle_calls: int
    seconds: float


class Description(NamedTuple):
    """Where a block was loaded, and the weights that its samples reach."""

    address: str
    support: np.ndarray
    sums: Sums


class Block:
    """A part of a problem on a worker; an actor of Dask.

    Errors of its methods are returned, not raised: whatever a call raises is then the fault of the
    cluster, not of the data.
    """

    def call(self, method, arguments):
        """Return (what a method returns, None) or (None, what it raises)."""
        started = time.perf_counter()
        try:
            answer = getattr(self, method)(*arguments)
        except Exception as error:
            return None, error
        if isinstance(answer, Sums):
            answer = answer._replace(seconds=time.perf_counter() - started)
        return answer, None

    def load(self, part, driver, solver, lam_n, w, path):
        """Read and pack the samples, and begin.

        Parameters
        ----------
        part : object with a method ``bind() -> Problem``
        driver : int
            Process of the driver.
        solver : SDCA
        lam_n : float
            lam n of the whole problem.
        w : array of shape (dim,), optional
            Begin at the marginals at these weights; without them at the initial point of `solver`.
        path : str, optional
            A checkpoint to go on from, if it is there and can be read.
        """
        worker = get_worker()
        if os.getppid() == driver:  # one that was started by it, and gets the Ctrl-C meant for it
            worker.loop.add_callback(signal.signal, signal.SIGINT, signal.SIG_IGN)
        problem = part.bind()
        lam = lam_n / problem.n_samples
        self.state = solver.init(problem, lam, None if w is None else problem.unpack(w))
        self.support = _support(problem)
        self.all_weights = np.empty(problem.dim)
        self.u = None
        self.n_updates, self.n_oracle_calls = self.state.n_updates, self.state.n_oracle_calls
        if path is not None and Path(path).exists():
            try:
                self._restore(path)
            except ValueError:  # cut short: then from the beginning
                self.state = solver.init(problem, lam)
        narrow = np.int32 if problem.dim < 2**31 else np.int64
        return Description(worker.address, self.support.astype(narrow), self.sums(False, True))

    def round(self, w, coupling, which, n_rounds, whole):
        """Do the steps of one of the `n_rounds` rounds of an epoch; return `Sums`.

        Where the weights have gone tells how u_k has changed. The rounding errors of that end with
        the epoch, whose last round computes u_k anew.
        """
        self._take_weights(w)
        state, n = self.state, self.state.problem.n_samples
        state.coupling = coupling
        state.epoch((which + 1) * n // n_rounds - which * n // n_rounds)
        if which + 1 == n_rounds:
            return self.sums(False, whole)
        return self._sums(self.u + (state.w.take(self.support) - self.known_w) / coupling, whole)

    def sums(self, exact, whole):
        """Return `Sums` with u_k computed anew, and all of it if `whole`.

        With `exact` slot marginals and entropies are those of the dual point, not those that the
        steps have kept.
        """
        state = self.state
        if exact:
            state.recompute()
        batch.conjugate_weights(state.problem, state.m, state.lam, self.all_weights)
        return self._sums(self.all_weights.take(self.support), whole)

    def _sums(self, u, whole):
        """Make u_k known; return `Sums`."""
        state = self.state
        change = 0.0 if self.u is None else u - self.u
        changes = Changes.between(None if whole else self.u, u)
        self.u = u
        counted = state.n_updates - self.n_updates, state.n_oracle_calls - self.n_oracle_calls
        self.n_updates, self.n_oracle_calls = state.n_updates, state.n_oracle_calls
        entropy = float(np.asarray(state.problem.weights) @ state.entropies)
        moved = float(np.vdot(change, change))
        return Sums(changes, moved, entropy, float(state.gaps.sum()), *counted, 0.0)

    def losses(self, w, tell):
        """Return the sum of s_i times -log p(y_i | x_i; w), by a full pass at these weights.

        With `tell` the sampler learns the block gaps that the pass has found.
        """
        self._take_weights(w)
        state, problem = self.state, self.state.problem
        losses, gaps = batch.losses_and_gaps(problem, state.w, state.m, state.entropies)
        weights = np.asarray(problem.weights)
        state.gaps[:] = weights * gaps
        if tell:
            for i, gap in enumerate(state.gaps):
                state.sampler.update(i, gap)
        return float(weights @ losses)

    def save(self, path):
        """Write a checkpoint."""
        self.state.save(path)

    def restore(self, path):
        """Go on from a checkpoint; return `Sums`."""
        self._restore(path)
        return self.sums(False, True)

    def check_saving(self):
        """Check that the sampler can be saved."""
        self.state.sampler.memory()

    def _restore(self, path):
        self.state.restore(path)
        self.n_updates, self.n_oracle_calls = self.state.n_updates, self.state.n_oracle_calls

    def _take_weights(self, changes):
        """Bring the weights to what the driver has; steps have moved them since."""
        if changes.places is None:
            self.known_w = np.array(changes.values)
        else:
            changes.write_to(self.known_w)
        self.state.w[self.support] = self.known_w


def _support(problem):
    """Return the places of the weights that the samples of a problem reach.

    Marginals in general position reach all of them: nothing cancels but by chance.
    """
    reached = np.empty(problem.dim)
    m = -1.0 - np.random.default_rng(0).random(problem.n_slot_marginals)
    batch.conjugate_weights(problem, m, 1.0, reached)
    return np.flatnonzero(reached)
