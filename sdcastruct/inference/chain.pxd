from libc.stdint cimport int64_t

from sdcastruct.inference.engine cimport Engine


cdef class ChainEngine(Engine):
    cdef const int64_t[::1] lengths
    cdef Py_ssize_t n_states
