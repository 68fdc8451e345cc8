"""What dual methods share: conjugate weights, block gaps, and the certificate P - D.

A dual point is one distribution per sample; all that the primal sees of it are its slot marginals
m_i, and all that the dual needs beyond are its entropies H_i::

    w = w_hat(m),     P - D = 1/n sum_i g_i,     g_i = s_i (log Z_i(w) - H_i - <theta_i(w), m_i>)

with s_i the weight of the sample, mostly 1. For its block alone a weight is like a smaller lam:
divided by s_i, n times the dual has lam n / s_i in the place of lam n.
"""

import numpy as np

from sdcastruct.problem import batch
from sdcastruct.samplers.weighted import UNKNOWN_GAP
from sdcastruct.simd import memory
from sdcastruct.solvers.result import Certificate


cdef class DualState(State):
    """The state of a dual method.

    Attributes
    ----------
    w : array of shape (dim,)
        Weights, conjugate to the dual point.
    m : array
        The slot marginals of the dual point, samples end to end.
    gaps : array of shape (n_samples,)
        Last known block duality gaps.
    entropies : array of shape (n_samples,)
        Entropies of the blocks of the dual point.
    norm2 : float
        ||w||^2, as far as the steps know: beside other threads they miss what those do meanwhile,
        which adds up until the next certificate.
    """

    def begin(self, gaps=None, summary=None):
        """Get ready at the dual point.

        Gaps that are not given count as unknown; its `summary` (slot marginals, entropies, weights
        and their squared norm), if it is not given, is computed.
        """
        self.m, self.entropies, self.w, norm2 = summary or (
            memory.empty(self.problem.n_slot_marginals), np.empty(self.problem.n_samples),
            memory.empty(self.problem.dim), None)
        self.gaps = np.full(self.problem.n_samples, UNKNOWN_GAP) if gaps is None else gaps
        self.w_view, self.m_view = self.w, self.m
        self.gaps_view, self.entropies_view = self.gaps, self.entropies
        self.spare = []
        if summary is None:
            self.rebuild()
        else:
            self._learn_norm2(norm2)
        if gaps is not None:
            self._tell_sampler()

    def begin_as(self, DualState other, start_from, mine, theirs):
        """Begin at another state's dual point, `theirs`; samples that it lacks begin at `mine`.

        The dual point stays feasible with another lam and with samples added, so that its
        certificate is valid at once; gaps that are no longer true are computed anew.
        """
        gaps = np.full(self.problem.n_samples, UNKNOWN_GAP)
        gaps[:other.problem.n_samples] = other.gaps
        mine[:len(theirs)] = theirs
        start_from(mine, gaps)
        if other.lam != self.lam or other.problem is not self.problem:
            self.refresh()

    def check_follows(self, DualState other):
        """Check that another state's dual point is one of these samples, or the first of them."""
        mine, theirs = self.problem, other.problem
        if not mine.begins_with(theirs):
            raise ValueError(
                f"warm_start has a dual point for {theirs.n_samples} samples with "
                f"{theirs.n_marginals} marginals, expected {mine.n_samples} samples with "
                f"{mine.n_marginals} marginals and the same graphs, or the first of them; its "
                "weights can be taken anyway: warm_start=result.w")

    cdef int tell(self, Py_ssize_t i) except -1 nogil:
        return self.sampler.observe(i, self.gaps_view[i])

    def after_threads(self):
        """Rebuild the weights if some writes may have been lost."""
        if self.loses_writes():
            self._learn_norm2(batch.conjugate_weights(self.problem, self.m, self.lam, self.w,
                                                      self.n_jobs, self.spare))

    def recompute(self, then=()):
        """Write the slot marginals m and the entropies of the dual point.

        What follows the slot marginals of some samples, `then`, may be done beside, see
        `sdcastruct.problem.threads.share`; if not, it will be done after it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement recompute")

    def rebuild(self):
        """Make slot marginals, entropies and weights those of the dual point."""
        weights = batch.ConjugateWeights(self.problem, self.m, self.lam, self.w, self.n_jobs,
                                         spare=self.spare)
        self.recompute(weights.parts)
        self._learn_norm2(weights.put_together())

    def _learn_norm2(self, norm2):
        """Learn ||w||^2, or say that it is too large."""
        if not np.isfinite(norm2):
            raise ValueError(f"the weights overflow: lam={self.lam!r} is too small or the features "
                             "are too large")
        self.norm2 = norm2

    cdef void note_change(self, Workspace space, double scale, double along,
                          double norm2) noexcept nogil:
        """Note that a step adds `scale` times v to w, given <w, v> and ||v||^2."""
        space.norm2 += scale * (2.0 * along + scale * norm2)

    def _count(self, Workspace space):
        """Take the counters of a workspace over."""
        super()._count(space)
        self.norm2 += space.norm2
        space.norm2 = 0.0

    def estimate(self):
        """Return estimates of (dual, gap) from what the steps have seen, without any pass."""
        entropy = np.mean(self.problem.weights * self.entropies)
        return entropy - 0.5 * self.lam * self.norm2, self.gaps.mean()

    def certify(self):
        """Rebuild w from the dual point and return its exact primal, dual and gap.

        If it is interrupted, w is not complete until another call.
        """
        self.rebuild()
        penalty = 0.5 * self.lam * self.norm2
        losses, gaps = batch.losses_and_gaps(self.problem, self.w, self.m, self.entropies,
                                             self.n_jobs)
        weights = np.asarray(self.problem.weights)
        self.gaps[:] = weights * gaps
        loss, entropy = np.mean(weights * losses), np.mean(weights * self.entropies)
        return Certificate.of(loss + penalty, entropy - penalty)

    def refresh(self):
        """Recompute all gaps and tell the sampler (Osokin et al. 2016)."""
        certificate = self.certify()
        self.n_oracle_calls += self.problem.n_samples
        self._tell_sampler()
        return certificate

    def _tell_sampler(self):
        for i, gap in enumerate(self.gaps):
            self.sampler.update(i, gap)

    def arrays(self):
        """Return all arrays that the state consists of, {name: array}; not copies."""
        return {"w": self.w, "m": self.m, "gaps": self.gaps, "entropies": self.entropies}

    def counters(self):
        """Return all numbers that the state consists of, {name: number}."""
        return {**super().counters(), "norm2": self.norm2}

    def set_counters(self, norm2, **others):
        """Take the numbers that `counters` returned."""
        super().set_counters(**others)
        self.norm2 = norm2
