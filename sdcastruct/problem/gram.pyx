"""Norms of a sample's features, from its attributes: Gram matrices, and upper bounds.

With x_s the attribute row of slot s and m_s its marginals, ||sum_s x_s^T m_s||^2 is

    sum_st G_st <m_s, m_t>,     G_st = <x_s, x_t>

and G is sparse: most attributes occur in few slots of a sample. The frequent ones would fill it
with pairs; their rows sum_s x_sa m_s are summed and squared instead, and they are left out of G. If
all attributes are frequent, as dense ones are, G is smaller than the attributes are, unless the
sample is long. Where the m_s are differences that cancel, it loses digits if the mean of a dense
attribute is many times its deviation.
"""

from itertools import chain
from operator import itemgetter

import numpy as np

cimport cython
from libc.math cimport fabs
from libc.stdint cimport INT32_MAX, int32_t, int64_t

from sdcastruct.simd.kernels cimport kernels

from sdcastruct.problem.threads import share, spread

# Attributes with more occurrences in a sample than this are left out of the Gram matrix.
cdef int MOST_PAIRED = 8


@cython.final
cdef class SampleAttributes:
    """The attributes of one sample after the other, numbered from 0 in each.

    Parameters
    ----------
    n_attributes : int
    slot_ptr, entry_ptr, entry_row : arrays
        Sample i has the slots slot_ptr[i], ..., slot_ptr[i+1] - 1; the rest as in kernels.h.
    entry_value : float64 array or None
        None if all are 1.
    n_dense : int
        As in kernels.h.
    """

    cdef const int64_t[::1] slot_ptr, entry_ptr
    cdef const int32_t[::1] entry_row
    cdef const double[::1] entry_value
    cdef bint binary
    cdef Py_ssize_t n_dense
    cdef Py_ssize_t most_entries   # of a sample, at least 1
    # The number of each attribute at the last visit of a sample that has it, plus what was `base`
    # then, which is more than all such sums of earlier visits.
    cdef int32_t[::1] marks
    cdef public int32_t base
    # Of the present sample: its entries, the attribute of each, and how often each occurs.
    cdef int64_t first, last
    cdef int32_t[::1] number, occurrences
    cdef Py_ssize_t count

    def __init__(self, n_attributes, slot_ptr, entry_ptr, entry_row, entry_value, n_dense):
        self.n_dense = n_dense
        self.slot_ptr, self.entry_ptr, self.entry_row = slot_ptr, entry_ptr, entry_row
        self.binary = entry_value is None
        if not self.binary:
            self.entry_value = entry_value
        self.marks, self.base = np.zeros(n_attributes, np.int32), 1
        self.most_entries = np.diff(entry_ptr[slot_ptr]).max(initial=1)
        self.number, self.occurrences = np.empty((2, self.most_entries), np.int32)

    cdef void visit(self, Py_ssize_t i) noexcept nogil:
        """Number the attributes of sample i."""
        cdef int32_t base = self.base, count = 0, number
        cdef int64_t e
        self.first = self.entry_ptr[self.slot_ptr[i]]
        self.last = self.entry_ptr[self.slot_ptr[i + 1]]
        if base > INT32_MAX - (self.last - self.first):
            self.marks[:], base = 0, 1
        for e in range(self.first, self.last):
            number = self.marks[self.entry_row[e]] - base
            if number < 0:
                number = count
                self.marks[self.entry_row[e]] = base + number
                self.occurrences[number] = 0
                count += 1
            self.number[e - self.first] = number
            self.occurrences[number] += 1
        self.base, self.count = base + count, count

    cdef bint few_pairs(self, Py_ssize_t i) noexcept nogil:
        """Return whether sample i has fewer pairs of slots than values of dense attributes."""
        return self.slot_ptr[i + 1] - self.slot_ptr[i] <= 2 * self.n_dense

    cdef inline double value(self, int64_t e) noexcept nogil:
        return 1.0 if self.binary else self.entry_value[e]


def gram(of_samples, n_samples, slot_offset, n_jobs=1):
    """Return what `norm2` needs, and the places of each sample in it.

    Parameters
    ----------
    of_samples : callable
        Returns the `SampleAttributes`; every thread needs its own.
    n_samples : int
    slot_offset : int64 array of shape (n_slots,)
        As in kernels.h.
    n_jobs : int

    Returns
    -------
    dict
        The arrays of `Block` in kernels.h, and ``pair_ptr`` and ``group_ptr``, which say where the
        pairs and the groups of each sample begin.
    """
    diagonal = np.empty(slot_offset.size)

    def write(stretches):
        matrix = GramMatrix(of_samples(), slot_offset, diagonal, n_jobs)
        return [(first, matrix.write(first, last)) for first, last in stretches]

    written = share(write, n_samples, n_jobs)
    parts = [part for _, part in sorted(chain.from_iterable(written), key=itemgetter(0))]
    return {"diagonal": diagonal, **_joined(parts, n_jobs)}


@cython.final
cdef class GramMatrix:
    """Writes the Gram matrices of some samples, and the groups of frequent attributes."""

    cdef SampleAttributes attributes
    cdef const int64_t[::1] slot_offset
    cdef double[::1] diagonal, pair_value, occurrence_value
    cdef int32_t[:, ::1] pair_offset
    cdef int32_t[::1] occurrence_offset
    cdef int64_t[::1] occurrence_ptr
    cdef int64_t n_pairs, n_groups, n_occurrences
    # Of the present sample: the last entry of each attribute so far, or for a frequent one where
    # its next occurrence goes; the entry of the same attribute before each entry, and its slot.
    cdef int64_t[::1] latest
    cdef int32_t[::1] before, slot
    # The last pair that each slot is the first of.
    cdef int64_t[::1] pair_of

    def __init__(self, SampleAttributes attributes, slot_offset, diagonal, n_jobs):
        self.attributes, self.slot_offset, self.diagonal = attributes, slot_offset, diagonal
        size = attributes.most_entries
        self.latest = np.empty(size, np.int64)
        self.before, self.slot = np.empty((2, size), np.int32)
        self.pair_of = np.empty(np.diff(attributes.slot_ptr).max(initial=1), np.int64)
        # These grow: how much there will be is known sample by sample.
        guess = attributes.entry_row.shape[0] // (4 * max(1, n_jobs))
        self.pair_offset, self.pair_value = np.empty((guess, 2), np.int32), np.empty(guess)
        self.occurrence_ptr = np.zeros(1, np.int64)
        self.occurrence_offset, self.occurrence_value = np.empty(0, np.int32), np.empty(0)

    def write(self, Py_ssize_t first, Py_ssize_t last):
        """Write the diagonal of samples first, ..., last - 1 and return their other arrays."""
        cdef int64_t pair = self.n_pairs, group = self.n_groups, occurrence = self.n_occurrences
        pair_ptr, group_ptr = np.zeros((2, last - first + 1), np.int64)
        cdef int64_t[::1] pairs = pair_ptr, groups = group_ptr
        cdef Py_ssize_t i
        with nogil:
            for i in range(first, last):
                if self.attributes.few_pairs(i):
                    self.write_dense(self.attributes, i)
                else:
                    self.attributes.visit(i)
                    self.make_room()
                    self.write_sample(self.attributes, i)
                pairs[i + 1 - first] = self.n_pairs - pair
                groups[i + 1 - first] = self.n_groups - group
        written = {
            "pair_ptr": pair_ptr,
            "pair_offset": np.asarray(self.pair_offset[pair:self.n_pairs]),
            "pair_value": np.asarray(self.pair_value[pair:self.n_pairs]),
            "group_ptr": group_ptr,
            "occurrence_ptr": (
                np.asarray(self.occurrence_ptr[group:self.n_groups + 1]) - occurrence),
            "occurrence_offset": np.asarray(
                self.occurrence_offset[occurrence:self.n_occurrences]),
        }
        if not self.attributes.binary:      # else they are 1
            written["occurrence_value"] = np.asarray(
                self.occurrence_value[occurrence:self.n_occurrences])
        return written

    cdef int write_dense(self, SampleAttributes attributes, Py_ssize_t i) except -1 nogil:
        """Write the products of all attribute rows of a sample."""
        cdef int64_t begin = attributes.slot_ptr[i], end = attributes.slot_ptr[i + 1], s, t
        cdef int64_t n_pairs = self.n_pairs + (end - begin) * (end - begin - 1) // 2
        cdef Py_ssize_t n = attributes.n_dense
        cdef const double *x
        if n_pairs > self.pair_value.shape[0]:
            with gil:
                self.grow(n_pairs, self.n_groups, self.n_occurrences)
        for t in range(begin, end):
            x = &attributes.entry_value[attributes.entry_ptr[t]]
            self.diagonal[t] = kernels.dot(x, x, n)
            for s in range(begin, t):
                self.pair_offset[self.n_pairs, 0] = <int32_t> self.slot_offset[s]
                self.pair_offset[self.n_pairs, 1] = <int32_t> self.slot_offset[t]
                self.pair_value[self.n_pairs] = kernels.dot(
                    x, &attributes.entry_value[attributes.entry_ptr[s]], n)
                self.n_pairs += 1
        return 0

    cdef int make_room(self) except -1 nogil:
        """Make room for the present sample, and say where its frequent attributes go."""
        cdef int64_t n_pairs = self.n_pairs, n_groups = self.n_groups
        cdef int64_t n_occurrences = self.n_occurrences
        cdef int32_t times
        cdef Py_ssize_t a
        for a in range(self.attributes.count):
            times = self.attributes.occurrences[a]
            if times > MOST_PAIRED:
                n_groups += 1
                n_occurrences += times
            else:
                n_pairs += times * (times - 1) // 2     # at most
        if (n_pairs > self.pair_value.shape[0] or n_groups >= self.occurrence_ptr.shape[0]
                or n_occurrences > self.occurrence_offset.shape[0]):
            with gil:
                self.grow(n_pairs, n_groups, n_occurrences)
        for a in range(self.attributes.count):
            times = self.attributes.occurrences[a]
            self.latest[a] = -1
            if times > MOST_PAIRED:
                self.latest[a] = self.n_occurrences
                self.n_occurrences += times
                self.n_groups += 1
                self.occurrence_ptr[self.n_groups] = self.n_occurrences
        return 0

    cdef int grow(self, n_pairs, n_groups, n_occurrences) except -1:
        self.pair_offset = _grown(self.pair_offset, n_pairs)
        self.pair_value = _grown(self.pair_value, n_pairs)
        self.occurrence_ptr = _grown(self.occurrence_ptr, n_groups + 1)
        self.occurrence_offset = _grown(self.occurrence_offset, n_occurrences)
        if not self.attributes.binary:
            self.occurrence_value = _grown(self.occurrence_value, n_occurrences)
        return 0

    cdef void write_sample(self, SampleAttributes attributes, Py_ssize_t i) noexcept nogil:
        cdef int64_t begin = attributes.slot_ptr[i], t, e, first
        cdef int32_t times, a
        cdef double value, square
        for t in range(begin, attributes.slot_ptr[i + 1]):
            self.pair_of[t - begin] = -1
            first, square = self.n_pairs, 0.0
            for e in range(attributes.entry_ptr[t], attributes.entry_ptr[t + 1]):
                a = attributes.number[e - attributes.first]
                times, value = attributes.occurrences[a], attributes.value(e)
                if times > MOST_PAIRED:
                    self.occurrence_offset[self.latest[a]] = <int32_t> self.slot_offset[t]
                    if not attributes.binary:
                        self.occurrence_value[self.latest[a]] = value
                    self.latest[a] += 1
                    continue
                square += value * value
                if times > 1:
                    self.pair_up(e - attributes.first, t, begin, first, value)
                    self.before[e - attributes.first] = <int32_t> self.latest[a]
                    self.slot[e - attributes.first] = <int32_t> (t - begin)
                    self.latest[a] = e - attributes.first
            self.diagonal[t] = square

    cdef void pair_up(self, int64_t e, int64_t t, int64_t begin, int64_t first,
                      double value) noexcept nogil:
        """Add entry e of slot t to the pairs with earlier slots that have its attribute."""
        cdef int64_t earlier = self.latest[self.attributes.number[e]], pair
        cdef int32_t s
        while earlier >= 0:
            s = self.slot[earlier]
            if self.pair_of[s] < first:     # no pair with slot t yet
                self.pair_of[s] = self.n_pairs
                self.pair_offset[self.n_pairs, 0] = <int32_t> self.slot_offset[begin + s]
                self.pair_offset[self.n_pairs, 1] = <int32_t> self.slot_offset[t]
                self.pair_value[self.n_pairs] = 0.0
                self.n_pairs += 1
            pair = self.pair_of[s]
            self.pair_value[pair] += value * self.attributes.value(self.attributes.first + earlier)
            earlier = self.before[earlier]


def _grown(view, n):
    """Return an array of at least n entries that begins like another, twice as long if need be."""
    array = np.asarray(view)
    if n <= len(array):
        return array
    longer = np.empty((max(n, 2 * len(array)), *array.shape[1:]), array.dtype)
    longer[:len(array)] = array
    return longer


def _joined(parts, n_jobs):
    """Return the arrays of all samples from those that `write` returns for stretches of them."""
    if len(parts) == 1:
        return parts[0]
    pointers = {name: _joined_ptr([part[name] for part in parts])
                for name in ("pair_ptr", "group_ptr", "occurrence_ptr")}
    ends = {name: np.cumsum([0] + [len(part[name]) for part in parts])
            for name in parts[0] if name not in pointers}
    arrays = {name: np.empty((end[len(parts)], *parts[0][name].shape[1:]), parts[0][name].dtype)
              for name, end in ends.items()}

    def copy(first, last):
        for k in range(first, last):
            for name, end in ends.items():
                arrays[name][end[k]:end[k + 1]] = parts[k][name]

    spread(copy, len(parts), n_jobs)
    return {**arrays, **pointers}


def _joined_ptr(parts):
    """Return offsets into what the parts' offsets, which begin with 0, point into one by one."""
    ends = np.cumsum([0] + [part[part.size - 1] for part in parts])
    starts = [part[:part.size - 1] + end for part, end in zip(parts, ends)]
    return np.concatenate([*starts, ends[len(parts):]])


def row_sums(SampleAttributes attributes, const double[::1] tables):
    """Return for each sample sum_a (sum_s |x_sa| q_s)^2 and whether any x_sa is negative.

    Parameters
    ----------
    tables : array of shape (n_slots,)
        Number q_s of tables that share each slot.
    """
    cdef const int64_t[::1] slot_ptr = attributes.slot_ptr
    n_samples = slot_ptr.shape[0] - 1
    squares, negative = np.zeros(n_samples), np.zeros(n_samples, bool)
    cdef double[::1] squares_view = squares, sums = np.empty(attributes.most_entries)
    cdef unsigned char[::1] negative_view = negative.view(np.uint8)
    cdef Py_ssize_t i, a
    cdef int64_t s, e
    with nogil:
        for i in range(slot_ptr.shape[0] - 1):
            attributes.visit(i)
            for a in range(attributes.count):
                sums[a] = 0.0
            for s in range(slot_ptr[i], slot_ptr[i + 1]):
                for e in range(attributes.entry_ptr[s], attributes.entry_ptr[s + 1]):
                    sums[attributes.number[e - attributes.first]] += (
                        fabs(attributes.value(e)) * tables[s])
                    negative_view[i] |= attributes.value(e) < 0.0
            for a in range(attributes.count):
                squares_view[i] += sums[a] * sums[a]
    return squares, negative
