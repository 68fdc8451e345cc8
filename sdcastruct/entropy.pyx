"""Entropy, divergence and line search on flat marginals with counting numbers.

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
then H(m) + slope gamma = cross - KL(m || beta), where cross = - sum c alpha log beta does not
depend on gamma, and f(1) - f(gamma) differs from KL(m || beta) only by the quadratic term.

Near the optimum a divergence is the small difference of large entropies. But all tables sum to
one, so that it is also a sum of terms that are small themselves::

    KL(m || beta) = sum c beta phi(m / beta - 1),     phi(y) = (1 + y) log(1 + y) - y,
    m / beta - 1 = (1 - gamma) (alpha - beta) / beta

Here single precision gives a divergence to some six digits, however small it is, and so its
derivatives; where alpha and beta are stored in it, their own rounding of 1e-7 leaves fewer, if they
are near each other. Nothing here knows about graphs.
"""

import numpy as np

from libc.math cimport log

from sdcastruct.simd.kernels cimport kernels

# Probabilities below 2^-90 may have any logarithm in single precision, perhaps of some thousands: a
# divergence is not known if alpha has more than this part of it there.
cdef double MOST_LOST = 1e-7


cdef double entropy_of(Runs runs, const double *mu) noexcept nogil:
    """Return H(mu)."""
    return _entropies(_written(runs, mu, mu, False), 0.0).value


cdef bint is_near_vertex(Segment segment, Vertex e) noexcept nogil:
    """Return whether alpha has almost all of every table where the vertex e is 1."""
    cdef double x
    cdef Py_ssize_t o
    for o in range(e.n_ones):
        segment.storage.load(<char *> segment.alpha + e.ones[o] * segment.storage.size, &x, 1)
        if not x >= 0.99:
            return False
    return True


cdef double entropy_from_vertex(Segment segment, double gamma, double entropy,
                                Vertex e) noexcept nogil:
    """Return H(m) where alpha is the vertex e, whatever the segment has as alpha, given H(beta).

    As m is gamma beta almost everywhere,

        H(m) = gamma H(beta) - sum over ones of c (gamma log gamma + f(gamma beta + 1 - gamma) -
        f(gamma beta)),     f(x) = x log x

    needs few logarithms.
    """
    cdef Runs runs = segment.runs
    cdef double total = gamma * entropy, shared = _x_log_x(gamma), beta
    cdef int64_t begin = 0, end = 0
    cdef Py_ssize_t r, o
    for o in range(e.n_ones):
        if o == 0 or e.ones[o] < begin:
            r, begin, end = 0, 0, runs.length[0]
        while e.ones[o] >= end:
            r += 1
            begin, end = end, end + runs.length[r]
        beta = gamma * _beta_at(segment, e.ones[o])
        total -= runs.counting[r] * (shared + _x_log_x(beta + 1.0 - gamma) - _x_log_x(beta))
    return total


cdef double _beta_at(Segment segment, Py_ssize_t j) noexcept nogil:
    """Return entry j of beta."""
    cdef Product p
    if j < segment.n_written:
        return segment.beta[j]
    p = segment.products[0]
    p = segment.products[(j - segment.n_written) // (p.k * p.k)]
    j -= p.region
    return p.rows[j // p.k] * p.table[j] * p.columns[j % p.k]


cdef double mix_with_vertex(Runs runs, double *mu, double epsilon, double entropy,
                            Vertex e) noexcept nogil:
    """Replace mu by m = epsilon mu + (1 - epsilon) e and return H(m), given H(mu)."""
    cdef Segment segment = _written(runs, NULL, mu, False)
    cdef double mixed = entropy_from_vertex(segment, epsilon, entropy, e)
    cdef Py_ssize_t o
    kernels.scale(epsilon, mu, segment.n_written)
    for o in range(e.n_ones):
        mu[e.ones[o]] += 1.0 - epsilon
    return mixed


cdef double _x_log_x(double x) noexcept nogil:
    return x * log(x) if x > 0.0 else 0.0


cdef Segment _written(Runs runs, const double *alpha, const double *beta,
                      bint single) noexcept nogil:
    """Return a segment without products, which nobody will write to."""
    cdef Py_ssize_t r, n = 0
    for r in range(runs.n):
        n += runs.length[r]
    return Segment(&kernels.float64, runs, <void *> alpha, <double *> beta, n, 0, NULL, single)


cdef Divergence divergence_at(Segment segment, Objective f, double gamma,
                              bint derivatives) noexcept nogil:
    """Return KL(m || beta), its derivatives only if they are asked for."""
    cdef Divergence H
    if segment.single:
        return _relative_divergence(segment, gamma, derivatives)
    H = _entropies(segment, gamma)
    if not derivatives:
        return Divergence(f.cross - f.slope * gamma - H.value, 0.0, 0.0, True)
    return Divergence(f.cross - f.slope * gamma - H.value, -f.slope - H.first,
                      -_second_derivative(segment, gamma), True)


cdef Divergence _entropies(Segment segment, double gamma) noexcept nogil:
    """Return H(m) and its first derivative, in double precision."""
    cdef const Storage *storage = segment.storage
    cdef Runs runs = segment.runs
    cdef const double *beta = segment.beta
    cdef const char *alpha = <const char *> segment.alpha
    cdef double[2] sums = [0.0, 0.0]
    cdef Py_ssize_t r
    for r in range(runs.n):
        if runs.counting[r] != 0.0:
            storage.entropy_along(alpha, beta, gamma, runs.length[r], runs.counting[r], sums)
        alpha += runs.length[r] * storage.size
        beta += runs.length[r]
    return Divergence(sums[0], sums[1], 0.0, True)


cdef double _second_derivative(Segment segment, double gamma) noexcept nogil:
    """Return the second derivative of H(m) in gamma; it is never positive."""
    cdef const Storage *storage = segment.storage
    cdef Runs runs = segment.runs
    cdef const double *beta = segment.beta
    cdef const char *alpha = <const char *> segment.alpha
    cdef double total = 0.0
    cdef Py_ssize_t r
    for r in range(runs.n):
        if runs.counting[r] != 0.0:
            total += runs.counting[r] * storage.bend_along(alpha, beta, gamma, runs.length[r])
        alpha += runs.length[r] * storage.size
        beta += runs.length[r]
    return min(total, 0.0)


cdef Divergence _relative_divergence(Segment segment, double gamma,
                                     bint derivatives) noexcept nogil:
    """Return KL(m || beta) in single precision."""
    cdef const Storage *storage = segment.storage
    cdef Runs runs = segment.runs
    cdef const double *beta = segment.beta
    cdef const double *end = beta + segment.n_written
    cdef const char *alpha = <const char *> segment.alpha
    cdef double[4] sums = [0.0, 0.0, 0.0, 0.0]
    cdef Py_ssize_t r, n, p
    for r in range(runs.n):
        n = min(runs.length[r], end - beta)
        if runs.counting[r] != 0.0:
            storage.divergence_along(alpha, beta, gamma, n, runs.counting[r], derivatives, sums)
        alpha += n * storage.size
        beta += n
    for p in range(segment.n_products):
        storage.divergence_between(_alpha_of(segment, p), _write_product(segment, p), gamma,
                                   segment.products[p].k * segment.products[p].k, 1.0,
                                   derivatives, sums)
    return Divergence(max(sums[0], 0.0), min(sums[1], 0.0), max(sums[2], 0.0),
                      sums[3] <= MOST_LOST * max(sums[0], 0.0))


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


cdef double quadratic_start(double gap, double curvature) noexcept nogil:
    """Return the best gamma if KL(m || beta) were gap (1 - gamma)^2, as it is near the optimum."""
    if gap <= 0.0:
        return 0.5
    return 2.0 * gap / (2.0 * gap + curvature)


cdef Divergence search(LineSearch options, Objective f, Segment segment, double *gamma,
                       int64_t *n_evaluations) noexcept nogil:
    """Maximise f over [0, 1] by Newton steps inside a shrinking bracket, from `gamma` on.

    Ends at a gamma where the next Newton step would be at most ``subprecision * gamma`` long and
    f has not dropped below f(0), or after ``max_newton`` steps, without derivatives if there are
    to be none. The step is measured relative to
    gamma because the best gamma of a sample with large features may be far smaller than any fixed
    precision. Where f is below f(0) the bracket is halved. Returns the divergence at the result, or
    where it is first not known.
    """
    cdef double low = 0.0, high = 1.0, first, second, gain
    cdef Divergence KL
    cdef int newton = 0
    cdef bint ascends
    while True:
        KL = divergence_at(segment, f, gamma[0], options.max_newton > 0)
        n_evaluations[0] += 1
        first = -KL.first - f.curvature * gamma[0]
        second = -KL.second - f.curvature
        gain = f.divergence - KL.value - 0.5 * f.curvature * gamma[0] * gamma[0]
        # As f'' <= -curvature, f(gamma) - f(0) >= gamma (f'(gamma) + curvature gamma / 2).
        ascends = first >= -0.5 * f.curvature * gamma[0] - f.noise or gain >= -f.noise
        if (not KL.known or second == 0.0 or newton == options.max_newton
                or (ascends and abs(first) <= max(f.noise,
                                                  -options.subprecision * gamma[0] * second))):
            return KL
        if first > 0.0:
            low = gamma[0]
        else:
            high = gamma[0]
        gamma[0] -= first / second
        if not ascends or not low < gamma[0] < high:
            gamma[0] = 0.5 * (low + high)
        newton += 1


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


def entropy_along(counting, const double[::1] alpha, const double[::1] beta, double gamma):
    """Return H(m), m = (1 - gamma) alpha + gamma beta, and its two derivatives in gamma."""
    cdef _Counted counted = _Counted(counting, alpha, beta)
    cdef Segment segment = _written(counted.runs, &alpha[0], &beta[0], False)
    cdef Divergence H = _entropies(segment, gamma)
    return H.value, H.first, _second_derivative(segment, gamma)


def divergence_along(counting, const double[::1] alpha, const double[::1] beta, double gamma):
    """Return KL(m || beta), m = (1 - gamma) alpha + gamma beta, and its two derivatives in gamma.

    They are computed in single precision with small relative errors, but are None where `beta` is
    too small for that.
    """
    cdef _Counted counted = _Counted(counting, alpha, beta)
    cdef Segment segment = _written(counted.runs, &alpha[0], &beta[0], True)
    cdef Divergence KL = _relative_divergence(segment, gamma, True)
    return (KL.value, KL.first, KL.second) if KL.known else None


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
    cdef double H = entropy_of(counted.runs, &alpha[0]), gamma = start
    cdef Objective f = Objective(0.0, slope, curvature, -H, 1e-14 * (1.0 + abs(H) + abs(slope)))
    cdef int64_t n_evaluations = 0
    cdef Divergence KL = search(LineSearch(subprecision, max_newton), f, segment, &gamma,
                                &n_evaluations)
    return gamma, -slope * gamma - KL.value
