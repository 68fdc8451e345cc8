"""Sum-product and max-product on junction trees.

Slots: any tables of scores over some nodes, the factors. Regions: the tables of cliques and
separators of the junction tree, and of factors that are neither. Everything runs over the cliques
of a rooted tree, with S the separator between clique C and its parent::

    upward     psi_C(y_C)   = sum of the factors of C + sum of log m from its children
               log m_C(y_S) = log sum of exp psi_C(y_C) over y_C given y_S, the message upward
               q_C(y_C)     = exp(psi_C(y_C) - log m_C(y_S)), the probability of y_C given y_S
    downward   mu_C(y_C)    = q_C(y_C) mu_S(y_S), and mu_S' = sum of mu_C for the separators below
    log Z      = sum of log m_C over the roots

Logarithms keep it exact whatever the range of the scores. Decoding replaces the sums by maxima.
The steps work on whole tables through maps between a table and a smaller one over part of its
variables, see `TableMap` in simd/kernels.h. Samples with the same graph share one `Schedule`.
"""

import math

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from sdcastruct.simd.kernels cimport kernels


cdef class Schedule:
    """All steps of inference on one graph.

    Parameters
    ----------
    states : int array of shape (n_nodes,)
        Number of states of each node.
    cliques : list of (nodes, offset)
        Nodes of each clique, in the order of the axes of its table, and where that begins in mu;
        every clique before its parent.
    parent : list of int
        The parent of each clique, -1 at a root.
    separators : list of (nodes, offset)
        The separator of each clique from its parent; not used at a root.
    factors : list of (clique, nodes, tied, offset)
        Tables of scores, where they begin in theta, and the clique that takes care of each. `tied`
        gives the column of theta of every entry, None means an entry of its own.
    below : list of (clique, nodes, tied, offset)
        Every separator once, with a clique that is above all of its children.
    others : list of (source, nodes, tied, offset)
        Tables of marginals to be summed in the end, in this order, from larger ones; source is
        (nodes, offset).
    graph : bytes
        What `Engine.graph` returns.
    maps : dict
        Maps between tables that other schedules have made already.
    """

    def __init__(self, states, cliques, parent, separators, factors, below, others, bytes graph,
                 dict maps):
        cdef Py_ssize_t c, n = len(cliques)
        cdef Clique *clique
        cdef Plan *plan = &self.plan
        self.graph, self.maps = graph, maps
        self.arrays = []
        factors, first_factor = _by_clique(factors, n)
        below, first_below = _by_clique(below, n)
        children = np.argsort(parent, kind="stable")
        first_child = np.searchsorted(np.asarray(parent)[children], np.arange(n + 1))
        plan.n_nodes, plan.n_cliques = len(states), n
        plan.cliques = <Clique *> calloc(n, sizeof(Clique))
        plan.factors = <Part *> calloc(len(factors) + 1, sizeof(Part))
        plan.below = <Part *> calloc(len(below) + 1, sizeof(Part))
        plan.others = <Part *> calloc(len(others) + 1, sizeof(Part))
        if (plan.cliques == NULL or plan.factors == NULL or plan.below == NULL
                or plan.others == NULL):
            raise MemoryError("no memory for the schedule of a junction tree")
        for c in range(n):
            clique = &plan.cliques[c]
            nodes, clique.table = cliques[c]
            clique.size = table_size(states, nodes)
            clique.parent = parent[c]
            above = separators[c][0] if clique.parent >= 0 else ()
            clique.to_separator = self.map(states, nodes, above)
            if clique.parent >= 0:
                clique.from_parent = self.map(states, cliques[clique.parent][0], above)
                clique.separator = separators[c][1]
            clique.separator_size = table_size(states, above)
            clique.message = plan.n_messages
            clique.first_child, clique.last_child = first_child[c], first_child[c + 1]
            clique.first_factor, clique.last_factor = first_factor[c], first_factor[c + 1]
            clique.first_below, clique.last_below = first_below[c], first_below[c + 1]
            plan.n_messages += clique.separator_size
            plan.largest = max(plan.largest, clique.size)
        for k, declared in enumerate(factors):
            plan.factors[k] = self.part(states, cliques[declared[0]], declared[1:])
        for k, declared in enumerate(below):
            plan.below[k] = self.part(states, cliques[declared[0]], declared[1:])
        for k, declared in enumerate(others):
            plan.others[k] = self.part(states, declared[0], declared[1:])
        plan.n_others = len(others)
        axes = np.concatenate([nodes for nodes, _ in cliques])
        plan.children = <const int64_t *> self.keep(children)
        plan.axis_ptr = <const int64_t *> self.keep(
            np.cumsum([0] + [len(nodes) for nodes, _ in cliques]))
        plan.axis_node = <const int64_t *> self.keep(axes)
        plan.axis_states = <const int64_t *> self.keep(np.asarray(states)[axes])
        plan.axis_stride = <const int64_t *> self.keep(
            np.concatenate([strides(states, nodes) for nodes, _ in cliques]))

    def __dealloc__(self):
        free(self.plan.cliques)
        free(self.plan.factors)
        free(self.plan.below)
        free(self.plan.others)

    cdef size_t keep(self, array):
        """Return the address of an int64 copy that lives as long as the schedule."""
        self.arrays.append(np.array(array, np.int64))
        return self.arrays[len(self.arrays) - 1].ctypes.data

    cdef TableMap map(self, states, large, small, tied=None):
        """Return the map from a table over nodes `large` to one over some of them."""
        position = {v: axis for axis, v in enumerate(large)}
        key = tuple(states[v] for v in large), tuple(position[v] for v in small)
        if (key, tied is None) not in self.maps:
            self.maps[key, tied is None] = table_map(*key, tied is not None)
        run, constant, outer, inner = self.maps[key, tied is None]
        columns = np.empty(0, np.int32) if tied is None else np.array(tied, np.int32)
        self.arrays.append((outer, inner, columns))
        cdef size_t first = 0 if tied is None else columns.ctypes.data
        return TableMap(outer.size, inner.size, run, constant,
                        <const int32_t *> <size_t> outer.ctypes.data,
                        <const int32_t *> <size_t> inner.ctypes.data, <const int32_t *> first)

    cdef Part part(self, states, large, declared):
        """Return a part of the table large = (nodes, offset)."""
        nodes, tied, offset = declared
        size = table_size(states, nodes) if tied is None else int(tied.max()) + 1
        return Part(self.map(states, large[0], nodes, tied), large[1], offset, size)


def _by_clique(parts, n_cliques):
    """Return parts sorted by their clique, and where those of each clique begin."""
    parts = sorted(parts, key=lambda part: part[0])
    return parts, np.searchsorted([part[0] for part in parts], np.arange(n_cliques + 1))


def strides(states, nodes):
    """Return the strides of a row-major table over these nodes, a list."""
    steps, step = [], 1
    for v in reversed(nodes):
        steps.append(step)
        step *= int(states[v])
    return steps[::-1]


def table_size(states, nodes):
    """Return the number of entries of a table over these nodes, as a Python integer."""
    return math.prod(int(states[v]) for v in nodes)


def table_map(sizes, axes, tied=False):
    """Return the `TableMap` from a table to a smaller one over some of its axes.

    Parameters
    ----------
    sizes : tuple of int
        Numbers of states of the axes of the large table.
    axes : tuple of int
        Which of them the small table has, in the order of its own axes.
    tied : bool
        Whether entries of the small table are tied: then only single ones lie in a row.

    Returns
    -------
    run : int
    constant : bool
    outer, inner : int32 arrays
        Entry (o * inner.size + i) * run + l of the large table belongs to entry outer[o] + inner[i]
        of the small one, plus l unless it is constant.
    """
    step = dict(zip(axes, strides(sizes, axes), strict=True))
    shared = 0      # trailing axes that both have in common
    while (not tied and shared < len(axes)
           and axes[len(axes) - 1 - shared] == len(sizes) - 1 - shared):
        shared += 1
    absent = 0      # trailing axes that only the large one has
    while absent < len(sizes) and len(sizes) - 1 - absent not in step:
        absent += 1
    kept = len(sizes) - max(shared, absent)
    run = math.prod(sizes[kept:])
    middle = kept   # axes before it are the outer ones: two short tables instead of a long one
    while middle > 0 and math.prod(sizes[middle:kept]) ** 2 < math.prod(sizes[:kept]):
        middle -= 1
    outer, inner = _offsets(sizes, step, 0, middle), _offsets(sizes, step, middle, kept)
    return run, absent > 0, outer, inner


def _offsets(sizes, step, Py_ssize_t first, Py_ssize_t last):
    """Return where the entries of a table over axes first, ..., last - 1 stand in the small one."""
    cdef Py_ssize_t axis
    offsets = np.zeros(1, np.int64)
    for axis in range(first, last):
        offsets = np.add.outer(offsets, np.arange(sizes[axis]) * step.get(axis, 0)).ravel()
    return offsets.astype(np.int32)


cdef class JunctionTreeEngine(Engine):
    """Inference on graphs given by their schedules.

    Parameters
    ----------
    schedules : list of Schedule
    which : int64 array of shape (n,)
        The schedule of each sample.
    """

    def __cinit__(self, schedules, which):
        self.plans = <const Plan **> calloc(len(which), sizeof(Plan *))
        if self.plans == NULL:
            raise MemoryError("no memory for the schedules of all samples")

    def __dealloc__(self):
        free(self.plans)

    def __init__(self, schedules, which):
        cdef Schedule schedule
        cdef Py_ssize_t i
        self.schedules = list(schedules)
        self.which = which
        for i in range(self.which.shape[0]):
            schedule = self.schedules[which[i]]
            self.plans[i] = &schedule.plan
        for schedule in self.schedules:
            needed = (3 * schedule.plan.n_messages + schedule.plan.n_cliques
                      + schedule.plan.largest)
            self.scratch_size = max(self.scratch_size, needed)
        self.calibrates = True

    cdef Py_ssize_t n_nodes(self, Py_ssize_t i) except -1 nogil:
        return self.plans[i].n_nodes

    def graph(self, Py_ssize_t i):
        return self.schedules[self.which[i]].graph

    cdef int infer(self, Py_ssize_t i, const double *theta, double *mu, double *log_z,
                   double *scratch) except -1 nogil:
        cdef const Plan *plan = self.plans[i]
        cdef double *messages = scratch
        cdef double *scales = messages + plan.n_messages
        cdef double *buffer = scales + plan.n_messages
        upward(plan, theta, mu, messages, scales, buffer, log_z)
        downward(plan, mu, scales, buffer)
        return 0

    cdef int calibrate(self, Py_ssize_t i, double *mu, double *scratch) except -1 nogil:
        cdef const Plan *plan = self.plans[i]
        cdef const Clique *clique
        cdef double *scales = scratch
        cdef Py_ssize_t c
        memset(scales, 0, plan.n_messages * sizeof(double))
        for c in range(plan.n_cliques):
            clique = &plan.cliques[c]
            kernels.reduce_sum(&clique.to_separator, mu + clique.table, scales + clique.message)
        downward(plan, mu, scales, scales + plan.n_messages)
        return 0

    cdef int decode(self, Py_ssize_t i, const double *theta, int64_t *y,
                    double *scratch) except -1 nogil:
        cdef const Plan *plan = self.plans[i]
        cdef double *messages = scratch
        cdef double *best = messages + plan.n_messages      # entry of a clique, given y_S
        cdef double *chosen = best + plan.n_messages        # entry of each clique
        max_upward(plan, theta, messages, best, chosen + plan.n_cliques)
        backtrack(plan, best, chosen, y)
        return 0


cdef void potential(const Plan *plan, const Clique *clique, const double *theta,
                    const double *messages, double *table) noexcept nogil:
    """Write psi_C from the factors of a clique and the messages of its children."""
    cdef const Clique *child
    cdef const Part *factor
    cdef Py_ssize_t k
    memset(table, 0, clique.size * sizeof(double))
    for k in range(clique.first_factor, clique.last_factor):
        factor = &plan.factors[k]
        kernels.expand_add(&factor.map, theta + factor.offset, table)
    for k in range(clique.first_child, clique.last_child):
        child = &plan.cliques[plan.children[k]]
        kernels.expand_add(&child.from_parent, messages + child.message, table)


cdef void upward(const Plan *plan, const double *theta, double *mu, double *messages,
                 double *scales, double *high, double *log_z) noexcept nogil:
    """Write exp(psi_C - its maximum given y_S) to mu, the sums of that to scales, and log m_C."""
    cdef const Clique *clique
    cdef double *message
    cdef double *scale
    cdef double *table
    cdef Py_ssize_t c, k
    log_z[0] = 0.0
    for c in range(plan.n_cliques):
        clique = &plan.cliques[c]
        table = mu + clique.table
        message, scale = messages + clique.message, scales + clique.message
        potential(plan, clique, theta, messages, table)
        for k in range(clique.separator_size):
            high[k], scale[k] = -INFINITY, 0.0
        kernels.reduce_max(&clique.to_separator, table, high)
        kernels.exp_sum(&clique.to_separator, high, table, scale)
        kernels.log(scale, message, clique.separator_size)
        for k in range(clique.separator_size):
            message[k] += high[k]
        if clique.parent < 0:
            log_z[0] += message[0]


cdef void downward(const Plan *plan, double *mu, const double *scales,
                   double *ratio) noexcept nogil:
    """Multiply the tables of all cliques by mu_S / scale and sum the other tables from them."""
    cdef const Clique *clique
    cdef Py_ssize_t c, k
    for c in range(plan.n_cliques - 1, -1, -1):
        clique = &plan.cliques[c]
        for k in range(clique.separator_size):
            ratio[k] = mu[clique.separator + k] if clique.parent >= 0 else 1.0
            if scales[clique.message + k] > 0.0:
                ratio[k] /= scales[clique.message + k]
        kernels.expand_scale(&clique.to_separator, ratio, mu + clique.table)
        for k in range(clique.first_below, clique.last_below):
            marginalise(&plan.below[k], mu)
    for k in range(plan.n_others):
        marginalise(&plan.others[k], mu)


cdef inline void marginalise(const Part *part, double *mu) noexcept nogil:
    memset(mu + part.offset, 0, part.size * sizeof(double))
    kernels.reduce_sum(&part.map, mu + part.source, mu + part.offset)


cdef void max_upward(const Plan *plan, const double *theta, double *messages, double *best,
                     double *table) noexcept nogil:
    """Write the highest psi_C given y_S to messages, and the entry of C that has it to best."""
    cdef const Clique *clique
    cdef double *message
    cdef Py_ssize_t c, j, k
    for c in range(plan.n_cliques):
        clique = &plan.cliques[c]
        message = messages + clique.message
        potential(plan, clique, theta, messages, table)
        for k in range(clique.separator_size):
            message[k], best[clique.message + k] = -INFINITY, 0.0
        for j in range(clique.size):
            k = entry_of(&clique.to_separator, j)
            if table[j] > message[k]:
                message[k] = table[j]
                best[clique.message + k] = j


cdef void backtrack(const Plan *plan, const double *best, double *chosen,
                    int64_t *y) noexcept nogil:
    """Choose an entry of every clique, given that of its parent, and read the labels off it."""
    cdef const Clique *clique
    cdef Py_ssize_t c, k, entry
    for c in range(plan.n_cliques - 1, -1, -1):
        clique = &plan.cliques[c]
        k = 0
        if clique.parent >= 0:
            k = entry_of(&clique.from_parent, <Py_ssize_t> chosen[clique.parent])
        chosen[c] = best[clique.message + k]
        entry = <Py_ssize_t> chosen[c]
        for k in range(plan.axis_ptr[c], plan.axis_ptr[c + 1]):
            y[plan.axis_node[k]] = entry // plan.axis_stride[k] % plan.axis_states[k]


cdef inline Py_ssize_t entry_of(const TableMap *map, Py_ssize_t j) noexcept nogil:
    """Return the entry of the small table that entry j of the large one belongs to."""
    cdef Py_ssize_t block = j // map.run
    cdef Py_ssize_t k = map.outer[block // map.n_inner] + map.inner[block % map.n_inner]
    if map.columns != NULL:
        k = map.columns[k]
    return k if map.constant else k + j % map.run
