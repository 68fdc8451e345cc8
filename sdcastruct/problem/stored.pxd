from libc.stdint cimport int64_t

from sdcastruct.problem.problem cimport Problem
from sdcastruct.simd.kernels cimport Storage


cdef class StoredMarginals:
    cdef readonly object array
    # Whether numbers are stored in single precision.
    cdef readonly bint single
    cdef unsigned char[::1] data
    cdef const int64_t[::1] region_ptr

    cdef const Storage *storage(self) noexcept nogil
    cdef void *block(self, Py_ssize_t i) noexcept nogil
    cdef void load(self, Py_ssize_t i, double *mu) noexcept nogil
    cdef void store(self, Py_ssize_t i, const double *mu) noexcept nogil
