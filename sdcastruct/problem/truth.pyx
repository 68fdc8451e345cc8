"""The true labellings of a problem's samples."""

import numpy as np


cdef class Truth:
    """True labellings: where they are 1 among the marginals mu_i and among the scores theta_i.

    Parameters
    ----------
    region_ptr, slot_ptr : int64 arrays of shape (n_samples + 1,)
    region, slot : int64 arrays
        Sample i is 1 at region[region_ptr[i]], ..., region[region_ptr[i+1] - 1] of mu_i, and
        likewise for its slots; a slot that several tables share may occur more than once.
    """

    def __init__(self, region_ptr, region, slot_ptr, slot):
        self.region_ptr, self.region = region_ptr, region
        self.slot_ptr, self.slot = slot_ptr, slot

    cdef Vertex vertex(self, Py_ssize_t i) noexcept nogil:
        """Return the region marginals of sample i."""
        cdef Py_ssize_t first = self.region_ptr[i]
        return Vertex(self.region_ptr[i + 1] - first, &self.region[first])

    def add_to(self, digest):
        """Feed everything to a hash."""
        digest.update(np.asarray(self.region_ptr).tobytes())
        digest.update(np.asarray(self.region).tobytes())
        digest.update(np.asarray(self.slot_ptr).tobytes())
        digest.update(np.asarray(self.slot).tobytes())
