/* The arithmetic of the library that is worth a vector unit: one table of functions, compiled once per instruction
   set from kernels_impl.h and chosen at run time. All arrays are contiguous, inputs and outputs do not overlap unless
   said, lengths are in elements.                                                                                    */
#ifndef SDCASTRUCT_KERNELS_H
#define SDCASTRUCT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* Which tables of kernels this compiler builds besides the one for every machine. */
#if defined(__x86_64__) && defined(__GNUC__)
#define SDCASTRUCT_AVX2
#if __GNUC__ >= 8 && !defined(__clang__)
#define SDCASTRUCT_AVX512
#endif
#endif

/* Where the arrays of a block begin to be those of a sample. They lie together, because samples come in any order. */
typedef struct {
    int64_t slot, entry, pair, group, occurrence;
} Place;

/* The attribute rows x_s of the slots of one template W, in CSR form, for all samples. */
typedef struct {
    ptrdiff_t width;              /* number of columns of W, the states of a slot's table */
    int64_t weight_offset;        /* W lies in w from here on, row by row */
    int64_t row_offset;           /* rows of the weights of earlier templates */
    int far;                      /* whether W is too large for a cache nearby, so that it pays to ask for rows ahead */
    const Place *place;           /* sample i has what is from place[i] on, up to place[i+1] */
    const int64_t *slot_offset;   /* where a slot's table begins in theta_i and m_i; those of a sample do not overlap */
    const int64_t *entry_ptr;     /* slot s has the entries entry_ptr[s], ..., entry_ptr[s+1] - 1 */
    const int32_t *entry_row;     /* row of W, or of `replicas` from first_replica on */
    int32_t first_replica;
    double *replicas;             /* where row 0 would lie if all were replicas; NULL if none is */
    const double *entry_value;    /* value of the attribute; NULL if all are 1 */
    ptrdiff_t n_dense;            /* if not 0, every slot has so many entries with values, of the same rows in this order */
    /* For norm2: the Gram matrix of the attribute rows of a sample, G_st = <x_s, x_t>, without frequent attributes, */
    const double *diagonal;           /* G_ss of every slot */
    const int32_t *pair_offset;       /* two numbers per pair s < t: where the tables of s and of t begin */
    const double *pair_value;         /* G_st */
    /* and the frequent attributes, whose rows are summed before they are squared. */
    const int64_t *occurrence_ptr;    /* group g is an attribute at occurrence_ptr[g], ..., occurrence_ptr[g+1] - 1, */
    const int32_t *occurrence_offset; /* in the slot whose table begins here */
    const double *occurrence_value;   /* with this value; NULL if all are 1 */
} Block;

/* How the entries of a table over some variables belong to those of a smaller table over part of them: entry
   (o * n_inner + i) * run + l of the large one, l < run, to entry b = outer[o] + inner[i] of the small one if
   `constant`, else to b + l. Where entries of the small table are tied, columns[b] stands for b.                   */
typedef struct {
    ptrdiff_t n_outer, n_inner, run;
    int constant;
    const int32_t *outer, *inner, *columns;
} TableMap;

/* A dual point alpha as it is stored, in numbers of `size` bytes. Steps compute in its own precision, all that a
   certificate depends on in double precision.                                                                        */
typedef struct {
    ptrdiff_t size;
    void (*load)(const void *alpha, double *out, ptrdiff_t n);
    void (*store)(const double *x, void *alpha, ptrdiff_t n);
    /* alpha = (1 - gamma) alpha + gamma beta */
    void (*mix)(void *alpha, const double *beta, double gamma, ptrdiff_t n);
    /* beta[i, j] = a[i] E[i, j] y[j], of shape (k, k), where beta and E are stored like alpha */
    void (*scale_pair)(const double *a, const void *E, const double *y, ptrdiff_t k, void *beta);
    /* alpha = (1 - gamma) alpha + gamma beta for this beta */
    void (*mix_pair)(void *alpha, const double *a, const void *E, const double *y, double gamma, ptrdiff_t k);
    /* With m = (1 - gamma) alpha + gamma beta and delta = beta - alpha, where 0 log 0 = 0:
       sums[0] -= c sum_j m_j log m_j,  sums[1] -= c sum_j delta_j log m_j;  beta may be alpha */
    void (*entropy_along)(const void *alpha, const double *beta, double gamma, ptrdiff_t n, double c, double *sums);
    /* -sum_j delta_j^2 / m_j, the second derivative that goes with it */
    double (*bend_along)(const void *alpha, const double *beta, double gamma, ptrdiff_t n);
    /* The divergence KL(m || beta), and its derivatives in gamma if they are asked for, in single precision with small
       relative errors:
       sums[0] += c sum_j beta_j phi(m_j / beta_j - 1),  phi(y) = (1 + y) log(1 + y) - y,
       sums[1] += c sum_j delta_j log(m_j / beta_j),  sums[2] += c sum_j delta_j^2 / m_j,
       and sums[3] += sum of the alpha_j whose beta_j is too small for that                                           */
    void (*divergence_along)(const void *alpha, const double *beta, double gamma, ptrdiff_t n, double c,
                             int derivatives, double *sums);
    /* The same for a beta as in `scale_pair`, stored like alpha */
    void (*divergence_between)(const void *alpha, const void *beta, double gamma, ptrdiff_t n, double c,
                               int derivatives, double *sums);
} Storage;

typedef struct {
    const char *name;
    Storage float64, float32;

    /* out[j] = exp(x[j] - shift) */
    void (*exp_shifted)(const double *x, double shift, double *out, ptrdiff_t n);
    /* out[j] = log x[j], for x[j] normal and positive */
    void (*log)(const double *x, double *out, ptrdiff_t n);
    /* Ask for memory that will be needed */
    void (*prefetch)(const void *address, ptrdiff_t n_bytes);
    /* smallest and largest of x[0..n), n >= 1 */
    void (*range)(const double *x, ptrdiff_t n, double *low, double *high);
    double (*dot)(const double *x, const double *y, ptrdiff_t n);
    /* y -= x, and the products <a, x> and <a, y> with the new y */
    void (*subtract)(const double *x, double *y, const double *a, ptrdiff_t n, double *along_x, double *along_y);
    /* x /= its sum, which is returned */
    double (*normalise)(double *x, ptrdiff_t n);
    /* x *= a */
    void (*scale)(double a, double *x, ptrdiff_t n);
    /* y *= x */
    void (*multiply)(const double *x, double *y, ptrdiff_t n);
    /* out = x / y, zero where y is zero; out may be y */
    void (*divide)(const double *x, const double *y, double *out, ptrdiff_t n);
    /* y += a x */
    void (*axpy)(double a, const double *x, double *y, ptrdiff_t n);
    /* common += own - last, own = last = common */
    void (*exchange)(double *own, double *last, double *common, ptrdiff_t n);

    /* out = the transpose of a square row-major E */
    void (*transpose)(const double *E, ptrdiff_t k, double *out);
    /* out = a^T E for a square row-major E */
    void (*vector_matrix)(const double *a, const double *E, ptrdiff_t k, double *out);
    /* out = a^T E likewise, and y = x out, element by element; out and x may be y */
    void (*message)(const double *a, const double *E, ptrdiff_t k, double *out, const double *x, double *y);
    /* out += sum_q a_q y_q^T over `count` vectors each, of shape (k, k) */
    void (*add_outer)(int count, const double *const *a, const double *const *y, ptrdiff_t k, double *out);
    /* pair[i, j] = a[i] E[i, j] y[j] */
    void (*scale_table)(const double *a, const double *E, const double *y, ptrdiff_t k, double *pair);
    /* the same and b[i] = sum_j E[i, j] y[j]; pair may be E */
    void (*pair_table)(const double *a, const double *E, const double *y, ptrdiff_t k, double *pair, double *b);

    /* Between a large table and a small one x, of which entry j of the large table belongs to entry j':
       table[j] += x[j'] */
    void (*expand_add)(const TableMap *map, const double *x, double *table);
    /* table[j] *= x[j'] */
    void (*expand_scale)(const TableMap *map, const double *x, double *table);
    /* x[j'] = max(x[j'], table[j]) */
    void (*reduce_max)(const TableMap *map, const double *table, double *x);
    /* x[j'] += table[j] */
    void (*reduce_sum)(const TableMap *map, const double *table, double *x);
    /* table[j] = exp(table[j] - shift[j']) and x[j'] += the result */
    void (*exp_sum)(const TableMap *map, const double *shift, double *table, double *x);

    /* out[j] += sum of `repeat` tables of `width` entries laid end to end */
    void (*add_tables)(const double *tables, ptrdiff_t width, ptrdiff_t repeat, double *out);
    /* theta_s += x_s @ W over the slots s of sample i */
    void (*score)(const Block *block, ptrdiff_t i, const double *w, double *theta);
    /* ||sum_s x_s^T m_s||^2 */
    double (*norm2)(const Block *block, ptrdiff_t i, const double *m);
    /* Ask for what score, norm2 and add read of sample i, but for the weights */
    void (*prefetch_sample)(const Block *block, ptrdiff_t i);
    /* and for the first rows of W that it reads, if they are not near anyway */
    void (*prefetch_weights)(const Block *block, ptrdiff_t i, const double *w);
    /* W += scale sum_s x_s^T m_s */
    void (*add)(const Block *block, ptrdiff_t i, double scale, const double *m, double *w);
    /* The rows of W that sample i has attributes in: W_r = 0 */
    void (*clear)(const Block *block, ptrdiff_t i, double *w);
    /* and W_r -= (total - last[r]) D_r, last[r] = total, where r counts the rows of all templates */
    void (*catch_up)(const Block *block, ptrdiff_t i, double total, const double *d, double *last, double *w);
} Kernels;

/* The table called `name` ("baseline", "avx2", "avx512"), or NULL where this machine or this build does not have it. */
const Kernels *sdcastruct_kernels(const char *name);

#endif
