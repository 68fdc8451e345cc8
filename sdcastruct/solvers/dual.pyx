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
from sdcastruct.solvers.base import Certificate


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
    """

    def begin(self, gaps=None):
        """Get ready at the dual point; gaps that are not given count as unknown."""
        self.w = np.empty(self.problem.dim)
        self.m = np.empty(self.problem.n_slot_marginals)
        self.entropies = np.empty(self.problem.n_samples)
        self.gaps = np.full(self.problem.n_samples, UNKNOWN_GAP) if gaps is None else gaps
        self.w_view, self.m_view = self.w, self.m
        self.gaps_view, self.entropies_view = self.gaps, self.entropies
        self._rebuild()
        if gaps is not None:
            self._tell_sampler()

    def recompute(self):
        """Write the slot marginals m and the entropies of the dual point."""
        raise NotImplementedError(f"{type(self).__name__} does not implement recompute")

    def _rebuild(self):
        """Recompute from the dual point all that follows from it."""
        self.recompute()
        batch.conjugate_weights(self.problem, self.m, self.lam, self.w)
        if not np.isfinite(self.w @ self.w):
            raise ValueError(f"the weights overflow: lam={self.lam!r} is too small or the features "
                             "are too large")

    def estimate(self):
        """Return estimates of (dual, gap) from what the steps have seen, without any pass."""
        entropy = np.mean(self.problem.weights * self.entropies)
        return entropy - 0.5 * self.lam * (self.w @ self.w), self.gaps.mean()

    def certify(self):
        """Rebuild w from the dual point and return its exact primal, dual and gap."""
        self._rebuild()
        losses, gaps = batch.losses_and_gaps(self.problem, self.w, self.m, self.entropies)
        weights = np.asarray(self.problem.weights)
        self.gaps[:] = weights * gaps
        penalty = 0.5 * self.lam * (self.w @ self.w)
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
