"""Sum-product on forests: the passes up and down.

Slots of a forest of T nodes with K states: scores of the nodes, theta_v(k), then tables of edge
scores theta(k, k'), each shared by any number of edges. Regions: node tables mu_v(k), then one
table mu_e(k, k') per edge. Every tree is rooted; p is the parent of v.

Upward and downward in linear space, with u_v = exp(theta_v - max theta_v) and E = exp(theta - max
theta), scaled at every node::

    a_v(k)     = u_v(k) prod_{children c} m_c(k) / z_v,      sum_k a_v(k) = 1
    m_v(k')    = sum_k a_v(k) E(k, k')                       the message to the parent
    r_v(k')    = mu_p(k') / m_v(k')                          at a root mu = a
    mu_v(k)    = a_v(k) sum_k' E(k, k') r_v(k')
    mu_e(k,k') = a_v(k) E(k, k') r_v(k')
    log Z      = sum_v log z_v + the maxima that were subtracted

The factors a, E and r say all of mu_e: the marginals of a shared slot table are E times the sum of
a_v r_v^T over its edges, and a step of SDCA can mix a r^T E into a table without ever writing it.

This takes T K + K^2 exponentials per shared table instead of T K^2, and it is exact as long as no
message can underflow, that is, while the scores of a node and of its edges span less than
`SAFE_RANGE` together. Beyond that the upward pass runs in logarithms::

    l_v(k)     = theta_v(k) + sum_{children c} log m_c(k)
    log m_v(k') = log sum_k exp(theta(k, k') + l_v(k))
    q_v(k, k') = exp(theta(k, k') + l_v(k) - log m_v(k'))    the probability of k given k'

and the downward pass turns the tables q_v into marginals, with a_v = m_v = 1.

Pairs of states may be forbidden: then E has zeros, and the scores of what is left may span more
than those of a node and its edges, so that the linear pass has to watch for numbers that get small.
"""

from libc.math cimport exp, log
from libc.string cimport memcpy

from sdcastruct.simd.ahead cimport ask
from sdcastruct.simd.kernels cimport kernels

# exp(-708) is the smallest normal double; the rest is room for products with marginals.
cdef double SAFE_RANGE = 600.0
# Products of vectors that are summed at once.
cdef enum:
    AT_ONCE = 8
# With forbidden pairs no single factor may be below exp(-200), and no product below this.
cdef double SAFE_RANGE_OF_PAIRS = 200.0
cdef double SMALLEST = 1e-150


cdef bint linear_potentials(const Link *links, const double *theta, Py_ssize_t T, Py_ssize_t K,
                            Py_ssize_t S, Rules rules, Factors f, double *shift) noexcept nogil:
    """Write u to a, E and its transpose; return False if they are too wide for linear space.

    `shift` receives the sum of the maxima.
    """
    cdef double *u = f.a
    cdef double *E = f.E
    cdef double *span = f.buffer        # of the nodes
    cdef double *edge_span = span + T
    cdef double *edge_high = edge_span + S
    cdef double low, high, safe = SAFE_RANGE if rules.pairs == NULL else SAFE_RANGE_OF_PAIRS
    cdef Py_ssize_t v, s, j, k
    shift[0] = f.widest[0] = 0.0
    for s in range(S):
        kernels.range(theta + T * K + s * K * K, K * K, &low, &edge_high[s])
        kernels.exp_shifted(theta + T * K + s * K * K, edge_high[s], E + s * K * K, K * K)
        edge_span[s] = edge_high[s] - low
        f.widest[0] = max(f.widest[0], edge_span[s])
    for v in range(T):
        ask(f.ahead)
        kernels.range(theta + v * K, K, &low, &high)
        kernels.exp_shifted(theta + v * K, high, u + v * K, K)
        span[v] = high - low
        shift[0] += high
    for j in range(T):
        if links[j].parent >= 0:
            shift[0] += edge_high[links[j].table]
            span[links[j].child] += edge_span[links[j].table]
            span[links[j].parent] += edge_span[links[j].table]
    for v in range(T):
        if not span[v] < safe:
            return False
    if rules.pairs != NULL:
        for k in range(K):
            u[k] *= rules.first[k]
        for s in range(S):
            for k in range(K * K):
                E[s * K * K + k] *= rules.pairs[k]
    for s in range(S):
        kernels.transpose(E + s * K * K, K, f.transposed + s * K * K)
    return True


cdef bint linear_upward(const Link *links, Py_ssize_t T, Py_ssize_t K, Rules rules, Factors f,
                        double *log_z) noexcept nogil:
    """Turn u into a, write the messages to r and add the logarithms of the scales to log_z.

    Returns False if forbidden pairs leave numbers that are too small.
    """
    cdef const double *table
    cdef double *parent
    cdef double *node
    cdef double total
    cdef Py_ssize_t j
    for j in range(T):
        node = f.a + links[j].child * K
        ask(f.ahead)
        total = kernels.normalise(node, K)
        log_z[0] += log(total)
        if rules.pairs != NULL and too_small(node, K, total):
            return False
        if links[j].parent >= 0:
            table = (f.transposed if links[j].parent_rows else f.E) + links[j].table * K * K
            parent = f.a + links[j].parent * K
            ask(f.ahead)
            kernels.message(node, table, K, f.r + links[j].child * K, parent, parent)
    return True


cdef void linear_downward(const Link *links, Py_ssize_t T, Py_ssize_t K, Factors f,
                          double *mu) noexcept nogil:
    """Turn the messages into r and write the node tables of mu."""
    cdef const double *table
    cdef double *node
    cdef double *r
    cdef Py_ssize_t j
    for j in range(T - 1, -1, -1):
        node = mu + links[j].child * K
        if links[j].parent < 0:
            memcpy(node, f.a + links[j].child * K, K * sizeof(double))
            continue
        r = f.r + links[j].child * K
        table = (f.E if links[j].parent_rows else f.transposed) + links[j].table * K * K
        ask(f.ahead)
        kernels.divide(mu + links[j].parent * K, r, r, K)
        ask(f.ahead)
        kernels.message(r, table, K, node, f.a + links[j].child * K, node)


cdef void sum_of_products(const Link *links, Py_ssize_t T, Py_ssize_t K, Py_ssize_t S, Factors f,
                          double *m) noexcept nogil:
    """Add the edge tables that share a slot, given their factors, to zeros."""
    cdef const double *rows[AT_ONCE]
    cdef const double *columns[AT_ONCE]
    cdef Product p
    cdef Py_ssize_t j, table = 0
    cdef int count = 0
    for j in range(T):
        if links[j].parent < 0:
            continue
        if count == AT_ONCE or (count > 0 and links[j].table != table):
            kernels.add_outer(count, rows, columns, K, m + table * K * K)
            count = 0
        table = links[j].table
        p = product(links[j], T, K, f)
        rows[count], columns[count] = p.rows, p.columns
        count += 1
    if count > 0:
        kernels.add_outer(count, rows, columns, K, m + table * K * K)
    kernels.multiply(f.E, m, S * K * K)


cdef void sum_of_tables(const Link *links, Py_ssize_t T, Py_ssize_t K, const double *pairs,
                        double *m) noexcept nogil:
    """Add the edge tables that share a slot."""
    cdef Py_ssize_t j
    for j in range(T):
        if links[j].parent >= 0:
            kernels.axpy(1.0, pairs + links[j].edge * K * K, m + links[j].table * K * K, K * K)


cdef bint too_small(const double *x, Py_ssize_t K, double total) noexcept nogil:
    """Return whether nothing is left, or anything that might vanish in the next step."""
    cdef Py_ssize_t k
    if total == 0.0:
        return True
    for k in range(K):
        if 0.0 < x[k] < SMALLEST:
            return True
    return False


cdef void log_upward(const Link *links, const double *theta, Py_ssize_t T, Py_ssize_t K,
                     Rules rules, double *mu, double *messages, double *log_z,
                     double *l) noexcept nogil:
    """Write q to the edge tables of mu, mu itself at the roots, ones elsewhere, and log Z.

    The node tables of mu hold l on the way; `l` is scratch memory for K numbers.
    """
    cdef const double *edge
    cdef double *node
    cdef double *q
    cdef Py_ssize_t j, k, k2
    memcpy(mu, theta, T * K * sizeof(double))
    forbid_first(rules, K, mu)
    log_z[0] = 0.0
    for j in range(T):
        node = mu + links[j].child * K
        if links[j].parent < 0:
            log_z[0] += log_normalise(node, K, 1)
            continue
        memcpy(l, node, K * sizeof(double))
        edge = theta + T * K + links[j].table * K * K
        q = mu + T * K + links[j].edge * K * K
        for k2 in range(K):
            for k in range(K):
                q[entry(links[j], k, k2, K)] = l[k] + edge[entry(links[j], k, k2, K)]
                if forbidden(rules, entry(links[j], k, k2, K)):
                    q[entry(links[j], k, k2, K)] = -INFINITY
            mu[links[j].parent * K + k2] += log_normalise(
                q + entry(links[j], 0, k2, K), K, 1 if links[j].parent_rows else K)
        for k in range(K):
            node[k] = 1.0
            messages[links[j].child * K + k] = 1.0


cdef void condition(const Link *links, Py_ssize_t T, Py_ssize_t K, double *mu,
                    double *messages) noexcept nogil:
    """Normalise mu at the roots, write ones elsewhere, and the sums of the edges to messages.

    An edge table divided by its sums over the child is the probability of the child's state given
    that of the parent.
    """
    cdef const double *pair
    cdef double *node
    cdef double *message
    cdef Py_ssize_t j, k, k2
    for j in range(T):
        node = mu + links[j].child * K
        if links[j].parent < 0:
            kernels.normalise(node, K)
            continue
        pair = mu + T * K + links[j].edge * K * K
        message = messages + links[j].child * K
        for k in range(K):
            node[k] = 1.0
        if links[j].parent_rows:
            for k2 in range(K):
                message[k2] = kernels.dot(pair + k2 * K, node, K)
        else:
            kernels.vector_matrix(node, pair, K, message)


cdef double log_normalise(double *x, Py_ssize_t n, Py_ssize_t stride) noexcept nogil:
    """Replace x by exp(x) / sum exp(x); return log sum exp(x). All -infinity becomes zero."""
    cdef double high = x[0], total = 0.0
    cdef Py_ssize_t k
    for k in range(1, n):
        high = max(high, x[k * stride])
    if high == -INFINITY:
        for k in range(n):
            x[k * stride] = 0.0
        return high
    for k in range(n):
        x[k * stride] = exp(x[k * stride] - high)
        total += x[k * stride]
    for k in range(n):
        x[k * stride] /= total
    return high + log(total)


cdef void downward(const Link *links, Py_ssize_t T, Py_ssize_t K, double *mu,
                   const double *messages, double *buffer) noexcept nogil:
    """Turn a in the node tables of mu into marginals, and E in its edge tables."""
    cdef double *r = buffer
    cdef double *b = buffer + K
    cdef double *pair
    cdef double *node
    cdef Py_ssize_t j
    for j in range(T - 1, -1, -1):
        if links[j].parent < 0:
            continue
        node = mu + links[j].child * K
        pair = mu + T * K + links[j].edge * K * K
        kernels.divide(mu + links[j].parent * K, messages + links[j].child * K, r, K)
        if links[j].parent_rows:
            kernels.vector_matrix(r, pair, K, b)
            kernels.pair_table(r, pair, node, K, pair, b + K)
        else:
            kernels.pair_table(node, pair, r, K, pair, b)
        kernels.multiply(b, node, K)
