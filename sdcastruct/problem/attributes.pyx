"""Packed attributes: from weights to slot scores and back.

A slot is a table of scores, theta_s = x_s @ W: a sparse row of attributes times the weights of its
template, whose columns are the states of the table. With m_s the marginals of the slots,

    score   theta_s = sum over templates of x_s @ W
    add     W += scale sum_s x_s^T m_s
    norm2   ||sum_s x_s^T m_s||^2, the squared norm of what `add` adds

`add` is the adjoint of `score`: <score(w), m> = <w, add(m)>. The attributes stay in CSR form. The
norm is taken through the Gram matrix of a sample's rows, sum_st <x_s, x_t> <m_s, m_t>, which is
sparse: most attributes occur in few slots of a sample. The frequent ones would fill it with pairs;
their rows sum_s x_sa m_s are summed and squared instead.
"""

import numpy as np

from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from sdcastruct.simd.kernels cimport Place, kernels

from sdcastruct.problem.threads import spread

# Attributes with more occurrences in a sample than this are left out of the Gram matrix.
MOST_PAIRED = 8
# Tables of weights up to this size stay in a cache nearby.
NEAR_BYTES = 2 ** 18


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
        if width < 1:
            raise ValueError(f"width={width}: expected at least one state")
        self.n_attributes = attributes.shape[1]
        value = np.asarray(attributes.data, np.float64)
        binary = np.all(value == 1.0)
        self.arrays = {
            "slot_ptr": np.ascontiguousarray(slot_ptr, np.int64),
            "slot_offset": np.asarray(slot_offset, np.int64),
            "entry_ptr": np.asarray(attributes.indptr, np.int64),
            "entry_row": np.asarray(attributes.indices, np.int32),
            "entry_value": np.broadcast_to(1.0, value.shape) if binary else value,
        }
        self.block.width = width
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
        n_samples = len(self.arrays["slot_ptr"]) - 1
        self.arrays.update(_joined(spread(self._gram_of, n_samples, n_jobs)))
        self.block.pair_offset = <const int32_t *> self.address("pair_offset", np.int32)
        self.block.pair_value = <const double *> self.address("pair_value", np.float64)
        self.block.occurrence_ptr = <const int64_t *> self.address("occurrence_ptr", np.int64)
        self.block.occurrence_offset = <const int32_t *> self.address("occurrence_offset", np.int32)
        self.block.occurrence_value = <const double *> self.address("occurrence_value", np.float64)
        places, groups = self.arrays["place"], self.arrays["group_ptr"]
        places[:, 2], places[:, 3] = self.arrays["pair_ptr"], groups
        places[:, 4] = self.arrays["occurrence_ptr"][groups]
        self.block.diagonal = <const double *> self.address("diagonal", np.float64)  # all is done

    def _gram_of(self, first, last):
        """Return the Gram matrices of some samples, see `_gram`."""
        slot_ptr, entry_ptr = self.arrays["slot_ptr"][first:last + 1], self.arrays["entry_ptr"]
        slots = slice(slot_ptr[0], slot_ptr[last - first])
        entry_ptr = entry_ptr[slots.start:slots.stop + 1]
        entries = slice(entry_ptr[0], entry_ptr[slots.stop - slots.start])
        return _gram(self.n_attributes, slot_ptr - slots.start, self.arrays["slot_offset"][slots],
                     entry_ptr - entries.start, self.arrays["entry_row"][entries],
                     np.ascontiguousarray(self.arrays["entry_value"][entries]))

    cdef size_t address(self, name, dtype) except? 0:
        array = self.arrays[name] = np.ascontiguousarray(self.arrays[name], dtype)
        return array.ctypes.data


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
            bound, below = _row_sums(template, np.asarray(self.slot_ptr), tables_per_slot)
            bounds += bound
            negative |= below
        return bounds, negative


def _gram(n_attributes, slot_ptr, slot_offset, entry_ptr, entry_row, entry_value):
    """Return the arrays of a block that `norm2` needs, and the places in them (see kernels.h)."""
    column, column_ptr, occurrences = _columns(n_attributes, slot_ptr, entry_ptr, entry_row)
    frequent = occurrences > MOST_PAIRED
    few = np.bincount(occurrences, minlength=MOST_PAIRED + 1)[:MOST_PAIRED + 1]
    n_pairs = few @ (np.arange(few.size) * (np.arange(few.size) - 1) // 2)      # at most
    diagonal, pair_ptr, pair_offset, pair_value = _pairs(
        slot_ptr, slot_offset, entry_ptr, column, frequent.view(np.uint8), entry_value, n_pairs)

    grouped = np.flatnonzero(frequent[column])
    grouped = grouped[np.argsort(column[grouped], kind="stable")]
    slot = np.searchsorted(entry_ptr, grouped, side="right") - 1
    groups = np.flatnonzero(frequent)
    return {
        "diagonal": diagonal,
        "pair_ptr": pair_ptr,
        "pair_offset": pair_offset,
        "pair_value": pair_value,
        "group_ptr": np.searchsorted(groups, column_ptr),
        "occurrence_ptr": np.searchsorted(column[grouped], np.append(groups, frequent.size)),
        "occurrence_offset": slot_offset[slot],
        "occurrence_value": entry_value[grouped],
    }


def _joined(parts):
    """Return the arrays of all samples from those of stretches of them."""
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    for name in ("pair_ptr", "group_ptr", "occurrence_ptr"):
        joined[name] = _joined_ptr([part[name] for part in parts])
    return joined


def _joined_ptr(parts):
    """Return offsets into what the parts' offsets, which begin with 0, point into one by one."""
    ends = np.cumsum([0] + [part[part.size - 1] for part in parts])
    starts = [part[:part.size - 1] + end for part, end in zip(parts, ends)]
    return np.concatenate([*starts, ends[len(parts):]])


def _columns(Py_ssize_t n_attributes, const int64_t[::1] slot_ptr, const int64_t[::1] entry_ptr,
             const int32_t[::1] entry_row):
    """Number the attributes of every sample anew, those of sample i from column_ptr[i] on.

    Returns
    -------
    column : int32 array of shape (n_entries,)
    column_ptr : int64 array of shape (n_samples + 1,)
    occurrences : int32 array of shape (column_ptr[n_samples],)
        How often each of them occurs.
    """
    column, column_ptr = np.empty(entry_row.shape[0], np.int32), np.zeros_like(slot_ptr)
    occurrences = np.empty(entry_row.shape[0], np.int32)
    cdef int32_t[::1] column_view = column, occurrences_view = occurrences
    cdef int64_t[::1] ptr_view = column_ptr
    cdef int32_t[::1] last = np.full(n_attributes, -1, np.int32)
    cdef Py_ssize_t i, e
    cdef int64_t n_columns = 0
    with nogil:
        for i in range(slot_ptr.shape[0] - 1):
            for e in range(entry_ptr[slot_ptr[i]], entry_ptr[slot_ptr[i + 1]]):
                if last[entry_row[e]] < ptr_view[i]:
                    last[entry_row[e]] = n_columns
                    occurrences_view[n_columns] = 0
                    n_columns += 1
                column_view[e] = last[entry_row[e]]
                occurrences_view[column_view[e]] += 1
            ptr_view[i + 1] = n_columns
    return column, column_ptr, occurrences[:n_columns]


def _pairs(const int64_t[::1] slot_ptr, const int64_t[::1] slot_offset,
           const int64_t[::1] entry_ptr, const int32_t[::1] column,
           const unsigned char[::1] frequent, const double[::1] entry_value, Py_ssize_t size):
    """Return the Gram matrices on and above their diagonals, at most `size` entries above.

    Returns
    -------
    diagonal : array of shape (n_slots,)
        sum_a x_sa^2 over attributes that are not frequent.
    pair_ptr : int64 array of shape (n_samples + 1,)
        Sample i has the pairs pair_ptr[i], ..., pair_ptr[i+1] - 1.
    pair_offset : int32 array of shape (n_pairs, 2)
        Where the tables of the slots s < t of each pair begin.
    pair_value : array of shape (n_pairs,)
        sum_a x_sa x_ta, likewise.
    """
    cdef Py_ssize_t n_slots = slot_offset.shape[0]
    offsets, values, diagonal = np.empty((size, 2), np.int32), np.empty(size), np.zeros(n_slots)
    pair_ptr = np.zeros(slot_ptr.shape[0], np.int64)
    cdef int32_t[:, ::1] offsets_view = offsets
    cdef double[::1] values_view = values, diagonal_view = diagonal
    cdef int64_t[::1] ptr_view = pair_ptr
    # Of each attribute of a sample the entries so far, linked from the last one back.
    cdef int32_t[::1] last = np.full(frequent.shape[0], -1, np.int32)
    cdef int32_t[::1] before = np.empty(column.shape[0], np.int32)
    cdef int32_t[::1] slot_of = np.repeat(
        np.arange(n_slots, dtype=np.int32), np.diff(entry_ptr))
    cdef int64_t[::1] pair_of = np.full(n_slots, -1, np.int64)
    cdef Py_ssize_t i, t, e, first
    cdef int64_t n = 0, earlier, s
    with nogil:
        for i in range(slot_ptr.shape[0] - 1):
            for t in range(slot_ptr[i], slot_ptr[i + 1]):
                first = n
                for e in range(entry_ptr[t], entry_ptr[t + 1]):
                    if frequent[column[e]]:
                        continue
                    diagonal_view[t] += entry_value[e] * entry_value[e]
                    earlier = before[e] = last[column[e]]
                    last[column[e]] = e
                    while earlier >= 0:
                        s = slot_of[earlier]
                        if pair_of[s] < first:
                            pair_of[s] = n
                            offsets_view[n, 0], offsets_view[n, 1] = slot_offset[s], slot_offset[t]
                            values_view[n] = 0.0
                            n += 1
                        values_view[pair_of[s]] += entry_value[earlier] * entry_value[e]
                        earlier = before[earlier]
            ptr_view[i + 1] = n
    return diagonal, pair_ptr, offsets[:n], values[:n]


def _row_sums(Template template, slot_ptr, tables_per_slot):
    """Return for each sample sum_a (sum_s |x_sa| q_s)^2 and whether any x_sa is negative.

    q_s is the number of tables that share slot s.
    """
    arrays = template.arrays
    n_samples = slot_ptr.size - 1
    slots = np.diff(arrays["slot_ptr"])
    start = np.repeat(slot_ptr[:n_samples], slots) + arrays["slot_offset"]
    entries = np.diff(arrays["entry_ptr"])
    counts = np.repeat(tables_per_slot(start, start + template.block.width), entries)
    column, column_ptr, _ = _columns(template.n_attributes, arrays["slot_ptr"],
                                     arrays["entry_ptr"], arrays["entry_row"])
    sums = np.bincount(column, np.abs(arrays["entry_value"]) * counts,
                       minlength=column_ptr[n_samples])
    owner = np.repeat(np.arange(n_samples), np.diff(column_ptr))
    below = np.repeat(np.repeat(np.arange(n_samples), slots), entries)[arrays["entry_value"] < 0]
    return (np.bincount(owner, sums ** 2, minlength=n_samples),
            np.bincount(below, minlength=n_samples) > 0)
