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
    const REAL g = (REAL)gamma, rest = (REAL)(1.0 - gamma);
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) a[j] = ROUNDED(rest * a[j] + g * (REAL)beta[j]);
}

/* beta = a E y of `columns` columns that are too few for a vector. */
SDCA_INLINE void STORED(scale_columns)(ptrdiff_t columns, const double *a, const REAL *E, const double *y, ptrdiff_t k,
                                       REAL *beta) {
    for (ptrdiff_t i = 0; i < k; i++)
        for (ptrdiff_t j = 0; j < columns; j++) beta[i * k + j] = (REAL)a[i] * ((REAL)y[j] * E[i * k + j]);
}

/* alpha = rest alpha + gamma beta likewise. */
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
#define WIDE(ARRAY, V) (*(STORED(UnalignedWide) *)((ARRAY) + COLUMN_OF(V, LANES)))
#define CONSTANT_WIDE(ARRAY, V) (*(const STORED(UnalignedWide) *)((ARRAY) + COLUMN_OF(V, LANES)))

/* y in n vectors, of which the last one may overlap the one before. */
SDCA_INLINE void STORED(wide_row)(SHAPE, const double *y, STORED(Wide) *x) {
    for (int v = 0; v < n; v++)
        for (int l = 0; l < LANES; l++) x[v][l] = (REAL)y[COLUMN_OF(v, LANES) + l];
}

/* The same as scale_columns and mix_columns in vectors. A row of alpha is read before it is written. */
SDCA_INLINE void STORED(scale_rows)(SHAPE, const double *a, const REAL *E, const double *y, ptrdiff_t k, REAL *beta) {
    STORED(Wide) x[MOST_VECTORS];
    STORED(wide_row)(SAME_SHAPE, y, x);
    for (ptrdiff_t i = 0; i < k; i++, E += k, beta += k)
        for (int v = 0; v < n; v++) WIDE(beta, v) = (REAL)a[i] * (x[v] * CONSTANT_WIDE(E, v));
}

SDCA_INLINE void STORED(mix_rows)(SHAPE, REAL *alpha, const double *a, const REAL *E, const double *y, double gamma,
                                  ptrdiff_t k) {
    const REAL rest = (REAL)(1.0 - gamma);
    STORED(Wide) x[MOST_VECTORS], row[MOST_VECTORS];
    STORED(wide_row)(SAME_SHAPE, y, x);
    for (ptrdiff_t i = 0; i < k; i++, E += k, alpha += k) {
        const REAL factor = (REAL)(gamma * a[i]);
        for (int v = 0; v < n; v++)
            row[v] = ROUNDED_SUM(rest * CONSTANT_WIDE(alpha, v), factor * (x[v] * CONSTANT_WIDE(E, v)));
        for (int v = 0; v < n; v++) WIDE(alpha, v) = row[v];
    }
}

/* name_rows where a part of a row has vectors, name_columns where it has none. */
#define PAIR_PART(N, name, ...)                        \
    if (columns < LANES)                               \
        STORED(name##_columns)(columns, __VA_ARGS__);  \
    else                                               \
        STORED(name##_rows)(N, columns, __VA_ARGS__)
#define OVER_PAIR(CALL) OVER_PARTS_OF(LANES, MOST_VECTORS, CALL)
#else
#define PAIR_PART(N, name, ...) STORED(name##_columns)(columns, __VA_ARGS__)
#define OVER_PAIR(CALL)                                  \
    {                                                    \
        const ptrdiff_t columns = width, begin = 0;      \
        CALL(1);                                         \
    }
#endif

static void STORED(scale_pair)(const double *a, const void *E, const double *y, ptrdiff_t k, void *beta) {
    const ptrdiff_t width = k;
#define SCALE_PAIR(N) PAIR_PART(N, scale, a, (const REAL *)E + begin, y + begin, k, (REAL *)beta + begin)
    OVER_PAIR(SCALE_PAIR)
#undef SCALE_PAIR
}

static void STORED(mix_pair)(void *alpha, const double *a, const void *E, const double *y, double gamma,
                             ptrdiff_t k) {
    const ptrdiff_t width = k;
#define MIX_PAIR(N) PAIR_PART(N, mix, (REAL *)alpha + begin, a, (const REAL *)E + begin, y + begin, gamma, k)
    OVER_PAIR(MIX_PAIR)
#undef MIX_PAIR
}

#undef OVER_PAIR
#undef PAIR_PART
#undef WIDE
#undef CONSTANT_WIDE
#undef LANES

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

/* KL(m || beta) = sum beta phi(y) with y = (m - beta) / beta = (1 - gamma) (alpha - beta) / beta. The terms have the
   same sign in each sum, and go into sums of a few hundred at most, so that nothing loses more than they do.        */
#define DIVERGENCE(BETA, DERIVATIVES)                                                         \
    const REAL *a = alpha;                                                                    \
    const BETA *b = beta;                                                                     \
    const float g = (float)gamma, rest = (float)(1.0 - gamma);                                \
    for (ptrdiff_t begin = 0; begin < n; begin += CHUNK) {                                    \
        const ptrdiff_t end = begin + CHUNK < n ? begin + CHUNK : n;                          \
        float value = 0.0f, first = 0.0f, second = 0.0f, lost = 0.0f;                         \
        _Pragma("omp simd reduction(+ : value, first, second, lost)")                         \
        for (ptrdiff_t j = begin; j < end; j++) {                                             \
            const REAL from = a[j], to = (REAL)b[j] + TINY_FLOAT;                             \
            const float change = (float)(from - to), part = 1.0f / (float)to;                 \
            const float y = rest * (change * part), u = rest * ((float)from * part) + g;      \
            float log_u;                                                                      \
            value += (float)to * rough_phi(y, u, &log_u);                                     \
            lost += (float)to < SMALL_FLOAT ? (float)from : 0.0f;                             \
            if (DERIVATIVES) {                                                                \
                first += change * log_u;                                                      \
                second += change * (change * part) / (u + TINY_FLOAT);                        \
            }                                                                                 \
        }                                                                                     \
        sums[0] += c * value;                                                                 \
        sums[1] -= c * first;                                                                 \
        sums[2] += c * second;                                                                \
        sums[3] += lost;                                                                      \
    }

static void STORED(divergence_along)(const void *alpha, const double *beta, double gamma, ptrdiff_t n, double c,
                                     int derivatives, double *sums) {
    if (derivatives) {
        DIVERGENCE(double, 1)
    } else {
        DIVERGENCE(double, 0)
    }
}

static void STORED(divergence_between)(const void *alpha, const void *beta, double gamma, ptrdiff_t n, double c,
                                       int derivatives, double *sums) {
    if (derivatives) {
        DIVERGENCE(REAL, 1)
    } else {
        DIVERGENCE(REAL, 0)
    }
}

#undef DIVERGENCE
#undef CHUNK
