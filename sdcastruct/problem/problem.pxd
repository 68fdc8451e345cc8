from libc.stdint cimport int64_t

from sdcastruct.entropy cimport Runs, Segment
from sdcastruct.inference.engine cimport Engine
from sdcastruct.problem.attributes cimport Attributes
from sdcastruct.problem.regions cimport Regions
from sdcastruct.problem.truth cimport Truth
from sdcastruct.problem.workspace cimport Workspace
from sdcastruct.simd.kernels cimport Storage


cdef class Problem:
    cdef readonly Attributes attributes
    cdef readonly Regions regions
    cdef readonly Engine engine
    cdef readonly Py_ssize_t n_samples, dim, n_marginals
    cdef readonly bint labelled
    cdef readonly Truth labels
    # The objective counts the loss of sample i weights[i] times.
    cdef readonly const double[::1] weights
    # Where each packed weight stands in the model's w; None means at the same place.
    cdef readonly object order

    cdef int score_into(self, Py_ssize_t i, const double *w, double *theta) except -1 nogil
    cdef void prefetch_place(self, Py_ssize_t i) noexcept nogil
    cdef void prefetch(self, Py_ssize_t i) noexcept nogil
    cdef void prefetch_weights(self, Py_ssize_t i, const double *w) noexcept nogil
    cdef int infer_into(self, Py_ssize_t i, const double *theta, double *mu, double *log_z,
                        double *scratch) except -1 nogil
    cdef int decode_into(self, Py_ssize_t i, const double *theta, int64_t *y,
                         double *scratch) except -1 nogil
    cdef int log_partition_into(self, Py_ssize_t i, const double *theta, double *log_z,
                                Workspace space) except -1 nogil
    cdef int expect_into(self, Py_ssize_t i, const double *theta, double *m, double *log_z,
                         Workspace space) except -1 nogil
    cdef Segment segment(self, Py_ssize_t i, Workspace space, const Storage *storage,
                         void *alpha) noexcept nogil
    cdef void make_exact(self, Py_ssize_t i, Workspace space, Segment *segment) noexcept nogil
    cdef void gather_into(self, Py_ssize_t i, const double *mu, double *m) noexcept nogil
    cdef double norm2(self, Py_ssize_t i, const double *m) except -1.0 nogil
    cdef int add(self, Py_ssize_t i, double scale, const double *m, double *w) except -1 nogil

    cdef Runs runs(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t n_regions(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t n_slots(self, Py_ssize_t i) noexcept nogil
    cdef int check_index(self, Py_ssize_t i) except -1
    cdef int check_labelled(self) except -1
    cdef double truth_score(self, Py_ssize_t i, const double *theta) noexcept nogil
    cdef void add_truth(self, Py_ssize_t i, double scale, double *m) noexcept nogil
