"""Sum-product and max-product on forests; a chain is the smallest interesting one.

Slots of a forest of T nodes with K states: scores of the nodes, theta_v(k), then tables of edge
scores theta(k, k'), each shared by any number of edges. Regions: node tables mu_v(k), then one
table mu_e(k, k') per edge. Every tree is rooted; p is the parent of v.

Upward and downward in linear space, with u_v = exp(theta_v - max theta_v) and E = exp(theta - max
theta), scaled at every node::

    a_v(k)     = u_v(k) prod_{children c} m_c(k) / z_v,      sum_k a_v(k) = 1
    m_v(k')    = sum_k a_v(k) E(k, k')                       the message to the parent
    r_v(k')    = mu_p(k') / m_v(k')                          at a root mu = a
    mu_e(k,k') = a_v(k) E(k, k') r_v(k')
    log Z      = sum_v log z_v + the maxima that were subtracted

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
from libc.string cimport memcpy

from sdcastruct.simd.kernels cimport kernels

# exp(-708) is the smallest normal double; the rest is room for products with marginals.
cdef double SAFE_RANGE = 600.0
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
        the first. They must not close a cycle, see `closing_edge`.
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
        self.links = _root(node_ptr, edge_ptr, edges, tables)
        T, S, K = int(np.diff(node_ptr).max()), int(np.max(n_tables)), n_states
        self.scratch_size = S * K * K + T * K + max(T + 2 * S, 3 * K)
        self.calibrates = True

    cdef Py_ssize_t n_nodes(self, Py_ssize_t i) except -1 nogil:
        return self.node_ptr[i + 1] - self.node_ptr[i]

    def graph(self, Py_ssize_t i):
        links = np.asarray(self.links[self.node_ptr[i]:self.node_ptr[i + 1]]).tobytes()
        if self.allowed is None:
            return links
        return links + np.asarray(self.allowed).tobytes() + np.asarray(self.allowed_first).tobytes()

    cdef const Link *forest(self, Py_ssize_t i) noexcept nogil:
        return <const Link *> &self.links[self.node_ptr[i], 0]

    cdef int infer(self, Py_ssize_t i, const double *theta, double *mu, double *log_z,
                   double *scratch) except -1 nogil:
        cdef const Link *links = self.forest(i)
        cdef Py_ssize_t T = self.n_nodes(i), K = self.n_states, S = self.n_tables[i]
        cdef double *E = scratch
        cdef double *messages = E + S * K * K
        cdef double *buffer = messages + T * K
        cdef Rules rules = self.rules()
        if (linear_potentials(links, theta, T, K, S, rules, mu, E, log_z, buffer)
                and linear_upward(links, T, K, E, rules, mu, messages, log_z)):
            downward(links, T, K, E, False, mu, messages, buffer)
        else:
            log_upward(links, theta, T, K, rules, mu, messages, log_z, buffer)
            if log_z[0] == -INFINITY:
                with gil:
                    raise ValueError(f"sample {i} has no labelling that is allowed")
            downward(links, T, K, mu + T * K, True, mu, messages, buffer)
        return 0

    cdef int calibrate(self, Py_ssize_t i, double *mu, double *scratch) except -1 nogil:
        cdef const Link *links = self.forest(i)
        cdef Py_ssize_t T = self.n_nodes(i), K = self.n_states
        condition(links, T, K, mu, scratch)
        downward(links, T, K, mu + T * K, True, mu, scratch, scratch + T * K)
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


cdef bint linear_potentials(const Link *links, const double *theta, Py_ssize_t T, Py_ssize_t K,
                            Py_ssize_t S, Rules rules, double *u, double *E, double *shift,
                            double *span) noexcept nogil:
    """Write u and E; return False if their range is too wide for linear space.

    `shift` receives the sum of the maxima; `span` is scratch memory for T + 2 S numbers.
    """
    cdef double *edge_span = span + T
    cdef double *edge_high = edge_span + S
    cdef double low, high, safe = SAFE_RANGE if rules.pairs == NULL else SAFE_RANGE_OF_PAIRS
    cdef Py_ssize_t v, s, j, k
    shift[0] = 0.0
    for s in range(S):
        kernels.range(theta + T * K + s * K * K, K * K, &low, &edge_high[s])
        kernels.exp_shifted(theta + T * K + s * K * K, edge_high[s], E + s * K * K, K * K)
        edge_span[s] = edge_high[s] - low
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
    return True


cdef bint linear_upward(const Link *links, Py_ssize_t T, Py_ssize_t K, const double *E,
                        Rules rules, double *a, double *messages, double *log_z) noexcept nogil:
    """Turn u into a, write the messages and add the logarithms of the scales to log_z.

    Returns False if forbidden pairs leave numbers that are too small.
    """
    cdef const double *table
    cdef double *message
    cdef double *node
    cdef double total
    cdef Py_ssize_t j, k
    for j in range(T):
        node = a + links[j].child * K
        total = kernels.normalise(node, K)
        log_z[0] += log(total)
        if rules.pairs != NULL and too_small(node, K, total):
            return False
        if links[j].parent >= 0:
            table = E + links[j].table * K * K
            message = messages + links[j].child * K
            if links[j].parent_rows:
                for k in range(K):
                    message[k] = kernels.dot(table + k * K, node, K)
            else:
                kernels.vector_matrix(node, table, K, message)
            kernels.multiply(message, a + links[j].parent * K, K)
    return True


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


cdef void downward(const Link *links, Py_ssize_t T, Py_ssize_t K, const double *E, bint per_edge,
                   double *mu, const double *messages, double *buffer) noexcept nogil:
    """Turn a in the node tables of mu into marginals and write the edge tables.

    E has one table per slot, or one `per_edge`, which may then be the edge tables of mu.
    """
    cdef double *r = buffer
    cdef double *b = buffer + K
    cdef const double *table
    cdef double *pair
    cdef double *node
    cdef Py_ssize_t j
    for j in range(T - 1, -1, -1):
        if links[j].parent < 0:
            continue
        node = mu + links[j].child * K
        pair = mu + T * K + links[j].edge * K * K
        table = E + (links[j].edge if per_edge else links[j].table) * K * K
        kernels.divide(mu + links[j].parent * K, messages + links[j].child * K, r, K)
        if links[j].parent_rows:
            kernels.vector_matrix(r, table, K, b)
            kernels.pair_table(r, table, node, K, pair, b + K)
        else:
            kernels.pair_table(node, table, r, K, pair, b)
        kernels.multiply(b, node, K)


def closing_edge(const int64_t[::1] node_ptr, const int64_t[::1] edge_ptr,
                 const int64_t[:, ::1] edges):
    """Return the sample and the index there of the first edge that closes a cycle, or None."""
    cdef int64_t[::1] leader = np.arange(node_ptr[node_ptr.shape[0] - 1])
    cdef Py_ssize_t i, e
    cdef int64_t u, v
    for i in range(node_ptr.shape[0] - 1):
        for e in range(edge_ptr[i], edge_ptr[i + 1]):
            u = _leader_of(leader, node_ptr[i] + edges[e, 0])
            v = _leader_of(leader, node_ptr[i] + edges[e, 1])
            if u == v:
                return i, e - edge_ptr[i]
            leader[u] = v
    return None


cdef int64_t _leader_of(int64_t[::1] leader, int64_t v) noexcept nogil:
    """Return the node that stands for the component of v; shorten the way there."""
    while leader[v] != v:
        leader[v] = leader[leader[v]]
        v = leader[v]
    return v


cdef _root(const int64_t[::1] node_ptr, const int64_t[::1] edge_ptr,
           const int64_t[:, ::1] edges, const int64_t[::1] tables):
    """Root every tree at its last node; return the links of all samples, children first."""
    cdef Py_ssize_t n = node_ptr.shape[0] - 1
    links = np.full((node_ptr[n], 5), -1, np.int32)
    cdef int32_t[:, ::1] view = links
    longest = np.diff(node_ptr).max()
    # Half-edges around each node as linked lists: half 2 e + s leaves edges[e, s].
    cdef int64_t[::1] first_half = np.empty(longest, np.int64)
    cdef int64_t[::1] next_half = np.empty(2 * max(edges.shape[0], 1), np.int64)
    cdef int32_t[::1] seen = np.empty(longest, np.int32)
    cdef Py_ssize_t i, T, e, v, w, side, root, done, filled
    cdef int64_t half
    cdef Link *queue
    for i in range(n):
        T = node_ptr[i + 1] - node_ptr[i]
        for v in range(T):
            first_half[v], seen[v] = -1, 0
        for e in range(edge_ptr[i], edge_ptr[i + 1]):
            for side in range(2):
                next_half[2 * e + side] = first_half[edges[e, side]]
                first_half[edges[e, side]] = 2 * e + side
        # Breadth first, written from the end, so that children come before their parents.
        queue = <Link *> &view[node_ptr[i], 0] + T - 1
        done = filled = 0
        for root in range(T - 1, -1, -1):
            if not seen[root]:
                seen[root] = 1
                queue[-filled].child = root
                filled += 1
            while done < filled:
                v = queue[-done].child
                done += 1
                half = first_half[v]
                while half >= 0:
                    e, side = half // 2, half % 2
                    w = edges[e, 1 - side]
                    if not seen[w]:
                        seen[w] = 1
                        queue[-filled] = Link(w, v, e - edge_ptr[i], tables[e], side == 0)
                        filled += 1
                    half = next_half[half]
    return links
