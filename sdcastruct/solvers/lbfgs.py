"""L-BFGS by scipy.optimize on the compiled gradient: the reference for the optimum."""

import warnings

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from sdcastruct.problem import batch
from sdcastruct.solvers.base import Solver, gradient_certificate, start_of
from sdcastruct.solvers.options import check_integer, check_number


class LBFGS(Solver):
    """Limited-memory BFGS on the full objective; an epoch is one of its iterations.

    Parameters
    ----------
    memory : int, default 10
        Number of past gradients that model the curvature.
    """

    threads = True
    resumes = False  # its memory of past gradients is SciPy's

    def __init__(self, memory=10):
        check_integer("memory", memory, 1)
        self.memory = memory

    def init(self, problem, lam, warm_start=None, n_jobs=1):
        """Return the state from which training starts.

        Parameters
        ----------
        warm_start : Result, state or array of shape (dim,), optional
            Start from these weights; 0 without.
        n_jobs : int
            Number of threads.
        """
        check_number("lam", lam, 0.0, np.inf)
        _, w = start_of(problem, warm_start)
        w = np.zeros(problem.dim) if w is None else w.copy()
        return LBFGSState(self, problem, lam, w, n_jobs)

    def advance(self, state, after_epoch):
        """Do iterations until `after_epoch()` is true or rounding stops them."""

        stopped = []

        def callback(intermediate_result):
            state.w = intermediate_result.x.copy()
            state.n_updates += 1
            if after_epoch():
                stopped.append(True)
                raise StopIteration

        options = {"maxcor": self.memory, "maxiter": 2**31 - 1, "maxfun": 2**31 - 1, "maxls": 50}
        found = minimize(
            state.objective,
            state.w,
            jac=True,
            method="L-BFGS-B",
            callback=callback,
            options={**options, "ftol": 0.0, "gtol": 0.0},
        )
        if not found.success and not stopped:
            # At the level of rounding errors this is the normal end.
            gap, primal = state.certify().gap, state.certify().primal
            if gap > 1e-9 * primal:
                warnings.warn(f"L-BFGS gave up: {found.message}", ConvergenceWarning, stacklevel=3)


class LBFGSState:
    """Where a run of L-BFGS stands.

    Attributes
    ----------
    w : array of shape (dim,)
    n_updates, n_oracle_calls : int
        Iterations, and calls of the marginal oracle.
    """

    refresh_every = None

    def __init__(self, solver, problem, lam, w, n_jobs):
        self.solver, self.problem, self.lam, self.w = solver, problem, lam, w
        self.n_jobs = n_jobs
        self.n_updates = self.n_oracle_calls = 0
        self._known = {}

    def objective(self, w):
        """Return P(w) and its gradient."""
        loss, gradient = batch.loss_and_gradient(self.problem, w, self.n_jobs)
        self.n_oracle_calls += self.problem.n_samples
        # The next iterate is mostly the last point tried.
        self._known = {w.tobytes(): (loss, gradient)}
        return loss + 0.5 * self.lam * batch.squared_norm(w), gradient + self.lam * w

    def estimate(self):
        """Return the exact (dual, gap) at w."""
        certificate = self.certify()
        return certificate.dual, certificate.gap

    def certify(self):
        """Return the exact primal at w and the dual of p(. | x_i; w)."""
        key = self.w.tobytes()
        if key not in self._known:
            self._known = {key: batch.loss_and_gradient(self.problem, self.w, self.n_jobs)}
        return gradient_certificate(self.w, self.lam, *self._known[key])
