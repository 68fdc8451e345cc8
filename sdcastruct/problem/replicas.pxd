from sdcastruct.problem.attributes cimport Attributes
from sdcastruct.problem.problem cimport Problem


cdef class Replicas:
    cdef readonly Problem problem
    cdef readonly list problems, threads
    # Replicas are exchanged after every step of a thread, on so many levels.
    cdef readonly Py_ssize_t n_levels
    # The samples in which rows are counted.
    cdef object counted
    # Of each template the numbers of its frequent rows, most frequent first.
    cdef readonly list rows
    cdef list templates
    # Where the rows of a template begin, and how many numbers of it each level exchanges.
    cdef Py_ssize_t[::1] starts
    cdef Py_ssize_t[:, ::1] lengths
    cdef readonly double[::1] common


cdef class Replica(Attributes):
    cdef double[::1] own, last
    cdef Py_ssize_t n_steps
    # What it has from `Replicas`.
    cdef Py_ssize_t n_levels
    cdef Py_ssize_t[::1] starts
    cdef Py_ssize_t[:, ::1] lengths
    cdef double[::1] common

    cdef void exchange_level(self, Py_ssize_t level) noexcept nogil
