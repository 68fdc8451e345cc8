"""sklearn-crfsuite's constructor in front of our estimator.

``from sdcastruct.interop import sklearn_crfsuite`` is all that a script has to change. Its modules
``metrics`` and ``scorers`` are those of sklearn-crfsuite, if that is installed.
"""

import importlib
import math
import warnings
from numbers import Real

from sdcastruct import crf

ALGORITHMS = (None, "lbfgs", "l2sgd")  # these minimise the objective that we minimise


class CRF(crf.CRF):
    """`sdcastruct.CRF` that takes parameters of ``sklearn_crfsuite.CRF``.

    Training ends when the duality gap is within `tol`, whichever `algorithm` is named, and c2
    becomes C = 1 / (2 c2). There is no L1 term: c1 > 0 gets a warning. All attributes have weights
    for all labels and all labels may follow each other, as CRFsuite has it with
    ``all_possible_states`` and ``all_possible_transitions``.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd"}, optional
    min_freq : float, default 0
        Attributes that occur more rarely are left out; CRFsuite counts them with each label.
    all_possible_states, all_possible_transitions : bool, optional
        Without effect.
    c1 : float, default 0
    c2 : float, default 1.0
        Strength of the regulariser.
    max_iterations : int, default 100
        Largest number of epochs.
    verbose : bool, default False
        Show a progress bar on standard error.
    tol : float, default 1e-3
        Relative duality gap to certify.
    random_state : int, numpy.random.Generator or None

    Examples
    --------
    >>> from sdcastruct.interop import sklearn_crfsuite
    >>> model = sklearn_crfsuite.CRF(algorithm="lbfgs", c2=0.1, max_iterations=100)
    >>> model.fit([[["the"], ["cat"]], [["a"], ["cat"]]], [["DET", "NOUN"]] * 2).converged_
    True
    """

    solver, sampler, non_uniformity, n_jobs = "sdca", "gap", 0.8, 1
    class_weight, forbidden, patience, warm_start = None, None, None, False

    def __init__(
        self,
        algorithm=None,
        min_freq=None,
        all_possible_states=None,
        all_possible_transitions=None,
        c1=None,
        c2=None,
        max_iterations=None,
        verbose=False,
        tol=1e-3,
        random_state=None,
    ):
        self.algorithm = algorithm
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.verbose = verbose
        self.tol = tol
        self.random_state = random_state

    def fit(self, X, y, X_dev=None, y_dev=None):
        """Train; see `sdcastruct.CRF.fit`."""
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm={self.algorithm!r}: expected one of {ALGORITHMS[1:]}")
        if self.c2 is not None and not (isinstance(self.c2, Real) and self.c2 > 0):
            raise ValueError(f"c2={self.c2!r}: expected a number > 0")
        if self.c1:
            warnings.warn(f"c1={self.c1!r} is ignored: there is no L1 term", stacklevel=2)
        return super().fit(X, y, X_dev, y_dev)

    @property
    def C(self):
        """Inverse strength of the regulariser, 1 / (2 c2)."""
        return 0.5 if self.c2 is None else 0.5 / self.c2

    @property
    def max_epochs(self):
        """Largest number of epochs."""
        return 100 if self.max_iterations is None else self.max_iterations

    @property
    def _min_freq(self):
        return 1 if self.min_freq is None else max(1, math.ceil(self.min_freq))


def __getattr__(name):
    if name in ("metrics", "scorers"):
        return importlib.import_module(f"sklearn_crfsuite.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
