/* The kernels of kernels.h in plain C. Included by one file per instruction set, which defines KERNELS (the name of
   the table) and KERNELS_NAME.                                                                                      */
#include "kernels.h"
#include "vecmath.h"

#define PREFETCH_ROWS 6 /* weight rows are scattered over megabytes: ask for them this many rows ahead */
#if defined(__GNUC__)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address)
#endif

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

static void axpy(double a, const double *restrict x, double *restrict y, ptrdiff_t n) {
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) y[j] += a * x[j];
}

static double negentropy(const double *mu, ptrdiff_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t j = 0; j < n; j++) {
        double p = mu[j] > TINY ? mu[j] : TINY;
        sum += mu[j] * fast_log(p);
    }
    return sum;
}

/* With x = (beta - m) / m the sum of m (x - log1p x) equals that of m log(m / beta), because every table of alpha and
   beta sums to one; its terms are all >= 0, so nothing cancels as beta -> alpha.                                    */
static void kl_along(const double *restrict alpha, const double *restrict beta, double gamma, ptrdiff_t n, double c,
                     double *sums) {
    double kl = 0.0, first = 0.0, second = 0.0;
#pragma omp simd reduction(+ : kl, first, second)
    for (ptrdiff_t j = 0; j < n; j++) {
        double delta = beta[j] - alpha[j];
        double mixed = (1.0 - gamma) * alpha[j] + gamma * beta[j];
        double m = mixed > TINY ? mixed : TINY;
        double inverse = 1.0 / m;
        double quotient = beta[j] * inverse;
        double ratio = quotient > TINY ? quotient : TINY;
        double x = (1.0 - gamma) * delta * inverse;
        double log_ratio = fast_log_ratio(ratio, x);
        kl += m * (x - log_ratio);
        first -= delta * log_ratio;
        second += delta * delta * inverse;
    }
    sums[0] += c * kl;
    sums[1] += c * first;
    sums[2] += c * second;
}

static void mix(double *restrict alpha, const double *restrict beta, double gamma, ptrdiff_t n) {
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) alpha[j] = (1.0 - gamma) * alpha[j] + gamma * beta[j];
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

static void score(ptrdiff_t n_rows, const int64_t *row_weight, const int64_t *row_ptr, const int64_t *occurrence_ptr,
                  const int32_t *occurrence_slot, const double *occurrence_value, const double *w, double *theta) {
    for (ptrdiff_t r = 0; r < n_rows; r++) {
        const double *row = w + row_weight[r];
        ptrdiff_t width = row_ptr[r + 1] - row_ptr[r];
        if (r + PREFETCH_ROWS < n_rows) {
            const double *next = w + row_weight[r + PREFETCH_ROWS];
            for (ptrdiff_t j = 0; j < width; j += 8) PREFETCH(next + j);
        }
        for (int64_t o = occurrence_ptr[r]; o < occurrence_ptr[r + 1]; o++)
            axpy(occurrence_value[o], row, theta + occurrence_slot[o], width);
    }
}

static double direction(ptrdiff_t n_rows, const int64_t *row_ptr, const int64_t *occurrence_ptr,
                        const int32_t *occurrence_slot, const double *occurrence_value, const double *m, double scale,
                        double *v) {
    double norm2 = 0.0;
    for (ptrdiff_t r = 0; r < n_rows; r++) {
        double *row = v + (row_ptr[r] - row_ptr[0]);
        ptrdiff_t width = row_ptr[r + 1] - row_ptr[r];
        int64_t o = occurrence_ptr[r];
        const double *slot = m + occurrence_slot[o];
        double factor = scale * occurrence_value[o];
#pragma omp simd
        for (ptrdiff_t j = 0; j < width; j++) row[j] = factor * slot[j];
        for (o++; o < occurrence_ptr[r + 1]; o++)
            axpy(scale * occurrence_value[o], m + occurrence_slot[o], row, width);
        norm2 += dot(row, row, width);
    }
    return norm2;
}

static void add(ptrdiff_t n_rows, const int64_t *row_weight, const int64_t *row_ptr, double gamma, const double *v,
                double *w) {
    for (ptrdiff_t r = 0; r < n_rows; r++)
        axpy(gamma, v + (row_ptr[r] - row_ptr[0]), w + row_weight[r], row_ptr[r + 1] - row_ptr[r]);
}

const Kernels KERNELS = {
    .name = KERNELS_NAME,
    .exp_shifted = exp_shifted,
    .log = vector_log,
    .range = range,
    .dot = dot,
    .axpy = axpy,
    .negentropy = negentropy,
    .kl_along = kl_along,
    .mix = mix,
    .vector_matrix = vector_matrix,
    .pair_table = pair_table,
    .score = score,
    .direction = direction,
    .add = add,
};
