/* Kernels on rows of a few numbers, one per state of a table.

   A row is cut into vectors of the processor's length, of which the last one ends where the row ends: it may overlap
   the one before, so that nothing is left over for a slow loop. How many vectors there are is a constant wherever these
   functions are inlined, so that their loops are unrolled and rows stay in registers. Long rows come in parts.       */

#define DOUBLES (VECTOR_BYTES / 8)
#define MOST_VECTORS 8

/* CALL(n) for each part of a row of `width` numbers: n vectors of its `columns` numbers from `begin` on. The parts are
   about equally long, with at most MOST vectors each.                                                               */
#define OVER_PARTS(CALL) OVER_PARTS_OF(DOUBLES, MOST_VECTORS, CALL)
#define OVER_PARTS_OF(LANES, MOST, CALL)                                                        \
    for (ptrdiff_t begin = 0, next; begin < width; begin = next) {                              \
        next = end_of_part(width, begin, LANES, MOST);                                          \
        const ptrdiff_t columns = next - begin;                                                 \
        switch ((columns + (LANES) - 1) / (LANES)) {                                            \
            case 1: { CALL(1); } break;                                                             \
            case 2: { CALL(2); } break;                                                         \
            case 3: { CALL(3); } break;                                                         \
            case 4: { CALL(4); } break;                                                         \
            case 5: { CALL(5); } break;                                                         \
            case 6: { CALL(6); } break;                                                         \
            case 7: { CALL(7); } break;                                                         \
            case 8: { CALL(8); } break;                                                         \
        }                                                                                       \
    }

/* The vectors that are left, divided by the number of parts: no part has a single one unless the whole row has. */
SDCA_INLINE ptrdiff_t end_of_part(ptrdiff_t width, ptrdiff_t begin, ptrdiff_t lanes, ptrdiff_t most) {
    const ptrdiff_t vectors = (width - begin + lanes - 1) / lanes, parts = (vectors + most - 1) / most;
    const ptrdiff_t end = begin + (vectors + parts - 1) / parts * lanes;
    return end < width ? end : width;
}

/* Where vector v of a row of at least one vector begins. */
#define COLUMN_OF(V, LANES) ((V) < n - 1 ? (V) * (LANES) : columns - (LANES))

#define SHAPE const int n, const ptrdiff_t columns
#define SAME_SHAPE n, columns

#if defined(__GNUC__)
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi" /* vectors are never passed: all functions that take them are inlined */
#endif
typedef double Vector __attribute__((vector_size(VECTOR_BYTES)));
typedef double UnalignedVector __attribute__((vector_size(VECTOR_BYTES), aligned(8)));
#define LOAD(X) ((Vector) * (const UnalignedVector *)(X))
#define STORE(V, X) (*(UnalignedVector *)(X) = (V))
#define LANE(V, L) (V)[L]
#define ADD(A, B) ((A) + (B))
#define SUBTRACT(A, B) ((A) - (B))
#define MULTIPLY(A, B) ((A) * (B))
SDCA_INLINE Vector all(double a) { return a - (Vector){0.0}; }
#else
typedef struct {
    double lane[DOUBLES];
} Vector;
#define LANE(V, L) (V).lane[L]
#define OVER_LANES(V, EXPRESSION) \
    for (int l = 0; l < DOUBLES; l++) (V).lane[l] = (EXPRESSION)
SDCA_INLINE Vector LOAD(const double *x) {
    Vector v;
    OVER_LANES(v, x[l]);
    return v;
}
SDCA_INLINE void STORE(Vector v, double *x) { memcpy(x, v.lane, sizeof v.lane); }
SDCA_INLINE Vector ADD(Vector a, Vector b) {
    OVER_LANES(a, a.lane[l] + b.lane[l]);
    return a;
}
SDCA_INLINE Vector SUBTRACT(Vector a, Vector b) {
    OVER_LANES(a, a.lane[l] - b.lane[l]);
    return a;
}
SDCA_INLINE Vector MULTIPLY(Vector a, Vector b) {
    OVER_LANES(a, a.lane[l] * b.lane[l]);
    return a;
}
SDCA_INLINE Vector all(double a) {
    Vector v;
    OVER_LANES(v, a);
    return v;
}
#endif

SDCA_INLINE double sum_of_lanes(Vector v) {
    double sum = LANE(v, 0);
    for (int l = 1; l < DOUBLES; l++) sum += LANE(v, l);
    return sum;
}

/* The last vector of a row. Rows that are shorter than a vector go on with zeros. */
SDCA_INLINE Vector load_last(SHAPE, const double *row) {
    if (n > 1 || columns >= DOUBLES) return LOAD(row + columns - DOUBLES);
    Vector v = all(0.0);
    for (int l = 0; l < columns; l++) LANE(v, l) = row[l];
    return v;
}

SDCA_INLINE void load_row(SHAPE, const double *row, Vector *x) {
    for (int v = 0; v < n - 1; v++) x[v] = LOAD(row + DOUBLES * v);
    x[n - 1] = load_last(SAME_SHAPE, row);
}

SDCA_INLINE void store_row(SHAPE, const Vector *x, double *row) {
    for (int v = 0; v < n - 1; v++) STORE(x[v], row + DOUBLES * v);
    if (n > 1 || columns >= DOUBLES)
        STORE(x[n - 1], row + columns - DOUBLES);
    else
        for (int l = 0; l < columns; l++) row[l] = LANE(x[n - 1], l);
}

/* x += a row */
SDCA_INLINE void add_row(SHAPE, double a, const double *row, Vector *x) {
    for (int v = 0; v < n - 1; v++) x[v] = ADD(x[v], MULTIPLY(all(a), LOAD(row + DOUBLES * v)));
    x[n - 1] = ADD(x[n - 1], MULTIPLY(all(a), load_last(SAME_SHAPE, row)));
}

/* x += row */
SDCA_INLINE void add_whole_row(SHAPE, const double *row, Vector *x) {
    for (int v = 0; v < n - 1; v++) x[v] = ADD(x[v], LOAD(row + DOUBLES * v));
    x[n - 1] = ADD(x[n - 1], load_last(SAME_SHAPE, row));
}

/* Ones, but zeros where the last vector overlaps the one before: what a sum must not count twice. */
SDCA_INLINE Vector not_repeated(SHAPE) {
    Vector ones = all(1.0);
    for (int l = 0; l < DOUBLES * n - columns && columns >= DOUBLES; l++) LANE(ones, l) = 0.0;
    return ones;
}

/* The products of two rows, summed into the lanes of a vector. */
SDCA_INLINE Vector products(const int n, const Vector *x, const Vector *y, Vector not_repeated) {
    Vector sum = MULTIPLY(MULTIPLY(x[n - 1], not_repeated), y[n - 1]);
    for (int v = 0; v < n - 1; v++) sum = ADD(sum, MULTIPLY(x[v], y[v]));
    return sum;
}

/* Up to so many vectors to a row, two rows are summed beside each other: a processor waits for each term of a sum. */
#define FEW_VECTORS 6

/* Row e of a table, or row index[e] of the first of two tables, of the second from `limit` on. */
typedef struct {
    const double *tables[2];
    ptrdiff_t stride;
    const int32_t *index;
    int32_t limit;
} Rows;

SDCA_INLINE const double *row_of(const Rows *rows, int64_t e) {
    if (!rows->index) return rows->tables[0] + e * rows->stride;
    const int32_t r = rows->index[e];
    return rows->tables[r >= rows->limit] + r * rows->stride; /* without a branch that nobody could foresee */
}

/* sum += sum_e value[e] row_e; without values they are 1 */
SDCA_INLINE void add_rows(SHAPE, int64_t first, int64_t last, const double *value, const Rows *rows, Vector *sum) {
#define ADD_ROW(E, SUM)                                                    \
    {                                                                      \
        if (value)                                                         \
            add_row(SAME_SHAPE, value[E], row_of(rows, E), SUM);           \
        else                                                               \
            add_whole_row(SAME_SHAPE, row_of(rows, E), SUM);               \
    }
    int64_t e = first;
    if (n <= FEW_VECTORS) {
        Vector odd[MOST_VECTORS];
        for (int v = 0; v < n; v++) odd[v] = all(0.0);
        for (; e + 1 < last; e += 2) {
            ADD_ROW(e, sum)
            ADD_ROW(e + 1, odd)
        }
        for (int v = 0; v < n; v++) sum[v] = ADD(sum[v], odd[v]);
    }
    for (; e < last; e++) ADD_ROW(e, sum)
#undef ADD_ROW
}

SDCA_INLINE void combine_rows(SHAPE, const double *a, const double *E, ptrdiff_t k, Vector *sum) {
    const Rows rows = {{E, NULL}, k, NULL, 0};
    for (int v = 0; v < n; v++) sum[v] = all(0.0);
    add_rows(SAME_SHAPE, 0, k, a, &rows, sum);
}

static void vector_matrix(const double *restrict a, const double *restrict E, ptrdiff_t k, double *restrict out) {
    const ptrdiff_t width = k;
    Vector sum[MOST_VECTORS];
#define VECTOR_MATRIX(N)                              \
    combine_rows(N, columns, a, E + begin, k, sum);   \
    store_row(N, columns, sum, out + begin)
    OVER_PARTS(VECTOR_MATRIX)
}

static void message(const double *restrict a, const double *restrict E, ptrdiff_t k, double *out, const double *x,
                    double *y) {
    const ptrdiff_t width = k;
    Vector sum[MOST_VECTORS], factor[MOST_VECTORS];
#define MESSAGE(N)                                                          \
    combine_rows(N, columns, a, E + begin, k, sum);                         \
    load_row(N, columns, x + begin, factor);                                \
    store_row(N, columns, sum, out + begin);                                \
    for (int v = 0; v < N; v++) factor[v] = MULTIPLY(factor[v], sum[v]);    \
    store_row(N, columns, factor, y + begin)
    OVER_PARTS(MESSAGE)
}

/* Squares of whole vectors; the last ones may have been done before. */
static void transpose(const double *restrict E, ptrdiff_t k, double *restrict out) {
    if (k < DOUBLES) {
        for (ptrdiff_t i = 0; i < k; i++)
            for (ptrdiff_t j = 0; j < k; j++) out[i * k + j] = E[j * k + i];
        return;
    }
    for (ptrdiff_t i = 0; i < k; i += DOUBLES) {
        const ptrdiff_t top = i < k - DOUBLES ? i : k - DOUBLES;
        for (ptrdiff_t j = 0; j < k; j += DOUBLES) {
            const ptrdiff_t left = j < k - DOUBLES ? j : k - DOUBLES;
            Vector row[DOUBLES], column;
            for (int r = 0; r < DOUBLES; r++) row[r] = LOAD(E + (top + r) * k + left);
            for (int c = 0; c < DOUBLES; c++) {
                for (int r = 0; r < DOUBLES; r++) LANE(column, r) = LANE(row[r], c);
                STORE(column, out + (left + c) * k + top);
            }
        }
    }
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
    OVER_PARTS_OF(DOUBLES, MOST_VECTORS / 2, ADD_OUTER) /* two rows of sums and one of factors stay in registers */
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

/* Four sums at a time, because a processor waits for each term of a single one. */
#define SUMS 4

static void subtract(const double *restrict x, double *restrict y, const double *restrict a, ptrdiff_t n,
                     double *along_x, double *along_y) {
    Vector sum_x[SUMS], sum_y[SUMS];
    ptrdiff_t j = 0;
    for (int s = 0; s < SUMS; s++) sum_x[s] = sum_y[s] = all(0.0);
    for (; j + SUMS * DOUBLES <= n; j += SUMS * DOUBLES)
        for (int s = 0; s < SUMS; s++) {
            const ptrdiff_t begin = j + s * DOUBLES;
            const Vector from = LOAD(x + begin), along = LOAD(a + begin), change = SUBTRACT(LOAD(y + begin), from);
            STORE(change, y + begin);
            sum_x[s] = ADD(sum_x[s], MULTIPLY(along, from));
            sum_y[s] = ADD(sum_y[s], MULTIPLY(along, change));
        }
    *along_x = sum_of_lanes(ADD(ADD(sum_x[0], sum_x[1]), ADD(sum_x[2], sum_x[3])));
    *along_y = sum_of_lanes(ADD(ADD(sum_y[0], sum_y[1]), ADD(sum_y[2], sum_y[3])));
    for (; j < n; j++) {
        y[j] -= x[j];
        *along_x += a[j] * x[j];
        *along_y += a[j] * y[j];
    }
}
