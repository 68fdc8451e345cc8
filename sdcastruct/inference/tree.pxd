from libc.stdint cimport int32_t, int64_t

from sdcastruct.inference.engine cimport Engine


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
# of an edge. Then other scratch memory.
cdef struct Factors:
    double *E
    double *transposed
    double *a
    double *r
    double *widest
    double *buffer


# The table of an edge: rows[i] table[i, j] columns[j].
cdef struct Product:
    const double *rows
    const double *table
    const double *columns


cdef class TreeEngine(Engine):
    cdef Py_ssize_t n_states
    # Sample i has the links node_ptr[i], ..., node_ptr[i+1] - 1, every child before its parent.
    cdef const int64_t[::1] node_ptr, n_tables
    cdef const int32_t[:, ::1] links
    # 0 where an edge forbids a pair of states or the first node a state, else 1; or None.
    cdef const double[:, ::1] allowed
    cdef const double[::1] allowed_first

    cdef const Link *forest(self, Py_ssize_t i) noexcept nogil
    cdef Rules rules(self) noexcept nogil
    cdef Factors factors_in(self, Py_ssize_t i, double *scratch) noexcept nogil
    cdef bint sweep_up(self, Py_ssize_t i, const double *theta, Factors f,
                       double *log_z) noexcept nogil
    cdef int infer_in_logarithms(self, Py_ssize_t i, const double *theta, double *mu,
                                 double *log_z, Factors f) except -1 nogil
