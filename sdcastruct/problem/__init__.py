"""Problems: a model bound to samples, packed into flat arrays."""

from sdcastruct.problem.attributes import Attributes, Template, side_by_side
from sdcastruct.problem.problem import Problem
from sdcastruct.problem.regions import Regions
from sdcastruct.problem.truth import Truth

__all__ = ["Attributes", "Problem", "Regions", "Template", "Truth", "side_by_side"]
