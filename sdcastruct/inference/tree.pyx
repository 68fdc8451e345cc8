"""Sum-product and max-product on forests; a chain is the smallest interesting one.

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

and the same downward pass runs on the tables q_v, with a_v = m_v = 1.

Pairs of states may be forbidden: then E has zeros, and the scores of what is left may span more
than those of a node and its edges, so that the linear pass has to watch for numbers that get small.
"""

import numpy as np

from libc.math cimport INFINITY, exp, log
from libc.string cimport memcpy, memset

from sdcastruct.simd.kernels cimport Storage, kernels

from sdcastruct.inference.rooting import rooted

# exp(-708) is the smallest normal double; the rest is room for products with marginals.
cdef double SAFE_RANGE = 600.0
# Scores of edges that span less can be mixed into tables of single precision as factors.
cdef double SAFE_RANGE_OF_FACTORS = 40.0
# Products of vectors that are summed at once.
cdef enum:
    AT_ONCE = 8
# With forbidden pairs no single factor may be below exp(-200), and no product below this.
cdef double SAFE_RANGE_OF_PAIRS = 200.0
cdef double SMALLEST = 1e-150


cdef class TreeEngine(Engine):
    """Inference on forests whose nodes all have the same states.

    Parameters
    ----------
    n_states : int
    node_ptr, edge_ptr : int64 arrays of shape (n + 1,)
        Sample i has node_ptr[i+1] - node_ptr[i] nodes and edge_ptr[i+1] - edge_ptr[i] edges.
    edges : int64 array of shape (n_edges, 2)
        The nodes of each edge, counted within its sample; the rows of its table are the states of
        the first. They must not close a cycle, see `rooting.closing_edge`.
    tables : int64 array of shape (n_edges,)
        Which of the sample's slot tables each edge has.
    n_tables : int64 array of shape (n,)
        Number of slot tables of each sample.
    allowed : float64 array of shape (n_states, n_states), optional
        1 for pairs of states that an edge may have, 0 for those that it must not.
    allowed_first : float64 array of shape (n_states,), optional
        The same for the states of node 0; given if `allowed` is.
    """

    def __init__(self, Py_ssize_t n_states, const int64_t[::1] node_ptr,
                 const int64_t[::1] edge_ptr, const int64_t[:, ::1] edges,
                 const int64_t[::1] tables, const int64_t[::1] n_tables, allowed=None,
                 allowed_first=None):
        self.allowed, self.allowed_first = allowed, allowed_first
        self.n_states = n_states
        self.node_ptr, self.n_tables = node_ptr, n_tables
        self.links = rooted(node_ptr, edge_ptr, edges, tables)
        T, S, K = int(np.diff(node_ptr).max()), int(np.max(n_tables)), n_states
        self.scratch_size = 2 * S * K * K + 2 * T * K + 1 + max(T + 2 * S, 3 * K)
        self.calibrates = self.factors = True

    cdef Py_ssize_t n_nodes(self, Py_ssize_t i) except -1 nogil:
        return self.node_ptr[i + 1] - self.node_ptr[i]

    def graph(self, Py_ssize_t i):
        links = np.asarray(self.links[self.node_ptr[i]:self.node_ptr[i + 1]]).tobytes()
        if self.allowed is None:
            return links
        return links + np.asarray(self.allowed).tobytes() + np.asarray(self.allowed_first).tobytes()

    cdef const Link *forest(self, Py_ssize_t i) noexcept nogil:
        return <const Link *> &self.links[self.node_ptr[i], 0]

    cdef Factors factors_in(self, Py_ssize_t i, double *scratch) noexcept nogil:
        """Return where the factors of sample i are in the scratch memory."""
        cdef Py_ssize_t nodes = self.n_nodes(i) * self.n_states
        cdef Py_ssize_t tables = self.n_tables[i] * self.n_states * self.n_states
        cdef double *a = scratch + 2 * tables
        return Factors(scratch, scratch + tables, a, a + nodes, a + 2 * nodes, a + 2 * nodes + 1)

    cdef bint sweep_up(self, Py_ssize_t i, const double *theta, Factors f,
                       double *log_z) noexcept nogil:
        """Write E, a and the messages; return False if linear space is too small for them."""
        cdef const Link *links = self.forest(i)
        cdef Py_ssize_t T = self.n_nodes(i), K = self.n_states, S = self.n_tables[i]
        cdef Rules rules = self.rules()
        return (linear_potentials(links, theta, T, K, S, rules, f, log_z)
                and linear_upward(links, T, K, rules, f, log_z))

    cdef int infer_in_logarithms(self, Py_ssize_t i, const double *theta, double *mu,
                                 double *log_z, Factors f) except -1 nogil:
        cdef const Link *links = self.forest(i)
        cdef Py_ssize_t T = self.n_nodes(i), K = self.n_states
        log_upward(links, theta, T, K, self.rules(), mu, f.r, log_z, f.buffer)
        if log_z[0] == -INFINITY:
            with gil:
                raise ValueError(f"sample {i} has no labelling that is allowed")
        downward(links, T, K, mu, f.r, f.buffer)
        return 0

    cdef int log_partition(self, Py_ssize_t i, const double *theta, double *mu, double *log_z,
                           double *scratch) except -1 nogil:
        cdef Factors f = self.factors_in(i, scratch)
        if self.sweep_up(i, theta, f, log_z):
            return 0
        return self.infer_in_logarithms(i, theta, mu, log_z, f)

    cdef int infer(self, Py_ssize_t i, const double *theta, double *mu, double *log_z,
                   double *scratch) except -1 nogil:
        cdef Factors f = self.factors_in(i, scratch)
        if not self.sweep_up(i, theta, f, log_z):
            return self.infer_in_logarithms(i, theta, mu, log_z, f)
        linear_downward(self.forest(i), self.n_nodes(i), self.n_states, f, mu)
        self.complete(i, mu, scratch)
        return 0

    cdef bint expect(self, Py_ssize_t i, const double *theta, double *m, double *mu,
                     double *log_z, double *scratch) except -1 nogil:
        cdef const Link *links = self.forest(i)
        cdef Py_ssize_t T = self.n_nodes(i), K = self.n_states, S = self.n_tables[i]
        cdef Factors f = self.factors_in(i, scratch)
        cdef bint linear = self.sweep_up(i, theta, f, log_z)
        if linear:
            linear_downward(links, T, K, f, mu)
        else:
            self.infer_in_logarithms(i, theta, mu, log_z, f)
        memcpy(m, mu, T * K * sizeof(double))
        memset(m + T * K, 0, S * K * K * sizeof(double))
        if not linear:
            sum_of_tables(links, T, K, mu + T * K, m + T * K)
            return False
        sum_of_products(links, T, K, S, f, m + T * K)
        if f.widest[0] < SAFE_RANGE_OF_FACTORS:
            return True
        self.complete(i, mu, scratch)
        return False

    cdef void complete(self, Py_ssize_t i, double *mu, double *scratch) noexcept nogil:
        cdef const Link *links = self.forest(i)
        cdef Py_ssize_t T = self.n_nodes(i), K = self.n_states, j
        cdef Factors f = self.factors_in(i, scratch)
        cdef Product p
        for j in range(T):
            if links[j].parent >= 0:
                p = product(links[j], K, f)
                kernels.scale_table(p.rows, p.table, p.columns, K,
                                    mu + T * K + links[j].edge * K * K)

    cdef void mix(self, Py_ssize_t i, double gamma, const double *mu, double *scratch,
                  const Storage *storage, void *alpha) noexcept nogil:
        cdef const Link *links = self.forest(i)
        cdef Py_ssize_t T = self.n_nodes(i), K = self.n_states, j
        cdef Factors f = self.factors_in(i, scratch)
        cdef char *edges = <char *> alpha + T * K * storage.size
        cdef char *stored_E = <char *> f.transposed     # which has served
        cdef Product p
        storage.store(f.E, stored_E, self.n_tables[i] * K * K)
        storage.mix(alpha, mu, gamma, T * K)
        for j in range(T):
            if links[j].parent >= 0:
                p = product(links[j], K, f)
                storage.mix_pair(edges + links[j].edge * K * K * storage.size, p.rows,
                                 stored_E + links[j].table * K * K * storage.size, p.columns,
                                 gamma, K)

    cdef int calibrate(self, Py_ssize_t i, double *mu, double *scratch) except -1 nogil:
        cdef const Link *links = self.forest(i)
        cdef Py_ssize_t T = self.n_nodes(i), K = self.n_states
        condition(links, T, K, mu, scratch)
        downward(links, T, K, mu, scratch, scratch + T * K)
        return 0

    cdef Rules rules(self) noexcept nogil:
        if self.allowed is None:
            return Rules(NULL, NULL)
        return Rules(&self.allowed[0, 0], &self.allowed_first[0])

    cdef int decode(self, Py_ssize_t i, const double *theta, int64_t *y,
                    double *scratch) except -1 nogil:
        cdef const Link *links = self.forest(i)
        cdef Py_ssize_t T = self.n_nodes(i), K = self.n_states, j, k, k2
        cdef const double *edge
        cdef double *best = scratch     # of the subtree below a node, given its state
        cdef double score, highest = 0.0
        cdef Rules rules = self.rules()
        memcpy(best, theta, T * K * sizeof(double))
        forbid_first(rules, K, best)
        for j in range(T):
            if links[j].parent < 0:
                continue
            edge = theta + T * K + links[j].table * K * K
            for k2 in range(K):
                for k in range(K):
                    score = best[links[j].child * K + k] + edge[entry(links[j], k, k2, K)]
                    if forbidden(rules, entry(links[j], k, k2, K)):
                        score = -INFINITY
                    if k == 0 or score > highest:
                        highest = score
                best[links[j].parent * K + k2] += highest
        for j in range(T - 1, -1, -1):
            for k in range(K):
                score = best[links[j].child * K + k]
                if links[j].parent >= 0:
                    edge = theta + T * K + links[j].table * K * K
                    score += edge[entry(links[j], k, y[links[j].parent], K)]
                    if forbidden(rules, entry(links[j], k, y[links[j].parent], K)):
                        score = -INFINITY
                if k == 0 or score > highest:
                    highest = score
                    y[links[j].child] = k
            if highest == -INFINITY:
                with gil:
                    raise ValueError(f"sample {i} has no labelling that is allowed")
        return 0


cdef inline Py_ssize_t entry(Link link, Py_ssize_t child, Py_ssize_t parent,
                             Py_ssize_t K) noexcept nogil:
    """Return where the states of child and parent stand in the table of their edge."""
    return parent * K + child if link.parent_rows else child * K + parent


cdef inline bint forbidden(Rules rules, Py_ssize_t entry) noexcept nogil:
    """Return whether no edge may have this pair of states."""
    return rules.pairs != NULL and rules.pairs[entry] == 0.0


cdef inline void forbid_first(Rules rules, Py_ssize_t K, double *scores) noexcept nogil:
    """Set the scores of states that node 0 must not have to -infinity."""
    cdef Py_ssize_t k
    if rules.first != NULL:
        for k in range(K):
            if rules.first[k] == 0.0:
                scores[k] = -INFINITY


cdef inline Product product(Link link, Py_ssize_t K, Factors f) noexcept nogil:
    """Return the factors of the table of an edge."""
    cdef const double *table = f.E + link.table * K * K
    cdef const double *a = f.a + link.child * K
    cdef const double *r = f.r + link.child * K
    return Product(r, table, a) if link.parent_rows else Product(a, table, r)


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
    cdef double *message
    cdef double *node
    cdef double total
    cdef Py_ssize_t j
    for j in range(T):
        node = f.a + links[j].child * K
        total = kernels.normalise(node, K)
        log_z[0] += log(total)
        if rules.pairs != NULL and too_small(node, K, total):
            return False
        if links[j].parent >= 0:
            table = (f.transposed if links[j].parent_rows else f.E) + links[j].table * K * K
            message = f.r + links[j].child * K
            kernels.vector_matrix(node, table, K, message)
            kernels.multiply(message, f.a + links[j].parent * K, K)
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
        kernels.divide(mu + links[j].parent * K, r, r, K)
        kernels.vector_matrix(r, table, K, node)
        kernels.multiply(f.a + links[j].child * K, node, K)


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
        if count == AT_ONCE or links[j].table != table:
            kernels.add_outer(count, rows, columns, K, m + table * K * K)
            count, table = 0, links[j].table
        p = product(links[j], K, f)
        rows[count], columns[count] = p.rows, p.columns
        count += 1
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
