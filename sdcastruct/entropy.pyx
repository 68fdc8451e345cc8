"""Entropy and line search on flat marginals with counting numbers.

A distribution that factorises over a junction tree is known from its region tables ``mu`` and the
counting number ``c`` of each region (paper, Equations "joint from marginals" and "entropy
marginal")::

    H(mu) = - sum c mu log mu

The line search of SDCA looks along the segment m = (1 - gamma) alpha + gamma beta, with delta =
beta - alpha. Up to a constant, n times the dual objective is there

    f(gamma)   = H(m) + slope gamma - curvature gamma^2 / 2
    f'(gamma)  = - sum c delta log m + slope - curvature gamma
    f''(gamma) = - sum c delta^2 / m - curvature

where slope = <theta, E_delta> is the change of the expected score (= -lam n <w, v>) and curvature =
lam n ||v||^2. If beta is the distribution of the current weights, slope = sum c delta log beta:
then f(1) - f(gamma) differs from KL(m || beta) only by the quadratic term, f'(0) = KL(alpha ||
beta) + KL(beta || alpha) and f'(1) = -curvature. Nothing here knows about graphs.
"""

import numpy as np

from libc.math cimport fabs, log

from sdcastruct.simd.kernels cimport kernels


cdef double entropy_of(Runs runs, const double *mu) noexcept nogil:
    """Return H(mu)."""
    return entropy_at(_written(runs, mu, mu, False), 0.0).value


cdef double mix_with_vertex(Runs runs, double *mu, double epsilon, double entropy,
                            const int64_t *ones, Py_ssize_t n_ones) noexcept nogil:
    """Replace mu by m = epsilon mu + (1 - epsilon) e and return H(m), given H(mu).

    The marginals e of a single labelling are 1 at `ones` and 0 elsewhere. So m is epsilon mu almost
    everywhere, and

        H(m) = epsilon H(mu) - log epsilon sum c epsilon mu - sum over ones of c (f(m) - f(m - 1 +
        epsilon)),     f(x) = x log x

    needs few logarithms.
    """
    cdef double total = epsilon * entropy, log_epsilon = log(epsilon) if epsilon > 0.0 else 0.0
    cdef double before
    cdef int64_t begin = 0, end = 0
    cdef Py_ssize_t r, o
    for r in range(runs.n):
        total -= log_epsilon * runs.counting[r] * kernels.scale(epsilon, mu + end, runs.length[r])
        end += runs.length[r]
    for o in range(n_ones):
        if o == 0 or ones[o] < begin:
            r, begin, end = 0, 0, runs.length[0]
        while ones[o] >= end:
            r += 1
            begin, end = end, end + runs.length[r]
        before = mu[ones[o]]
        mu[ones[o]] += 1.0 - epsilon
        total -= runs.counting[r] * (_x_log_x(mu[ones[o]]) - _x_log_x(before))
    return total


cdef double _x_log_x(double x) noexcept nogil:
    return x * log(x) if x > 0.0 else 0.0


cdef Segment _written(Runs runs, const double *alpha, const double *beta,
                      bint rough) noexcept nogil:
    """Return a segment without products, which nobody will write to."""
    cdef Py_ssize_t r, n = 0
    for r in range(runs.n):
        n += runs.length[r]
    return Segment(&kernels.float64, runs, <void *> alpha, <double *> beta, n, 0, NULL, rough)


cdef Entropy entropy_at(Segment segment, double gamma) noexcept nogil:
    """Return H(m) and its derivative in gamma."""
    cdef const Storage *storage = segment.storage
    cdef Runs runs = segment.runs
    cdef const double *beta = segment.beta
    cdef const double *end = beta + segment.n_written
    cdef const char *alpha = <const char *> segment.alpha
    cdef double[2] sums = [0.0, 0.0]
    cdef Py_ssize_t r, n, p
    for r in range(runs.n):
        n = min(runs.length[r], end - beta)
        if runs.counting[r] == 0.0:
            pass
        elif segment.rough:
            storage.rough_entropy_along(alpha, beta, gamma, n, runs.counting[r], sums)
        else:
            storage.entropy_along(alpha, beta, gamma, n, runs.counting[r], sums)
        alpha += n * storage.size
        beta += n
    for p in range(segment.n_products):
        storage.rough_entropy_between(_alpha_of(segment, p), _write_product(segment, p), gamma,
                                      segment.products[p].k * segment.products[p].k, 1.0, sums)
    return Entropy(sums[0], sums[1])


cdef char *_alpha_of(Segment segment, Py_ssize_t p) noexcept nogil:
    """Return where alpha has the table of which beta has product p."""
    return <char *> segment.alpha + segment.products[p].region * segment.storage.size


cdef void *_write_product(Segment segment, Py_ssize_t p) noexcept nogil:
    """Write product p out, stored like alpha, and return where.

    All come to the same place, which stays in the cache.
    """
    cdef Product product = segment.products[p]
    cdef double *place = segment.beta + segment.n_written
    segment.storage.scale_pair(product.rows, product.stored, product.columns, product.k, place)
    return place


cdef void mix(Segment segment, double gamma) noexcept nogil:
    """Replace alpha by m."""
    cdef Product product
    cdef Py_ssize_t p
    segment.storage.mix(segment.alpha, segment.beta, gamma, segment.n_written)
    for p in range(segment.n_products):
        product = segment.products[p]
        segment.storage.mix_pair(_alpha_of(segment, p), product.rows, product.stored,
                                 product.columns, gamma, product.k)


cdef double second_derivative(Segment segment, double gamma) noexcept nogil:
    """Return the second derivative of H(m) in gamma; it is never positive."""
    cdef const Storage *storage = segment.storage
    cdef Runs runs = segment.runs
    cdef const double *beta = segment.beta
    cdef const double *end = beta + segment.n_written
    cdef const char *alpha = <const char *> segment.alpha
    cdef double total = 0.0
    cdef Py_ssize_t r, n, p
    for r in range(runs.n):
        n = min(runs.length[r], end - beta)
        if runs.counting[r] != 0.0:
            total += runs.counting[r] * storage.bend_along(alpha, beta, gamma, n)
        alpha += n * storage.size
        beta += n
    for p in range(segment.n_products):
        total += storage.bend_between(_alpha_of(segment, p), _write_product(segment, p), gamma,
                                      segment.products[p].k * segment.products[p].k)
    return min(total, 0.0)


cdef double quadratic_start(double gap, double curvature) noexcept nogil:
    """Return the best gamma if KL(m || beta) were gap (1 - gamma)^2, as it is near the optimum."""
    if gap <= 0.0:
        return 0.5
    return 2.0 * gap / (2.0 * gap + curvature)


cdef double search(LineSearch options, Objective f, Segment segment, double start, double *entropy,
                   int64_t *n_evaluations) noexcept nogil:
    """Maximise f over [0, 1] by Newton steps kept inside a shrinking bracket.

    Ends at a gamma where the next Newton step would be at most ``subprecision * gamma`` long and
    f has not dropped below f(0), or after ``max_newton`` steps. The step is measured relative to
    gamma because the best gamma of a sample with large features may be far smaller than any fixed
    precision. As |f''| >= curvature, f' alone often proves the step to be short; then f'' is not
    computed. Where f is below f(0) the bracket is halved. ``entropy`` receives H(m) at the result.
    """
    cdef double low = 0.0, high = 1.0, gamma = start, first, second, gain
    cdef double noise
    cdef Entropy H
    cdef int newton = 0
    cdef bint ascends
    while True:
        H = entropy_at(segment, gamma)
        n_evaluations[0] += 1
        # Rounding hides gains below this; none larger is left where |f'| is smaller.
        noise = f.rounding * (1.0 + fabs(H.value) + fabs(f.slope))
        first = H.first + f.slope - f.curvature * gamma
        gain = H.value - f.entropy + gamma * (f.slope - 0.5 * f.curvature * gamma)
        # As f'' <= -curvature, f(gamma) - f(0) >= gamma (f'(gamma) + curvature gamma / 2).
        ascends = first >= -0.5 * f.curvature * gamma - noise or gain >= -noise
        if newton == options.max_newton or (ascends and fabs(first) <= max(
                noise, options.subprecision * gamma * f.curvature)):
            break
        second = second_derivative(segment, gamma) - f.curvature
        if second == 0.0 or (ascends and fabs(first) <= -options.subprecision * gamma * second):
            break
        if first > 0.0:
            low = gamma
        else:
            high = gamma
        gamma -= first / second
        if not ascends or not low < gamma < high:
            gamma = 0.5 * (low + high)
        newton += 1
    entropy[0] = H.value
    return gamma


cdef class _Counted:
    """Counting numbers given per entry, run-length coded, checked against their marginals."""

    cdef int64_t[::1] length
    cdef double[::1] counting
    cdef Runs runs

    def __init__(self, counting, *marginals):
        c = np.ascontiguousarray(counting, dtype=np.float64)
        for mu in marginals:
            if mu.shape[0] != c.shape[0] or mu.shape[0] == 0:
                raise ValueError(
                    f"counting has {c.shape[0]} entries but the marginals have {mu.shape[0]}; "
                    "expected the same number, at least one")
        starts = np.flatnonzero(np.diff(c, prepend=np.nan))
        self.length = np.diff(np.append(starts, c.size)).astype(np.int64)
        self.counting = c[starts]
        self.runs = Runs(starts.size, &self.length[0], &self.counting[0])


def entropy(counting, const double[::1] mu):
    """Return H(mu) = - sum c mu log mu.

    Parameters
    ----------
    counting, mu : array of shape (m,)
        Counting number and value of each entry of the region tables.
    """
    cdef _Counted counted = _Counted(counting, mu)
    return entropy_of(counted.runs, &mu[0])


def entropy_along(counting, const double[::1] alpha, const double[::1] beta, double gamma,
                  bint rough=False):
    """Return H(m), m = (1 - gamma) alpha + gamma beta, and its two derivatives in gamma.

    If they may be `rough`, the first two are computed in single precision.
    """
    cdef _Counted counted = _Counted(counting, alpha, beta)
    cdef Segment segment = _written(counted.runs, &alpha[0], &beta[0], rough)
    cdef Entropy H = entropy_at(segment, gamma)
    return H.value, H.first, second_derivative(segment, gamma)


def line_search(counting, const double[::1] alpha, const double[::1] beta, double slope,
                double curvature, double start=0.5, double subprecision=1e-3, int max_newton=50):
    """Maximise H(m) + slope gamma - curvature gamma^2 / 2 over gamma in [0, 1].

    Returns
    -------
    gamma, entropy : float
        The step and H(m) there.
    """
    cdef _Counted counted = _Counted(counting, alpha, beta)
    cdef Segment segment = _written(counted.runs, &alpha[0], &beta[0], False)
    cdef Objective f = Objective(entropy_at(segment, 0.0).value, slope, curvature,
                                 1e-14)
    cdef double value = 0.0
    cdef int64_t n_evaluations = 0
    cdef double gamma = search(LineSearch(subprecision, max_newton), f, segment, start, &value,
                               &n_evaluations)
    return gamma, value
