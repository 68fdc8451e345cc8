"""Problems: a model bound to samples, packed into flat arrays."""

from sdcastruct.problem.attributes import Attributes, Template, side_by_side
from sdcastruct.problem.problem import Problem, Truth
from sdcastruct.problem.regions import Regions

__all__ = ["Attributes", "Problem", "Regions", "Template", "Truth", "side_by_side"]
