"""Stochastic dual coordinate ascent for CRFs (paper, Algorithm 2).

State: the dual point alpha (the region marginals of every sample) and w = w-hat(alpha). A step on
sample i moves its block towards beta_i = p(. | x_i; w) and keeps w conjugate::

    alpha_i <- (1 - gamma) alpha_i + gamma beta_i,     w <- w + gamma v_i
    v_i = 1/(lam n) A_i (beta_i - alpha_i) = -1/(lam n) (E_beta_i[F] - E_alpha_i[F])

with gamma from an exact line search on the dual, which needs no further call of the oracle. The
block duality gap g_i = KL(alpha_i || beta_i) = log Z_i - H(alpha_i) - <theta_i, m_i> costs no
logarithm, because the entropy of every block is kept; it feeds the sampler and the estimate of the
total gap. Only a full pass certifies: it rebuilds w from alpha and recomputes every gap.
"""

import copy
from numbers import Integral, Real

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t

from sdcastruct.entropy cimport LineSearch, Objective, quadratic_start, search
from sdcastruct.problem.problem cimport Problem, Workspace
from sdcastruct.samplers.sampler cimport RandomStream, Sampler
from sdcastruct.simd.kernels cimport kernels

from sdcastruct.problem import batch
from sdcastruct.samplers import Gap
from sdcastruct.samplers.weighted import UNKNOWN_GAP
from sdcastruct.solvers.base import Certificate, Result, Solver

# Steps between two looks at pending signals: rare enough to be free, often enough for Ctrl-C.
cdef Py_ssize_t SIGNAL_INTERVAL = 16


class SDCA(Solver):
    """Stochastic dual coordinate ascent.

    Parameters
    ----------
    sampler : Sampler, default Gap(non_uniformity=0.8)
        Which sample next.
    subprecision : float, default 0.2
        The line search ends when its next Newton step would be at most this part of gamma.
    max_newton : int, default 50
        Most Newton steps of a line search.
    start : {"quadratic", "previous"} or float in (0, 1], default "quadratic"
        Where the line search begins: the maximum of the quadratic model that is exact near the
        optimum, the sample's previous step size, or a fixed number (the paper uses 0.5).
    step_size : float in (0, 1] or "safe", optional
        A fixed step size instead of a line search; "safe" is 1 / (1 + max R_i / (lam n)), which
        the theory guarantees.
    epsilon : float in (0, 1], default 1e-5
        Weight of the uniform distribution in the initial point; the rest is on the true labels.
    random_state : int, numpy.random.Generator or None
        Seed of the sampling.
    """

    def __init__(self, sampler=None, subprecision=0.2, max_newton=50, start="quadratic",
                 step_size=None, epsilon=1e-5, random_state=None):
        if sampler is not None and not isinstance(sampler, Sampler):
            raise TypeError(f"sampler={sampler!r}: expected an instance of Sampler")
        _check_number("subprecision", subprecision, 0.0, np.inf)
        _check_number("epsilon", epsilon, 0.0, 1.0)
        if not isinstance(max_newton, Integral) or max_newton < 1:
            raise ValueError(f"max_newton={max_newton!r}: expected an integer >= 1")
        if start not in ("quadratic", "previous"):
            _check_number("start", start, 0.0, 1.0, "'quadratic', 'previous' or ")
        if step_size is not None and step_size != "safe":
            _check_number("step_size", step_size, 0.0, 1.0, "None, 'safe' or ")
        self.sampler = Gap() if sampler is None else sampler
        self.subprecision = subprecision
        self.max_newton = max_newton
        self.start = start
        self.step_size = step_size
        self.epsilon = epsilon
        _generator(random_state)
        self.random_state = random_state

    def init(self, problem, lam, warm_start=None):
        """Return the state from which training starts.

        Parameters
        ----------
        warm_start : Result or SDCAState, optional
            Start from a copy of this dual point, and from its gaps if they are still true.
        """
        if isinstance(warm_start, Result):
            warm_start = warm_start.state
        if warm_start is not None and not isinstance(warm_start, SDCAState):
            raise TypeError(f"warm_start={warm_start!r}: expected a result or a state of SDCA")
        _check_number("lam", lam, 0.0, np.inf)
        state = SDCAState(problem, lam, copy.deepcopy(self.sampler),
                          _generator(self.random_state))
        if warm_start is None:
            state.start_from(problem.initial_marginals(self.epsilon))
        else:
            state.continue_from(warm_start)
        self._set_line_search(state, problem, lam)
        return state

    def _set_line_search(self, SDCAState state, problem, lam):
        state.line_search = LineSearch(self.subprecision, self.max_newton)
        if self.step_size is not None:
            state.line_search.max_newton = 0
            gamma = self.step_size
            if gamma == "safe":
                gamma = 1.0 / (1.0 + problem.radii().max() / (lam * problem.n_samples))
            state.first_gamma = ConstantGamma(gamma)
        elif self.start == "quadratic":
            state.first_gamma = FirstGamma()
        elif self.start == "previous":
            state.first_gamma = PreviousGamma(problem.n_samples)
        else:
            state.first_gamma = ConstantGamma(self.start)


cdef class FirstGamma:
    """Where a line search begins: by default at the maximum of its quadratic model."""

    cdef double get(self, Py_ssize_t i, double gap, double curvature) noexcept nogil:
        return quadratic_start(gap, curvature)

    cdef void learn(self, Py_ssize_t i, double gamma) noexcept nogil:
        pass


cdef class ConstantGamma(FirstGamma):
    cdef double gamma

    def __init__(self, double gamma):
        self.gamma = gamma

    cdef double get(self, Py_ssize_t i, double gap, double curvature) noexcept nogil:
        return self.gamma


cdef class PreviousGamma(FirstGamma):
    cdef double[::1] gammas

    def __init__(self, Py_ssize_t n_samples):
        self.gammas = np.full(n_samples, 0.5)

    cdef double get(self, Py_ssize_t i, double gap, double curvature) noexcept nogil:
        return self.gammas[i]

    cdef void learn(self, Py_ssize_t i, double gamma) noexcept nogil:
        self.gammas[i] = gamma


cdef class SDCAState:
    """Everything that a run of SDCA knows; made by `SDCA.init`.

    Attributes
    ----------
    w : array of shape (dim,)
        Weights, conjugate to alpha.
    alpha : array of shape (n_marginals,)
        Dual point: the region marginals of all samples.
    m : array
        The slot marginals of alpha, samples end to end.
    gaps : array of shape (n_samples,)
        Last known block duality gaps.
    entropies : array of shape (n_samples,)
        Entropies of the blocks of alpha.
    n_updates, n_oracle_calls, n_evaluations : int
        Steps, calls of the marginal oracle and evaluations of the line search so far.
    """

    cdef readonly Problem problem
    cdef readonly double lam
    cdef readonly Sampler sampler
    cdef readonly RandomStream stream
    cdef readonly object w, alpha, m, gaps, entropies
    cdef readonly int64_t n_updates, n_oracle_calls, n_evaluations
    cdef LineSearch line_search
    cdef FirstGamma first_gamma
    cdef Workspace space
    cdef double[::1] w_view, alpha_view, m_view, gaps_view, entropies_view

    def __init__(self, Problem problem, double lam, Sampler sampler, generator):
        self.problem = problem
        self.lam = lam
        self.sampler = sampler
        self.sampler.reset(problem, lam)
        if sampler.n_samples != problem.n_samples:
            raise RuntimeError(
                f"{type(sampler).__name__}.reset must call super().reset(problem, lam)")
        self.stream = RandomStream(generator)
        self.space = Workspace(problem)

    def start_from(self, alpha, gaps=None):
        """Take a dual point; gaps that are not given count as unknown."""
        self.alpha, self.w = alpha, np.empty(self.problem.dim)
        self.m = np.empty(self.problem.n_slot_marginals)
        self.gaps = np.full(self.problem.n_samples, UNKNOWN_GAP) if gaps is None else gaps
        self.entropies = np.empty(self.problem.n_samples)
        self.w_view, self.alpha_view, self.m_view = self.w, self.alpha, self.m
        self.gaps_view, self.entropies_view = self.gaps, self.entropies
        self._rebuild()
        if gaps is not None:
            self._tell_sampler()

    def _rebuild(self):
        """Recompute from alpha all that follows from it."""
        batch.slot_marginals(self.problem, self.alpha, self.m)
        batch.conjugate_weights(self.problem, self.m, self.lam, self.w)
        if not np.isfinite(self.w @ self.w):
            raise ValueError(f"the weights overflow: lam={self.lam!r} is too small or the features "
                             "are too large")
        self.entropies[:] = batch.entropies(self.problem, self.alpha)

    def continue_from(self, SDCAState other):
        """Take a copy of another state's dual point."""
        mine, theirs = self.problem, other.problem
        if not mine.same_shape(theirs):
            raise ValueError(
                f"warm_start has a dual point for {theirs.n_samples} samples with "
                f"{theirs.n_marginals} marginals, expected {mine.n_samples} samples with "
                f"{mine.n_marginals} marginals and the same graphs")
        self.start_from(other.alpha.copy(), other.gaps.copy())
        if other.lam != self.lam or theirs is not mine:
            self.refresh()

    cdef double step_on(self, Problem problem, Workspace space,
                        Py_ssize_t i) except -1.0 nogil:
        """Do one step on sample i and return gamma (paper, Algorithm 2)."""
        cdef double *w = &self.w_view[0]
        cdef int64_t first = problem.regions.region_ptr[i]
        cdef double *alpha = &self.alpha_view[first]
        cdef double *m = &self.m_view[problem.attributes.slot_ptr[i]]
        cdef Py_ssize_t n_slots = problem.n_slots(i)
        cdef double lam_n = self.lam * problem.n_samples
        cdef double log_z = 0.0, gap, gamma
        cdef Objective f

        problem.score_into(i, w, space.theta)
        problem.infer_into(i, space.theta, space.beta, &log_z, space.scratch)

        f.entropy = self.entropies_view[i]
        gap = max(log_z - f.entropy - kernels.dot(space.theta, m, n_slots), 0.0)
        self.gaps_view[i] = gap
        self.sampler.observe(i, gap)

        problem.gather_into(i, space.beta, space.m)
        kernels.axpy(-1.0, m, space.m, n_slots)
        f.slope = kernels.dot(space.theta, space.m, n_slots)
        f.curvature = problem.norm2(i, space.m) / lam_n
        gamma = search(self.line_search, f, problem.runs(i), alpha, space.beta,
                       self.first_gamma.get(i, gap, f.curvature), &self.entropies_view[i],
                       &self.n_evaluations)
        self.first_gamma.learn(i, gamma)

        kernels.mix(alpha, space.beta, gamma, problem.regions.region_ptr[i + 1] - first)
        kernels.axpy(gamma, space.m, m, n_slots)
        problem.add(i, -gamma / lam_n, space.m, w)
        self.n_updates += 1
        self.n_oracle_calls += 1
        return gamma

    def step(self, Py_ssize_t i):
        """Do one step on sample i and return its size gamma."""
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

    def estimate(self):
        """Return estimates of (dual, gap) from what the steps have seen, without any pass."""
        dual = self.entropies.mean() - 0.5 * self.lam * (self.w @ self.w)
        return dual, self.gaps.mean()

    def certify(self):
        """Rebuild w from alpha and return the exact primal, dual and gap of this point."""
        self._rebuild()
        loss, self.gaps[:] = batch.losses_and_gaps(self.problem, self.w, self.m, self.entropies)
        penalty = 0.5 * self.lam * (self.w @ self.w)
        primal, dual = loss.mean() + penalty, self.entropies.mean() - penalty
        # A difference below its own rounding error proves no more than that error.
        gap = max(primal - dual, 4.0 * np.finfo(np.float64).eps * primal)
        return Certificate(float(primal), float(dual), float(gap))

    def refresh(self):
        """Recompute all gaps and tell the sampler (Osokin et al. 2016)."""
        certificate = self.certify()
        self.n_oracle_calls += self.problem.n_samples
        self._tell_sampler()
        return certificate

    def _tell_sampler(self):
        for i, gap in enumerate(self.gaps):
            self.sampler.update(i, gap)


def _generator(random_state):
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(f"random_state={random_state!r}: expected an integer >= 0, a "
                          "numpy.random.Generator or None") from error


def _check_number(name, value, low, high, others=""):
    if not isinstance(value, Real) or not low < value <= high or not np.isfinite(value):
        above = "" if high == np.inf else f" and at most {high:g}"
        raise ValueError(f"{name}={value!r}: expected {others}a number above {low:g}{above}")
