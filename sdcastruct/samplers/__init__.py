"""Samplers: which sample a solver visits next."""

from sdcastruct.samplers.gap import Gap
from sdcastruct.samplers.gap_importance import GapImportance
from sdcastruct.samplers.importance import Importance
from sdcastruct.samplers.max_gap import MaxGap
from sdcastruct.samplers.sampler import Sampler
from sdcastruct.samplers.uniform import Uniform

__all__ = ["Gap", "GapImportance", "Importance", "MaxGap", "Sampler", "Uniform"]
