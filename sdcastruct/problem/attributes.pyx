"""Packed attributes: from weights to slot scores and back.

A slot is a table of scores, theta_s = x_s @ W: a sparse row of attributes times the weights of its
template, whose columns are the states of the table. With m_s the marginals of the slots,

    score   theta_s = sum over templates of x_s @ W
    add     W += scale sum_s x_s^T m_s
    norm2   ||sum_s x_s^T m_s||^2, the squared norm of what `add` adds

`add` is the adjoint of `score`: <score(w), m> = <w, add(m)>. The attributes stay in CSR form; what
the norm is computed from is in gram.pyx. Dense ones, such as embeddings of words, have all their
zeros, so that they can be multiplied in tiles as a BLAS does.
"""

from typing import NamedTuple

import numpy as np

from libc.stdint cimport INT32_MAX, int32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from sdcastruct.simd.ahead cimport ask_for
from sdcastruct.simd.kernels cimport Place, kernels

from sdcastruct.problem.gram import SampleAttributes, gram, row_sums

# Tables of weights up to this size stay in a cache nearby.
NEAR_BYTES = 2 ** 18
# Attributes count as dense, and have all their zeros, if there are at least so many columns, more
# than this part of all values is given, and not all of these are 1.
MANY_COLUMNS, DENSE_PART = 8, 0.5


cdef class Template:
    """The attributes that share one table of weights, over all samples.

    Parameters
    ----------
    attributes : CSR matrix of shape (n_slots, n_attributes), float64, without duplicates
        The attribute row of each slot, samples one after the other.
    slot_ptr : int64 array of shape (n_samples + 1,)
        Slots of sample i are the rows slot_ptr[i], ..., slot_ptr[i+1] - 1.
    slot_offset : int64 array of shape (n_slots,)
        Where the table of each slot begins in the scores of its sample; they do not overlap.
    weight_offset : int
        Where the template's weights begin in w; they lie there as a row-major table of shape
        (n_attributes, width).
    width : int
        Number of states of the table.
    """

    def __init__(self, attributes, slot_ptr, slot_offset, Py_ssize_t weight_offset,
                 Py_ssize_t width):
        if width < 1:
            raise ValueError(f"width={width}: expected at least one state")
        n_slots, self.n_attributes = attributes.shape
        value = np.asarray(attributes.data, np.float64)
        binary = np.all(value == 1.0)
        if (self.n_attributes >= MANY_COLUMNS and not binary
                and len(value) > DENSE_PART * n_slots * self.n_attributes):
            attributes = _filled(attributes)
            value = attributes.data
            self.block.n_dense = self.n_attributes
        self.arrays = {
            "slot_ptr": np.ascontiguousarray(slot_ptr, np.int64),
            "slot_offset": np.asarray(slot_offset, np.int64),
            "entry_ptr": np.asarray(attributes.indptr, np.int64),
            "entry_row": np.asarray(attributes.indices, np.int32),
            "entry_value": np.broadcast_to(1.0, value.shape) if binary else value,
        }
        self.block.width = width
        self.block.first_replica = INT32_MAX
        self.block.weight_offset = weight_offset
        self.block.far = self.n_attributes * width * sizeof(double) > NEAR_BYTES
        self.block.slot_offset = <const int64_t *> self.address("slot_offset", np.int64)
        self.block.entry_ptr = <const int64_t *> self.address("entry_ptr", np.int64)
        self.block.entry_row = <const int32_t *> self.address("entry_row", np.int32)
        if not binary:
            self.block.entry_value = <const double *> self.address("entry_value", np.float64)
        # Other threads may read it while `prepare_norms` completes it: it never moves.
        places = self.arrays["place"] = np.zeros((len(slot_ptr), 5), np.int64)
        places[:, 0] = self.arrays["slot_ptr"]
        places[:, 1] = self.arrays["entry_ptr"][places[:, 0]]
        self.block.place = <const Place *> self.address("place", np.int64)

    def prepare_norms(self, int n_jobs=1):
        """Compute what `norm2` needs, unless that was done; prediction does without."""
        if self.block.diagonal != NULL:
            return
        n_samples, offset = len(self.arrays["slot_ptr"]) - 1, self.arrays["slot_offset"]
        arrays = gram(self.of_samples, n_samples, offset, n_jobs)
        if self.block.diagonal != NULL:     # another thread was faster, and its arrays are in use
            return
        self.arrays.update(arrays)
        self.block.pair_offset = <const int32_t *> self.address("pair_offset", np.int32)
        self.block.pair_value = <const double *> self.address("pair_value", np.float64)
        self.block.occurrence_ptr = <const int64_t *> self.address("occurrence_ptr", np.int64)
        self.block.occurrence_offset = <const int32_t *> self.address("occurrence_offset", np.int32)
        if self.block.entry_value != NULL:
            self.block.occurrence_value = <const double *> self.address(
                "occurrence_value", np.float64)
        places, groups = self.arrays["place"], self.arrays["group_ptr"]
        places[:, 2], places[:, 3] = self.arrays["pair_ptr"], groups
        places[:, 4] = self.arrays["occurrence_ptr"][groups]
        self.block.diagonal = <const double *> self.address("diagonal", np.float64)  # all is done

    def frequencies(self, const int64_t[::1] samples):
        """Return how often each attribute occurs in a sample, on average over some of them."""
        counts = np.zeros(self.n_attributes, np.int64)
        cdef int64_t[::1] view = counts
        cdef Py_ssize_t k
        cdef int64_t i, e
        with nogil:
            for k in range(samples.shape[0]):
                i = samples[k]
                for e in range(self.block.place[i].entry, self.block.place[i + 1].entry):
                    view[self.block.entry_row[e]] += 1
        return counts / samples.shape[0]

    def renumbered(self, const int32_t[::1] number):
        """Return this template with row `number[r]` in the place of row r."""
        cdef const int32_t[::1] rows = self.arrays["entry_row"]
        numbers = np.empty(rows.shape[0], np.int32)
        cdef int32_t[::1] view = numbers
        cdef Template other = self._copy()
        cdef Py_ssize_t e
        with nogil:
            for e in range(rows.shape[0]):
                view[e] = number[rows[e]]
        other.arrays["entry_row"] = numbers
        other.block.entry_row = <const int32_t *> other.address("entry_row", np.int32)
        return other

    def with_replicas(self, double[::1] rows):
        """Return this template with rows from `n_attributes` on in other memory than w."""
        cdef Template other = self._copy()
        if rows.shape[0]:
            other.block.first_replica = self.n_attributes
            other.block.replicas = &rows[0] - self.n_attributes * self.block.width
            other.arrays["replicas"] = rows
        return other

    def _copy(self):
        """Return a template that shares all arrays with this one."""
        cdef Template other = Template.__new__(Template)
        other.n_attributes, other.block, other.arrays = (
            self.n_attributes, self.block, dict(self.arrays))
        return other

    @property
    def weights(self):
        """Where the rows of weights stand in w, and the length of a row: (slice, int)."""
        offset, width = self.block.weight_offset, self.block.width
        return slice(offset, offset + self.n_attributes * width), width

    @property
    def dense(self):
        """Whether all zeros are kept, and products are computed as of dense matrices."""
        return self.block.n_dense > 0

    @property
    def n_slots(self):
        """Number of slots of all samples."""
        return self.arrays["slot_offset"].size

    def first_scores(self, slot_ptr):
        """Return where each slot's scores begin, given where those of each sample do."""
        slots = np.diff(self.arrays["slot_ptr"])
        return np.repeat(slot_ptr[:slots.size], slots) + self.arrays["slot_offset"]

    def of_samples(self):
        """Return the attributes, to be looked at sample by sample."""
        value = self.arrays["entry_value"] if self.block.entry_value != NULL else None
        return SampleAttributes(self.n_attributes, self.arrays["slot_ptr"],
                                self.arrays["entry_ptr"], self.arrays["entry_row"], value,
                                self.block.n_dense)

    cdef size_t address(self, name, dtype) except? 0:
        array = self.arrays[name] = np.ascontiguousarray(self.arrays[name], dtype)
        return array.ctypes.data


class CSR(NamedTuple):
    """What a `Template` needs of a CSR matrix; making SciPy's takes longer than all the rest."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    shape: tuple


def _filled(attributes):
    """Return a CSR matrix with all its zeros."""
    n_slots, n_attributes = attributes.shape
    values = np.zeros(attributes.shape)
    _fill(np.asarray(attributes.indptr, np.int64), np.asarray(attributes.indices, np.int32),
          np.asarray(attributes.data, np.float64), values)
    columns = np.tile(np.arange(n_attributes, dtype=np.int32), n_slots)
    ptr = n_attributes * np.arange(n_slots + 1, dtype=np.int64)
    return CSR(values.ravel(), columns, ptr, attributes.shape)


def _fill(const int64_t[::1] ptr, const int32_t[::1] column, const double[::1] value,
          double[:, ::1] out):
    """Write the values of a CSR matrix to a dense one."""
    cdef Py_ssize_t s, e
    for s in range(out.shape[0]):
        for e in range(ptr[s], ptr[s + 1]):
            out[s, column[e]] = value[e]


ctypedef fused number:
    int32_t
    double


def side_by_side(left, right):
    """Return two CSR matrices of float64 as one, for a `Template`.

    Values that are all 1 take no memory.
    """
    ptr = np.asarray(left.indptr, np.int64), np.asarray(right.indptr, np.int64)
    columns = np.empty(left.nnz + right.nnz, np.int32)
    _side_by_side(*ptr, np.asarray(left.indices, np.int32),
                  np.asarray(right.indices + left.shape[1], np.int32), columns)
    if np.all(left.data == 1.0) and np.all(right.data == 1.0):
        values = np.broadcast_to(1.0, columns.shape)
    else:
        values = np.empty(columns.shape)
        _side_by_side(*ptr, left.data, right.data, values)
    shape = left.shape[0], left.shape[1] + right.shape[1]
    return CSR(values, columns, ptr[0] + ptr[1], shape)


def _side_by_side(const int64_t[::1] left_ptr, const int64_t[::1] right_ptr,
                  const number[::1] left, const number[::1] right, number[::1] out):
    """Write the rows of two matrices in turn."""
    cdef Py_ssize_t s, e, place = 0
    for s in range(left_ptr.shape[0] - 1):
        for e in range(left_ptr[s], left_ptr[s + 1]):
            out[place] = left[e]
            place += 1
        for e in range(right_ptr[s], right_ptr[s + 1]):
            out[place] = right[e]
            place += 1


cdef class Attributes:
    """Attributes of n samples over any number of templates.

    Parameters
    ----------
    slot_ptr : int64 array of shape (n_samples + 1,)
        Offsets of the score vectors theta_i in their concatenation.
    templates : list of Template
    """

    def __dealloc__(self):
        free(self.blocks)

    def __init__(self, slot_ptr, templates):
        cdef Template template
        self.slot_ptr = slot_ptr
        self.templates = list(templates)
        self.n_blocks = len(self.templates)
        free(self.blocks)
        self.blocks = <const Block **> malloc(self.n_blocks * sizeof(Block *))
        self.n_samples = len(slot_ptr) - 1
        self.max_slots = int(np.diff(slot_ptr).max())
        for k, template in enumerate(self.templates):
            self.blocks[k] = &template.block
            template.block.row_offset = self.n_rows
            self.n_rows += template.n_attributes
            end = template.block.weight_offset + template.n_attributes * template.block.width
            self.dim = max(self.dim, end)

    def prepare_norms(self, int n_jobs=1):
        """Compute what `norm2` needs, unless that was done; prediction does without."""
        for template in self.templates:
            template.prepare_norms(n_jobs)

    cdef int score(self, Py_ssize_t i, const double *w, double *theta) except -1 nogil:
        """Write the slot scores of sample i at weights w."""
        cdef Py_ssize_t k
        memset(theta, 0, (self.slot_ptr[i + 1] - self.slot_ptr[i]) * sizeof(double))
        for k in range(self.n_blocks):
            kernels.score(self.blocks[k], i, w, theta)
        return 0

    cdef double norm2(self, Py_ssize_t i, const double *m) except -1.0 nogil:
        """Return ||E_m[F]||^2 for slot marginals m, after `prepare_norms`."""
        cdef double total = 0.0
        cdef Py_ssize_t k
        for k in range(self.n_blocks):
            total += kernels.norm2(self.blocks[k], i, m)
        return total

    cdef void prefetch_place(self, Py_ssize_t i) noexcept nogil:
        """Ask for where the arrays of sample i begin, which `prefetch` has to know."""
        cdef Py_ssize_t k
        ask_for(&self.slot_ptr[i])
        for k in range(self.n_blocks):
            ask_for(&self.blocks[k].place[i])
            ask_for(&self.blocks[k].place[i + 1].occurrence)

    cdef void prefetch(self, Py_ssize_t i) noexcept nogil:
        """Ask for what `score`, `norm2` and `add` will read of sample i, but for the weights."""
        cdef Py_ssize_t k
        for k in range(self.n_blocks):
            kernels.prefetch_sample(self.blocks[k], i)

    cdef void prefetch_weights(self, Py_ssize_t i, const double *w) noexcept nogil:
        """Ask for the rows of w that `score` will read for sample i."""
        cdef Py_ssize_t k
        for k in range(self.n_blocks):
            kernels.prefetch_weights(self.blocks[k], i, w)

    cdef int add(self, Py_ssize_t i, double scale, const double *m, double *w) except -1 nogil:
        """Add scale E_m[F] to w."""
        cdef Py_ssize_t k
        for k in range(self.n_blocks):
            kernels.add(self.blocks[k], i, scale, m, w)
        return 0

    cdef void exchange_weights(self) noexcept nogil:
        """Exchange weights with other threads after a step, one thread at a time.

        Here nothing, because all see the same; see `sdcastruct.problem.replicas`.
        """

    cdef void clear(self, Py_ssize_t i, double *w) noexcept nogil:
        """Set the rows of w that sample i has attributes in to zero."""
        cdef Py_ssize_t k
        for k in range(self.n_blocks):
            kernels.clear(self.blocks[k], i, w)

    cdef void catch_up(self, Py_ssize_t i, double total, const double *d, double *last,
                       double *w) noexcept nogil:
        """Subtract (total - last) d from the rows of w that sample i has attributes in."""
        cdef Py_ssize_t k
        for k in range(self.n_blocks):
            kernels.catch_up(self.blocks[k], i, total, d, last, w)

    def catch_up_all(self, double total, d, double[::1] last, w):
        """Subtract (total - last) d from all rows of w, and forget what was subtracted."""
        cdef Template template
        for template in self.templates:
            block = &template.block
            rows = template.n_attributes
            part = slice(block.weight_offset, block.weight_offset + rows * block.width)
            behind = total - np.asarray(last[block.row_offset:block.row_offset + rows])
            w[part].reshape(rows, block.width)[...] -= (
                behind[:, None] * d[part].reshape(rows, block.width))
        last[:] = 0.0

    def add_to(self, digest):
        """Feed everything to a hash."""
        cdef Template template
        digest.update(np.asarray(self.slot_ptr).tobytes())
        for template in self.templates:
            block = &template.block
            sizes = template.n_attributes, block.width, block.weight_offset
            digest.update(np.array(sizes).tobytes())
            for name in ("slot_ptr", "slot_offset", "entry_ptr", "entry_row", "entry_value"):
                digest.update(template.arrays[name].tobytes())

    def largest_norms2(self, tables_per_slot):
        """Return upper bounds of max_y ||F(x_i, y)||^2, and which samples have attributes < 0.

        A row of weights collects at most the sum of its attribute's absolute values over all
        tables that share its slots, all in one column. `tables_per_slot(start, stop)` counts these
        tables, see `Regions.tables_per_slot`.
        """
        bounds, negative = np.zeros(self.n_samples), np.zeros(self.n_samples, bool)
        cdef Template template
        for template in self.templates:
            first = template.first_scores(np.asarray(self.slot_ptr))
            tables = tables_per_slot(first, first + template.block.width)
            bound, below = row_sums(template.of_samples(), np.asarray(tables, np.float64))
            bounds += bound
            negative |= below
        return bounds, negative
