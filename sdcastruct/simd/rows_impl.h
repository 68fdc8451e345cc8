/* Kernels on rows of a few numbers, one per state of a table.

   A row is cut into vectors of four, of which the last one ends where the row ends: it may overlap the one before, so
   that nothing is left over for a slow loop. How many vectors there are is a constant wherever these functions are
   inlined, so that their loops are unrolled and rows stay in registers. Rows of more than 32 numbers come in parts.  */

#define MOST_VECTORS 8

/* CALL(n) for each part of a row of `width` numbers: n vectors of its `columns` numbers from `begin` on. */
#define OVER_PARTS(CALL) OVER_PARTS_OF(4, CALL)
#define OVER_PARTS_OF(LANES, CALL)                                                              \
    for (ptrdiff_t begin = 0; begin < width; begin += (LANES) * MOST_VECTORS) {                 \
        const ptrdiff_t left = width - begin;                                                   \
        const ptrdiff_t columns = left < (LANES) * MOST_VECTORS ? left : (LANES) * MOST_VECTORS; \
        switch ((columns + (LANES) - 1) / (LANES)) {                                            \
            case 1: CALL(1); break;                                                             \
            case 2: CALL(2); break;                                                             \
            case 3: CALL(3); break;                                                             \
            case 4: CALL(4); break;                                                             \
            case 5: CALL(5); break;                                                             \
            case 6: CALL(6); break;                                                             \
            case 7: CALL(7); break;                                                             \
            case 8: CALL(8); break;                                                             \
        }                                                                                       \
    }

/* Where vector v of a row of at least one vector begins. */
#define COLUMN_OF(V, LANES) ((V) < n - 1 ? (V) * (LANES) : columns - (LANES))

#define SHAPE const int n, const ptrdiff_t columns
#define SAME_SHAPE n, columns

#if defined(__GNUC__)
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi" /* vectors are never passed: all functions that take them are inlined */
#endif
typedef double Vector __attribute__((vector_size(32)));
typedef double UnalignedVector __attribute__((vector_size(32), aligned(8)));
#define LOAD(X) ((Vector) * (const UnalignedVector *)(X))
#define STORE(V, X) (*(UnalignedVector *)(X) = (V))
#define LANE(V, L) (V)[L]
#define ADD(A, B) ((A) + (B))
#define MULTIPLY(A, B) ((A) * (B))
#else
typedef struct {
    double lane[4];
} Vector;
SDCA_INLINE Vector LOAD(const double *x) { return (Vector){{x[0], x[1], x[2], x[3]}}; }
SDCA_INLINE void STORE(Vector v, double *x) { memcpy(x, v.lane, sizeof v.lane); }
#define LANE(V, L) (V).lane[L]
SDCA_INLINE Vector ADD(Vector a, Vector b) {
    for (int l = 0; l < 4; l++) a.lane[l] += b.lane[l];
    return a;
}
SDCA_INLINE Vector MULTIPLY(Vector a, Vector b) {
    for (int l = 0; l < 4; l++) a.lane[l] *= b.lane[l];
    return a;
}
#endif

SDCA_INLINE Vector all(double a) {
    Vector v;
    for (int l = 0; l < 4; l++) LANE(v, l) = a;
    return v;
}

SDCA_INLINE double sum_of_lanes(Vector v) { return (LANE(v, 0) + LANE(v, 1)) + (LANE(v, 2) + LANE(v, 3)); }

/* The last vector of a row. Rows of less than four numbers go on with zeros. */
SDCA_INLINE Vector load_last(SHAPE, const double *row) {
    if (columns >= 4) return LOAD(row + columns - 4);
    Vector v = all(0.0);
    for (int l = 0; l < columns; l++) LANE(v, l) = row[l];
    return v;
}

SDCA_INLINE void load_row(SHAPE, const double *row, Vector *x) {
    for (int v = 0; v < n - 1; v++) x[v] = LOAD(row + 4 * v);
    x[n - 1] = load_last(SAME_SHAPE, row);
}

SDCA_INLINE void store_row(SHAPE, const Vector *x, double *row) {
    for (int v = 0; v < n - 1; v++) STORE(x[v], row + 4 * v);
    if (columns >= 4)
        STORE(x[n - 1], row + columns - 4);
    else
        for (int l = 0; l < columns; l++) row[l] = LANE(x[n - 1], l);
}

/* x += a row */
SDCA_INLINE void add_row(SHAPE, double a, const double *row, Vector *x) {
    for (int v = 0; v < n - 1; v++) x[v] = ADD(x[v], MULTIPLY(all(a), LOAD(row + 4 * v)));
    x[n - 1] = ADD(x[n - 1], MULTIPLY(all(a), load_last(SAME_SHAPE, row)));
}

/* Ones, but zeros where the last vector overlaps the one before: what a sum must not count twice. */
SDCA_INLINE Vector not_repeated(SHAPE) {
    Vector ones = all(1.0);
    for (int l = 0; l < 4 * n - columns && columns >= 4; l++) LANE(ones, l) = 0.0;
    return ones;
}

/* The products of two rows, summed into four lanes. */
SDCA_INLINE Vector products(const int n, const Vector *x, const Vector *y, Vector not_repeated) {
    Vector sum = MULTIPLY(MULTIPLY(x[n - 1], not_repeated), y[n - 1]);
    for (int v = 0; v < n - 1; v++) sum = ADD(sum, MULTIPLY(x[v], y[v]));
    return sum;
}

/* out += sum_e value[e] row_e, where row_e is the row index[e], or e where there is no index, of a table */
SDCA_INLINE void add_rows_to(SHAPE, int64_t first, int64_t last, const double *value, const int32_t *index,
                             ptrdiff_t stride, const double *table, double *out) {
    Vector sum[MOST_VECTORS];
    load_row(SAME_SHAPE, out, sum);
    for (int64_t e = first; e < last; e++) add_row(SAME_SHAPE, value[e], table + (index ? index[e] : e) * stride, sum);
    store_row(SAME_SHAPE, sum, out);
}

static void vector_matrix(const double *restrict a, const double *restrict E, ptrdiff_t k, double *restrict out) {
    const ptrdiff_t width = k;
    memset(out, 0, (size_t)k * sizeof *out);
#define VECTOR_MATRIX(N) add_rows_to(N, columns, 0, k, a, NULL, k, E + begin, out + begin)
    OVER_PARTS(VECTOR_MATRIX)
}

/* Two rows at a time, so that the processor need not wait for each sum. */
SDCA_INLINE void outer_rows(SHAPE, int count, const double *const *a, const double *const *y, ptrdiff_t begin,
                            ptrdiff_t k, double *out) {
    Vector x[MOST_VECTORS], upper[MOST_VECTORS], lower[MOST_VECTORS];
    for (ptrdiff_t i = 0; i < k; i += 2) {
        const ptrdiff_t below = i + 1 < k ? i + 1 : i;
        load_row(SAME_SHAPE, out + i * k, upper);
        load_row(SAME_SHAPE, out + below * k, lower);
        for (int q = 0; q < count; q++) {
            load_row(SAME_SHAPE, y[q] + begin, x);
            for (int v = 0; v < n; v++) upper[v] = ADD(upper[v], MULTIPLY(all(a[q][i]), x[v]));
            for (int v = 0; v < n; v++) lower[v] = ADD(lower[v], MULTIPLY(all(a[q][below]), x[v]));
        }
        store_row(SAME_SHAPE, upper, out + i * k);
        store_row(SAME_SHAPE, lower, out + below * k);
    }
}

static void add_outer(int count, const double *const *a, const double *const *y, ptrdiff_t k, double *restrict out) {
    const ptrdiff_t width = k;
#define ADD_OUTER(N) outer_rows(N, columns, count, a, y, begin, k, out + begin)
    OVER_PARTS(ADD_OUTER)
}

SDCA_INLINE void scale_rows(SHAPE, const double *a, const double *E, const double *y, ptrdiff_t k, double *pair) {
    Vector x[MOST_VECTORS], row[MOST_VECTORS];
    load_row(SAME_SHAPE, y, x);
    for (ptrdiff_t i = 0; i < k; i++, E += k, pair += k) {
        load_row(SAME_SHAPE, E, row);
        for (int v = 0; v < n; v++) row[v] = MULTIPLY(MULTIPLY(row[v], x[v]), all(a[i]));
        store_row(SAME_SHAPE, row, pair);
    }
}

static void scale_table(const double *restrict a, const double *restrict E, const double *restrict y, ptrdiff_t k,
                        double *restrict pair) {
    const ptrdiff_t width = k;
#define SCALE_TABLE(N) scale_rows(N, columns, a, E + begin, y + begin, k, pair + begin)
    OVER_PARTS(SCALE_TABLE)
}

SDCA_INLINE void pair_rows(SHAPE, const double *a, const double *E, const double *y, ptrdiff_t k, double *pair,
                           double *b) {
    const Vector once = not_repeated(SAME_SHAPE);
    Vector x[MOST_VECTORS], row[MOST_VECTORS];
    load_row(SAME_SHAPE, y, x);
    for (ptrdiff_t i = 0; i < k; i++, E += k, pair += k) {
        load_row(SAME_SHAPE, E, row);
        b[i] += sum_of_lanes(products(n, row, x, once));
        for (int v = 0; v < n; v++) row[v] = MULTIPLY(MULTIPLY(row[v], x[v]), all(a[i]));
        store_row(SAME_SHAPE, row, pair);
    }
}

static void pair_table(const double *a, const double *E, const double *restrict y, ptrdiff_t k, double *pair,
                       double *restrict b) {
    const ptrdiff_t width = k;
    memset(b, 0, (size_t)k * sizeof *b);
#define PAIR_TABLE(N) pair_rows(N, columns, a, E + begin, y + begin, k, pair + begin, b)
    OVER_PARTS(PAIR_TABLE)
}

/* Rows of weights are scattered over megabytes: ask for those of slot s ahead of time. */
#define PREFETCH_ROWS(BLOCK, S, W)                                                           \
    for (int64_t e = (BLOCK)->entry_ptr[S]; e < (BLOCK)->entry_ptr[(S) + 1]; e++) {          \
        const double *row = (W) + (BLOCK)->entry_row[e] * (BLOCK)->width;                    \
        for (ptrdiff_t j = 0; j < columns; j += 8) PREFETCH(row + j);                        \
        PREFETCH(row + columns - 1);                                                         \
    }

SDCA_INLINE void score_part(SHAPE, const Block *block, ptrdiff_t i, const double *W, double *theta) {
    for (int64_t s = block->slot_ptr[i]; s < block->slot_ptr[i + 1]; s++) {
        if (block->far && s + 1 < block->slot_ptr[i + 1]) PREFETCH_ROWS(block, s + 1, W)
        add_rows_to(SAME_SHAPE, block->entry_ptr[s], block->entry_ptr[s + 1], block->entry_value, block->entry_row,
                    block->width, W, theta + block->slot_offset[s]);
    }
}

static void score(const Block *block, ptrdiff_t i, const double *w, double *theta) {
    const ptrdiff_t width = block->width;
#define SCORE(N) score_part(N, columns, block, i, w + block->weight_offset + begin, theta + begin)
    OVER_PARTS(SCORE)
}

SDCA_INLINE double norm2_part(SHAPE, const Block *block, ptrdiff_t i, const double *m) {
    const Vector once = not_repeated(SAME_SHAPE);
    Vector total = all(0.0), x[MOST_VECTORS], y[MOST_VECTORS];
    for (int64_t s = block->slot_ptr[i]; s < block->slot_ptr[i + 1]; s++) {
        load_row(SAME_SHAPE, m + block->slot_offset[s], x);
        total = ADD(total, MULTIPLY(all(block->diagonal[s]), products(n, x, x, once)));
    }
    for (int64_t p = block->pair_ptr[i]; p < block->pair_ptr[i + 1]; p++) {
        load_row(SAME_SHAPE, m + block->pair_offset[2 * p], x);
        load_row(SAME_SHAPE, m + block->pair_offset[2 * p + 1], y);
        total = ADD(total, MULTIPLY(all(2.0 * block->pair_value[p]), products(n, x, y, once)));
    }
    for (int64_t g = block->group_ptr[i]; g < block->group_ptr[i + 1]; g++) {
        for (int v = 0; v < n; v++) x[v] = all(0.0);
        for (int64_t o = block->occurrence_ptr[g]; o < block->occurrence_ptr[g + 1]; o++)
            add_row(SAME_SHAPE, block->occurrence_value[o], m + block->occurrence_offset[o], x);
        total = ADD(total, products(n, x, x, once));
    }
    return sum_of_lanes(total);
}

static double norm2(const Block *block, ptrdiff_t i, const double *m) {
    const ptrdiff_t width = block->width;
    double total = 0.0;
#define NORM2(N) total += norm2_part(N, columns, block, i, m + begin)
    OVER_PARTS(NORM2)
    return total > 0.0 ? total : 0.0;
}

#define PREFETCH_BETWEEN(ARRAY, FIRST, LAST) prefetch((ARRAY) + (FIRST), ((LAST) - (FIRST)) * (ptrdiff_t)sizeof *(ARRAY))

static void prefetch_sample(const Block *block, ptrdiff_t i) {
    const int64_t first_slot = block->slot_ptr[i], end_slot = block->slot_ptr[i + 1];
    PREFETCH_BETWEEN(block->slot_offset, first_slot, end_slot);
    PREFETCH_BETWEEN(block->entry_ptr, first_slot, end_slot + 1);
    PREFETCH_BETWEEN(block->entry_row, block->entry_ptr[first_slot], block->entry_ptr[end_slot]);
    PREFETCH_BETWEEN(block->entry_value, block->entry_ptr[first_slot], block->entry_ptr[end_slot]);
    if (!block->diagonal) return;
    const int64_t *pair = block->pair_ptr + i, *group = block->group_ptr + i;
    PREFETCH_BETWEEN(block->diagonal, first_slot, end_slot);
    PREFETCH_BETWEEN(block->pair_offset, 2 * pair[0], 2 * pair[1]);
    PREFETCH_BETWEEN(block->pair_value, pair[0], pair[1]);
    if (group[0] < group[1]) {
        const int64_t first = block->occurrence_ptr[group[0]], last = block->occurrence_ptr[group[1]];
        PREFETCH_BETWEEN(block->occurrence_offset, first, last);
        PREFETCH_BETWEEN(block->occurrence_value, first, last);
    }
}

SDCA_INLINE void add_part(SHAPE, const Block *block, ptrdiff_t i, double scale, const double *m, double *W) {
    for (int64_t s = block->slot_ptr[i]; s < block->slot_ptr[i + 1]; s++) {
        Vector x[MOST_VECTORS], row[MOST_VECTORS];
        load_row(SAME_SHAPE, m + block->slot_offset[s], x);
        for (int64_t e = block->entry_ptr[s]; e < block->entry_ptr[s + 1]; e++) {
            const Vector factor = all(scale * block->entry_value[e]);
            double *weights = W + block->entry_row[e] * block->width;
            load_row(SAME_SHAPE, weights, row);
            for (int v = 0; v < n; v++) row[v] = ADD(row[v], MULTIPLY(factor, x[v]));
            store_row(SAME_SHAPE, row, weights);
        }
    }
}

static void add(const Block *block, ptrdiff_t i, double scale, const double *m, double *w) {
    const ptrdiff_t width = block->width;
#define ADD_PART(N) add_part(N, columns, block, i, scale, m + begin, w + block->weight_offset + begin)
    OVER_PARTS(ADD_PART)
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
