"""Packed regions: counting numbers, and which region tables add up in which slot.

The marginals mu_i of a sample are the tables of its regions (cliques and separators of the
junction tree) laid end to end. Regions that share one slot, like the edges of a chain that share
one table of transitions, are summed into it by `gather`.
"""

import numpy as np

from libc.string cimport memset

from sdcastruct.simd.kernels cimport kernels


cdef class Regions:
    """Regions of n samples.

    Parameters
    ----------
    region_ptr : int64 array of shape (n_samples + 1,)
        Offsets of the marginals mu_i in their concatenation.
    run_ptr : int64 array of shape (n_samples + 1,)
    run_length, run_counting : arrays of shape (n_runs,)
        Sample i has the runs run_ptr[i], ..., run_ptr[i+1] - 1 of equal counting numbers; their
        lengths add up to the length of mu_i.
    segment_ptr : int64 array of shape (n_samples + 1,)
    segments : int64 array of shape (n_segments, 4)
        (region, slot, length, repeat): `repeat` tables of `length` entries, end to end from
        `region` on, add up in the slots from `slot` on.
    """

    def __init__(self, region_ptr, run_ptr, run_length, run_counting, segment_ptr, segments):
        self.n_samples = len(region_ptr) - 1
        self.region_ptr = region_ptr
        self.run_ptr, self.run_length, self.run_counting = run_ptr, run_length, run_counting
        self.segment_ptr, self.segments = segment_ptr, segments
        self.max_regions = int(np.diff(region_ptr).max())

    cdef Runs runs(self, Py_ssize_t i) noexcept nogil:
        """Return the counting numbers of sample i."""
        cdef int64_t first = self.run_ptr[i]
        return Runs(self.run_ptr[i + 1] - first, &self.run_length[first], &self.run_counting[first])

    cdef void gather(self, Py_ssize_t i, const double *mu, double *m,
                     Py_ssize_t n_slots) noexcept nogil:
        """Write the slot marginals m that belong to the region marginals mu."""
        cdef Py_ssize_t s
        cdef const Segment *segment
        memset(m, 0, n_slots * sizeof(double))
        for s in range(self.segment_ptr[i], self.segment_ptr[i + 1]):
            segment = <const Segment *> &self.segments[s, 0]
            kernels.add_tables(mu + segment.region, segment.length, segment.repeat,
                               m + segment.slot)

    def counting(self, Py_ssize_t i):
        """Return the counting number of every entry of mu_i."""
        cdef Py_ssize_t first = self.run_ptr[i], last = self.run_ptr[i + 1]
        return np.repeat(self.run_counting[first:last], self.run_length[first:last])

    def layout(self, Py_ssize_t i):
        """Return bytes that are equal for samples with the same regions and slots."""
        cdef Py_ssize_t first = self.run_ptr[i], last = self.run_ptr[i + 1]
        segments = self.segments[self.segment_ptr[i]:self.segment_ptr[i + 1]]
        parts = (self.run_length[first:last], self.run_counting[first:last], segments)
        return b"|".join(np.asarray(part).tobytes() for part in parts)

    def tables_per_slot(self, slot_ptr):
        """Return a function that counts the tables that add to a range of slot entries.

        It takes arrays (start, stop) of positions in the concatenation of all scores.
        """
        n = self.n_samples
        owner = np.repeat(np.arange(n), np.diff(self.segment_ptr))
        _, slot, length, repeat = np.asarray(self.segments).T
        begin = slot_ptr[owner] + slot
        starts, ends = _Counter(begin, repeat), _Counter(begin + length, repeat)
        return lambda start, stop: starts.below(stop) - ends.below(start + 1)


class _Counter:
    """Sums of weights at positions below a given one."""

    def __init__(self, positions, weights):
        order = np.argsort(positions, kind="stable")
        self.positions = positions[order]
        self.sums = np.concatenate([np.zeros(1), np.cumsum(weights[order])])

    def below(self, position):
        return self.sums[np.searchsorted(self.positions, position)]
