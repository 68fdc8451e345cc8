from libc.stdint cimport int64_t

from sdcastruct.entropy cimport Product
from sdcastruct.simd.ahead cimport Ahead
from sdcastruct.simd.kernels cimport Storage


cdef class Engine:
    # Doubles of scratch memory that `infer` and `decode` need for the largest sample.
    cdef readonly Py_ssize_t scratch_size
    # Whether `calibrate` is implemented.
    cdef readonly bint calibrates
    # Whether `expect`, `complete` and `products` are implemented.
    cdef readonly bint factors
    # Most tables of a sample that `products` writes.
    cdef readonly Py_ssize_t max_products

    cdef Py_ssize_t n_nodes(self, Py_ssize_t i) except -1 nogil
    cdef void prefetch_place(self, Py_ssize_t i) noexcept nogil
    cdef void prefetch(self, Py_ssize_t i) noexcept nogil
    cdef int infer(self, Py_ssize_t i, const double *theta, double *mu, double *log_z,
                   double *scratch) except -1 nogil
    cdef int log_partition(self, Py_ssize_t i, const double *theta, double *mu, double *log_z,
                           double *scratch) except -1 nogil
    cdef bint expect(self, Py_ssize_t i, const double *theta, double *m, double *mu,
                     double *log_z, double *scratch, Ahead *ahead) except -1 nogil
    cdef void complete(self, Py_ssize_t i, double *mu, double *scratch) noexcept nogil
    cdef Py_ssize_t products(self, Py_ssize_t i, double *scratch, const Storage *storage,
                             Product *out) noexcept nogil
    cdef int calibrate(self, Py_ssize_t i, double *mu, double *scratch) except -1 nogil
    cdef int decode(self, Py_ssize_t i, const double *theta, int64_t *y,
                    double *scratch) except -1 nogil
