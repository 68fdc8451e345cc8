from libc.stdint cimport int64_t

from sdcastruct.simd.kernels cimport Block


cdef class Template:
    cdef Block block
    cdef readonly Py_ssize_t n_attributes
    cdef dict arrays

    cdef size_t address(self, name, dtype) except? 0


cdef class Attributes:
    cdef readonly Py_ssize_t n_samples, dim, n_rows, max_slots
    # The scores theta_i of sample i have length slot_ptr[i+1] - slot_ptr[i].
    cdef readonly const int64_t[::1] slot_ptr
    cdef readonly list templates
    cdef Py_ssize_t n_blocks
    cdef const Block **blocks

    cdef int score(self, Py_ssize_t i, const double *w, double *theta) except -1 nogil
    cdef double norm2(self, Py_ssize_t i, const double *m) except -1.0 nogil
    cdef void prefetch_place(self, Py_ssize_t i) noexcept nogil
    cdef void prefetch(self, Py_ssize_t i) noexcept nogil
    cdef void prefetch_weights(self, Py_ssize_t i, const double *w) noexcept nogil
    cdef int add(self, Py_ssize_t i, double scale, const double *m, double *w) except -1 nogil
    cdef void exchange_weights(self) noexcept nogil
    cdef void clear(self, Py_ssize_t i, double *w) noexcept nogil
    cdef void catch_up(self, Py_ssize_t i, double total, const double *d, double *last,
                       double *w) noexcept nogil
