from libc.stdint cimport int64_t

from sdcastruct.entropy cimport Product
from sdcastruct.simd.ahead cimport Ahead

# Most samples that a thread draws at once.
cdef enum:
    MOST_AHEAD = 8


cdef class Workspace:
    cdef double[::1] memory
    cdef double *theta
    cdef double *beta
    cdef double *m
    cdef double *scratch
    cdef Product *products
    # What will be needed after `expect_into`: of the dual point, or nothing.
    cdef Ahead ahead
    # Whether part of beta is still factors in the scratch memory, see `Engine.expect`.
    cdef bint factored
    # Work done in it: steps, calls of the marginal oracle, evaluations of line searches.
    cdef int64_t n_updates, n_oracle_calls, n_evaluations
    # What its steps have added to ||w||^2.
    cdef double norm2
    # The sample of the next step, and whether that was asked for during the present one.
    cdef Py_ssize_t upcoming
    cdef bint told
    # Of a thread beside others: samples that were drawn, how many of them have been returned, and
    # the sample that it is at.
    cdef Py_ssize_t[MOST_AHEAD] drawn
    cdef Py_ssize_t n_drawn, n_returned, present
