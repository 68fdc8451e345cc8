/* Kernels on weights: rows of W for the attributes of a sample, see `Block` in kernels.h. On the vectors and rows of
   rows_impl.h.                                                                                                     */

/* What is asked for ahead should not drive anything else out of the second cache. */
#define MOST_BYTES_AHEAD (1 << 18)

/* The rows of the weights of a block, from column `begin` on. */
SDCA_INLINE Rows weights_of(const Block *block, const double *w, ptrdiff_t begin) {
    const double *replicas = block->replicas ? block->replicas + begin : NULL;
    const Rows rows = {
        {w + block->weight_offset + begin, replicas}, block->width, block->entry_row, block->first_replica};
    return rows;
}

/* All rows of sample i are among its entries before this one; it may have no slots. */
SDCA_INLINE int64_t end_of_rows(const Block *block, ptrdiff_t i) {
    const int64_t first = block->place[i].entry, end = block->place[i + 1].entry;
    return block->n_dense && first < end ? first + block->n_dense : end;
}

/* Rows of weights are scattered over megabytes, and there are too many of them to wait for each. */
static void prefetch_weights(const Block *block, ptrdiff_t i, const double *w) {
    const Rows rows = weights_of(block, w, 0);
    const int64_t first = block->place[i].entry, end = end_of_rows(block, i);
    const int64_t most = first + MOST_BYTES_AHEAD / (8 * block->width);
    if (!block->far) return;
    for (int64_t e = first; e < end && e < most; e++) {
        const double *row = row_of(&rows, e);
        for (ptrdiff_t j = 0; j < block->width; j += LINE / 8) PREFETCH(row + j);
        PREFETCH(row + block->width - 1);
    }
}

/* Dense attributes are multiplied as a BLAS does: tiles of sums stay in registers, so that rows are read once for
   several slots, and written once for all slots.                                                                  */
#define TILE 4         /* rows of a tile; samples with fewer slots have nothing to gain */
#define TILE_VECTORS 3 /* its vectors per row; with a row of factors they fill sixteen registers */

SDCA_INLINE int in_tiles(const Block *block, ptrdiff_t i) {
    return block->n_dense && block->place[i + 1].slot - block->place[i].slot >= TILE;
}

/* sum_q += scale sum_k a[q across + k along] row_k for `count` rows q of a tile, over n_terms rows from entry `first`
   of a table on, or at offsets of an array.                                                                        */
SDCA_INLINE void multiply_tile(SHAPE, int count, double scale, const double *a, ptrdiff_t across, ptrdiff_t along,
                               int64_t n_terms, const Rows *rows, int64_t first, const double *array,
                               const int64_t *offset, Vector (*sum)[MOST_VECTORS]) {
    for (int64_t k = 0; k < n_terms; k++) {
        Vector row[MOST_VECTORS];
        load_row(SAME_SHAPE, rows ? row_of(rows, first + k) : array + offset[k], row);
        for (int q = 0; q < count; q++)
            for (int v = 0; v < n; v++)
                sum[q][v] = ADD(sum[q][v], MULTIPLY(all(scale * a[q * across + k * along]), row[v]));
    }
}

SDCA_INLINE void load_tile(SHAPE, int count, double *const *rows, Vector (*sum)[MOST_VECTORS]) {
    for (int q = 0; q < count; q++) load_row(SAME_SHAPE, rows[q], sum[q]);
}

SDCA_INLINE void store_tile(SHAPE, int count, double *const *rows, Vector (*sum)[MOST_VECTORS]) {
    for (int q = 0; q < count; q++) store_row(SAME_SHAPE, sum[q], rows[q]);
}

/* BODY(count) for tiles of `count` rows from row j on. */
#define OVER_TILES(N_ROWS, BODY)                       \
    ptrdiff_t j = 0;                                   \
    for (; j + TILE <= (N_ROWS); j += TILE) BODY(TILE) \
    switch ((N_ROWS) - j) {                            \
        case 1: BODY(1) break;                         \
        case 2: BODY(2) break;                         \
        case 3: BODY(3) break;                         \
    }

SDCA_INLINE void score_dense(SHAPE, const Block *block, ptrdiff_t i, const Rows *weights, double *theta) {
    const int64_t slot = block->place[i].slot, entry = block->place[i].entry;
    const ptrdiff_t n_slots = block->place[i + 1].slot - slot, A = block->n_dense;
#define SCORE_TILE(COUNT)                                                                                      \
    {                                                                                                          \
        Vector sum[TILE][MOST_VECTORS];                                                                        \
        double *slots[TILE];                                                                                   \
        for (int q = 0; q < COUNT; q++) slots[q] = theta + block->slot_offset[slot + j + q];                   \
        load_tile(SAME_SHAPE, COUNT, slots, sum);                                                              \
        multiply_tile(SAME_SHAPE, COUNT, 1.0, block->entry_value + entry + j * A, A, 1, A, weights, entry, NULL, \
                      NULL, sum);                                                                              \
        store_tile(SAME_SHAPE, COUNT, slots, sum);                                                             \
    }
    OVER_TILES(n_slots, SCORE_TILE)
}

SDCA_INLINE void add_dense(SHAPE, const Block *block, ptrdiff_t i, double scale, const Rows *weights,
                           const double *m) {
    const int64_t slot = block->place[i].slot, entry = block->place[i].entry;
    const ptrdiff_t n_slots = block->place[i + 1].slot - slot, A = block->n_dense;
#define ADD_TILE(COUNT)                                                                                        \
    {                                                                                                          \
        Vector sum[TILE][MOST_VECTORS];                                                                        \
        double *rows[TILE];                                                                                    \
        for (int q = 0; q < COUNT; q++) rows[q] = (double *)row_of(weights, entry + j + q);                    \
        load_tile(SAME_SHAPE, COUNT, rows, sum);                                                               \
        multiply_tile(SAME_SHAPE, COUNT, scale, block->entry_value + entry + j, 1, A, n_slots, NULL, 0, m,     \
                      block->slot_offset + slot, sum);                                                         \
        store_tile(SAME_SHAPE, COUNT, rows, sum);                                                              \
    }
    OVER_TILES(A, ADD_TILE)
}

SDCA_INLINE void score_part(SHAPE, const Block *block, ptrdiff_t i, const double *value, const Rows *weights,
                            double *theta) {
    for (int64_t s = block->place[i].slot; s < block->place[i + 1].slot; s++) {
        Vector sum[MOST_VECTORS];
        load_row(SAME_SHAPE, theta + block->slot_offset[s], sum);
        add_rows(SAME_SHAPE, block->entry_ptr[s], block->entry_ptr[s + 1], value, weights, sum);
        store_row(SAME_SHAPE, sum, theta + block->slot_offset[s]);
    }
}

/* With and without values apart, so that no loop has to ask. */
#define BY_VALUES(PART, ...)                                        \
    if (block->entry_value)                                         \
        PART(__VA_ARGS__, block->entry_value, &weights, slots);     \
    else                                                            \
        PART(__VA_ARGS__, NULL, &weights, slots)

static void score(const Block *block, ptrdiff_t i, const double *w, double *theta) {
    const ptrdiff_t width = block->width;
#define SCORE(N)                                                           \
    const Rows weights = weights_of(block, w, begin);                      \
    double *slots = theta + begin;                                         \
    BY_VALUES(score_part, N, columns, block, i)
#define SCORE_DENSE(N)                                                     \
    const Rows weights = weights_of(block, w, begin);                      \
    score_dense(N, columns, block, i, &weights, theta + begin)
    if (in_tiles(block, i)) {
        OVER_PARTS_OF(DOUBLES, TILE_VECTORS, SCORE_DENSE)
    } else {
        OVER_PARTS(SCORE)
    }
}

SDCA_INLINE double norm2_part(SHAPE, const Block *block, ptrdiff_t i, const double *m) {
    const Place from = block->place[i], to = block->place[i + 1];
    const Vector once = not_repeated(SAME_SHAPE);
    Vector total = all(0.0), x[MOST_VECTORS], y[MOST_VECTORS];
    for (int64_t s = from.slot; s < to.slot; s++) {
        load_row(SAME_SHAPE, m + block->slot_offset[s], x);
        total = ADD(total, MULTIPLY(all(block->diagonal[s]), products(n, x, x, once)));
    }
    for (int64_t p = from.pair; p < to.pair; p++) {
        load_row(SAME_SHAPE, m + block->pair_offset[2 * p], x);
        load_row(SAME_SHAPE, m + block->pair_offset[2 * p + 1], y);
        total = ADD(total, MULTIPLY(all(2.0 * block->pair_value[p]), products(n, x, y, once)));
    }
    for (int64_t g = from.group; g < to.group; g++) {
        for (int v = 0; v < n; v++) x[v] = all(0.0);
        for (int64_t o = block->occurrence_ptr[g]; o < block->occurrence_ptr[g + 1]; o++) {
            const double *row = m + block->occurrence_offset[o];
            if (block->occurrence_value)
                add_row(SAME_SHAPE, block->occurrence_value[o], row, x);
            else
                add_whole_row(SAME_SHAPE, row, x);
        }
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
    const Place from = block->place[i], to = block->place[i + 1];
    PREFETCH_BETWEEN(block->slot_offset, from.slot, to.slot);
    PREFETCH_BETWEEN(block->entry_ptr, from.slot, to.slot + 1);
    PREFETCH_BETWEEN(block->entry_row, from.entry, end_of_rows(block, i));
    if (block->entry_value) PREFETCH_BETWEEN(block->entry_value, from.entry, to.entry);
    if (!block->diagonal) return;
    PREFETCH_BETWEEN(block->diagonal, from.slot, to.slot);
    PREFETCH_BETWEEN(block->pair_offset, 2 * from.pair, 2 * to.pair);
    PREFETCH_BETWEEN(block->pair_value, from.pair, to.pair);
    PREFETCH_BETWEEN(block->occurrence_ptr, from.group, to.group + 1);
    PREFETCH_BETWEEN(block->occurrence_offset, from.occurrence, to.occurrence);
    if (block->occurrence_value) PREFETCH_BETWEEN(block->occurrence_value, from.occurrence, to.occurrence);
}

SDCA_INLINE void add_part(SHAPE, const Block *block, ptrdiff_t i, double scale, const double *value,
                          const Rows *weights, const double *m) {
    for (int64_t s = block->place[i].slot; s < block->place[i + 1].slot; s++) {
        Vector x[MOST_VECTORS], row[MOST_VECTORS];
        load_row(SAME_SHAPE, m + block->slot_offset[s], x);
        for (int v = 0; v < n; v++) x[v] = MULTIPLY(all(scale), x[v]);
        for (int64_t e = block->entry_ptr[s]; e < block->entry_ptr[s + 1]; e++) {
            double *place = (double *)row_of(weights, e);
            load_row(SAME_SHAPE, place, row);
            for (int v = 0; v < n; v++) row[v] = ADD(row[v], value ? MULTIPLY(all(value[e]), x[v]) : x[v]);
            store_row(SAME_SHAPE, row, place);
        }
    }
}

static void add(const Block *block, ptrdiff_t i, double scale, const double *m, double *w) {
    const ptrdiff_t width = block->width;
#define ADD_PART(N)                                                        \
    const Rows weights = weights_of(block, w, begin);                      \
    const double *slots = m + begin;                                       \
    BY_VALUES(add_part, N, columns, block, i, scale)
#define ADD_DENSE(N)                                                       \
    const Rows weights = weights_of(block, w, begin);                      \
    add_dense(N, columns, block, i, scale, &weights, m + begin)
    if (in_tiles(block, i)) {
        OVER_PARTS_OF(DOUBLES, TILE_VECTORS, ADD_DENSE)
    } else {
        OVER_PARTS(ADD_PART)
    }
}

static void clear(const Block *block, ptrdiff_t i, double *w) {
    const ptrdiff_t width = block->width;
    double *W = w + block->weight_offset;
    for (int64_t e = block->place[i].entry, end = end_of_rows(block, i); e < end; e++)
        memset(W + block->entry_row[e] * width, 0, (size_t)width * sizeof *W);
}

static void catch_up(const Block *block, ptrdiff_t i, double total, const double *d, double *last, double *w) {
    const ptrdiff_t width = block->width;
    const double *D = d + block->weight_offset;
    double *W = w + block->weight_offset;
    last += block->row_offset;
    for (int64_t e = block->place[i].entry, end = end_of_rows(block, i); e < end; e++) {
        const int32_t r = block->entry_row[e];
        if (last[r] != total) {
            axpy(last[r] - total, D + r * width, W + r * width, width);
            last[r] = total;
        }
    }
}
