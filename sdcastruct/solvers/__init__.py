"""Solvers: algorithms that train any problem to a certified gap."""

from sdcastruct.solvers.base import Solver
from sdcastruct.solvers.lbfgs import LBFGS
from sdcastruct.solvers.oeg import OEG
from sdcastruct.solvers.result import Result
from sdcastruct.solvers.sag import SAG
from sdcastruct.solvers.sdca import SDCA

__all__ = ["LBFGS", "OEG", "SAG", "SDCA", "Result", "Solver"]
