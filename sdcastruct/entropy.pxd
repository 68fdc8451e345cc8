from libc.stdint cimport int64_t

# The counting numbers of one sample, run-length coded: `length[r]` entries of mu in a row have
# the counting number `counting[r]`.
cdef struct Runs:
    Py_ssize_t n
    const int64_t *length
    const double *counting

# KL(m || beta) and its first two derivatives in gamma.
cdef struct Divergence:
    double value
    double first
    double second

cdef struct LineSearch:
    double subprecision
    int max_newton

cdef double entropy_of(Runs runs, const double *mu) noexcept nogil
cdef Divergence divergence(Runs runs, const double *alpha, const double *beta,
                           double gamma) noexcept nogil
cdef double search(LineSearch options, Runs runs, const double *alpha, const double *beta,
                   double gap, double curvature, double start, double *kl,
                   int64_t *n_evaluations) noexcept nogil
cdef double quadratic_start(double gap, double curvature) noexcept nogil
