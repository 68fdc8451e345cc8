"""Importance sampling (paper, Section 5.2; Zhao and Zhang 2015)."""

from sdcastruct.samplers.weighted import WeightedSampler


def smoothness(problem, lam):
    """Return L_i = lam + R_i / n, with the bounds of the squared radii R_i, shape (n_samples,)."""
    return lam + problem.radii() / problem.n_samples


class Importance(WeightedSampler):
    """Samples in proportion to their smoothness L_i = lam + R_i / n; does not adapt.

    Parameters
    ----------
    non_uniformity : float in [0, 1], default 0.8
        Share of the draws that follow this rule; the others are uniform.
    refresh_every : int, optional
        Recompute all gaps every so many epochs.
    """

    adaptive = False

    def scale(self, problem, lam):
        """Return L_i of every sample."""
        return smoothness(problem, lam)
