/* The kernels of kernels.h in plain C. Included by one file per instruction set, which defines KERNELS (the name of
   the table), KERNELS_NAME, and VECTOR_BYTES, the length of its vectors.                                            */
#include "ahead.h"
#include "kernels.h"
#include "vecmath.h"

/* Four at a time; the last four may have been done before. */
static void exp_shifted(const double *restrict x, double shift, double *restrict out, ptrdiff_t n) {
    if (n < 4) {
        for (ptrdiff_t j = 0; j < n; j++) out[j] = fast_exp(x[j] - shift);
        return;
    }
    for (ptrdiff_t j = 0; j < n; j += 4) {
        const ptrdiff_t begin = j < n - 4 ? j : n - 4;
#pragma omp simd
        for (ptrdiff_t c = 0; c < 4; c++) out[begin + c] = fast_exp(x[begin + c] - shift);
    }
}

static void vector_log(const double *restrict x, double *restrict out, ptrdiff_t n) {
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) out[j] = fast_log(x[j]);
}

#define PREFETCH AHEAD_PREFETCH
#define PAGE 4096
#define LINE AHEAD_LINE
#define FIRST_LINES 4
#define SHORT 10240

/* All lines of a short stretch, but of a long one the first of every page: the processor follows them by itself. */
static void prefetch(const void *address, ptrdiff_t n_bytes) {
    const char *end = (const char *)address + n_bytes;
    const ptrdiff_t asked = n_bytes <= SHORT ? PAGE : FIRST_LINES * LINE;
    for (const char *page = (const char *)address - (uintptr_t)address % LINE; page < end;) {
        const char *next = page + (PAGE - (uintptr_t)page % PAGE);
        for (const char *line = page; line < page + asked && line < next && line < end; line += LINE) PREFETCH(line);
        page = next;
    }
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

static double normalise(double *x, ptrdiff_t n) {
    const double sum = sum_of(x, n);
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) x[j] /= sum;
    return sum;
}

static void multiply(const double *restrict x, double *restrict y, ptrdiff_t n) {
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) y[j] *= x[j];
}

static void divide(const double *restrict x, const double *y, double *out, ptrdiff_t n) {
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) out[j] = y[j] > 0.0 ? x[j] / y[j] : 0.0;
}

static void axpy(double a, const double *restrict x, double *restrict y, ptrdiff_t n) {
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) y[j] += a * x[j];
}

static void scale(double a, double *x, ptrdiff_t n) {
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) x[j] *= a;
}

static void exchange(double *restrict own, double *restrict last, double *restrict common, ptrdiff_t n) {
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) own[j] = last[j] = common[j] += own[j] - last[j];
}

#include "rows_impl.h"
#include "weights_impl.h"

#define REAL double
#define ROUNDED(x) (x)
#define ROUNDED_SUM(a, b) ((a) + (b))
#define STORED(name) name##_float64
#include "storage_impl.h"
#undef REAL
#undef ROUNDED
#undef ROUNDED_SUM
#undef STORED

#define REAL float
#define ROUNDED(x) (((float)(x) + TINY_FLOAT) - TINY_FLOAT) /* no subnormals: they are slow */
#define ROUNDED_SUM(a, b) (((a) + ((b) + TINY_FLOAT)) - TINY_FLOAT)
#define STORED(name) name##_float32
#include "storage_impl.h"
#undef REAL
#undef ROUNDED
#undef ROUNDED_SUM
#undef STORED

#define STORAGE(TYPE, SUFFIX)                                    \
    {                                                            \
        .size = sizeof(TYPE),                                    \
        .load = load_##SUFFIX,                                   \
        .store = store_##SUFFIX,                                 \
        .mix = mix_##SUFFIX,                                     \
        .scale_pair = scale_pair_##SUFFIX,                       \
        .mix_pair = mix_pair_##SUFFIX,                           \
        .entropy_along = entropy_along_##SUFFIX,                 \
        .bend_along = bend_along_##SUFFIX,                       \
        .divergence_along = divergence_along_##SUFFIX,           \
        .divergence_between = divergence_between_##SUFFIX,       \
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

const Kernels KERNELS = {
    .name = KERNELS_NAME,
    .float64 = STORAGE(double, float64),
    .float32 = STORAGE(float, float32),
    .exp_shifted = exp_shifted,
    .log = vector_log,
    .prefetch = prefetch,
    .range = range,
    .dot = dot,
    .subtract = subtract,
    .normalise = normalise,
    .scale = scale,
    .multiply = multiply,
    .divide = divide,
    .axpy = axpy,
    .exchange = exchange,
    .transpose = transpose,
    .vector_matrix = vector_matrix,
    .message = message,
    .add_outer = add_outer,
    .scale_table = scale_table,
    .pair_table = pair_table,
    .expand_add = expand_add,
    .expand_scale = expand_scale,
    .reduce_max = reduce_max,
    .reduce_sum = reduce_sum,
    .exp_sum = exp_sum,
    .add_tables = add_tables,
    .score = score,
    .norm2 = norm2,
    .prefetch_sample = prefetch_sample,
    .prefetch_weights = prefetch_weights,
    .add = add,
    .clear = clear,
    .catch_up = catch_up,
};
