"""Passes over all samples of a problem: conjugate weights, objectives, certificates."""

import numpy as np

from sdcastruct.entropy cimport entropy_of
from sdcastruct.problem.problem cimport Problem, Workspace
from sdcastruct.simd.kernels cimport kernels


cdef int check_length(name, Py_ssize_t found, Py_ssize_t expected) except -1:
    if found != expected:
        raise ValueError(f"{name} has length {found}, expected {expected}")
    return 0


def slot_marginals(Problem problem, const double[::1] alpha, double[::1] m):
    """Write the slot marginals of the dual point alpha to m, samples end to end."""
    cdef Py_ssize_t i
    check_length("alpha", alpha.shape[0], problem.n_marginals)
    check_length("m", m.shape[0], problem.n_slot_marginals)
    with nogil:
        for i in range(problem.n_samples):
            problem.gather_into(i, &alpha[problem.regions.region_ptr[i]],
                                &m[problem.attributes.slot_ptr[i]])


def conjugate_weights(Problem problem, const double[::1] m, double lam, double[::1] w):
    """Write w-hat(alpha) = 1/(lam n) sum_i (F(x_i, y_i) - E_alpha_i[F(x_i, y)]) to w.

    `m` are the slot marginals of alpha.
    """
    cdef Workspace space = Workspace(problem)
    cdef double scale = 1.0 / (lam * problem.n_samples)
    cdef Py_ssize_t i, j
    cdef const double *block
    problem.check_labelled()
    check_length("m", m.shape[0], problem.n_slot_marginals)
    check_length("w", w.shape[0], problem.dim)
    w[:] = 0.0
    with nogil:
        for i in range(problem.n_samples):
            block = &m[problem.attributes.slot_ptr[i]]
            for j in range(problem.n_slots(i)):
                space.m[j] = -block[j]
            problem.add_truth(i, 1.0, space.m)
            problem.add(i, scale, space.m, &w[0])


def entropies(Problem problem, const double[::1] alpha):
    """Return the entropies H(alpha_i), shape (n_samples,)."""
    check_length("alpha", alpha.shape[0], problem.n_marginals)
    out = np.empty(problem.n_samples)
    cdef double[::1] view = out
    cdef Py_ssize_t i
    with nogil:
        for i in range(problem.n_samples):
            view[i] = entropy_of(problem.runs(i), &alpha[problem.regions.region_ptr[i]])
    return out


def losses(Problem problem, const double[::1] w):
    """Return -log p(y_i | x_i; w) of every sample, shape (n_samples,): one pass of the oracle."""
    problem.check_labelled()
    check_length("w", w.shape[0], problem.dim)
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


def losses_and_gaps(Problem problem, const double[::1] w, const double[::1] m,
                    const double[::1] entropy):
    """Return -log p(y_i | x_i; w) and KL(alpha_i || p(. | x_i; w)) of every sample.

    The dual point is given by its slot marginals m and its entropies. At w = w-hat(alpha) the
    divergences are the block duality gaps, and their mean is P - D.
    """
    cdef Py_ssize_t n = problem.n_samples, i
    problem.check_labelled()
    check_length("w", w.shape[0], problem.dim)
    check_length("m", m.shape[0], problem.n_slot_marginals)
    check_length("entropy", entropy.shape[0], n)
    loss, gap = np.empty(n), np.empty(n)
    cdef double[::1] loss_view = loss, gap_view = gap
    cdef Workspace space = Workspace(problem)
    cdef double log_z = 0.0, score
    with nogil:
        for i in range(n):
            problem.score_into(i, &w[0], space.theta)
            problem.infer_into(i, space.theta, space.beta, &log_z, space.scratch)
            score = kernels.dot(space.theta, &m[problem.attributes.slot_ptr[i]], problem.n_slots(i))
            loss_view[i] = log_z - problem.truth_score(i, space.theta)
            gap_view[i] = max(0.0, log_z - entropy[i] - score)
    return loss, gap
