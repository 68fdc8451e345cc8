from libc.stdint cimport int32_t, int64_t

from sdcastruct.inference.engine cimport Engine
from sdcastruct.inference.sum_product cimport Factors, Link, Rules
from sdcastruct.simd.ahead cimport Ahead


cdef class TreeEngine(Engine):
    cdef Py_ssize_t n_states
    # Sample i has the links node_ptr[i], ..., node_ptr[i+1] - 1, every child before its parent.
    cdef const int64_t[::1] node_ptr, n_tables
    cdef const int32_t[:, ::1] links
    # 0 where an edge forbids a pair of states or the first node a state, else 1; or None.
    cdef const double[:, ::1] allowed
    cdef const double[::1] allowed_first

    cdef const Link *forest(self, Py_ssize_t i) noexcept nogil
    cdef Rules rules(self) noexcept nogil
    cdef Factors factors_in(self, Py_ssize_t i, double *scratch, Ahead *ahead=*) noexcept nogil
    cdef bint sweep_up(self, Py_ssize_t i, const double *theta, Factors f,
                       double *log_z) noexcept nogil
    cdef int infer_in_logarithms(self, Py_ssize_t i, const double *theta, double *mu,
                                 double *log_z, Factors f) except -1 nogil
