"""Scores and features by a model written in Python: every call takes the GIL."""

import numpy as np

from sdcastruct.problem.attributes cimport Attributes


cdef class CallbackAttributes(Attributes):
    """Any linear feature map, given by two functions that are adjoint to each other.

    Parameters
    ----------
    slot_ptr : int64 array of shape (n_samples + 1,)
        Offsets of the score vectors theta_i in their concatenation.
    dim : int
        Number of weights.
    scores : callable
        ``scores(i, w)`` returns the scores theta_i.
    features : callable
        ``features(i, m)`` returns the expected features of slot marginals m, shape (dim,).
    """

    cdef object scores, features

    def __init__(self, slot_ptr, dim, scores, features):
        super().__init__(slot_ptr, [])
        self.dim, self.n_rows = dim, 1  # all weights change together
        self.scores, self.features = scores, features

    cdef int score(self, Py_ssize_t i, const double *w, double *theta) except -1 nogil:
        with gil:
            scores = self.scores(i, np.array(<double[:self.dim]> <double *> w))
            np.asarray(<double[:self.length(i)]> theta)[:] = scores
        return 0

    cdef double norm2(self, Py_ssize_t i, const double *m) except -1.0 nogil:
        with gil:
            features = self.expected(i, m)
            return features @ features

    cdef int add(self, Py_ssize_t i, double scale, const double *m, double *w) except -1 nogil:
        with gil:
            weights = np.asarray(<double[:self.dim]> w)
            weights += scale * self.expected(i, m)
        return 0

    cdef void clear(self, Py_ssize_t i, double *w) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.dim):
            w[j] = 0.0

    cdef void catch_up(self, Py_ssize_t i, double total, const double *d, double *last,
                       double *w) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.dim):
            w[j] -= (total - last[0]) * d[j]
        last[0] = total

    def catch_up_all(self, double total, d, double[::1] last, w):
        """Subtract (total - last) d from all of w, and forget what was subtracted."""
        w -= (total - last[0]) * d
        last[0] = 0.0

    def add_to(self, digest):
        """Feed a hash with what tells feature maps apart: features of random marginals.

        Those of uniform ones would not do, as features of opposite signs cancel.
        """
        digest.update(np.asarray(self.slot_ptr).tobytes())
        rng = np.random.default_rng(0)
        for i in range(self.n_samples):
            m = rng.random(self.length(i))
            digest.update(np.asarray(self.features(i, m), np.float64).tobytes())

    def largest_norms2(self, tables_per_slot):
        """Importance sampling and safe steps need norms that these features do not tell."""
        raise ValueError("the radii of this feature map are not known: expected another sampler "
                         "or step size")

    cdef Py_ssize_t length(self, Py_ssize_t i) noexcept nogil:
        return self.slot_ptr[i + 1] - self.slot_ptr[i]

    cdef object expected(self, Py_ssize_t i, const double *m):
        """Return the expected features of slot marginals m."""
        found = np.asarray(self.features(i, np.array(<double[:self.length(i)]> <double *> m)))
        if found.shape != (self.dim,):
            raise ValueError(f"features of sample {i} have shape {found.shape}, "
                             f"expected ({self.dim},)")
        return found
