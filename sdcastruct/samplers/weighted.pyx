"""Sampling in proportion to weights kept in a sum tree."""

import numpy as np

from sdcastruct.samplers.sampler cimport CompiledSampler, RandomStream
from sdcastruct.samplers.trees cimport SumTree

# Estimate of a gap that was never computed: large, so that unvisited samples come first.
UNKNOWN_GAP = 100.0


cdef class WeightedSampler(CompiledSampler):
    """Sampling in proportion to scale_i, or to scale_i g_i where `adaptive` is true.

    Subclasses set `adaptive` and implement ``scale(problem, lam)``.
    """

    adaptive = True
    unknown = UNKNOWN_GAP   # stands for a gap that was never computed

    cdef SumTree tree
    cdef double[::1] scales
    cdef bint follows_gaps

    def scale(self, problem, lam):
        """Return the fixed factor of every sample's weight, shape (n_samples,)."""
        return np.ones(problem.n_samples)

    def reset(self, problem, lam):
        """Forget all gaps and get ready for a problem."""
        super().reset(problem, lam)
        scales = np.ascontiguousarray(self.scale(problem, lam), dtype=np.float64)
        if scales.shape != (self.n_samples,):
            raise ValueError(f"{type(self).__name__}.scale returned shape {scales.shape}, expected "
                             f"({self.n_samples},)")
        self.scales = scales
        self.follows_gaps = self.adaptive
        self.tree = SumTree(np.multiply(self.scales, self.unknown if self.adaptive else 1.0))

    cdef Py_ssize_t pick(self, RandomStream stream) noexcept nogil:
        cdef double u = stream.uniform()
        if self.tree.nodes[1] <= 0.0:
            return <Py_ssize_t> (u * self.n_samples)
        return self.tree.search(u * self.tree.nodes[1])

    cdef void store(self, Py_ssize_t i, double gap) noexcept nogil:
        if self.follows_gaps:
            self.tree.set(i, self.scales[i] * gap)

    def weights(self):
        """Return the weights of all samples, shape (n_samples,)."""
        self.check_ready()
        return self.tree.leaves

    def memory(self):
        """Return the weights, for a checkpoint."""
        return {**super().memory(), "weights": self.weights()}

    def remember(self, memory):
        """Take what `memory` returned."""
        self.tree = SumTree(memory["weights"])
