from libc.stdint cimport int32_t, int64_t

cdef extern from "kernels.h" nogil:
    ctypedef struct Kernels:
        const char *name
        void (*exp_shifted)(const double *x, double shift, double *out, Py_ssize_t n) noexcept nogil
        void (*log)(const double *x, double *out, Py_ssize_t n) noexcept nogil
        void (*range)(const double *x, Py_ssize_t n, double *low, double *high) noexcept nogil
        double (*dot)(const double *x, const double *y, Py_ssize_t n) noexcept nogil
        void (*axpy)(double a, const double *x, double *y, Py_ssize_t n) noexcept nogil
        double (*negentropy)(const double *mu, Py_ssize_t n) noexcept nogil
        void (*kl_along)(const double *alpha, const double *beta, double gamma, Py_ssize_t n, double c,
                      double *sums) noexcept nogil
        void (*mix)(double *alpha, const double *beta, double gamma, Py_ssize_t n) noexcept nogil
        void (*vector_matrix)(const double *a, const double *E, Py_ssize_t k, double *out) noexcept nogil
        void (*pair_table)(const double *a, const double *E, const double *y, Py_ssize_t k, double *pair,
                        double *b) noexcept nogil
        void (*score)(Py_ssize_t n_rows, const int64_t *row_weight, const int64_t *row_ptr,
                   const int64_t *occurrence_ptr, const int32_t *occurrence_slot,
                   const double *occurrence_value, const double *w, double *theta) noexcept nogil
        double (*direction)(Py_ssize_t n_rows, const int64_t *row_ptr, const int64_t *occurrence_ptr,
                         const int32_t *occurrence_slot, const double *occurrence_value,
                         const double *m, double scale, double *v) noexcept nogil
        void (*add)(Py_ssize_t n_rows, const int64_t *row_weight, const int64_t *row_ptr, double gamma,
                 const double *v, double *w) noexcept nogil

    const Kernels *sdcastruct_kernels(const char *name)

# The table in use; set when the module is imported, shared by every module that cimports it.
cdef const Kernels *kernels
