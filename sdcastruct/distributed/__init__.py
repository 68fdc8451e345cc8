"""Training on the workers of a Dask cluster, for corpora beyond one machine."""

from importlib.util import find_spec

if find_spec("dask") is None or find_spec("distributed") is None:
    raise ImportError(
        "sdcastruct.distributed and solver='dask' need Dask: pip install 'sdcastruct[dask]'"
    )

from sdcastruct.distributed.corpus import Corpus, from_bag, from_files
from sdcastruct.distributed.problem import DistributedProblem, bind
from sdcastruct.distributed.solver import DaskSDCA

__all__ = ["Corpus", "DaskSDCA", "DistributedProblem", "bind", "from_bag", "from_files"]
