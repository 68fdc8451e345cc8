from libc.stdint cimport int64_t

from sdcastruct.entropy cimport Runs


cdef struct Segment:
    # `repeat` tables of `length` entries each, laid end to end from `region` on in mu, all add up
    # in the slots from `slot` on.
    int64_t region
    int64_t slot
    int64_t length
    int64_t repeat


cdef class Regions:
    cdef readonly Py_ssize_t n_samples, max_regions
    # The marginals mu_i lie at region_ptr[i], ..., region_ptr[i+1] - 1 in their concatenation.
    cdef readonly const int64_t[::1] region_ptr
    cdef const int64_t[::1] run_ptr, run_length, segment_ptr
    cdef const double[::1] run_counting
    cdef const int64_t[:, ::1] segments

    cdef Runs runs(self, Py_ssize_t i) noexcept nogil
    cdef void gather(self, Py_ssize_t i, const double *mu, double *m,
                     Py_ssize_t n_slots) noexcept nogil
