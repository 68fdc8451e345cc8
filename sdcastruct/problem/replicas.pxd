from sdcastruct.problem.problem cimport Problem


cdef class Replicas:
    cdef readonly Problem problem
    cdef readonly list threads
    # Replicas are exchanged after every so many steps of a thread, on so many levels.
    cdef readonly Py_ssize_t period, n_levels
    # Of each template the numbers of its frequent rows, most frequent first.
    cdef readonly list rows
    cdef list templates
    # Where the rows of a template begin, and how many numbers of it each level exchanges.
    cdef Py_ssize_t[::1] starts
    cdef Py_ssize_t[:, ::1] lengths
    cdef double[::1] common


cdef class Replica:
    cdef readonly Problem problem
    cdef double[::1] own, last
    # What it has from `Replicas`.
    cdef Py_ssize_t period, n_levels
    cdef Py_ssize_t[::1] starts
    cdef Py_ssize_t[:, ::1] lengths
    cdef double[::1] common

    cdef bint due(self, Py_ssize_t n_steps) noexcept nogil
    cdef void exchange(self, Py_ssize_t n_steps) noexcept nogil
    cdef void exchange_level(self, Py_ssize_t level) noexcept nogil
