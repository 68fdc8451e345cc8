from libc.stdint cimport int64_t

from sdcastruct.simd.kernels cimport Storage

# The counting numbers of one sample, run-length coded: `length[r]` entries of mu in a row have
# the counting number `counting[r]`.
cdef struct Runs:
    Py_ssize_t n
    const int64_t *length
    const double *counting

# The marginals of a single labelling: 1 at `ones`, one in every table, and 0 elsewhere.
cdef struct Vertex:
    Py_ssize_t n_ones
    const int64_t *ones

# A table of shape (k, k) with the counting number 1, which mu has from `region` on, as a product:
# rows[i] table[i, j] columns[j]. `stored` is the same as `table`, but stored like alpha.
cdef struct Product:
    Py_ssize_t k
    Py_ssize_t region
    const double *rows
    const double *table
    const double *columns
    const void *stored

# The segment m = (1 - gamma) alpha + gamma beta of a sample, alpha as it is stored. Only the first
# `n_written` numbers of beta are written out, the others are products of one size, in the order of
# their regions, and their place is free.
# `single` says that single precision will do, as it must where there are products.
cdef struct Segment:
    const Storage *storage
    Runs runs
    void *alpha
    double *beta
    Py_ssize_t n_written
    Py_ssize_t n_products
    const Product *products
    bint single

# f(gamma) = -KL(m || beta) - curvature gamma^2 / 2, where KL(m || beta) = cross - slope gamma -
# H(m) and KL(alpha || beta) = divergence. Differences of f below `noise` mean nothing.
cdef struct Objective:
    double cross
    double slope
    double curvature
    double divergence
    double noise

# KL(m || beta) and its derivatives in gamma. If they are not `known`, beta is too small for single
# precision somewhere.
cdef struct Divergence:
    double value
    double first
    double second
    bint known

cdef struct LineSearch:
    double subprecision
    int max_newton

cdef double entropy_of(Runs runs, const double *mu) noexcept nogil
cdef bint is_near_vertex(Segment segment, Vertex e) noexcept nogil
cdef double entropy_from_vertex(Segment segment, double gamma, double entropy,
                                Vertex e) noexcept nogil
cdef double mix_with_vertex(Runs runs, double *mu, double epsilon, double entropy,
                            Vertex e) noexcept nogil
cdef Divergence divergence_at(Segment segment, Objective f, double gamma,
                              bint derivatives) noexcept nogil
cdef void mix(Segment segment, double gamma) noexcept nogil
cdef Divergence search(LineSearch options, Objective f, Segment segment, double *gamma,
                       int64_t *n_evaluations) noexcept nogil
cdef double quadratic_start(double gap, double curvature) noexcept nogil
