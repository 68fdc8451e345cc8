"""What the states of all stochastic solvers share: drawing samples, stepping, saving.

A solver with a step of its own subclasses `State`, writes `step_on`, which runs without the GIL,
and says what it knows (`arrays`), what it believes (`estimate`) and what it can prove (`certify`).

With `n_jobs` threads, all of them step at once. A lock lets one at a time draw samples, and no two
are ever at the same. They have replicas of the frequent weights, see `sdcastruct.problem.replicas`,
and read the others while others write. Up to `FEW` threads write them one at a time, so that
nothing is lost; more would wait for each other, and write at once.
"""

from concurrent.futures import as_completed

import numpy as np

from cpython.exc cimport PyErr_CheckSignals

from sdcastruct.problem.workspace cimport MOST_AHEAD

from sdcastruct.problem.threads import started
from sdcastruct.solvers import checkpoint
from sdcastruct.solvers.options import generator

# Steps between two looks at pending signals: rare enough to be free, often enough for Ctrl-C.
cdef Py_ssize_t SIGNAL_INTERVAL = 16
# No sample.
cdef Py_ssize_t NONE = -1
# Most threads that write the weights one at a time.
cdef int FEW = 4


def threads_for(Problem problem, int n_jobs):
    """Return how many threads an epoch can use: each is at one sample and has drawn another."""
    return max(1, min(n_jobs, problem.n_samples // 2))


cdef class State:
    """Where a run stands; made by `Solver.init`.

    Attributes
    ----------
    solver : Solver
        The solver that made it.
    problem : Problem
    lam : float
    sampler : Sampler
        Its own copy: what it has learned belongs to this run.
    n_updates, n_oracle_calls : int
        Steps and calls of the marginal oracle so far.
    n_jobs : int
        Number of threads.
    """

    def __cinit__(self, *args):
        self.n_jobs = 1

    def __init__(self, solver, Problem problem, double lam, Sampler sampler):
        self.solver = solver
        self.problem = problem
        problem.attributes.prepare_norms()
        self.lam = lam
        self.sampler = sampler
        self.sampler.reset(problem, lam)
        if sampler.n_samples != problem.n_samples:
            raise RuntimeError(
                f"{type(sampler).__name__}.reset must call super().reset(problem, lam)")
        self.stream = RandomStream(generator(solver.random_state))
        self.space = problem.workspace()
        self.spaces = []
        self.busy = np.zeros(problem.n_samples, np.int8)

    cdef double step_on(self, Problem problem, Workspace space, Py_ssize_t i) except -1.0 nogil:
        """Do one step on sample i and return its size."""
        with gil:
            raise NotImplementedError(f"{type(self).__name__} does not implement step_on")

    cdef int tell(self, Py_ssize_t i) except -1 nogil:
        """Tell the sampler what the last step on sample i has found."""
        return 0

    def step(self, Py_ssize_t i):
        """Do one step on sample i and return its size."""
        if not 0 <= i < self.problem.n_samples:
            raise IndexError(f"i={i}: expected a sample from 0 to {self.problem.n_samples - 1}")
        try:
            self.n_left, self.n_threads, self.space.told = 0, 1, False
            size = self.step_on(self.problem, self.space, i)
            self.proceed(self.space, i)
        finally:
            self._count(self.space)
        return size

    def epoch(self, n_steps=None):
        """Do n steps on samples drawn by the sampler; Ctrl-C raises between two steps.

        Parameters
        ----------
        n_steps : int, optional
            Another number of steps.
        """
        self.stopped = False
        self.n_left = self.problem.n_samples if n_steps is None else n_steps
        self.n_threads = threads_for(self.problem, self.n_jobs)
        self.ahead = max(1, min(self.sampler.ahead, MOST_AHEAD,
                                self.problem.n_samples // (8 * self.n_threads)))
        if self.n_threads > 1 and not self.solver.threads:
            raise ValueError(f"n_jobs={self.n_jobs}: expected 1 for {type(self.solver).__name__}")
        try:
            if self.n_threads == 1:
                self._run(self.space, self.problem)
            else:
                self._run_threads()
        finally:
            for space in (self.space, *self.spaces):
                self._count(space)
            if self.n_threads > 1:
                self.after_threads()

    def _run(self, Workspace space, Problem problem):
        """Do the steps that are left, alone or beside other threads."""
        cdef Py_ssize_t k = 0, i
        space.present, space.n_drawn, space.n_returned = NONE, 0, 0
        with nogil:
            i = self.exchange(space, NONE)
            while i != NONE and not self.stopped:
                space.told = False
                self.step_on(problem, space, i)
                self.proceed(space, i)
                i = space.upcoming
                if self.n_threads == 1 and k % SIGNAL_INTERVAL == 0:
                    with gil:
                        PyErr_CheckSignals()
                k += 1

    def _run_threads(self):
        """Divide the steps of an epoch among threads; all end when one fails or Ctrl-C comes."""
        while len(self.spaces) < self.n_threads:
            self.spaces.append(self.problem.workspace())
        if self.replicas is None or len(self.replicas.problems) != self.n_threads:
            self.replicas = Replicas(self.problem, self.n_threads)
        self.replicas.begin(self.w)
        self.busy[:] = 0
        try:
            with started(self._run, list(zip(self.spaces, self.replicas.problems))) as futures:
                try:
                    for future in as_completed(futures):
                        future.result()
                finally:
                    self.stopped = True
        finally:
            self.replicas.end(self.w)

    def after_threads(self):
        """Repair what threads may have spoilt by writing at the same time."""
        raise NotImplementedError(f"{type(self).__name__} does not implement after_threads")

    def _count(self, Workspace space):
        """Take the counters of a workspace over."""
        self.n_updates += space.n_updates
        self.n_oracle_calls += space.n_oracle_calls
        space.n_updates = space.n_oracle_calls = 0

    cdef int foresee(self, Problem problem, Workspace space, Py_ssize_t i) except -1 nogil:
        """Draw the next sample before the step on sample i ends.

        A step may call this as soon as what the sampler wants to know is known: then the memory
        that the next one will read comes while this one ends.
        """
        if self.sampler.compiled:
            self.proceed(space, i)
            if space.upcoming != NONE:
                self.prefetch(problem, space.upcoming)
        return 0

    cdef int proceed(self, Workspace space, Py_ssize_t i) except -1 nogil:
        """Tell the sampler of the step on sample i and draw the next, unless that was done."""
        if not space.told:
            space.upcoming = self.exchange(space, i)
            space.told = True
        return 0

    cdef void prefetch(self, Problem problem, Py_ssize_t i) noexcept nogil:
        """Ask for the memory that a step on sample i will read first."""

    cdef Py_ssize_t exchange(self, Workspace space, Py_ssize_t told) except -2 nogil:
        """Tell the sampler of a sample, if any, and return the next, if there are steps left.

        Threads tell of several at once and draw as many: what a sampler knows travels from one
        processor to the other, which takes longer than a draw.
        """
        if self.n_threads == 1:
            if told != NONE:
                self.tell(told)
            return self.draw()
        if space.n_returned == space.n_drawn:
            acquire(&self.sampler_lock)
            try:
                self.turn_in(space, told)
                self.draw_several(space)
            finally:
                release(&self.sampler_lock)
        if space.n_drawn == 0:
            return NONE
        space.n_returned += 1
        return space.drawn[space.n_returned - 1]

    cdef int turn_in(self, Workspace space, Py_ssize_t present) except -1 nogil:
        """Tell the sampler of all samples of the last turn; only the present one is still busy."""
        cdef Py_ssize_t k
        if space.present != NONE:
            self.busy[space.present] = False
        for k in range(space.n_drawn):
            self.tell(space.drawn[k])
            self.busy[space.drawn[k]] = space.drawn[k] == present
        space.present = present
        return 0

    cdef int draw_several(self, Workspace space) except -1 nogil:
        cdef Py_ssize_t i
        space.n_drawn = space.n_returned = 0
        while space.n_drawn < self.ahead:
            i = self.draw()
            if i == NONE:
                break
            while self.busy[i]:
                i = (i + 1) % self.problem.n_samples
            self.busy[i] = True
            space.drawn[space.n_drawn] = i
            space.n_drawn += 1
        return 0

    cdef Py_ssize_t draw(self) except -2 nogil:
        """Return a sample, if there are steps left."""
        if self.n_left <= 0:
            return NONE
        self.n_left -= 1
        return self.sampler.next(self.stream)

    cdef int add_to_weights(self, Problem problem, Py_ssize_t i, double scale, const double *m,
                            double *w, bint wait) except -1 nogil:
        """Add scale E_m[F] to the weights; threads also exchange what they have added.

        Returns whether that was done. If the caller has better to do than to `wait`, nothing is
        done while another thread is at it.
        """
        cdef bint at_once = self.loses_writes()     # then the lock is for the exchange only
        if self.n_threads == 1 or at_once:
            problem.add(i, scale, m, w)
        if self.n_threads == 1:
            return True
        if wait or at_once:
            acquire(&self.weights_lock)
        elif not try_to_acquire(&self.weights_lock):
            return False
        try:
            if not at_once:
                problem.add(i, scale, m, w)
            problem.attributes.exchange_weights()
        finally:
            release(&self.weights_lock)
        return True

    cdef bint loses_writes(self) noexcept nogil:
        """Return whether threads write the weights at once, so that some writes get lost."""
        return self.n_threads > FEW

    @property
    def refresh_every(self):
        """Number of epochs between two passes that tell the sampler all gaps, or None."""
        return self.sampler.refresh_every

    def estimate(self):
        """Return estimates of (dual, gap) from what the steps have seen, without any pass."""
        raise NotImplementedError(f"{type(self).__name__} does not implement estimate")

    def certify(self):
        """Return the `Certificate` of the current point, by a full pass."""
        raise NotImplementedError(f"{type(self).__name__} does not implement certify")

    def save(self, path, history=None):
        """Write a file from which `restore` brings another state to where this one stands."""
        checkpoint.save(path, self, history or {})

    def restore(self, path):
        """Take everything from a file that a state of the same solver, problem and lam has saved.

        What follows is what would have followed there, bit for bit. Returns the history that the
        file has.
        """
        return checkpoint.load(path, self)

    def arrays(self):
        """Return all arrays that the state consists of, {name: array}; not copies."""
        raise NotImplementedError(f"{type(self).__name__} does not implement arrays")

    def counters(self):
        """Return all numbers that the state consists of, {name: number}."""
        return {"n_updates": self.n_updates, "n_oracle_calls": self.n_oracle_calls}

    def set_counters(self, n_updates, n_oracle_calls):
        """Take the numbers that `counters` returned."""
        self.n_updates, self.n_oracle_calls = n_updates, n_oracle_calls
