"""Solvers: algorithms that train any problem to a certified gap."""

from sdcastruct.solvers.base import Result, Solver
from sdcastruct.solvers.sdca import SDCA

__all__ = ["SDCA", "Result", "Solver"]
