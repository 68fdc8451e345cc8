"""Inference on forests; a chain is the smallest interesting one. The passes are in sum_product.pyx.

Slots of a forest of T nodes with K states: scores of the nodes, then tables of edge scores, each
shared by any number of edges. Regions: node tables, then one table per edge.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset

from sdcastruct.entropy cimport Product
from sdcastruct.inference.sum_product cimport (
    condition,
    downward,
    entry,
    forbid_first,
    forbidden,
    linear_downward,
    linear_potentials,
    linear_upward,
    log_upward,
    product,
    sum_of_products,
    sum_of_tables,
)
from sdcastruct.simd.ahead cimport ask, ask_for, share_out
from sdcastruct.simd.kernels cimport Storage, kernels

from sdcastruct.inference.rooting import rooted

# Scores of edges that span less can be mixed into tables of single precision as factors: messages
# are not smaller than that, unless pairs are forbidden.
cdef double SAFE_RANGE_OF_FACTORS = 40.0
# How often the linear passes ask for memory ahead at a node; twice at a root.
cdef enum:
    ASKED = 5


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
        self.max_products = T

    cdef Py_ssize_t n_nodes(self, Py_ssize_t i) except -1 nogil:
        return self.node_ptr[i + 1] - self.node_ptr[i]

    def graph(self, Py_ssize_t i):
        links = np.asarray(self.links[self.node_ptr[i]:self.node_ptr[i + 1]]).tobytes()
        if self.allowed is None:
            return links
        return links + np.asarray(self.allowed).tobytes() + np.asarray(self.allowed_first).tobytes()

    cdef void prefetch_place(self, Py_ssize_t i) noexcept nogil:
        ask_for(&self.node_ptr[i])
        ask_for(&self.n_tables[i])

    cdef void prefetch(self, Py_ssize_t i) noexcept nogil:
        kernels.prefetch(self.forest(i), self.n_nodes(i) * sizeof(Link))

    cdef const Link *forest(self, Py_ssize_t i) noexcept nogil:
        return <const Link *> &self.links[self.node_ptr[i], 0]

    cdef Factors factors_in(self, Py_ssize_t i, double *scratch, Ahead *ahead=NULL) noexcept nogil:
        """Return where the factors of sample i are in the scratch memory."""
        cdef Py_ssize_t nodes = self.n_nodes(i) * self.n_states
        cdef Py_ssize_t tables = self.n_tables[i] * self.n_states * self.n_states
        cdef double *a = scratch + 2 * tables
        return Factors(scratch, scratch + tables, a, a + nodes, a + 2 * nodes, a + 2 * nodes + 1,
                       ahead)

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
                     double *log_z, double *scratch, Ahead *ahead) except -1 nogil:
        cdef const Link *links = self.forest(i)
        cdef Py_ssize_t T = self.n_nodes(i), K = self.n_states, S = self.n_tables[i]
        cdef Factors f = self.factors_in(i, scratch, ahead)
        cdef bint linear
        share_out(ahead, ASKED * T)
        linear = self.sweep_up(i, theta, f, log_z)
        if linear:
            linear_downward(links, T, K, f, mu)
        else:
            self.infer_in_logarithms(i, theta, mu, log_z, f)
        share_out(ahead, 1)
        ask(ahead)                                      # for the rest
        memcpy(m, mu, T * K * sizeof(double))
        memset(m + T * K, 0, S * K * K * sizeof(double))
        if not linear:
            sum_of_tables(links, T, K, mu + T * K, m + T * K)
            return False
        sum_of_products(links, T, K, S, f, m + T * K)
        if f.widest[0] < SAFE_RANGE_OF_FACTORS and self.allowed is None:
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
                p = product(links[j], T, K, f)
                kernels.scale_table(p.rows, p.table, p.columns, K, mu + p.region)

    cdef Py_ssize_t products(self, Py_ssize_t i, double *scratch, const Storage *storage,
                             Product *out) noexcept nogil:
        cdef const Link *links = self.forest(i)
        cdef Py_ssize_t T = self.n_nodes(i), K = self.n_states, j, n = 0
        cdef Factors f = self.factors_in(i, scratch)
        cdef char *stored = <char *> f.E
        if storage.size != sizeof(double):
            stored = <char *> f.transposed              # which has served
            storage.store(f.E, stored, self.n_tables[i] * K * K)
        for j in range(T):
            if links[j].parent >= 0:
                out[links[j].edge] = product(links[j], T, K, f)
                out[links[j].edge].stored = stored + links[j].table * K * K * storage.size
                n += 1
        return n

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
