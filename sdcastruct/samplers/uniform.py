"""Uniform sampling (paper, Algorithm 1)."""

from sdcastruct.samplers.sampler import CompiledSampler


class Uniform(CompiledSampler):
    """Every sample is equally likely.

    Parameters
    ----------
    refresh_every : int or None
        Recompute all gaps every so many epochs; here this only sharpens the gap estimate.
    """

    def __init__(self, refresh_every=None):
        super().__init__(non_uniformity=0.0, refresh_every=refresh_every)
