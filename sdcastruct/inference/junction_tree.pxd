from libc.stdint cimport int64_t

from sdcastruct.inference.engine cimport Engine
from sdcastruct.simd.kernels cimport TableMap


# A small table over part of the nodes of a larger one.
cdef struct Part:
    TableMap map        # from the large table
    int64_t source      # where the large table begins in mu
    int64_t offset      # where the small table begins in theta or in mu
    int64_t size


# A clique of a junction tree and its separator from the parent; a root has the parent -1, and a
# separator of one entry that is not stored.
cdef struct Clique:
    int64_t table               # where its table begins in mu
    int64_t size
    int64_t parent
    TableMap to_separator       # from its own table
    TableMap from_parent        # from the table of the parent to the separator
    int64_t separator           # where the separator's table begins in mu
    int64_t message             # where its message begins among all messages
    int64_t separator_size
    int64_t first_child, last_child
    int64_t first_factor, last_factor
    int64_t first_below, last_below


# All steps of inference on one graph, cliques before their parents.
cdef struct Plan:
    Py_ssize_t n_nodes
    Py_ssize_t n_cliques
    Py_ssize_t n_messages       # entries of all messages
    Py_ssize_t largest          # entries of the largest clique
    Clique *cliques
    Part *factors               # scores that enter the cliques, clique by clique
    Part *below                 # separators that come from the cliques, clique by clique
    Part *others                # tables of marginals that come last
    Py_ssize_t n_others
    const int64_t *children     # cliques, those of one parent in a row
    # Axes of the tables of the cliques, clique by clique.
    const int64_t *axis_ptr
    const int64_t *axis_node
    const int64_t *axis_stride
    const int64_t *axis_states


cdef class Schedule:
    cdef Plan plan
    cdef readonly bytes graph
    cdef list arrays            # keeps the memory that the plan points to
    cdef dict maps

    cdef size_t keep(self, array)
    cdef TableMap map(self, states, large, small, tied=*)
    cdef Part part(self, states, large, declared)


cdef class JunctionTreeEngine(Engine):
    cdef list schedules
    cdef const int64_t[::1] which
    cdef const Plan **plans     # of each sample
