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
