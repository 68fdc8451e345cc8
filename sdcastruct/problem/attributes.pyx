"""Packed attributes: from weights to slot scores and back.

A slot is a table of scores, theta_slot = x_slot @ W: a sparse row of attributes times the block of
weights of its template, whose columns are the states of the table. The attributes of a sample are
stored by *weight row*: each row of W that the sample uses appears once, with the list of slots in
which its attribute occurs. Then

    score      theta_slot += value * W[row]      reads every row of weights once,
    direction  v[row] = sum value * m_slot       writes the sample's support once,
    add        W[row] += gamma * v[row]

and `direction` is the adjoint of `score`: <score(w), m> = <w, direction(m)>.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from libc.math cimport fabs
from libc.string cimport memset

from sdcastruct.simd.kernels cimport kernels


@dataclass(frozen=True)
class SlotBlock:
    """The attributes of one template over all samples.

    Attributes
    ----------
    attributes : CSR matrix of shape (n_slots, n_attributes)
        The attribute row of each slot, samples one after the other.
    slot_ptr : int64 array of shape (n_samples + 1,)
        Slots of sample i are the rows slot_ptr[i], ..., slot_ptr[i+1] - 1.
    offset : int64 array of shape (n_slots,)
        Where the table of each slot begins in the scores of its sample.
    weight_offset : int
        Where the template's weights begin in w; they lie there as a row-major table of shape
        (n_attributes, width).
    width : int
        Number of states of the table.
    """

    attributes: sparse.csr_matrix
    slot_ptr: np.ndarray
    offset: np.ndarray
    weight_offset: int
    width: int


cdef class Attributes:
    """Attributes of n samples, packed by weight row.

    Parameters
    ----------
    slot_ptr : int64 array of shape (n_samples + 1,)
        Offsets of the score vectors theta_i in their concatenation.
    blocks : list of SlotBlock
    """

    def __init__(self, slot_ptr, blocks):
        self.slot_ptr = slot_ptr
        self.n_samples = len(slot_ptr) - 1
        self.dim = max(b.weight_offset + b.attributes.shape[1] * b.width for b in blocks)
        self.max_slots = int(np.diff(slot_ptr).max())

        rows, occurrences = _count(self.n_samples, blocks)
        support_ptr, occurrence_start = _pointers(sum(rows)), _pointers(sum(occurrences))
        n_rows, n_occurrences = support_ptr[self.n_samples], occurrence_start[self.n_samples]
        row_weight = np.empty(n_rows, np.int64)
        row_ptr = np.zeros(n_rows + 1, np.int64)
        occurrence_ptr = np.full(n_rows + 1, n_occurrences, np.int64)
        occurrence_slot = np.empty(n_occurrences, np.int32)
        occurrence_value = np.empty(n_occurrences, np.float64)
        next_row = support_ptr[:self.n_samples].copy()
        next_occurrence = occurrence_start[:self.n_samples].copy()
        for block in blocks:
            _fill(block, next_row, next_occurrence, row_weight, row_ptr, occurrence_ptr,
                  occurrence_slot, occurrence_value)
        np.cumsum(row_ptr, out=row_ptr)

        self.support_ptr = support_ptr
        self.row_weight, self.row_ptr = row_weight, row_ptr
        self.occurrence_ptr = occurrence_ptr
        self.occurrence_slot, self.occurrence_value = occurrence_slot, occurrence_value
        self.max_support = int(np.diff(row_ptr[support_ptr]).max())

    cdef void score(self, Py_ssize_t i, const double *w, double *theta) noexcept nogil:
        """Write the slot scores of sample i at weights w."""
        cdef int64_t r = self.support_ptr[i]
        memset(theta, 0, (self.slot_ptr[i + 1] - self.slot_ptr[i]) * sizeof(double))
        kernels.score(self.support_ptr[i + 1] - r, &self.row_weight[r], &self.row_ptr[r],
                      &self.occurrence_ptr[r], &self.occurrence_slot[0], &self.occurrence_value[0],
                      w, theta)

    cdef double direction(self, Py_ssize_t i, const double *m, double scale,
                          double *v) noexcept nogil:
        """Write v, scale times the expected features of slot marginals m; return ||v||^2."""
        cdef int64_t r = self.support_ptr[i]
        return kernels.direction(self.support_ptr[i + 1] - r, &self.row_ptr[r],
                                 &self.occurrence_ptr[r], &self.occurrence_slot[0],
                                 &self.occurrence_value[0], m, scale, v)

    cdef void add(self, Py_ssize_t i, double gamma, const double *v, double *w) noexcept nogil:
        """Add gamma v to the weights of the sample's support."""
        cdef int64_t r = self.support_ptr[i]
        kernels.add(self.support_ptr[i + 1] - r, &self.row_weight[r], &self.row_ptr[r], gamma, v, w)

    cdef double largest_norm2(self, Py_ssize_t i, const double *m, double *low) noexcept nogil:
        """Return an upper bound of max_y ||F(x_i, y)||^2; `low` receives the smallest value seen.

        A row of weights collects at most the sum of its attribute's absolute values over all
        tables that share its slots, all in one column. `m` are the slot marginals of any
        labelling: their sum over a slot counts the tables that share it.
        """
        cdef double norm2 = 0.0, total
        cdef int64_t r, o, j, width
        for r in range(self.support_ptr[i], self.support_ptr[i + 1]):
            width = self.row_ptr[r + 1] - self.row_ptr[r]
            total = 0.0
            for o in range(self.occurrence_ptr[r], self.occurrence_ptr[r + 1]):
                low[0] = min(low[0], self.occurrence_value[o])
                for j in range(width):
                    total += fabs(self.occurrence_value[o]) * m[self.occurrence_slot[o] + j]
            norm2 += total * total
        return norm2

    def support(self, Py_ssize_t i):
        """Return the indices into w of the entries of v, the support of sample i."""
        cdef Py_ssize_t first = self.support_ptr[i], last = self.support_ptr[i + 1]
        widths = np.diff(self.row_ptr[first:last + 1])
        starts = np.repeat(np.asarray(self.row_weight[first:last]), widths)
        within = np.arange(widths.sum()) - np.repeat(np.cumsum(widths) - widths, widths)
        return starts + within


def _pointers(counts):
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def _count(Py_ssize_t n_samples, blocks):
    """Return for each block the number of weight rows and of occurrences of every sample."""
    rows, occurrences = [], []
    for block in blocks:
        unique = np.zeros(n_samples, np.int64)
        _count_rows(block.slot_ptr, block.attributes.indptr.astype(np.int64),
                    block.attributes.indices, np.full(block.attributes.shape[1], -1, np.int64),
                    unique)
        rows.append(unique)
        occurrences.append(np.diff(block.attributes.indptr[block.slot_ptr]))
    return rows, occurrences


cdef _count_rows(const int64_t[::1] slot_ptr, const int64_t[::1] indptr,
                 const int32_t[::1] indices, int64_t[::1] last_seen, int64_t[::1] unique):
    cdef Py_ssize_t i, e
    for i in range(unique.shape[0]):
        for e in range(indptr[slot_ptr[i]], indptr[slot_ptr[i + 1]]):
            if last_seen[indices[e]] != i:
                last_seen[indices[e]] = i
                unique[i] += 1


def _fill(block, int64_t[::1] next_row, int64_t[::1] next_occurrence, int64_t[::1] row_weight,
          int64_t[::1] row_width, int64_t[::1] occurrence_ptr, int32_t[::1] occurrence_slot,
          double[::1] occurrence_value):
    """Write the rows and occurrences of one block behind those of the blocks before it.

    Rows appear in the order of their first occurrence. A first pass over a sample counts the
    occurrences of each row, a second one puts them in place.
    """
    cdef const int64_t[::1] slot_ptr = block.slot_ptr, offset = block.offset
    cdef const int64_t[::1] indptr = block.attributes.indptr.astype(np.int64)
    cdef const int32_t[::1] indices = block.attributes.indices
    cdef const double[::1] values = block.attributes.data
    cdef int64_t weight_offset = block.weight_offset, width = block.width
    cdef int64_t[::1] row_of = np.full(block.attributes.shape[1], -1, np.int64)
    cdef int64_t[::1] place = np.zeros(block.attributes.shape[1], np.int64)
    cdef Py_ssize_t i, s, e, first, r, o
    for i in range(next_row.shape[0]):
        first = next_row[i]
        for e in range(indptr[slot_ptr[i]], indptr[slot_ptr[i + 1]]):
            r = row_of[indices[e]]
            if r < first or r >= next_row[i] or row_weight[r] != weight_offset + indices[e] * width:
                r = next_row[i]
                row_of[indices[e]] = r
                row_weight[r] = weight_offset + indices[e] * width
                row_width[r + 1] = width
                place[indices[e]] = 0
                next_row[i] += 1
            place[indices[e]] += 1
        o = next_occurrence[i]
        for r in range(first, next_row[i]):
            occurrence_ptr[r] = o
            e = (row_weight[r] - weight_offset) // width
            o += place[e]
            place[e] = occurrence_ptr[r]
        next_occurrence[i] = o
        for s in range(slot_ptr[i], slot_ptr[i + 1]):
            for e in range(indptr[s], indptr[s + 1]):
                o = place[indices[e]]
                occurrence_slot[o] = offset[s]
                occurrence_value[o] = values[e]
                place[indices[e]] += 1
