"""Stochastic average gradient for CRFs, with non-uniform sampling (Schmidt et al. 2015).

State: w, the last gradient of every sample, kept as slots g_i = m_i - truth_i (times the weight of
the sample, if it has one), and their sum
d = sum_i F_i^T g_i over the samples seen so far, m of them. A step on sample i::

    d   <- d + F_i^T (g_new - g_i),     g_i <- g_new
    w   <- (1 - a lam) w - (a / m) d

The constant L_i of a sample is found by a line search on its own loss f_i: it shrinks by 10 % on
every visit and doubles while

    f_i(w - grad f_i / L_i) > f_i(w) - ||grad f_i||^2 / (2 L_i),

each trial a call of the oracle; where ||grad f_i||^2 <= 1e-8 L_i it stays as it is. On the first
visit it starts at half the mean of those seen; the very first one at ||grad f_i||^2 / (2 f_i),
below which the search cannot end, as f_i >= 0. The step size is a = 1/(L_max + lam) with uniform
sampling; with sampling by L_i ("nus") half of the draws, a = (1/(L_max + lam) + 1/(L_mean +
lam)) / 2.

L_i is searched along one gradient only; where f_i is flat along it and bends elsewhere, steps may
be too long, and a problem of few samples may circle around its optimum. So if ||d/m + lam w|| has
not fallen to a new low for 20 epochs, all L_i count twice as much from then on.

All of w moves in every step, but a sample sees only few of its rows. So w = c v, every row of v is
brought up to date just in time, when a sample needs it::

    c <- (1 - a lam) c,     S <- S + a / (m c),     v_r <- v_r - (S - S_r) d_r,     S_r <- S

A primal method has no dual point of its own, but g(w, alpha-hat(w)) = ||grad P(w)||^2 / (2 lam)
certifies it just as well.
"""

import numpy as np

from libc.math cimport isfinite
from libc.stdint cimport int64_t

from sdcastruct.problem.problem cimport Problem
from sdcastruct.problem.workspace cimport Workspace
from sdcastruct.samplers.trees cimport MaxTree, SumTree
from sdcastruct.solvers.state cimport State

from sdcastruct.problem import batch
from sdcastruct.samplers import Uniform
from sdcastruct.samplers.lipschitz import Lipschitz
from sdcastruct.samplers.weighted import UNKNOWN_GAP
from sdcastruct.solvers.base import Solver, gradient_certificate, start_of
from sdcastruct.solvers.options import check_choice, check_number, generator

cdef double SHRINK = 0.9
cdef double SMALLEST_GAIN = 1e-8        # ||grad f_i||^2 / L_i below which nothing is searched
cdef double SMALLEST_SCALE = 1e-100     # of c, before v is rewritten
cdef int PATIENCE = 20                  # epochs without a new low before steps get shorter
cdef int MOST_DOUBLED = 20              # successes that still double the number of skipped visits


class SAG(Solver):
    """Stochastic average gradient: SAG, SAG-NUS and SAG-NUS*.

    Parameters
    ----------
    sampling : {"nus", "uniform"}, default "nus"
        Half of the draws in proportion to the Lipschitz constants L_i, or all of them uniform.
    line_search : {"skip", "always"}, default "skip"
        Whether to search L_i on every visit, or to skip 2^(k-1) visits after k searches in a row
        that did not change it (SAG-NUS*).
    random_state : int, numpy.random.Generator or None
        Seed of the sampling.
    """

    def __init__(self, sampling="nus", line_search="skip", random_state=None):
        check_choice("sampling", sampling, ("nus", "uniform"))
        check_choice("line_search", line_search, ("skip", "always"))
        generator(random_state)
        self.sampling = sampling
        self.line_search = line_search
        self.random_state = random_state

    def init(self, problem, lam, warm_start=None):
        """Return the state from which training starts.

        Parameters
        ----------
        warm_start : Result, state or array of shape (dim,), optional
            Start from these weights; 0 without.
        """
        check_number("lam", lam, 0.0, np.inf)
        _, w = start_of(problem, warm_start)
        sampler = Lipschitz() if self.sampling == "nus" else Uniform()
        state = SAGState(self, problem, lam, sampler)
        state.start_from(np.zeros(problem.dim) if w is None else w.copy())
        state.averaged = self.sampling == "nus"
        state.skips = self.line_search == "skip"
        return state


cdef class SAGState(State):
    """Everything that a run of SAG knows; made by `SAG.init`.

    Attributes
    ----------
    w : array of shape (dim,)
        Weights.
    slots : array
        The last gradients of all samples as slots, end to end; 0 for those never seen.
    direction : array of shape (dim,)
        Sum d of the last gradients.
    lipschitz : array of shape (n_samples,)
        Constants L_i; 0 for samples never seen.
    losses : array of shape (n_samples,)
        Last known losses.
    n_seen : int
        Number of samples seen.
    n_updates, n_oracle_calls
        See `State`.
    """

    cdef readonly object slots, direction, lipschitz, losses
    cdef readonly int64_t n_seen
    cdef object v, last, successes, skipped
    cdef bint averaged, skips
    cdef double c, total
    # What L_i is multiplied by, the lowest ||d/m + lam w||^2, and the epochs since then.
    cdef double caution, lowest
    cdef int64_t n_stale
    cdef SumTree sums
    cdef MaxTree maxima
    cdef double[::1] v_view, d_view, last_view, slots_view, lipschitz_view, losses_view
    cdef double[::1] gradient_view, trial_view
    cdef int64_t[::1] successes_view, skipped_view

    def start_from(self, w):
        """Take weights; nothing is known about any sample."""
        problem = self.problem
        n = problem.n_samples
        self.v, self.direction = w, np.zeros(problem.dim)
        self.last = np.zeros(problem.attributes.n_rows)
        self.slots, self.losses = np.zeros(problem.n_slot_marginals), np.zeros(n)
        self.lipschitz = np.zeros(n)
        self.successes, self.skipped = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.c, self.total = 1.0, 0.0
        self.caution, self.lowest, self.n_stale = 1.0, np.inf, 0
        self.v_view, self.d_view, self.last_view = self.v, self.direction, self.last
        self.slots_view, self.losses_view = self.slots, self.losses
        self.lipschitz_view = self.lipschitz
        self.successes_view, self.skipped_view = self.successes, self.skipped
        self.gradient_view = np.zeros(problem.dim)
        self.trial_view = np.empty(2 * problem.attributes.max_slots)
        self._grow_trees()

    def _grow_trees(self):
        self.sums, self.maxima = SumTree(self.lipschitz), MaxTree(self.lipschitz)

    @property
    def w(self):
        self._flush()
        return self.v

    def _flush(self):
        """Bring all of v up to date, with c = 1."""
        if self.total != 0.0 or self.c != 1.0:
            self.problem.attributes.catch_up_all(self.total, self.direction, self.last_view, self.v)
            self.v *= self.c
            self.c, self.total = 1.0, 0.0

    cdef double step_on(self, Problem problem, Workspace space, Py_ssize_t i) except -1.0 nogil:
        """Do one step on sample i and return its size a."""
        cdef int64_t first = problem.attributes.slot_ptr[i]
        cdef Py_ssize_t n_slots = problem.n_slots(i), j
        cdef double *stored = &self.slots_view[first]
        cdef double log_z = 0.0, a, c
        cdef bint seen = self.lipschitz_view[i] > 0.0

        problem.prefetch_weights(i, &self.v_view[0])
        problem.attributes.catch_up(i, self.total, &self.d_view[0], &self.last_view[0],
                                    &self.v_view[0])
        problem.score_into(i, &self.v_view[0], space.theta)
        for j in range(n_slots):
            space.theta[j] *= self.c
        problem.expect_into(i, space.theta, space.m, &log_z, space)
        space.n_oracle_calls += 1
        self.losses_view[i] = problem.weights[i] * (log_z - problem.truth_score(i, space.theta))
        problem.add_truth(i, -1.0, space.m)
        for j in range(n_slots):
            space.m[j] *= problem.weights[i]

        self.search(problem, space, i, seen)
        if not seen:
            self.n_seen += 1
        self.sums.set(i, self.lipschitz_view[i])
        self.maxima.set(i, self.lipschitz_view[i])

        for j in range(n_slots):
            space.theta[j] = space.m[j] - stored[j]
            stored[j] = space.m[j]
        problem.add(i, 1.0, space.theta, &self.d_view[0])

        a = 1.0 / (self.caution * self.maxima.nodes[1] + self.lam)
        if self.averaged:
            a = 0.5 * (a + 1.0 / (self.caution * self.sums.nodes[1] / self.n_seen + self.lam))
        c = (1.0 - a * self.lam) * self.c
        if c > SMALLEST_SCALE:
            self.c = c
            self.total += a / (self.n_seen * c)
        else:
            with gil:
                self._flush()
                self.v *= 1.0 - a * self.lam
                self.v -= (a / self.n_seen) * self.direction
        space.n_updates += 1
        return a

    cdef int tell(self, Py_ssize_t i) except -1 nogil:
        return self.sampler.observe(i, self.lipschitz_view[i])

    def epoch(self):
        """Do n steps on samples drawn by the sampler; shorten them if they lead nowhere."""
        super().epoch()
        gradient = self.direction / self.n_seen + self.lam * self.w
        size = batch.squared_norm(gradient)
        self.n_stale += 1
        if size < self.lowest:
            self.lowest, self.n_stale = size, 0
        elif self.n_stale == PATIENCE:
            self.caution, self.n_stale = 2.0 * self.caution, 0

    cdef int search(self, Problem problem, Workspace space, Py_ssize_t i,
                    bint seen) except -1 nogil:
        """Find L_i at the gradient that the workspace holds as slots space.m."""
        cdef Py_ssize_t n_slots = problem.n_slots(i), j
        cdef double *along = &self.trial_view[0]        # scores of the gradient
        cdef double *trial = along + n_slots
        cdef double norm2, loss = self.losses_view[i], log_z = 0.0, L = self.lipschitz_view[i]
        cdef bint changed = False
        if self.skips and self.skipped_view[i] > 0:
            self.skipped_view[i] -= 1
            return 0
        norm2 = problem.norm2(i, space.m)
        if not seen:
            L = 1.0
            if self.n_seen:
                L = 0.5 * self.sums.nodes[1] / self.n_seen
            elif norm2 > 0.0 and loss > 0.0:
                L = 0.5 * norm2 / loss
        if norm2 > SMALLEST_GAIN * L:
            if seen:
                L *= SHRINK
            problem.add(i, 1.0, space.m, &self.gradient_view[0])
            problem.score_into(i, &self.gradient_view[0], along)
            problem.attributes.clear(i, &self.gradient_view[0])
            while True:
                for j in range(n_slots):
                    trial[j] = space.theta[j] - along[j] / L
                problem.log_partition_into(i, trial, &log_z, space)
                space.n_oracle_calls += 1
                loss = problem.weights[i] * (log_z - problem.truth_score(i, trial))
                if loss <= self.losses_view[i] - 0.5 * norm2 / L:
                    break
                L *= 2.0
                changed = True
                if not (isfinite(loss) and isfinite(L)):
                    with gil:
                        raise ValueError(f"the scores of sample {i} overflow: lam={self.lam!r} is "
                                         "too small or the features are too large")
        self.lipschitz_view[i] = L
        self.successes_view[i] = 0 if changed else self.successes_view[i] + 1
        if self.successes_view[i] > 0:
            self.skipped_view[i] = 1 << min(self.successes_view[i] - 1, MOST_DOUBLED)
        return 0

    def estimate(self):
        """Return estimates of (dual, gap) from what the steps have seen, without any pass."""
        w, n = self.w, self.problem.n_samples
        if self.n_seen < n:
            return 0.0, UNKNOWN_GAP
        gradient = self.direction / n + self.lam * w
        primal = self.losses.mean() + 0.5 * self.lam * batch.squared_norm(w)
        gap = batch.squared_norm(gradient) / (2.0 * self.lam)
        return primal - gap, gap

    def certify(self):
        """Return the exact primal at w and the dual of p(. | x_i; w), by a full pass."""
        loss, gradient = batch.loss_and_gradient(self.problem, self.w)
        return gradient_certificate(self.w, self.lam, loss, gradient)

    def arrays(self):
        """Return all arrays that the state consists of, {name: array}; not copies."""
        return {"w": self.w, "direction": self.direction, "slots": self.slots,
                "lipschitz": self.lipschitz, "losses": self.losses, "successes": self.successes,
                "skipped": self.skipped}

    def counters(self):
        """Return all numbers that the state consists of, {name: number}."""
        return {**super().counters(), "n_seen": self.n_seen, "n_stale": self.n_stale,
                "caution": self.caution, "lowest": self.lowest}

    def set_counters(self, n_seen, n_stale, caution, lowest, **others):
        """Take the numbers that `counters` returned, after the arrays."""
        super().set_counters(**others)
        self.n_seen, self.n_stale = n_seen, n_stale
        self.caution, self.lowest = caution, lowest
        self._grow_trees()
