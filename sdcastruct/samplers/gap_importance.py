"""Gap times importance: "Lipschitz-gap sampling" (paper, Appendix F)."""

from sdcastruct.samplers.importance import smoothness
from sdcastruct.samplers.weighted import WeightedSampler


class GapImportance(WeightedSampler):
    """Samples in proportion to g_i L_i, the block gap times the smoothness L_i = lam + R_i / n.

    Parameters
    ----------
    non_uniformity : float in [0, 1], default 0.8
        Share of the draws that follow this rule; the others are uniform.
    refresh_every : int, optional
        Recompute all gaps every so many epochs.
    """

    def scale(self, problem, lam):
        """Return L_i of every sample."""
        return smoothness(problem, lam)
