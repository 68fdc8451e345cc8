"""Solvers and samplers by name, for estimators."""

from sdcastruct.samplers import Gap, GapImportance, Importance, MaxGap, Sampler, Uniform
from sdcastruct.solvers.base import Solver
from sdcastruct.solvers.lbfgs import LBFGS
from sdcastruct.solvers.oeg import OEG
from sdcastruct.solvers.sag import SAG
from sdcastruct.solvers.sdca import SDCA

SOLVERS = ("sdca", "oeg", "sag", "lbfgs", "dask")
SAMPLERS = {
    "gap": Gap,
    "gap_importance": GapImportance,
    "importance": Importance,
    "max_gap": MaxGap,
}


def make_solver(solver, sampler, non_uniformity, random_state, dual_dtype="float64"):
    """Return the solver that the parameters of an estimator ask for.

    Parameters
    ----------
    solver : {"sdca", "oeg", "sag", "lbfgs", "dask"} or Solver
        A solver is returned as it is; "dask" needs the extra of that name.
    sampler : {"gap", "uniform", "importance", "gap_importance", "max_gap"} or Sampler
        For "sdca", "oeg" and "dask".
    non_uniformity : float in [0, 1]
        Share of the draws that follow a sampler given by name.
    random_state : int, numpy.random.Generator or None
    dual_dtype : {"float64", "float32"}
        For "sdca" and "dask".
    """
    if isinstance(solver, Solver):
        return solver
    if solver not in SOLVERS:
        raise ValueError(f"solver={solver!r}: expected one of {SOLVERS} or a Solver")
    if solver == "lbfgs":
        return LBFGS()
    if solver == "sag":
        return SAG(random_state=random_state)
    options = {"sampler": _make_sampler(sampler, non_uniformity), "random_state": random_state}
    if solver == "dask":
        from sdcastruct.distributed import DaskSDCA  # Dask may be missing

        return DaskSDCA(dual_dtype=dual_dtype, **options)
    return SDCA(dual_dtype=dual_dtype, **options) if solver == "sdca" else OEG(**options)


def _make_sampler(sampler, non_uniformity):
    if isinstance(sampler, Sampler):
        return sampler
    if sampler == "uniform":
        return Uniform()
    if sampler not in SAMPLERS:
        names = ["uniform", *SAMPLERS]
        raise ValueError(f"sampler={sampler!r}: expected one of {names} or a Sampler")
    return SAMPLERS[sampler](non_uniformity=non_uniformity)
