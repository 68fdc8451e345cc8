"""Sampling by Lipschitz constants (Schmidt et al. 2015)."""

import numpy as np

from sdcastruct.samplers.weighted import WeightedSampler


class Lipschitz(WeightedSampler):
    """Samples in proportion to the constants L_i that `SAG` has found; unvisited ones count as 0.

    Parameters
    ----------
    non_uniformity : float in [0, 1], default 0.5
        Share of the draws that follow this rule; the others are uniform.
    """

    unknown = 0.0

    def __init__(self, non_uniformity=0.5):
        super().__init__(non_uniformity=non_uniformity)

    def scale(self, problem, lam):
        """Return ones: weights are the constants themselves."""
        return np.ones(problem.n_samples)
