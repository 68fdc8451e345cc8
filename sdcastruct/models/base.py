"""The interface of a model: what a new graph structure has to say about itself.

A model turns inputs into a `Problem`. It says which slots of scores an input has and how they
depend on the weights (`Attributes`), which regions its marginals have and with which counting
numbers (`Regions`), and how to infer marginals from scores (an `Engine`). Everything else,
binding, prediction and all solvers, follows from these three.
"""

from abc import ABC, abstractmethod

import numpy as np


class Model(ABC):
    """A family of conditional random fields p(y | x; w) ~ exp(w^T F(x, y))."""

    @property
    @abstractmethod
    def dim(self):
        """Number of weights."""

    @abstractmethod
    def bind(self, X, Y=None):
        """Check samples and pack them into a `Problem`.

        Parameters
        ----------
        X : list of inputs
        Y : list of int arrays, one label per node
            None leaves the problem without labels, for prediction only.
        """

    @abstractmethod
    def split_marginals(self, mu, n_nodes):
        """Return the region marginals mu of an input as arrays of readable shape."""

    def decode(self, X, w):
        """Return a most probable labelling of every input, a list of int arrays."""
        problem, w = self.bind(X), self._check_weights(w)
        return [problem.decode(i, problem.score(i, w)) for i in range(problem.n_samples)]

    def marginals(self, X, w):
        """Return the marginals of p(y | x; w) of every input, as `split_marginals` shapes them."""
        problem, w = self.bind(X), self._check_weights(w)
        return [
            self.split_marginals(problem.infer(i, problem.score(i, w))[0], problem.n_nodes(i))
            for i in range(problem.n_samples)
        ]

    def _check_weights(self, w):
        w = np.ascontiguousarray(w, dtype=np.float64)
        if w.shape != (self.dim,):
            raise ValueError(f"w has shape {w.shape}, expected ({self.dim},)")
        if not np.isfinite(w).all():
            raise ValueError(f"w[{np.flatnonzero(~np.isfinite(w))[0]}] is not finite")
        return w
