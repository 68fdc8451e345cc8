"""Passes over all samples of a problem: conjugate weights, objectives, certificates."""

import numpy as np

from sdcastruct.entropy cimport divergence, entropy_of
from sdcastruct.problem.problem cimport Problem, Workspace
from sdcastruct.simd.kernels cimport kernels


def conjugate_weights(Problem problem, const double[::1] alpha, double lam, double[::1] w):
    """Write w-hat(alpha) = 1/(lam n) sum_i (F(x_i, y_i) - E_alpha_i[F(x_i, y)]) to w."""
    cdef Workspace space = Workspace(problem)
    cdef double scale = -1.0 / (lam * problem.n_samples)
    cdef Py_ssize_t i
    w[:] = 0.0
    with nogil:
        for i in range(problem.n_samples):
            problem.gather_into(i, &alpha[problem.regions.region_ptr[i]], space.m_alpha)
            problem.subtract_truth(i, space.m_alpha)
            problem.direction_into(i, space.m_alpha, scale, space.v)
            problem.add(i, 1.0, space.v, &w[0])


def entropies(Problem problem, const double[::1] alpha):
    """Return the entropies H(alpha_i), shape (n_samples,)."""
    out = np.empty(problem.n_samples)
    cdef double[::1] view = out
    cdef Py_ssize_t i
    with nogil:
        for i in range(problem.n_samples):
            view[i] = entropy_of(problem.runs(i), &alpha[problem.regions.region_ptr[i]])
    return out


def losses(Problem problem, const double[::1] w):
    """Return -log p(y_i | x_i; w) of every sample, shape (n_samples,): one pass of the oracle."""
    out = np.empty(problem.n_samples)
    cdef double[::1] view = out
    cdef Workspace space = Workspace(problem)
    cdef double log_z = 0.0
    cdef Py_ssize_t i
    with nogil:
        for i in range(problem.n_samples):
            problem.score_into(i, &w[0], space.theta)
            problem.infer_into(i, space.theta, space.beta, &log_z, space.scratch)
            view[i] = log_z - problem.truth_score(i, space.theta)
    return out


def losses_and_gaps(Problem problem, const double[::1] w, const double[::1] alpha):
    """Return -log p(y_i | x_i; w), KL(alpha_i || p(. | x_i; w)) and H(alpha_i) of every sample.

    At w = w-hat(alpha) the divergences are the block duality gaps, and their mean is P - D.
    """
    cdef Py_ssize_t n = problem.n_samples, i
    loss, gap, entropy = np.empty(n), np.empty(n), np.empty(n)
    cdef double[::1] loss_view = loss, gap_view = gap, entropy_view = entropy
    cdef Workspace space = Workspace(problem)
    cdef double log_z = 0.0
    cdef const double *block
    with nogil:
        for i in range(n):
            block = &alpha[problem.regions.region_ptr[i]]
            problem.score_into(i, &w[0], space.theta)
            problem.infer_into(i, space.theta, space.beta, &log_z, space.scratch)
            problem.gather_into(i, block, space.m_alpha)
            loss_view[i] = log_z - problem.truth_score(i, space.theta)
            gap_view[i] = divergence(problem.runs(i), block, space.beta, 0.0).value
            entropy_view[i] = (log_z - gap_view[i]
                               - kernels.dot(space.theta, space.m_alpha, problem.n_slots(i)))
    return loss, gap, entropy
