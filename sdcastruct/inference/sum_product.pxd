from libc.math cimport INFINITY
from libc.stdint cimport int32_t

from sdcastruct.entropy cimport Product
from sdcastruct.simd.ahead cimport Ahead


# A node and its parent in a rooted forest; a root has the parent -1.
cdef struct Link:
    int32_t child
    int32_t parent
    int32_t edge            # region table of the edge between them
    int32_t table           # slot table of that edge
    int32_t parent_rows     # whether its rows, not its columns, are the states of the parent


# Which pairs of states an edge may have and which states node 0, both NULL if all.
cdef struct Rules:
    const double *pairs
    const double *first


# What the tables of all edges follow from: shared tables E and their transposes, a of every node,
# and r of every edge at its child, where the message is on the way; the widest range of the scores
# of an edge. Then other scratch memory, and memory that others will need, or NULL: linear
# passes ask for it node by node.
cdef struct Factors:
    double *E
    double *transposed
    double *a
    double *r
    double *widest
    double *buffer
    Ahead *ahead


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


cdef inline Product product(Link link, Py_ssize_t T, Py_ssize_t K, Factors f) noexcept nogil:
    """Return the factors of the table of an edge."""
    cdef const double *a = f.a + link.child * K
    cdef const double *r = f.r + link.child * K
    cdef const double *E = f.E + link.table * K * K
    cdef Py_ssize_t region = (T + link.edge * K) * K
    if link.parent_rows:
        return Product(K, region, r, E, a, NULL)
    return Product(K, region, a, E, r, NULL)


cdef bint linear_potentials(const Link *links, const double *theta, Py_ssize_t T, Py_ssize_t K,
                            Py_ssize_t S, Rules rules, Factors f, double *shift) noexcept nogil
cdef bint linear_upward(const Link *links, Py_ssize_t T, Py_ssize_t K, Rules rules, Factors f,
                        double *log_z) noexcept nogil
cdef void linear_downward(const Link *links, Py_ssize_t T, Py_ssize_t K, Factors f,
                          double *mu) noexcept nogil
cdef void sum_of_products(const Link *links, Py_ssize_t T, Py_ssize_t K, Py_ssize_t S, Factors f,
                          double *m) noexcept nogil
cdef void sum_of_tables(const Link *links, Py_ssize_t T, Py_ssize_t K, const double *pairs,
                        double *m) noexcept nogil
cdef void log_upward(const Link *links, const double *theta, Py_ssize_t T, Py_ssize_t K,
                     Rules rules, double *mu, double *messages, double *log_z,
                     double *l) noexcept nogil
cdef void condition(const Link *links, Py_ssize_t T, Py_ssize_t K, double *mu,
                    double *messages) noexcept nogil
cdef void downward(const Link *links, Py_ssize_t T, Py_ssize_t K, double *mu,
                   const double *messages, double *buffer) noexcept nogil
