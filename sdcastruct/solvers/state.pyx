"""What the states of all stochastic solvers share: drawing samples, stepping, saving.

A solver with a step of its own subclasses `State`, writes `step_on`, which runs without the GIL,
and says what it knows (`arrays`), what it believes (`estimate`) and what it can prove (`certify`).
"""

from cpython.exc cimport PyErr_CheckSignals

from sdcastruct.solvers import checkpoint
from sdcastruct.solvers.options import generator

# Steps between two looks at pending signals: rare enough to be free, often enough for Ctrl-C.
cdef Py_ssize_t SIGNAL_INTERVAL = 16


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
    """

    def __init__(self, solver, Problem problem, double lam, Sampler sampler):
        self.solver = solver
        self.problem = problem
        self.lam = lam
        self.sampler = sampler
        self.sampler.reset(problem, lam)
        if sampler.n_samples != problem.n_samples:
            raise RuntimeError(
                f"{type(sampler).__name__}.reset must call super().reset(problem, lam)")
        self.stream = RandomStream(generator(solver.random_state))
        self.space = Workspace(problem)

    cdef double step_on(self, Problem problem, Workspace space, Py_ssize_t i) except -1.0 nogil:
        """Do one step on sample i and return its size."""
        with gil:
            raise NotImplementedError(f"{type(self).__name__} does not implement step_on")

    def step(self, Py_ssize_t i):
        """Do one step on sample i and return its size."""
        if not 0 <= i < self.problem.n_samples:
            raise IndexError(f"i={i}: expected a sample from 0 to {self.problem.n_samples - 1}")
        return self.step_on(self.problem, self.space, i)

    def epoch(self):
        """Do n steps on samples drawn by the sampler; Ctrl-C raises between two steps."""
        cdef Problem problem = self.problem
        cdef Workspace space = self.space
        cdef Sampler sampler = self.sampler
        cdef RandomStream stream = self.stream
        cdef Py_ssize_t k, i
        with nogil:
            for k in range(1, problem.n_samples + 1):
                i = sampler.next(stream)
                self.step_on(problem, space, i)
                if k % SIGNAL_INTERVAL == 0:
                    with gil:
                        PyErr_CheckSignals()

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
