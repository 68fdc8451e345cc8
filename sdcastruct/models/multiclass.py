"""Multinomial logistic regression, the CRF with one node (paper, Algorithm 1).

The weights are one table of shape (A, K): the attributes of a sample add to the column of its
label. There is no bias; for a penalised intercept append a column of ones to X.
"""

import numpy as np

from sdcastruct.models.base import Model
from sdcastruct.models.checks import as_array, check_count, check_labels, check_rows
from sdcastruct.models.forest import Forest, node_losses
from sdcastruct.problem import Attributes, Problem, Template, batch


class MulticlassModel(Model):
    """One node per sample.

    To `joint_feature`, `inference` and their like, one input is a row of shape (n_features,) and
    one labelling an integer.

    Parameters
    ----------
    n_states : int
        Number of classes K.
    n_features : int
        Number of attributes A of a sample.

    Examples
    --------
    >>> import numpy as np
    >>> from sdcastruct.models import MulticlassModel
    >>> problem = MulticlassModel(n_states=3, n_features=2).bind(np.eye(2), [2, 0])
    >>> problem.n_samples, problem.dim
    (2, 6)
    """

    def __init__(self, n_states, n_features):
        self.n_states = check_count("n_states", n_states, 1)
        self.n_features = check_count("n_features", n_features, 0)

    @property
    def dim(self):
        """Number of weights, A K."""
        return self.n_features * self.n_states

    def bind(self, X, Y=None):
        """Check samples and pack them into a `Problem`.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            One row of attributes per sample.
        Y : int array of shape (n,), optional
            One label from 0 to n_states - 1 per sample.
        """
        rows, _ = check_rows([X], self.n_features, name="X", row="sample")
        n = rows.shape[0]
        one, none = np.ones(n, np.int64), np.zeros(n, np.int64)
        labels = None if Y is None else check_labels(_labellings(Y), one, self.n_states)
        forest = Forest(self.n_states, one, none, none, np.empty((0, 2), np.int64), none[:0])
        nodes = Template(rows, forest.node_ptr, forest.node_offset, 0, self.n_states)
        return Problem(
            Attributes(forest.slot_ptr, [nodes]),
            forest.regions(),
            forest.engine(),
            None if Y is None else forest.truth(labels),
        )

    def states(self, x):
        """Return the number of states of the one node, shape (1,)."""
        return np.full(1, self.n_states)

    def split_marginals(self, x, mu):
        """Return the probabilities of the classes, shape (K,)."""
        return mu

    def split_weights(self, w):
        """Return w as a table of shape (A, K)."""
        return self._check_weights(w).reshape(self.n_features, self.n_states)

    def decode(self, X, w):
        """Return the most probable label of every sample, an int array of shape (n,)."""
        return np.concatenate(super().decode(X, w))

    def marginals(self, X, w):
        """Return the probabilities of the classes of every sample, shape (n, K)."""
        problem, w = self.bind(X), self._check_weights(w)
        return batch.marginals(problem, w).reshape(-1, self.n_states)

    def loss_scores(self, x, y):
        """Return 1 for every class but the true one."""
        return node_losses(self.n_states, y)

    def _decode_with_loss(self, X, Y, w):
        return np.concatenate(super()._decode_with_loss(X, Y, w))

    def _check_labels(self, X, Y):
        return super()._check_labels(X, _labellings(Y))


def _labellings(Y):
    """Return labels as labellings of one node each."""
    Y = as_array("Y", Y, "expected one label per sample")
    return Y.reshape(-1, 1) if Y.ndim == 1 else Y
