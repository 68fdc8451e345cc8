"""Sum-product and max-product on chains.

Slots of a chain of T nodes with K states: scores of the nodes, theta_t(k), then one table of
transitions theta(k, k') shared by all edges. Regions: node tables mu_t(k), then edge tables
mu_t(k, k') for the edges (t, t+1).

Forward-backward in linear space, scaled at every node, with u_t = exp(theta_t - max theta_t) and
E = exp(theta - max theta)::

    a_t(k')    = u_t(k') sum_k a_{t-1}(k) E(k, k') / z_t,           sum_k a_t(k) = 1
    b_t(k)     = sum_k' E(k, k') y_{t+1}(k'),   y_t = u_t b_t / z_t,   b_{T-1} = 1
    mu_t(k)    = a_t(k) b_t(k)
    mu_t(k,k') = a_t(k) E(k, k') y_{t+1}(k')
    log Z      = sum_t log z_t + the maxima that were subtracted

This takes T K + K^2 exponentials instead of T K^2, and it is exact as long as no message can
underflow, that is, while the scores of a node and of the transitions span less than `SAFE_RANGE`
together. Beyond that the potentials are first rewritten by backward max-messages B_t, so that the
best continuation of every state scores zero::

    Q_t(k, k') = exp(theta(k, k') + theta_{t+1}(k') + B_{t+1}(k') - B_t(k)),   max_k' Q_t(k, k') = 1

and the same recursion runs on these edge tables, in which no row can vanish.
"""

from libc.math cimport exp, log
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from sdcastruct.inference.engine cimport Engine
from sdcastruct.simd.kernels cimport kernels

# exp(-708) is the smallest normal double; the rest is room for products with marginals.
cdef double SAFE_RANGE = 600.0


cdef class ChainEngine(Engine):
    """Inference on chains of given lengths.

    Parameters
    ----------
    lengths : int64 array of shape (n,)
        Number of nodes of each chain.
    n_states : int
    """

    def __init__(self, const int64_t[::1] lengths, Py_ssize_t n_states):
        cdef Py_ssize_t longest = max(lengths) if lengths.shape[0] else 0
        self.lengths = lengths
        self.n_states = n_states
        self.scratch_size = (2 * longest + 2) * n_states + n_states * n_states + longest

    cdef Py_ssize_t n_nodes(self, Py_ssize_t i) except -1 nogil:
        return self.lengths[i]

    cdef int infer(self, Py_ssize_t i, const double *theta, double *mu, double *log_z,
                   double *scratch) except -1 nogil:
        cdef Py_ssize_t T = self.lengths[i], K = self.n_states
        cdef double *E = scratch
        cdef double *u = E + K * K
        cdef double *z = u + T * K
        cdef double *messages = z + T
        cdef double shift
        if safe_potentials(theta, T, K, u, E, &shift):
            forward(u, E, 0, T, K, mu, z)
            backward(u, E, 0, T, K, mu, z, messages)
        else:
            # The edge tables of mu hold Q until `backward` overwrites them one by one.
            shift = conditional_potentials(theta, T, K, u, mu + T * K, messages)
            forward(u, mu + T * K, K * K, T, K, mu, z)
            backward(u, mu + T * K, K * K, T, K, mu, z, messages)
        log_z[0] = shift + sum_of_logs(z, T)
        return 0

    cdef int decode(self, Py_ssize_t i, const double *theta, int64_t *y,
                    double *scratch) except -1 nogil:
        cdef Py_ssize_t T = self.lengths[i], K = self.n_states, t, k
        cdef double *B = scratch
        cdef double best = 0.0, score
        max_messages(theta, T, K, B)
        for t in range(T):
            for k in range(K):
                score = theta[t * K + k] + B[t * K + k]
                if t > 0:
                    score += theta[T * K + y[t - 1] * K + k]
                if k == 0 or score > best:
                    best = score
                    y[t] = k
        return 0


cdef bint safe_potentials(const double *theta, Py_ssize_t T, Py_ssize_t K, double *u, double *E,
                          double *shift) noexcept nogil:
    """Write u_t and E; return False if their range is too wide for linear space."""
    cdef double low, high, edge_range = 0.0, total = 0.0
    cdef Py_ssize_t t
    if T > 1:
        kernels.range(theta + T * K, K * K, &low, &high)
        edge_range = high - low
        total = (T - 1) * high
        kernels.exp_shifted(theta + T * K, high, E, K * K)
    for t in range(T):
        kernels.range(theta + t * K, K, &low, &high)
        if not high - low + edge_range < SAFE_RANGE:
            return False
        total += high
        kernels.exp_shifted(theta + t * K, high, u + t * K, K)
    shift[0] = total
    return True


cdef double conditional_potentials(const double *theta, Py_ssize_t T, Py_ssize_t K, double *u,
                                   double *Q, double *B) noexcept nogil:
    """Write Q and u (of the first node; ones elsewhere); return the score of the best path."""
    cdef const double *edge = theta + T * K
    cdef double low, high
    cdef Py_ssize_t t, k, k2
    max_messages(theta, T, K, B)
    for k in range(K):
        u[k] = theta[k] + B[k]
    kernels.range(u, K, &low, &high)
    for k in range(K):
        u[k] = exp(u[k] - high)
    for t in range(1, T):
        for k in range(K):
            u[t * K + k] = 1.0
            for k2 in range(K):
                Q[k2] = exp(edge[k * K + k2] + theta[t * K + k2] + B[t * K + k2]
                            - B[(t - 1) * K + k])
            Q += K
    return high


cdef void max_messages(const double *theta, Py_ssize_t T, Py_ssize_t K, double *B) noexcept nogil:
    """Write B_t(k), the best score of nodes t+1, ..., T-1 given state k at node t."""
    cdef const double *edge = theta + T * K
    cdef double best, score
    cdef Py_ssize_t t, k, k2
    for k in range(K):
        B[(T - 1) * K + k] = 0.0
    for t in range(T - 2, -1, -1):
        for k in range(K):
            best = edge[k * K] + theta[(t + 1) * K] + B[(t + 1) * K]
            for k2 in range(1, K):
                score = edge[k * K + k2] + theta[(t + 1) * K + k2] + B[(t + 1) * K + k2]
                best = score if score > best else best
            B[t * K + k] = best


cdef void forward(const double *u, const double *E, Py_ssize_t stride, Py_ssize_t T, Py_ssize_t K,
                  double *a, double *z) noexcept nogil:
    """Write the forward messages a_t and their scales z_t.

    The edge tables lie `stride` apart; 0 means one table for all edges.
    """
    cdef Py_ssize_t t, k
    cdef double total
    for t in range(T):
        if t == 0:
            memcpy(a, u, K * sizeof(double))
        else:
            kernels.vector_matrix(a - K, E, K, a)
            E += stride
        total = 0.0
        for k in range(K):
            if t > 0:
                a[k] *= u[k]
            total += a[k]
        z[t] = total
        for k in range(K):
            a[k] /= total
        a += K
        u += K


cdef void backward(const double *u, const double *E, Py_ssize_t stride, Py_ssize_t T, Py_ssize_t K,
                   double *mu, const double *z, double *messages) noexcept nogil:
    """Turn the forward messages in the node tables of mu into marginals; write the edge tables."""
    cdef double *pairs = mu + T * K
    cdef double *b = messages
    cdef double *y = messages + K
    cdef Py_ssize_t t, k
    for k in range(K):
        b[k] = 1.0
    for t in range(T - 2, -1, -1):
        for k in range(K):
            y[k] = u[(t + 1) * K + k] * b[k] / z[t + 1]
        kernels.pair_table(mu + t * K, E + t * stride, y, K, pairs + t * K * K, b)
        for k in range(K):
            mu[t * K + k] *= b[k]


cdef double sum_of_logs(const double *z, Py_ssize_t T) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t t
    for t in range(T):
        total += log(z[t])
    return total
