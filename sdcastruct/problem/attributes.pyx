"""Packed attributes: from weights to slot scores and back.

A slot is a table of scores, theta_s = x_s @ W: a sparse row of attributes times the weights of its
template, whose columns are the states of the table. With m_s the marginals of the slots,

    score   theta_s = sum over templates of x_s @ W
    add     W += scale sum_s x_s^T m_s
    norm2   ||sum_s x_s^T m_s||^2, the squared norm of what `add` adds

`add` is the adjoint of `score`: <score(w), m> = <w, add(m)>. The attributes stay in CSR form. An
attribute that occurs in one slot only contributes value^2 ||m_s||^2 to the norm; those that occur
in several slots of a sample are listed once more, so that their rows are summed before squaring.
"""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from sdcastruct.simd.kernels cimport kernels


cdef class Template:
    """The attributes that share one table of weights, over all samples.

    Parameters
    ----------
    attributes : CSR matrix of shape (n_slots, n_attributes), float64, without duplicates
        The attribute row of each slot, samples one after the other.
    slot_ptr : int64 array of shape (n_samples + 1,)
        Slots of sample i are the rows slot_ptr[i], ..., slot_ptr[i+1] - 1.
    slot_offset : int64 array of shape (n_slots,)
        Where the table of each slot begins in the scores of its sample.
    weight_offset : int
        Where the template's weights begin in w; they lie there as a row-major table of shape
        (n_attributes, width).
    width : int
        Number of states of the table.
    """

    def __init__(self, attributes, slot_ptr, slot_offset, Py_ssize_t weight_offset,
                 Py_ssize_t width):
        self.n_attributes = attributes.shape[1]
        self.arrays = {
            "slot_ptr": np.ascontiguousarray(slot_ptr, np.int64),
            "slot_offset": np.ascontiguousarray(slot_offset, np.int64),
            "entry_ptr": np.ascontiguousarray(attributes.indptr, np.int64),
            "entry_row": np.ascontiguousarray(attributes.indices, np.int32),
            "entry_value": np.ascontiguousarray(attributes.data, np.float64),
        }
        self.arrays.update(_find_shared(self.n_attributes, **self.arrays))
        self.block.width = width
        self.block.weight_offset = weight_offset
        self.block.slot_ptr = <const int64_t *> address(self.arrays["slot_ptr"])
        self.block.slot_offset = <const int64_t *> address(self.arrays["slot_offset"])
        self.block.entry_ptr = <const int64_t *> address(self.arrays["entry_ptr"])
        self.block.entry_row = <const int32_t *> address(self.arrays["entry_row"])
        self.block.entry_value = <const double *> address(self.arrays["entry_value"])
        self.block.unshared2 = <const double *> address(self.arrays["unshared2"])
        self.block.group_ptr = <const int64_t *> address(self.arrays["group_ptr"])
        self.block.occurrence_ptr = <const int64_t *> address(self.arrays["occurrence_ptr"])
        self.block.occurrence_offset = <const int32_t *> address(self.arrays["occurrence_offset"])
        self.block.occurrence_value = <const double *> address(self.arrays["occurrence_value"])


cdef size_t address(array):
    return array.ctypes.data


cdef class Attributes:
    """Attributes of n samples over any number of templates.

    Parameters
    ----------
    slot_ptr : int64 array of shape (n_samples + 1,)
        Offsets of the score vectors theta_i in their concatenation.
    templates : list of Template
    """

    def __cinit__(self, slot_ptr, templates):
        self.n_blocks = len(templates)
        self.blocks = <const Block **> malloc(self.n_blocks * sizeof(Block *))

    def __dealloc__(self):
        free(self.blocks)

    def __init__(self, slot_ptr, templates):
        cdef Template template
        self.slot_ptr = slot_ptr
        self.templates = list(templates)
        self.n_samples = len(slot_ptr) - 1
        self.max_slots = int(np.diff(slot_ptr).max())
        for k, template in enumerate(self.templates):
            self.blocks[k] = &template.block
            end = template.block.weight_offset + template.n_attributes * template.block.width
            self.dim = max(self.dim, end)

    cdef void score(self, Py_ssize_t i, const double *w, double *theta) noexcept nogil:
        """Write the slot scores of sample i at weights w."""
        cdef Py_ssize_t k
        memset(theta, 0, (self.slot_ptr[i + 1] - self.slot_ptr[i]) * sizeof(double))
        for k in range(self.n_blocks):
            kernels.score(self.blocks[k], i, w, theta)

    cdef double norm2(self, Py_ssize_t i, const double *m) noexcept nogil:
        """Return ||E_m[F]||^2 for slot marginals m."""
        cdef double total = 0.0
        cdef Py_ssize_t k
        for k in range(self.n_blocks):
            total += kernels.norm2(self.blocks[k], i, m)
        return total

    cdef void add(self, Py_ssize_t i, double scale, const double *m, double *w) noexcept nogil:
        """Add scale E_m[F] to w."""
        cdef Py_ssize_t k
        for k in range(self.n_blocks):
            kernels.add(self.blocks[k], i, scale, m, w)

    cdef double largest_norm2(self, Py_ssize_t i, const double *m, double *low) noexcept nogil:
        """Return an upper bound of max_y ||F(x_i, y)||^2; `low` receives the smallest attribute.

        A row of weights collects at most the sum of its attribute's absolute values over all
        tables that share its slots, all in one column. `m` are the slot marginals of any
        labelling: their sum over a slot counts the tables that share it.
        """
        cdef const Block *block
        cdef double norm2 = 0.0, total
        cdef Py_ssize_t k, s, g, o
        for k in range(self.n_blocks):
            block = self.blocks[k]
            for s in range(block.slot_ptr[i], block.slot_ptr[i + 1]):
                total = sum_of(m + block.slot_offset[s], block.width)
                norm2 += block.unshared2[s] * total * total
                for o in range(block.entry_ptr[s], block.entry_ptr[s + 1]):
                    low[0] = min(low[0], block.entry_value[o])
            for g in range(block.group_ptr[i], block.group_ptr[i + 1]):
                total = 0.0
                for o in range(block.occurrence_ptr[g], block.occurrence_ptr[g + 1]):
                    total += fabs(block.occurrence_value[o]) * sum_of(
                        m + block.occurrence_offset[o], block.width)
                norm2 += total * total
        return norm2


cdef double sum_of(const double *x, Py_ssize_t n) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t j
    for j in range(n):
        total += x[j]
    return total


def _find_shared(Py_ssize_t n_attributes, const int64_t[::1] slot_ptr,
                 const int64_t[::1] slot_offset, const int64_t[::1] entry_ptr,
                 const int32_t[::1] entry_row, const double[::1] entry_value):
    """Return the arrays of a block that tell shared attributes from others (see kernels.h)."""
    cdef Py_ssize_t n_samples = slot_ptr.shape[0] - 1, n_slots = slot_offset.shape[0], i, s, e
    cdef int32_t a
    cdef int64_t[::1] count = np.zeros(n_attributes, np.int64)
    cdef int64_t[::1] group_of = np.full(n_attributes, -1, np.int64)
    shared = np.zeros(entry_row.shape[0], np.int64)
    unshared2, group_ptr = np.zeros(n_slots), np.zeros(n_samples + 1, np.int64)
    cdef int64_t[::1] shared_view = shared, group_view = group_ptr
    cdef double[::1] unshared_view = unshared2
    cdef int64_t n_groups = 0
    for i in range(n_samples):
        for e in range(entry_ptr[slot_ptr[i]], entry_ptr[slot_ptr[i + 1]]):
            count[entry_row[e]] += 1
        for s in range(slot_ptr[i], slot_ptr[i + 1]):
            for e in range(entry_ptr[s], entry_ptr[s + 1]):
                a = entry_row[e]
                if count[a] == 1:
                    shared_view[e] = -1
                    unshared_view[s] += entry_value[e] * entry_value[e]
                    continue
                if group_of[a] < group_view[i]:
                    group_of[a] = n_groups
                    n_groups += 1
                shared_view[e] = group_of[a]
        group_view[i + 1] = n_groups
        for e in range(entry_ptr[slot_ptr[i]], entry_ptr[slot_ptr[i + 1]]):
            count[entry_row[e]] = 0
    entries = np.flatnonzero(shared >= 0)
    entries = entries[np.argsort(shared[entries], kind="stable")]
    slots = np.searchsorted(entry_ptr, entries, side="right") - 1
    return {
        "unshared2": unshared2,
        "group_ptr": group_ptr,
        "occurrence_ptr": np.searchsorted(shared[entries], np.arange(n_groups + 1)),
        "occurrence_offset": np.asarray(slot_offset)[slots].astype(np.int32),
        "occurrence_value": np.asarray(entry_value)[entries],
    }
