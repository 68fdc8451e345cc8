from libc.stdint cimport int32_t, int64_t

cdef extern from "sdcastruct/simd/kernels.h" nogil:
    ctypedef struct Place:
        int64_t slot
        int64_t entry
        int64_t pair
        int64_t group
        int64_t occurrence

    ctypedef struct Block:
        Py_ssize_t width
        int64_t weight_offset
        int64_t row_offset
        int far
        const Place *place
        const int64_t *slot_offset
        const int64_t *entry_ptr
        const int32_t *entry_row
        int32_t first_replica
        double *replicas
        const double *entry_value
        Py_ssize_t n_dense
        const double *diagonal
        const int32_t *pair_offset
        const double *pair_value
        const int64_t *occurrence_ptr
        const int32_t *occurrence_offset
        const double *occurrence_value

    ctypedef struct TableMap:
        Py_ssize_t n_outer
        Py_ssize_t n_inner
        Py_ssize_t run
        int constant
        const int32_t *outer
        const int32_t *inner
        const int32_t *columns

    ctypedef struct Storage:
        Py_ssize_t size
        void (*load)(const void *alpha, double *out, Py_ssize_t n) noexcept nogil
        void (*store)(const double *x, void *alpha, Py_ssize_t n) noexcept nogil
        void (*mix)(void *alpha, const double *beta, double gamma, Py_ssize_t n) noexcept nogil
        void (*scale_pair)(const double *a, const void *E, const double *y, Py_ssize_t k,
                           void *beta) noexcept nogil
        void (*mix_pair)(void *alpha, const double *a, const void *E, const double *y,
                         double gamma, Py_ssize_t k) noexcept nogil
        void (*entropy_along)(const void *alpha, const double *beta, double gamma, Py_ssize_t n,
                              double c, double *sums) noexcept nogil
        double (*bend_along)(const void *alpha, const double *beta, double gamma,
                             Py_ssize_t n) noexcept nogil
        void (*divergence_along)(const void *alpha, const double *beta, double gamma,
                                 Py_ssize_t n, double c, bint derivatives,
                                 double *sums) noexcept nogil
        void (*divergence_between)(const void *alpha, const void *beta, double gamma,
                                   Py_ssize_t n, double c, bint derivatives,
                                   double *sums) noexcept nogil

    ctypedef struct Kernels:
        const char *name
        Storage float64
        Storage float32
        void (*exp_shifted)(const double *x, double shift, double *out,
                            Py_ssize_t n) noexcept nogil
        void (*log)(const double *x, double *out, Py_ssize_t n) noexcept nogil
        void (*prefetch)(const void *address, Py_ssize_t n_bytes) noexcept nogil
        void (*range)(const double *x, Py_ssize_t n, double *low, double *high) noexcept nogil
        double (*dot)(const double *x, const double *y, Py_ssize_t n) noexcept nogil
        void (*subtract)(const double *x, double *y, const double *a, Py_ssize_t n,
                         double *along_x, double *along_y) noexcept nogil
        double (*normalise)(double *x, Py_ssize_t n) noexcept nogil
        void (*scale)(double a, double *x, Py_ssize_t n) noexcept nogil
        void (*multiply)(const double *x, double *y, Py_ssize_t n) noexcept nogil
        void (*divide)(const double *x, const double *y, double *out, Py_ssize_t n) noexcept nogil
        void (*axpy)(double a, const double *x, double *y, Py_ssize_t n) noexcept nogil
        void (*exchange)(double *own, double *last, double *common, Py_ssize_t n) noexcept nogil
        void (*transpose)(const double *E, Py_ssize_t k, double *out) noexcept nogil
        void (*vector_matrix)(const double *a, const double *E, Py_ssize_t k,
                              double *out) noexcept nogil
        void (*message)(const double *a, const double *E, Py_ssize_t k, double *out,
                        const double *x, double *y) noexcept nogil
        void (*add_outer)(int count, const double **a, const double **y, Py_ssize_t k,
                          double *out) noexcept nogil
        void (*scale_table)(const double *a, const double *E, const double *y, Py_ssize_t k,
                            double *pair) noexcept nogil
        void (*pair_table)(const double *a, const double *E, const double *y, Py_ssize_t k,
                           double *pair, double *b) noexcept nogil
        void (*expand_add)(const TableMap *map, const double *x, double *table) noexcept nogil
        void (*expand_scale)(const TableMap *map, const double *x, double *table) noexcept nogil
        void (*reduce_max)(const TableMap *map, const double *table, double *x) noexcept nogil
        void (*reduce_sum)(const TableMap *map, const double *table, double *x) noexcept nogil
        void (*exp_sum)(const TableMap *map, const double *shift, double *table,
                        double *x) noexcept nogil
        void (*add_tables)(const double *tables, Py_ssize_t width, Py_ssize_t repeat,
                           double *out) noexcept nogil
        void (*score)(const Block *block, Py_ssize_t i, const double *w,
                      double *theta) noexcept nogil
        double (*norm2)(const Block *block, Py_ssize_t i, const double *m) noexcept nogil
        void (*prefetch_sample)(const Block *block, Py_ssize_t i) noexcept nogil
        void (*prefetch_weights)(const Block *block, Py_ssize_t i, const double *w) noexcept nogil
        void (*add)(const Block *block, Py_ssize_t i, double scale, const double *m,
                    double *w) noexcept nogil
        void (*clear)(const Block *block, Py_ssize_t i, double *w) noexcept nogil
        void (*catch_up)(const Block *block, Py_ssize_t i, double total, const double *d,
                         double *last, double *w) noexcept nogil

    const Kernels *sdcastruct_kernels(const char *name)

# The table in use; set when the module is imported, shared by every module that cimports it.
cdef const Kernels *kernels
