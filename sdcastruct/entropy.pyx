"""Entropy, divergence and line search on flat marginals with counting numbers.

A distribution that factorises over a junction tree is known from its region tables ``mu`` and the
counting number ``c`` of each region (paper, Equations "joint from marginals", "entropy marginal"
and "divergence marginal")::

    H(mu)     = - sum c mu log mu
    KL(a, b)  =   sum c a log(a / b)

The line search of SDCA looks along the segment m = (1 - gamma) alpha + gamma beta. Because beta is
the distribution of the current weights, the dual objective of the block is, up to a constant,

    f(gamma)   = - KL(m || beta) - curvature gamma^2 / 2,        curvature = lam n ||v||^2
    f'(gamma)  =   sum c delta log(beta / m) - curvature gamma,  delta = beta - alpha
    f''(gamma) = - sum c delta^2 / m - curvature

so that neither <w, v> nor the entropy of beta is needed. Nothing here knows about graphs.
"""

import numpy as np

from libc.math cimport fabs

from sdcastruct.simd.kernels cimport kernels


cdef double entropy_of(Runs runs, const double *mu) noexcept nogil:
    """Return H(mu)."""
    cdef double total = 0.0
    cdef Py_ssize_t r
    for r in range(runs.n):
        if runs.counting[r] != 0.0:
            total -= runs.counting[r] * kernels.negentropy(mu, runs.length[r])
        mu += runs.length[r]
    return total


cdef Divergence divergence(Runs runs, const double *alpha, const double *beta,
                           double gamma) noexcept nogil:
    """Return KL(m || beta) for m = (1 - gamma) alpha + gamma beta, and its derivatives in gamma."""
    cdef double[3] sums = [0.0, 0.0, 0.0]
    cdef Py_ssize_t r
    for r in range(runs.n):
        if runs.counting[r] != 0.0:
            kernels.kl_along(alpha, beta, gamma, runs.length[r], runs.counting[r], sums)
        alpha += runs.length[r]
        beta += runs.length[r]
    return Divergence(sums[0], sums[1], sums[2])


cdef double quadratic_start(double gap, double curvature) noexcept nogil:
    """Return the best gamma if KL(m || beta) were gap (1 - gamma)^2, as it is near the optimum."""
    if gap <= 0.0:
        return 0.5
    return 2.0 * gap / (2.0 * gap + curvature)


cdef double search(LineSearch options, Runs runs, const double *alpha, const double *beta,
                   double gap, double curvature, double start, double *kl,
                   int64_t *n_evaluations) noexcept nogil:
    """Maximise f over [0, 1] by Newton steps kept inside a shrinking bracket.

    Ends at a gamma where the next Newton step would be at most ``subprecision * gamma`` long and
    the dual has not dropped, or after ``max_newton`` steps. The step is measured relative to gamma
    because the best gamma of a sample with large features may be far smaller than any fixed
    precision. ``kl`` receives KL(m || beta) at the result.
    """
    cdef double low = 0.0, high = 1.0, gamma = start, first, second, step, gain
    cdef Divergence d
    cdef int newton = 0
    while True:
        d = divergence(runs, alpha, beta, gamma)
        n_evaluations[0] += 1
        first = -d.first - curvature * gamma
        second = -d.second - curvature
        if newton == options.max_newton or second >= 0.0:
            break
        step = -first / second
        gain = gap - d.value - 0.5 * curvature * gamma * gamma
        if fabs(step) <= options.subprecision * gamma and (first >= 0.0 or gain >= 0.0):
            break
        if first > 0.0:
            low = gamma
        else:
            high = gamma
        gamma += step
        if not low < gamma <= high:
            gamma = 0.5 * (low + high)
        newton += 1
    kl[0] = d.value
    return gamma


cdef class _Counted:
    """Counting numbers given per entry, run-length coded, with the arrays that go with them."""

    cdef int64_t[::1] length
    cdef double[::1] counting
    cdef Runs runs

    def __init__(self, counting, *marginals):
        c = np.ascontiguousarray(counting, dtype=np.float64)
        for mu in marginals:
            if mu.shape[0] != c.shape[0]:
                raise ValueError(
                    f"counting has {c.shape[0]} entries but the marginals have {mu.shape[0]}")
        starts = np.flatnonzero(np.diff(c, prepend=np.nan))
        self.length = np.diff(np.r_[starts, c.size]).astype(np.int64)
        self.counting = c[starts]
        self.runs.n = starts.size
        if starts.size:
            self.runs.length = &self.length[0]
            self.runs.counting = &self.counting[0]


def entropy(counting, const double[::1] mu):
    """Return H(mu) = - sum c mu log mu.

    Parameters
    ----------
    counting, mu : array of shape (m,)
        Counting number and value of each entry of the region tables.
    """
    cdef _Counted counted = _Counted(counting, mu)
    return entropy_of(counted.runs, &mu[0]) if mu.shape[0] else 0.0


def kl_along(counting, const double[::1] alpha, const double[::1] beta, double gamma):
    """Return KL(m || beta), m = (1 - gamma) alpha + gamma beta, and its two derivatives in gamma."""
    cdef _Counted counted = _Counted(counting, alpha, beta)
    cdef Divergence d = divergence(counted.runs, &alpha[0], &beta[0], gamma)
    return d.value, d.first, d.second


def kl(counting, const double[::1] alpha, const double[::1] beta):
    """Return KL(alpha || beta) = sum c alpha log(alpha / beta)."""
    return kl_along(counting, alpha, beta, 0.0)[0]


def line_search(counting, const double[::1] alpha, const double[::1] beta, double curvature,
                double subprecision=1e-3, int max_newton=50, start=None):
    """Maximise -KL(m || beta) - curvature gamma^2 / 2 over gamma in [0, 1].

    Returns
    -------
    gamma, kl : float
        The step and KL(m || beta) there.
    """
    cdef _Counted counted = _Counted(counting, alpha, beta)
    cdef double gap = kl(counting, alpha, beta)
    cdef double first_gamma = quadratic_start(gap, curvature) if start is None else start
    cdef double value = 0.0
    cdef int64_t n_evaluations = 0
    cdef double gamma = search(LineSearch(subprecision, max_newton), counted.runs, &alpha[0],
                               &beta[0], gap, curvature, first_gamma, &value, &n_evaluations)
    return gamma, value
