"""Gap sampling (paper, Section 5.3)."""

from sdcastruct.samplers.weighted import WeightedSampler


class Gap(WeightedSampler):
    """Samples in proportion to the last known block duality gaps g_i.

    Unknown gaps count as 100, so that the first epoch visits nearly every sample.

    Parameters
    ----------
    non_uniformity : float in [0, 1], default 0.8
        Share of the draws that follow this rule; the others are uniform and keep the gaps fresh.
    refresh_every : int, optional
        Recompute all gaps every so many epochs.
    """
