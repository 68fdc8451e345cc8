from libc.stdint cimport int64_t

# The counting numbers of one sample, run-length coded: `length[r]` entries of mu in a row have
# the counting number `counting[r]`.
cdef struct Runs:
    Py_ssize_t n
    const int64_t *length
    const double *counting

# The entropy of m = (1 - gamma) alpha + gamma beta and its derivative in gamma.
cdef struct Entropy:
    double value
    double first

# f(gamma) = H(m) + slope gamma - curvature gamma^2 / 2, where H(alpha) = entropy.
cdef struct Objective:
    double entropy
    double slope
    double curvature

cdef struct LineSearch:
    double subprecision
    int max_newton

cdef double entropy_of(Runs runs, const double *mu) noexcept nogil
cdef Entropy entropy_at(Runs runs, const double *alpha, const double *beta,
                        double gamma) noexcept nogil
cdef double second_derivative(Runs runs, const double *alpha, const double *beta,
                              double gamma) noexcept nogil
cdef double search(LineSearch options, Objective f, Runs runs, const double *alpha,
                   const double *beta, double start, double *entropy,
                   int64_t *n_evaluations) noexcept nogil
cdef double quadratic_start(double gap, double curvature) noexcept nogil
