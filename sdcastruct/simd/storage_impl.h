/* The kernels of a dual point that is stored as REAL. Included once per type, which says how to get there from a double,
   ROUNDED(x), for vectors of REAL ROUNDED_SUM(a, b), and what its kernels are called, STORED(name).                 */

#define CHUNK 256

static void STORED(load)(const void *alpha, double *restrict out, ptrdiff_t n) {
    const REAL *restrict a = alpha;
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) out[j] = a[j];
}

static void STORED(store)(const double *restrict x, void *alpha, ptrdiff_t n) {
    REAL *restrict a = alpha;
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) a[j] = ROUNDED(x[j]);
}

static void STORED(mix)(void *alpha, const double *restrict beta, double gamma, ptrdiff_t n) {
    REAL *restrict a = alpha;
    const REAL g = (REAL)gamma, rest = 1 - g;
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) a[j] = ROUNDED(rest * a[j] + g * (REAL)beta[j]);
}

/* alpha = rest alpha + a E y of `columns` columns that are too few for a vector. */
SDCA_INLINE void STORED(mix_columns)(ptrdiff_t columns, REAL *alpha, const double *a, const REAL *E, const double *y,
                                     double gamma, ptrdiff_t k) {
    for (ptrdiff_t i = 0; i < k; i++)
        for (ptrdiff_t j = 0; j < columns; j++) {
            const REAL beta = (REAL)(gamma * a[i]) * ((REAL)y[j] * E[i * k + j]);
            alpha[i * k + j] = ROUNDED((REAL)(1.0 - gamma) * alpha[i * k + j] + beta);
        }
}

#if defined(__GNUC__)
#define LANES (VECTOR_BYTES / (int)sizeof(REAL))
typedef REAL STORED(Wide) __attribute__((vector_size(VECTOR_BYTES)));
typedef REAL STORED(UnalignedWide) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL))));

/* The same in n vectors. A row is read before it is written, because the last one may overlap the one before. */
SDCA_INLINE void STORED(mix_rows)(SHAPE, REAL *alpha, const double *a, const REAL *E, const double *y, double gamma,
                                  ptrdiff_t k) {
    const REAL rest = (REAL)(1.0 - gamma);
    STORED(Wide) x[MOST_VECTORS], row[MOST_VECTORS];
    for (int v = 0; v < n; v++)
        for (int l = 0; l < LANES; l++) x[v][l] = (REAL)y[COLUMN_OF(v, LANES) + l];
    for (ptrdiff_t i = 0; i < k; i++, E += k, alpha += k) {
        const REAL factor = (REAL)(gamma * a[i]);
        for (int v = 0; v < n; v++) {
            const STORED(Wide) old = *(STORED(UnalignedWide) *)(alpha + COLUMN_OF(v, LANES));
            const STORED(Wide) table = *(const STORED(UnalignedWide) *)(E + COLUMN_OF(v, LANES));
            row[v] = ROUNDED_SUM(rest * old, factor * (x[v] * table));
        }
        for (int v = 0; v < n; v++) *(STORED(UnalignedWide) *)(alpha + COLUMN_OF(v, LANES)) = row[v];
    }
}
#endif

static void STORED(mix_pair)(void *alpha, const double *a, const void *E, const double *y, double gamma,
                             ptrdiff_t k) {
#define MIX_ARGUMENTS columns, (REAL *)alpha + begin, a, (const REAL *)E + begin, y + begin, gamma, k
#if defined(__GNUC__)
    const ptrdiff_t width = k;
#define MIX_ROWS(N)                           \
    if (columns < LANES)                      \
        STORED(mix_columns)(MIX_ARGUMENTS);   \
    else                                      \
        STORED(mix_rows)(N, MIX_ARGUMENTS)
    OVER_PARTS_OF(LANES, MOST_VECTORS, MIX_ROWS)
#undef MIX_ROWS
#undef LANES
#else
    const ptrdiff_t columns = k, begin = 0;
    STORED(mix_columns)(MIX_ARGUMENTS);
#endif
#undef MIX_ARGUMENTS
}

static void STORED(entropy_along)(const void *alpha, const double *beta, double gamma, ptrdiff_t n, double c,
                                  double *sums) {
    const REAL *a = alpha;
    double value = 0.0, first = 0.0;
#pragma omp simd reduction(+ : value, first)
    for (ptrdiff_t j = 0; j < n; j++) {
        double m = (1.0 - gamma) * a[j] + gamma * beta[j];
        double log_m = fast_log(m + TINY);
        value += m * log_m;
        first += (beta[j] - a[j]) * log_m;
    }
    sums[0] -= c * value;
    sums[1] -= c * first;
}

/* In single precision; sums of a few hundred terms at most, so that they do not lose more than the terms. */
static void STORED(rough_entropy_along)(const void *alpha, const double *beta, double gamma, ptrdiff_t n, double c,
                                        double *sums) {
    const REAL *a = alpha;
    const float g = (float)gamma, rest = 1.0f - g;
    for (ptrdiff_t begin = 0; begin < n; begin += CHUNK) {
        const ptrdiff_t end = begin + CHUNK < n ? begin + CHUNK : n;
        float value = 0.0f, first = 0.0f;
#pragma omp simd reduction(+ : value, first)
        for (ptrdiff_t j = begin; j < end; j++) {
            float from = (float)a[j], to = (float)beta[j];
            float m = rest * from + (g * to + TINY_FLOAT);
            float log_m = rough_log(m);
            value += m * log_m;
            first += (to - from) * log_m;
        }
        sums[0] -= c * value;
        sums[1] -= c * first;
    }
}

static double STORED(bend_along)(const void *alpha, const double *beta, double gamma, ptrdiff_t n) {
    const REAL *a = alpha;
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t j = 0; j < n; j++) {
        double delta = beta[j] - a[j];
        sum -= delta * delta / ((1.0 - gamma) * a[j] + gamma * beta[j] + TINY);
    }
    return sum;
}

#undef CHUNK
