/* The arithmetic of the library that is worth a vector unit: one table of functions, compiled once per instruction
   set from kernels_impl.h and chosen at run time. All arrays are contiguous, inputs and outputs do not overlap unless
   said, lengths are in elements.                                                                                    */
#ifndef SDCASTRUCT_KERNELS_H
#define SDCASTRUCT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *name;

    /* out[j] = exp(x[j] - shift) */
    void (*exp_shifted)(const double *x, double shift, double *out, ptrdiff_t n);
    /* out[j] = log x[j], for x[j] normal and positive */
    void (*log)(const double *x, double *out, ptrdiff_t n);
    /* smallest and largest of x[0..n), n >= 1 */
    void (*range)(const double *x, ptrdiff_t n, double *low, double *high);
    double (*dot)(const double *x, const double *y, ptrdiff_t n);
    /* y += a x */
    void (*axpy)(double a, const double *x, double *y, ptrdiff_t n);

    /* sum_j mu_j log mu_j, with 0 log 0 = 0 */
    double (*negentropy)(const double *mu, ptrdiff_t n);
    /* KL(m || beta) and its first two derivatives in gamma, m = (1 - gamma) alpha + gamma beta, added to sums[0..3)
       with the factor c */
    void (*kl_along)(const double *alpha, const double *beta, double gamma, ptrdiff_t n, double c, double *sums);
    /* alpha = (1 - gamma) alpha + gamma beta */
    void (*mix)(double *alpha, const double *beta, double gamma, ptrdiff_t n);

    /* out = a^T E for a square row-major E */
    void (*vector_matrix)(const double *a, const double *E, ptrdiff_t k, double *out);
    /* pair[i, j] = a[i] E[i, j] y[j] and b[i] = sum_j E[i, j] y[j]; pair may be E */
    void (*pair_table)(const double *a, const double *E, const double *y, ptrdiff_t k, double *pair, double *b);

    /* Rows of attributes: row r holds weights w[row_weight[r] + j] for j < width_r = row_ptr[r+1] - row_ptr[r] and
       occurs in the slots at occurrence_slot[o] with occurrence_value[o], o in [occurrence_ptr[r],
       occurrence_ptr[r+1]).
       score:     theta[slot + j] += value * w[row_weight[r] + j]                over all occurrences
       direction: v[row_ptr[r] - row_ptr[0] + j] = scale * sum value * m[slot + j]; returns ||v||^2
       add:       w[row_weight[r] + j] += gamma * v[row_ptr[r] - row_ptr[0] + j]                                     */
    void (*score)(ptrdiff_t n_rows, const int64_t *row_weight, const int64_t *row_ptr, const int64_t *occurrence_ptr,
                  const int32_t *occurrence_slot, const double *occurrence_value, const double *w, double *theta);
    double (*direction)(ptrdiff_t n_rows, const int64_t *row_ptr, const int64_t *occurrence_ptr,
                        const int32_t *occurrence_slot, const double *occurrence_value, const double *m, double scale,
                        double *v);
    void (*add)(ptrdiff_t n_rows, const int64_t *row_weight, const int64_t *row_ptr, double gamma, const double *v,
                double *w);
} Kernels;

/* The table called `name` ("baseline", "avx2"), or NULL where this machine or this build does not have it. */
const Kernels *sdcastruct_kernels(const char *name);

#endif
