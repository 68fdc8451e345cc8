/* The kernels of a dual point that is stored as REAL. Included once per type, which says how to get there from a double,
   ROUNDED(x), and what its kernels are called, STORED(name).                                                        */

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
