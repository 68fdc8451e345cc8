"""`CRF`: a scikit-learn estimator for sequences, with the methods of sklearn-crfsuite's."""

from numbers import Integral, Real

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sdcastruct import model_file
from sdcastruct.dev_set import DevSet
from sdcastruct.explanation import Explanation
from sdcastruct.features import SequenceLabelEncoder, Vectorizer
from sdcastruct.features.checks import check_sequences
from sdcastruct.features.rules import check_transitions, iob2_rules
from sdcastruct.inference.n_best import n_best
from sdcastruct.models import ChainModel
from sdcastruct.previous_fit import PreviousFit
from sdcastruct.problem import Problem, batch
from sdcastruct.solvers.named import make_solver

# Marginals in single precision certify relative gaps down to about 1e-7.
SINGLE_PRECISION = 1e-5


class CRF(BaseEstimator):
    """Linear-chain conditional random field, trained to a certified optimum.

    The objective is ``1/2 ||w||^2 - C sum_i weight_i log p(y_i | x_i; w)``; training ends when a
    full pass proves that it is at most ``tol`` above its minimum, relative to itself. C = 1 is
    c2 = 0.5 in CRFsuite.

    Sequences are lists of items as python-crfsuite takes them, lists of strings or dicts from names
    to numbers, strings, booleans, dicts or lists; or NumPy arrays or SciPy sparse matrices with a
    row per position. Labels may be of any hashable type.

    Parameters
    ----------
    C : float, default 1.0
        Inverse strength of the regulariser.
    solver : {"sdca", "oeg", "sag", "lbfgs", "dask"} or Solver, default "sdca"
        "dask" is SDCA on a cluster, see `sdcastruct.distributed`.
    sampler : {"gap", "uniform", "importance", "gap_importance", "max_gap"} or Sampler
        Which sequence next; for "sdca", "oeg" and "dask".
    non_uniformity : float in [0, 1], default 0.8
        Share of the draws that follow the sampler; the others are uniform.
    tol : float, default 1e-3
        Relative duality gap to certify. From 1e-5 on, SDCA stores marginals in single precision.
    max_epochs : int, default 100
    min_freq : int, default 1
        Attributes of items that occur more rarely are left out.
    class_weight : dict or "balanced", optional
        Weights of labels. A sequence counts by the mean weight of its labels; "balanced" is
        inversely proportional to their frequencies.
    forbidden : "iob2" or list of (from label, to label), optional
        Transitions that no labelling may have; (None, label) forbids to begin with a label. "iob2"
        lets I-X follow only B-X and I-X.
    patience : int, optional
        End training when the accuracy on (X_dev, y_dev) has not risen for so many epochs, and keep
        the best weights.
    warm_start : bool, default False
        Let `fit` start from where the previous call ended: with another C, with sequences added at
        the end, or both.
    n_jobs : int, default 1
        Number of threads, -1 for all cores; "sdca" and "lbfgs" take more than one. With one, the
        same seed gives the same weights, bit for bit.
    random_state : int, numpy.random.Generator or None
    verbose : bool, default False
        Show a progress bar on standard error.

    Attributes
    ----------
    classes_ : list
        The labels.
    attributes_ : list of str
        Names of the attributes; for arrays the numbers of their columns.
    state_features_ : dict
        Weights by (attribute, label).
    transition_features_ : dict
        Weights by (from label, to label).
    primal_objective_, dual_objective_, duality_gap_ : float
        Certified values of ``1/(C n)`` times the objective: the optimum lies between dual and
        primal.
    converged_ : bool
        Whether the gap is within the tolerance.
    n_epochs_ : int
    history_ : Bunch of arrays
        One row per epoch, see `sdcastruct.solvers.Result`; with a dev set also dev_accuracy.
    suspects_ : list of (index, gap)
        Training sequences by the duality gap that their given labels leave,
        -log p(y_i | x_i; w), largest first: likely label errors. None for a corpus.

    Examples
    --------
    >>> from sdcastruct import CRF
    >>> X = [[["the"], ["cat"]], [["a"], ["dog"]], [["the"], ["dog"]]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"], ["DET", "NOUN"]]
    >>> crf = CRF(C=10, random_state=0).fit(X, y)
    >>> crf.predict([[["a"], ["cat"]]])
    [['DET', 'NOUN']]
    """

    def __init__(
        self,
        C=1.0,
        solver="sdca",
        sampler="gap",
        non_uniformity=0.8,
        tol=1e-3,
        max_epochs=100,
        min_freq=1,
        class_weight=None,
        forbidden=None,
        patience=None,
        warm_start=False,
        n_jobs=1,
        random_state=None,
        verbose=False,
    ):
        self.C = C
        self.solver = solver
        self.sampler = sampler
        self.non_uniformity = non_uniformity
        self.tol = tol
        self.max_epochs = max_epochs
        self.min_freq = min_freq
        self.class_weight = class_weight
        self.forbidden = forbidden
        self.patience = patience
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y=None, X_dev=None, y_dev=None, sample_weight=None):
        """Train.

        Parameters
        ----------
        X : list of sequences
            With the solver "dask" also a `Corpus` of `sdcastruct.distributed`, without y.
        y : list of lists of labels
        X_dev, y_dev : lists, optional
            Sequences to report the accuracy on after every epoch.
        sample_weight : array of shape (n,), optional
            How many times each sequence counts.

        Returns
        -------
        self
        """
        before = dict(vars(self))
        try:
            return self._fit(X, y, X_dev, y_dev, sample_weight)
        except BaseException:  # what was fitted before is still there
            vars(self).clear()
            vars(self).update(before)
            raise

    def _fit(self, X, y, X_dev, y_dev, sample_weight):
        solver = self._make_solver()
        if (X_dev is None) != (y_dev is None):
            raise ValueError("X_dev and y_dev: expected both or neither")
        if self.patience is not None and X_dev is None:
            raise ValueError(f"patience={self.patience!r}: expected X_dev and y_dev with it")
        if y is None:
            if not hasattr(X, "train") or not hasattr(solver, "connected"):
                raise ValueError(
                    "y is None: expected the labels of X, or solver='dask' and a corpus of "
                    "sdcastruct.distributed"
                )
            X.train(self, solver, X_dev, y_dev, sample_weight)
            return self
        labels = check_sequences("y", y)
        start = self._previous() if self.warm_start else None
        rows = self._fit_inputs(X)
        encoder = SequenceLabelEncoder().fit(labels)
        codes = encoder.transform(labels)
        forbidden = self._forbidden_codes(encoder.classes_)
        check_transitions(codes, forbidden, encoder.classes_)
        model = ChainModel(len(encoder.classes_), self._n_attributes, forbidden)
        problem = solver.bind(model, rows, codes)
        del rows  # the problem has its own
        weights = self._weights(codes, encoder.classes_, sample_weight)
        if weights is not None:
            problem = problem.weighted(weights)
        self._solve(solver, model, problem, encoder, X_dev, y_dev, start)
        return self

    def _solve(self, solver, model, problem, encoder, X_dev, y_dev, start):
        """Train the weights of a model and take them."""
        self.classes_, self.model_, self._encoder = encoder.classes_, model, encoder
        dev = None if X_dev is None else DevSet(self, X_dev, y_dev, self.patience)
        result = solver.solve(
            problem,
            lam=1.0 / (self.C * problem.n_samples),
            tol=self.tol,
            max_epochs=self.max_epochs,
            callback=dev,
            n_jobs=self.n_jobs,
            warm_start=None if start is None else start.adapt(self, problem),
            verbose=self.verbose,
        )
        self._take(result, problem, dev)

    def predict(self, X):
        """Return the most probable labels of every sequence, a list of lists."""
        rows = self._transform(X)
        problem = self.model_.bind(rows)
        return self._encoder.inverse_transform(batch.decode(problem, self.coef_))

    def predict_single(self, xseq):
        """Return the most probable labels of one sequence, a list."""
        return self.predict([xseq])[0]

    def predict_marginals(self, X):
        """Return for every sequence a list of {label: probability}, one per position."""
        rows = self._transform(X)
        return [
            [dict(zip(self.classes_, row, strict=True)) for row in nodes.tolist()]
            for nodes, _ in self.model_.marginals(rows, self.coef_)
        ]

    def predict_marginals_single(self, xseq):
        """Return a list of {label: probability}, one per position."""
        return self.predict_marginals([xseq])[0]

    def predict_pair_marginals(self, X):
        """Return for every sequence the probabilities of neighbouring labels.

        One array of shape (T - 1, K, K) per sequence, labels in the order of ``classes_``.
        """
        rows = self._transform(X)
        return [pairs for _, pairs in self.model_.marginals(rows, self.coef_)]

    def predict_n_best(self, X, n):
        """Return for every sequence its n most probable labellings, a list of (labels, p)."""
        if not isinstance(n, Integral) or n < 1:
            raise ValueError(f"n={n!r}: expected an integer >= 1")
        rows = self._transform(X)
        problem = self.model_.bind(rows)
        return [self._n_best(problem, i, int(n)) for i in range(problem.n_samples)]

    def log_probability(self, X, y):
        """Return log p(y_i | x_i) of given labels of every sequence, shape (n,)."""
        rows = self._transform(X)
        codes = self._encoder.transform(check_sequences("y", y))
        return -batch.losses(self.model_.bind(rows, codes), self.coef_)

    def score(self, X, y):
        """Return the share of positions whose label is predicted."""
        predicted = self.predict(X)
        labels = check_sequences("y", y)
        if len(labels) != len(predicted):
            raise ValueError(f"y has {len(labels)} sequences but X has {len(predicted)}")
        for i, (found, given) in enumerate(zip(predicted, labels, strict=True)):
            if len(found) != len(given):
                raise ValueError(f"y[{i}] has {len(given)} labels but X[{i}] has {len(found)}")
        pairs = [pair for s in zip(predicted, labels, strict=True) for pair in zip(*s, strict=True)]
        return float(np.mean([found == given for found, given in pairs]))

    def explain(self, xseq):
        """Return an `Explanation`: which attributes voted for which label, position by position."""
        (rows,) = self._transform([xseq])
        return Explanation(self, sparse.csr_matrix(rows))

    def save(self, path, prune=0.0, extra=None):
        """Write the trained estimator to one file, without pickling anything.

        Parameters
        ----------
        path : str or Path
        prune : float, default 0.0
            Leave out weights of attributes that are at most so large. What is left has no
            certificate: its values are NaN after `load`.
        extra : dict, optional
            Anything in terms of JSON to keep with it, in ``extra_`` after `load`.
        """
        model_file.write(self, path, prune, extra)

    @classmethod
    def load(cls, path):
        """Return the estimator that `save` wrote; only its training history is not kept."""
        return model_file.read(cls, path)

    @property
    def attributes_(self):
        """Names of the attributes; for arrays the numbers of their columns."""
        check_is_fitted(self, "_n_attributes")
        if self._vectorizer is not None:
            return self._vectorizer.attributes_
        return [str(a) for a in range(self._n_attributes)]

    @property
    def state_features_(self):
        """Weights by (attribute, label)."""
        return _named(self._weight_tables()[0], self.attributes_, self.classes_)

    @property
    def transition_features_(self):
        """Weights by (from label, to label)."""
        return _named(self._weight_tables()[2], self.classes_, self.classes_)

    @property
    def _min_freq(self):
        return self.min_freq

    def _weight_tables(self):
        check_is_fitted(self, "coef_")
        return self.model_.split_weights(self.coef_)

    def _make_solver(self):
        """Check the parameters; return the solver that they ask for."""
        if not isinstance(self.C, Real) or not 0 < self.C < np.inf:
            raise ValueError(f"C={self.C!r}: expected a finite number > 0")
        if self.patience is not None and (
            not isinstance(self.patience, Integral) or self.patience < 1
        ):
            raise ValueError(f"patience={self.patience!r}: expected an integer >= 1, or None")
        single = isinstance(self.tol, Real) and self.tol >= SINGLE_PRECISION
        dual_dtype = "float32" if single else "float64"
        return make_solver(
            self.solver, self.sampler, self.non_uniformity, self.random_state, dual_dtype
        )

    def _fit_inputs(self, X):
        """Learn the attributes; return a matrix for every sequence."""
        X = check_sequences("X", X)
        if _is_table(X[0]):
            self._vectorizer, self._n_attributes = None, np.shape(X[0])[1]
            return X
        self._vectorizer = Vectorizer(min_freq=self._min_freq)
        rows = self._vectorizer.fit_transform(X)
        self._n_attributes = len(self._vectorizer.vocabulary_)
        return rows

    def _transform(self, X):
        """Return a matrix for every sequence; attributes unseen in training are ignored."""
        check_is_fitted(self, "coef_")
        X = check_sequences("X", X)
        if self._vectorizer is None or _is_table(X[0]):
            return X
        return self._vectorizer.transform(X)

    def _forbidden_codes(self, classes):
        """Return the forbidden transitions between the numbers of labels."""
        if self.forbidden is None:
            return None
        pairs = self.forbidden
        if isinstance(pairs, str):
            if pairs != "iob2":
                raise ValueError(f"forbidden={pairs!r}: expected 'iob2', a list of pairs or None")
            pairs = iob2_rules(classes)
        codes = {None: None, **{label: k for k, label in enumerate(classes)}}
        for pair in pairs:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise ValueError(f"forbidden has {pair!r}: expected pairs (from label, to label)")
        # Labels that do not occur in y cannot be predicted anyway.
        return [(codes[a], codes[b]) for a, b in pairs if a in codes and b in codes]

    def _weights(self, codes, classes, sample_weight):
        """Return the weight of every sequence, or None if all count the same."""
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight, float)
            if sample_weight.shape != (len(codes),):
                raise ValueError(
                    f"sample_weight has shape {sample_weight.shape}, expected ({len(codes)},)"
                )
        if self.class_weight is None:
            return sample_weight
        of_label = self._class_weights(codes, classes)
        mean = np.array([of_label[sequence].mean() for sequence in codes])
        return mean if sample_weight is None else mean * sample_weight

    def _class_weights(self, codes, classes):
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ValueError(
                    f"class_weight={self.class_weight!r}: expected 'balanced', a dict or None"
                )
            counts = np.bincount(np.concatenate(codes), minlength=len(classes))
            return counts.sum() / (len(classes) * counts)
        for label in self.class_weight:
            if label not in classes:
                raise ValueError(f"class_weight has the label {label!r}, expected one of {classes}")
        return np.array([float(self.class_weight.get(label, 1.0)) for label in classes])

    def _take(self, result, problem, dev):
        self.coef_, self.dual_objective_ = result.w, result.dual
        self.primal_objective_, self.duality_gap_ = result.primal, result.gap
        self.converged_, self.n_epochs_, self.history_ = (
            result.converged,
            result.n_epochs,
            result.history,
        )
        if self.patience is not None and dev.best is not None:
            self._take_best(dev.best, problem)
        if dev is not None:
            self.history_["dev_accuracy"] = np.array([np.nan, *dev.accuracies])
        gaps = _losses(problem, self.coef_)
        self.suspects_ = None
        if gaps is not None:
            order = np.argsort(-gaps, kind="stable")
            self.suspects_ = list(zip(order.tolist(), gaps[order].tolist(), strict=True))
        # A dual point that workers hold may be gone by the next call.
        kept = self.warm_start and isinstance(problem, Problem)
        self._state = result.state if kept else None

    def _take_best(self, w, problem):
        """Take earlier weights; together with the last dual point they are certified too."""
        lam = 1.0 / (self.C * problem.n_samples)
        losses = np.asarray(problem.weights) * _losses(problem, w)
        self.coef_, self.primal_objective_ = w, float(losses.mean() + 0.5 * lam * (w @ w))
        self.duality_gap_ = self.primal_objective_ - self.dual_objective_
        self.converged_ = self.duality_gap_ <= self.tol * self.primal_objective_

    def _previous(self):
        """Return where the last call of `fit` ended, or None."""
        return PreviousFit(self) if getattr(self, "coef_", None) is not None else None

    def _n_best(self, problem, i, n):
        theta = problem.score(i, self.coef_)
        T, K = problem.n_nodes(i), len(self.classes_)
        transitions = theta[T * K :].reshape(K, K) if T > 1 else np.zeros((K, K))
        nodes, transitions = self.model_.forbid(theta[: T * K].reshape(T, K), transitions)
        labels, scores = n_best(nodes, transitions, n)
        p = np.exp(scores - problem.infer(i, theta)[1])
        return list(zip(self._encoder.inverse_transform(labels), p.tolist(), strict=True))

    def __getstate__(self):
        # The dual point is large and belongs to the problem; a copy starts from the weights.
        return {**super().__getstate__(), "_state": None}


def _losses(problem, w):
    """Return -log p(y_i | x_i; w) of all sequences; None where this process does not have them."""
    return batch.losses(problem, w) if isinstance(problem, Problem) else problem.losses(w)


def _is_table(xseq):
    return sparse.issparse(xseq) or (isinstance(xseq, np.ndarray) and xseq.ndim == 2)


def _named(table, rows, columns):
    """Return the entries of a table by the names of their row and column."""
    return {
        (row, column): value
        for row, values in zip(rows, table.tolist(), strict=True)
        for column, value in zip(columns, values, strict=True)
    }
