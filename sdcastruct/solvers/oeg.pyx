"""Online exponentiated gradient for CRFs (Collins et al. 2008).

State: the dual point as *slot scores* theta_i, alpha_i = p(. | theta_i), and w = w-hat(alpha). A
step on sample i moves its scores towards those of w, s_i = score_i(w), and keeps w conjugate::

    theta_i <- (1 - eta) theta_i + eta s_i
    w       <- w + v,     v = 1/(lam n) (E_old[F] - E_new[F])

and is taken if n times the dual has not dropped,

    H_new - H_old - <s_i, m_old - m_new> - lam n/2 ||v||^2 >= 0,

else eta is halved; every trial is a call of the oracle. Sample i remembers its eta_i, which grows
by 5 % after a success. The slots hold T K + K^2 numbers for a chain where the marginals of SDCA
hold T K^2, and the entropy H = log Z - <theta, m> needs no logarithm.

The block gap g_i = log Z(s_i) - log Z(theta_i) - <s_i - theta_i, m_i> would need the oracle at s_i.
Convexity of log Z bounds it by what the step has computed at theta' = theta + eta (s - theta)::

    g_i >= log Z(theta') - log Z(theta) - eta <s - theta, m> + (1 - eta) <s - theta, m' - m>

with equality at eta = 1, so that gap sampling costs nothing.
"""

import copy

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int64_t

from sdcastruct.problem.problem cimport Problem
from sdcastruct.problem.workspace cimport Workspace
from sdcastruct.simd.kernels cimport kernels
from sdcastruct.solvers.dual cimport DualState

from sdcastruct.problem import batch
from sdcastruct.samplers import Uniform
from sdcastruct.solvers.base import Solver, start_of
from sdcastruct.solvers.options import check_number, check_sampler, generator

cdef double FIRST_ETA = 0.5
cdef double GROWTH = 1.05
# Halving ends here: what is left to gain is below rounding.
cdef double SMALLEST_ETA = 1e-10
# Rounding hides losses of the dual below this part of its terms.
cdef double NOISE = 1e-14


class OEG(Solver):
    """Online exponentiated gradient.

    Parameters
    ----------
    sampler : Sampler, default Uniform()
        Which sample next; `Gap` sampling follows the lower bound of the gap.
    exact_gaps : bool, default False
        Spend one more call of the oracle per step on the exact gap.
    epsilon : float in (0, 1), default 1e-5
        The initial point gives the scores of the true labels a bonus of -log(epsilon).
    random_state : int, numpy.random.Generator or None
        Seed of the sampling.
    """

    def __init__(self, sampler=None, exact_gaps=False, epsilon=1e-5, random_state=None):
        check_sampler(sampler)
        check_number("epsilon", epsilon, 0.0, 1.0)
        generator(random_state)
        self.sampler = Uniform() if sampler is None else sampler
        if not isinstance(exact_gaps, bool):
            raise TypeError(f"exact_gaps={exact_gaps!r}: expected True or False")
        self.exact_gaps = exact_gaps
        self.epsilon = epsilon
        self.random_state = random_state

    def init(self, problem, lam, warm_start=None):
        """Return the state from which training starts.

        Parameters
        ----------
        warm_start : Result, state or array of shape (dim,), optional
            Start from the dual point of an earlier run of OEG, perhaps with another lam or with
            fewer samples; or from the marginals at the weights of any other solver.
        """
        check_number("lam", lam, 0.0, np.inf)
        other, w = start_of(problem, warm_start)
        state = OEGState(self, problem, lam, copy.deepcopy(self.sampler))
        state.exact_gaps = self.exact_gaps
        beginning = problem.true_slots() * -np.log(self.epsilon)
        if isinstance(other, OEGState) and (problem.knows_graphs()
                                            or problem.begins_with(other.problem)):
            state.check_follows(other)
            state.begin_as(other, state.start_from, beginning, other.theta)
            state.etas[:other.problem.n_samples] = other.etas
        elif w is not None:
            state.start_from(batch.scores(problem, w))
            state.refresh()
        else:
            state.start_from(beginning)
        return state


cdef class OEGState(DualState):
    """Everything that a run of OEG knows; made by `OEG.init`.

    Attributes
    ----------
    theta : array
        Dual point: the slot scores of all samples end to end.
    log_z : array of shape (n_samples,)
        Log-partition functions at theta.
    etas : array of shape (n_samples,)
        Step size to try first, of each sample.
    w, m, gaps, entropies, norm2, n_updates, n_oracle_calls
        See `DualState` and `State`.
    """

    cdef readonly object theta, log_z, etas
    cdef bint exact_gaps
    cdef double[::1] theta_view, log_z_view, etas_view, old_view

    def start_from(self, theta, gaps=None):
        """Take a dual point; gaps that are not given count as unknown."""
        self.theta = theta
        self.log_z = np.empty(self.problem.n_samples)
        self.etas = np.full(self.problem.n_samples, FIRST_ETA)
        self.theta_view, self.log_z_view, self.etas_view = self.theta, self.log_z, self.etas
        self.old_view = np.empty(2 * self.problem.attributes.max_slots)
        self.begin(gaps)

    def recompute(self, then=()):
        """Write the slot marginals and entropies of p(. | theta_i)."""
        problem = self.problem
        self.log_z[:] = batch.infer_slots(problem, self.theta, self.m)
        products = np.append(self.theta * self.m, 0.0)
        first = np.asarray(problem.attributes.slot_ptr)[:problem.n_samples]
        self.entropies[:] = self.log_z - np.add.reduceat(products, first)

    cdef double step_on(self, Problem problem, Workspace space, Py_ssize_t i) except -1.0 nogil:
        """Do one step on sample i and return eta, 0 if no step raises the dual."""
        cdef Py_ssize_t n_slots = problem.n_slots(i)
        cdef int64_t first = problem.attributes.slot_ptr[i]
        cdef double *theta = &self.theta_view[first]
        cdef double *m = &self.m_view[first]
        cdef double *direction = &self.old_view[0]          # s - theta
        cdef double *trial = direction + n_slots            # theta'
        cdef double lam_n = self.lam * problem.n_samples / problem.weights[i]
        cdef double log_z = 0.0, entropy, gain, noise, gap, along, eta = self.etas_view[i]
        cdef double slope, norm2
        cdef Py_ssize_t j

        problem.prefetch_weights(i, &self.w_view[0])
        problem.score_into(i, &self.w_view[0], space.theta)
        for j in range(n_slots):
            direction[j] = space.theta[j] - theta[j]
        along = kernels.dot(direction, m, n_slots)
        while True:
            for j in range(n_slots):
                trial[j] = theta[j] + eta * direction[j]
            problem.expect_into(i, trial, space.m, &log_z, space)
            space.n_oracle_calls += 1
            entropy = log_z - kernels.dot(trial, space.m, n_slots)
            kernels.axpy(-1.0, m, space.m, n_slots)         # m_new - m_old
            slope = kernels.dot(space.theta, space.m, n_slots)
            norm2 = problem.norm2(i, space.m)
            gain = entropy - self.entropies_view[i] + slope - 0.5 * norm2 / lam_n
            noise = NOISE * (1.0 + fabs(entropy) + fabs(along))
            if gain >= -noise or eta < SMALLEST_ETA:
                break
            eta *= 0.5

        gap = (log_z - self.log_z_view[i] - eta * along
               + (1.0 - eta) * kernels.dot(direction, space.m, n_slots))
        if self.exact_gaps and eta < 1.0:
            gap = self.gap_at(problem, space, i, along)
        self.gaps_view[i] = max(gap, 0.0) * problem.weights[i]

        space.n_updates += 1
        if gain < -noise:
            return 0.0
        self.etas_view[i] = min(1.0, GROWTH * eta)
        self.entropies_view[i], self.log_z_view[i] = entropy, log_z
        for j in range(n_slots):
            theta[j] = trial[j]
        kernels.axpy(1.0, space.m, m, n_slots)
        self.add_to_weights(problem, i, -1.0 / lam_n, space.m, &self.w_view[0], True)
        self.note_change(space, -1.0 / lam_n, slope, norm2)
        return eta

    cdef double gap_at(self, Problem problem, Workspace space, Py_ssize_t i,
                       double along) except? -1.0 nogil:
        """Return the exact block gap at the scores s that the workspace holds."""
        cdef double log_z = 0.0
        problem.log_partition_into(i, space.theta, &log_z, space)
        space.n_oracle_calls += 1
        return log_z - self.log_z_view[i] - along

    def arrays(self):
        """Return all arrays that the state consists of, {name: array}; not copies."""
        return {**super().arrays(), "theta": self.theta, "log_z": self.log_z, "etas": self.etas}
