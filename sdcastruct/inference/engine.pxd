from libc.stdint cimport int64_t


cdef class Engine:
    # Doubles of scratch memory that `infer` and `decode` need for the largest sample.
    cdef readonly Py_ssize_t scratch_size
    # Whether `calibrate` is implemented.
    cdef readonly bint calibrates

    cdef Py_ssize_t n_nodes(self, Py_ssize_t i) except -1 nogil
    cdef int infer(self, Py_ssize_t i, const double *theta, double *mu, double *log_z,
                   double *scratch) except -1 nogil
    cdef int calibrate(self, Py_ssize_t i, double *mu, double *scratch) except -1 nogil
    cdef int decode(self, Py_ssize_t i, const double *theta, int64_t *y,
                    double *scratch) except -1 nogil
