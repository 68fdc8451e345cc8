"""The sample with the largest known gap (paper, Section 5.3; Duenner et al. 2017)."""

import numpy as np

from sdcastruct.samplers.sampler cimport CompiledSampler, RandomStream
from sdcastruct.samplers.sum_tree cimport Tree

from sdcastruct.samplers.weighted import UNKNOWN_GAP


cdef class MaxTree(Tree):
    """A tree of maxima, to find the largest leaf."""

    cdef double combine(self, double left, double right) noexcept nogil:
        return left if left >= right else right

    cdef Py_ssize_t argmax(self) noexcept nogil:
        cdef Py_ssize_t k = 1
        while k < self.first_leaf:
            k *= 2
            if self.nodes[k + 1] > self.nodes[k]:
                k += 1
        return k - self.first_leaf


cdef class MaxGap(CompiledSampler):
    """Always the sample with the largest last known gap.

    Stale gaps make this fail to converge unless many draws are uniform; it is here because the
    paper compares with it.

    Parameters
    ----------
    non_uniformity : float in [0, 1]
        Share of the draws that follow this rule; the others are uniform.
    refresh_every : int or None
        Recompute all gaps every so many epochs.
    """

    cdef MaxTree tree

    def reset(self, problem, lam):
        """Forget all gaps and get ready for a problem."""
        super().reset(problem, lam)
        self.tree = MaxTree(np.full(problem.n_samples, UNKNOWN_GAP))

    cdef Py_ssize_t pick(self, RandomStream stream) noexcept nogil:
        return self.tree.argmax()

    cdef void store(self, Py_ssize_t i, double gap) noexcept nogil:
        self.tree.set(i, gap)

    def weights(self):
        """Return 1 for the sample that the rule would pick and 0 for the others."""
        self.check_ready()
        weights = np.zeros(self.n_samples)
        weights[self.tree.argmax()] = 1.0
        return weights
