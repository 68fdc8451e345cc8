from libc.stdint cimport int64_t

from sdcastruct.problem.problem cimport Problem
from sdcastruct.problem.replicas cimport Replicas
from sdcastruct.problem.workspace cimport Workspace
from sdcastruct.samplers.sampler cimport RandomStream, Sampler

cdef extern from "sdcastruct/solvers/lock.h" nogil:
    ctypedef struct Lock:
        pass
    bint try_to_acquire(Lock *lock)
    void acquire(Lock *lock)
    void release(Lock *lock)


cdef class State:
    cdef readonly Problem problem
    cdef readonly double lam
    cdef readonly object solver
    cdef readonly Sampler sampler
    cdef readonly RandomStream stream
    cdef readonly int64_t n_updates, n_oracle_calls
    cdef public int n_jobs
    cdef Workspace space
    cdef list spaces  # one per thread
    cdef Replicas replicas  # of the frequent weights, one per thread
    cdef Lock sampler_lock  # and of `busy` and `n_left`
    cdef Py_ssize_t n_left  # steps of the epoch that nobody has drawn
    cdef Lock weights_lock
    cdef char[::1] busy  # samples that a thread is at or has drawn
    cdef bint stopped
    cdef Py_ssize_t n_threads  # that this epoch can use
    cdef Py_ssize_t ahead  # samples that a thread draws at once

    cdef double step_on(self, Problem problem, Workspace space, Py_ssize_t i) except -1.0 nogil
    cdef int tell(self, Py_ssize_t i) except -1 nogil
    cdef int foresee(self, Problem problem, Workspace space, Py_ssize_t i) except -1 nogil
    cdef int proceed(self, Workspace space, Py_ssize_t i) except -1 nogil
    cdef void prefetch(self, Problem problem, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t exchange(self, Workspace space, Py_ssize_t told) except -2 nogil
    cdef int turn_in(self, Workspace space, Py_ssize_t present) except -1 nogil
    cdef int draw_several(self, Workspace space) except -1 nogil
    cdef Py_ssize_t draw(self) except -2 nogil
    cdef int add_to_weights(self, Problem problem, Py_ssize_t i, double scale, const double *m,
                            double *w, bint wait) except -1 nogil
    cdef bint loses_writes(self) noexcept nogil
