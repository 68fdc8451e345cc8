/* The kernels of kernels.h in plain C. Included by one file per instruction set, which defines KERNELS (the name of
   the table) and KERNELS_NAME.                                                                                      */
#include "kernels.h"
#include "vecmath.h"

static void exp_shifted(const double *restrict x, double shift, double *restrict out, ptrdiff_t n) {
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) out[j] = fast_exp(x[j] - shift);
}

static void vector_log(const double *restrict x, double *restrict out, ptrdiff_t n) {
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) out[j] = fast_log(x[j]);
}

static void range(const double *x, ptrdiff_t n, double *low, double *high) {
    double smallest = x[0], largest = x[0];
#pragma omp simd reduction(min : smallest) reduction(max : largest)
    for (ptrdiff_t j = 1; j < n; j++) {
        smallest = x[j] < smallest ? x[j] : smallest;
        largest = x[j] > largest ? x[j] : largest;
    }
    *low = smallest;
    *high = largest;
}

static double dot(const double *x, const double *y, ptrdiff_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t j = 0; j < n; j++) sum += x[j] * y[j];
    return sum;
}

SDCA_INLINE double sum_of(const double *x, ptrdiff_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t j = 0; j < n; j++) sum += x[j];
    return sum;
}

static void axpy(double a, const double *restrict x, double *restrict y, ptrdiff_t n) {
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) y[j] += a * x[j];
}

#define REAL double
#define ROUNDED(x) (x)
#define STORED(name) name##_float64
#include "storage_impl.h"
#undef REAL
#undef ROUNDED
#undef STORED

#define REAL float
#define ROUNDED(x) (((float)(x) + TINY_FLOAT) - TINY_FLOAT) /* no subnormals: they are slow */
#define STORED(name) name##_float32
#include "storage_impl.h"
#undef REAL
#undef ROUNDED
#undef STORED

#define STORAGE(TYPE, SUFFIX)                                 \
    {                                                         \
        .size = sizeof(TYPE),                                 \
        .load = load_##SUFFIX,                                \
        .store = store_##SUFFIX,                              \
        .mix = mix_##SUFFIX,                                  \
        .entropy_along = entropy_along_##SUFFIX,              \
        .rough_entropy_along = rough_entropy_along_##SUFFIX,  \
        .bend_along = bend_along_##SUFFIX,                    \
    }

/* Four rows at a time, so that `out` is read and written once for four products. */
static void vector_matrix(const double *restrict a, const double *restrict E, ptrdiff_t k, double *restrict out) {
    ptrdiff_t i = 0;
    memset(out, 0, (size_t)k * sizeof *out);
    for (; i + 4 <= k; i += 4, E += 4 * k) {
#pragma omp simd
        for (ptrdiff_t j = 0; j < k; j++)
            out[j] += (a[i] * E[j] + a[i + 1] * E[j + k]) + (a[i + 2] * E[j + 2 * k] + a[i + 3] * E[j + 3 * k]);
    }
    for (; i < k; i++, E += k) axpy(a[i], E, out, k);
}

static void pair_table(const double *a, const double *E, const double *restrict y, ptrdiff_t k, double *pair,
                       double *restrict b) {
    for (ptrdiff_t i = 0; i < k; i++, E += k, pair += k) {
        double sum = 0.0, weight = a[i];
#pragma omp simd reduction(+ : sum)
        for (ptrdiff_t j = 0; j < k; j++) {
            double term = E[j] * y[j];
            sum += term;
            pair[j] = weight * term;
        }
        b[i] = sum;
    }
}

/* Maps between tables often have runs of one or two states: with a constant length the loop over a run disappears. */
#define BY_RUN(BLOCKS)                    \
    switch (map->run) {                   \
        case 1: BLOCKS(1) break;          \
        case 2: BLOCKS(2) break;          \
        case 4: BLOCKS(4) break;          \
        default: BLOCKS(map->run) break;  \
    }

/* Run BODY over the blocks of `row`: `small` is where the entries of the small table X begin that it belongs to. */
#define OVER_BLOCKS(RUN, TYPE, X, BODY)                                        \
    for (ptrdiff_t o = 0; o < map->n_outer; o++)                               \
        for (ptrdiff_t i = 0; i < map->n_inner; i++, row += (RUN)) {           \
            int32_t b = map->outer[o] + map->inner[i];                         \
            if (map->columns) b = map->columns[b];                             \
            TYPE *small = (X) + b;                                             \
            BODY                                                               \
        }

#define EXPAND(RUN, OPERATION)                                                                     \
    if (map->constant) {                                                                           \
        OVER_BLOCKS(RUN, const double, x, {                                                        \
            const double value = small[0];                                                         \
            for (ptrdiff_t l = 0; l < (RUN); l++) row[l] OPERATION value;                          \
        })                                                                                         \
    } else {                                                                                       \
        OVER_BLOCKS(RUN, const double, x, for (ptrdiff_t l = 0; l < (RUN); l++) row[l] OPERATION small[l];) \
    }

static void expand_add(const TableMap *map, const double *restrict x, double *restrict row) {
#define EXPAND_ADD(RUN) EXPAND(RUN, +=)
    BY_RUN(EXPAND_ADD)
}

static void expand_scale(const TableMap *map, const double *restrict x, double *restrict row) {
#define EXPAND_SCALE(RUN) EXPAND(RUN, *=)
    BY_RUN(EXPAND_SCALE)
}

static void expand_subtract(const TableMap *map, const double *restrict x, double *restrict row) {
#define EXPAND_SUBTRACT(RUN) EXPAND(RUN, -=)
    BY_RUN(EXPAND_SUBTRACT)
}

static void reduce_max(const TableMap *map, const double *restrict row, double *restrict x) {
#define REDUCE_MAX(RUN)                                                                                     \
    if (map->constant) {                                                                                    \
        OVER_BLOCKS(RUN, double, x, {                                                                       \
            double largest = small[0];                                                                      \
            for (ptrdiff_t l = 0; l < (RUN); l++) largest = row[l] > largest ? row[l] : largest;            \
            small[0] = largest;                                                                             \
        })                                                                                                  \
    } else {                                                                                                \
        OVER_BLOCKS(RUN, double, x,                                                                         \
                    for (ptrdiff_t l = 0; l < (RUN); l++) small[l] = row[l] > small[l] ? row[l] : small[l];) \
    }
    BY_RUN(REDUCE_MAX)
}

static void reduce_sum(const TableMap *map, const double *restrict row, double *restrict x) {
#define REDUCE_SUM(RUN)                                                                          \
    if (map->constant) {                                                                         \
        OVER_BLOCKS(RUN, double, x, small[0] += sum_of(row, (RUN));)                             \
    } else {                                                                                     \
        OVER_BLOCKS(RUN, double, x, for (ptrdiff_t l = 0; l < (RUN); l++) small[l] += row[l];)   \
    }
    BY_RUN(REDUCE_SUM)
}

static void exp_sum(const TableMap *map, const double *shift, double *table, double *x) {
    const ptrdiff_t n = map->n_outer * map->n_inner * map->run;
    expand_subtract(map, shift, table);
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) table[j] = fast_exp(table[j]);
    reduce_sum(map, table, x);
}

/* Run BODY(COLUMNS) over the columns of a table, in steps of 16, 8, 4, 2 and 1: with a constant number of columns a
   loop over them is unrolled and its sums stay in registers.                                                        */
#define OVER_COLUMNS(BODY)                    \
    ptrdiff_t j = 0;                          \
    for (; j + 16 <= width; j += 16) BODY(16) \
    for (; j + 8 <= width; j += 8) BODY(8)    \
    for (; j + 4 <= width; j += 4) BODY(4)    \
    for (; j + 2 <= width; j += 2) BODY(2)    \
    for (; j < width; j++) BODY(1)

static void add_tables(const double *tables, ptrdiff_t width, ptrdiff_t repeat, double *out) {
#define ADD_TABLES(COLUMNS)                                                                        \
    {                                                                                              \
        double sum[COLUMNS] = {0.0};                                                               \
        for (ptrdiff_t r = 0; r < repeat; r++)                                                     \
            for (int c = 0; c < COLUMNS; c++) sum[c] += tables[r * width + j + c];                 \
        for (int c = 0; c < COLUMNS; c++) out[j + c] += sum[c];                                    \
    }
    OVER_COLUMNS(ADD_TABLES)
}

/* sum[c] = sum_e value[e] rows[e][j + c], where rows[e] = base + index[e] * stride. */
#define SUM_OF_ROWS(COLUMNS)                                           \
    double sum[COLUMNS] = {0.0};                                       \
    for (int64_t e = first; e < last; e++) {                           \
        const double *row = base + index[e] * stride + j;              \
        for (int c = 0; c < COLUMNS; c++) sum[c] += value[e] * row[c]; \
    }

SDCA_INLINE void add_sum_of_rows(int64_t first, int64_t last, const double *value, const int32_t *index,
                                 ptrdiff_t stride, const double *base, ptrdiff_t width, double *out) {
#define ADD(COLUMNS)                                            \
    {                                                           \
        SUM_OF_ROWS(COLUMNS)                                    \
        for (int c = 0; c < COLUMNS; c++) out[j + c] += sum[c]; \
    }
    OVER_COLUMNS(ADD)
}

SDCA_INLINE double norm2_of_sum_of_rows(int64_t first, int64_t last, const double *value, const int32_t *index,
                                        ptrdiff_t stride, const double *base, ptrdiff_t width) {
    double total = 0.0;
#define SQUARE(COLUMNS)                                              \
    {                                                                \
        SUM_OF_ROWS(COLUMNS)                                         \
        for (int c = 0; c < COLUMNS; c++) sum[c] *= sum[c];          \
        for (int h = COLUMNS / 2; h > 0; h /= 2)                     \
            for (int c = 0; c < h; c++) sum[c] += sum[c + h];        \
        total += sum[0];                                             \
    }
    OVER_COLUMNS(SQUARE)
    return total;
}

/* Rows of weights are scattered over megabytes: ask for those of slot s ahead of time. */
SDCA_INLINE void prefetch_rows(const Block *block, int64_t s, const double *W) {
#if defined(__GNUC__)
    for (int64_t e = block->entry_ptr[s]; e < block->entry_ptr[s + 1]; e++) {
        const double *row = W + block->entry_row[e] * block->width;
        for (ptrdiff_t j = 0; j < block->width; j += 8) __builtin_prefetch(row + j);
        __builtin_prefetch(row + block->width - 1);
    }
#endif
}

static void score(const Block *block, ptrdiff_t i, const double *w, double *theta) {
    const ptrdiff_t width = block->width;
    const double *W = w + block->weight_offset;
    for (int64_t s = block->slot_ptr[i]; s < block->slot_ptr[i + 1]; s++) {
        if (s + 1 < block->slot_ptr[i + 1]) prefetch_rows(block, s + 1, W);
        add_sum_of_rows(block->entry_ptr[s], block->entry_ptr[s + 1], block->entry_value, block->entry_row, width, W,
                        width, theta + block->slot_offset[s]);
    }
}

static double norm2(const Block *block, ptrdiff_t i, const double *m) {
    const ptrdiff_t width = block->width;
    double total = 0.0;
    for (int64_t s = block->slot_ptr[i]; s < block->slot_ptr[i + 1]; s++)
        total += block->diagonal[s] * dot(m + block->slot_offset[s], m + block->slot_offset[s], width);
    for (int64_t p = block->pair_ptr[i]; p < block->pair_ptr[i + 1]; p++)
        total += 2.0 * block->pair_value[p] *
                 dot(m + block->pair_offset[2 * p], m + block->pair_offset[2 * p + 1], width);
    for (int64_t g = block->group_ptr[i]; g < block->group_ptr[i + 1]; g++)
        total += norm2_of_sum_of_rows(block->occurrence_ptr[g], block->occurrence_ptr[g + 1], block->occurrence_value,
                                      block->occurrence_offset, 1, m, width);
    return total > 0.0 ? total : 0.0;
}

static void add(const Block *block, ptrdiff_t i, double scale, const double *m, double *w) {
    const ptrdiff_t width = block->width;
    double *W = w + block->weight_offset;
    for (int64_t s = block->slot_ptr[i]; s < block->slot_ptr[i + 1]; s++)
        for (int64_t e = block->entry_ptr[s]; e < block->entry_ptr[s + 1]; e++)
            axpy(scale * block->entry_value[e], m + block->slot_offset[s], W + block->entry_row[e] * width, width);
}

static void clear(const Block *block, ptrdiff_t i, double *w) {
    const ptrdiff_t width = block->width;
    double *W = w + block->weight_offset;
    for (int64_t e = block->entry_ptr[block->slot_ptr[i]]; e < block->entry_ptr[block->slot_ptr[i + 1]]; e++)
        memset(W + block->entry_row[e] * width, 0, (size_t)width * sizeof *W);
}

static void catch_up(const Block *block, ptrdiff_t i, double total, const double *d, double *last, double *w) {
    const ptrdiff_t width = block->width;
    const double *D = d + block->weight_offset;
    double *W = w + block->weight_offset;
    last += block->row_offset;
    for (int64_t e = block->entry_ptr[block->slot_ptr[i]]; e < block->entry_ptr[block->slot_ptr[i + 1]]; e++) {
        const int32_t r = block->entry_row[e];
        if (last[r] != total) {
            axpy(last[r] - total, D + r * width, W + r * width, width);
            last[r] = total;
        }
    }
}

const Kernels KERNELS = {
    .name = KERNELS_NAME,
    .float64 = STORAGE(double, float64),
    .float32 = STORAGE(float, float32),
    .exp_shifted = exp_shifted,
    .log = vector_log,
    .range = range,
    .dot = dot,
    .axpy = axpy,
    .vector_matrix = vector_matrix,
    .pair_table = pair_table,
    .expand_add = expand_add,
    .expand_scale = expand_scale,
    .reduce_max = reduce_max,
    .reduce_sum = reduce_sum,
    .exp_sum = exp_sum,
    .add_tables = add_tables,
    .score = score,
    .norm2 = norm2,
    .add = add,
    .clear = clear,
    .catch_up = catch_up,
};
