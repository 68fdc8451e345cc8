from libc.stdint cimport int32_t, int64_t


cdef class Attributes:
    cdef readonly Py_ssize_t n_samples, dim, max_slots, max_support
    # Sample i has the slot scores theta_i of length slot_ptr[i+1] - slot_ptr[i] and the weight
    # rows support_ptr[i], ..., support_ptr[i+1] - 1.
    cdef readonly const int64_t[::1] slot_ptr
    cdef const int64_t[::1] support_ptr
    # Row r stands for the weights from row_weight[r] on; its width is row_ptr[r+1] - row_ptr[r].
    cdef const int64_t[::1] row_weight, row_ptr, occurrence_ptr
    # An occurrence adds value times the row's weights to the scores from occurrence_slot on.
    cdef const int32_t[::1] occurrence_slot
    cdef const double[::1] occurrence_value

    cdef void score(self, Py_ssize_t i, const double *w, double *theta) noexcept nogil
    cdef double direction(self, Py_ssize_t i, const double *m, double scale,
                          double *v) noexcept nogil
    cdef void add(self, Py_ssize_t i, double gamma, const double *v, double *w) noexcept nogil
    cdef double largest_norm2(self, Py_ssize_t i, const double *m, double *low) noexcept nogil
