from libc.stdint cimport int64_t

from sdcastruct.problem.problem cimport Problem, Workspace
from sdcastruct.samplers.sampler cimport RandomStream, Sampler


cdef class State:
    cdef readonly Problem problem
    cdef readonly double lam
    cdef readonly object solver
    cdef readonly Sampler sampler
    cdef readonly RandomStream stream
    cdef readonly int64_t n_updates, n_oracle_calls
    cdef Workspace space

    cdef double step_on(self, Problem problem, Workspace space, Py_ssize_t i) except -1.0 nogil
