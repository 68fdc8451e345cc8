"""The sample with the largest known gap (paper, Section 5.3; Duenner et al. 2017)."""

import numpy as np

from sdcastruct.samplers.sampler cimport CompiledSampler, RandomStream
from sdcastruct.samplers.trees cimport MaxTree

from sdcastruct.samplers.weighted import UNKNOWN_GAP


cdef class MaxGap(CompiledSampler):
    """Always the sample with the largest last known gap.

    Stale gaps make this fail to converge unless many draws are uniform; it is here because the
    paper compares with it.

    Parameters
    ----------
    non_uniformity : float in [0, 1], default 0.8
        Share of the draws that follow this rule; the others are uniform.
    refresh_every : int, optional
        Recompute all gaps every so many epochs.
    """

    most_ahead = 1  # the same sample would be drawn again

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

    def memory(self):
        """Return the gaps, for a checkpoint."""
        return {**super().memory(), "gaps": self.tree.leaves}

    def remember(self, memory):
        """Take what `memory` returned."""
        self.tree = MaxTree(memory["gaps"])
