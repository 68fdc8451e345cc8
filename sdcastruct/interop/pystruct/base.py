"""What the wrappers of pystruct's models share."""

import numpy as np

from sdcastruct.models import Model


class PystructModel(Model):
    """A pystruct model as a `Model`; made by `wrap`.

    As any `Model` it has pystruct's interface too, with the features and the loss of the model and
    our inference, which is exact: pystruct's learners may train it in place of the model.

    Attributes
    ----------
    model : object
        The pystruct model.
    max_table_bytes : int
        Largest size of the clique tables of one sample together, see `GraphModel`.
    """

    untouched = ()  # methods that a subclass of a class of pystruct must not have changed

    def __init__(self, model, max_table_bytes=2**30):
        self.model, self.max_table_bytes = model, max_table_bytes

    @classmethod
    def supports(cls, model):
        """Return whether a model can be packed."""
        return True

    def initialize(self, X, Y):
        """Let the model take its sizes from the data, if it can."""
        if hasattr(self.model, "initialize"):
            self.model.initialize(X, Y)

    @property
    def dim(self):
        """Number of weights, ``size_joint_feature``."""
        size = getattr(self.model, "size_joint_feature", None)
        if size is None:
            raise ValueError(
                f"{type(self.model).__name__} does not know its sizes: give them to its "
                "constructor or call initialize(X, Y)"
            )
        return size

    def decode(self, X, w):
        """Return a most probable labelling of every input, as the model writes labellings."""
        labels = super().decode(X, w)
        return [self.labelling(x, y) for x, y in zip(X, labels, strict=True)]

    def labels(self, y):
        """Return a labelling of the model as an int vector, a label from 0 per node."""
        return np.asarray(y).ravel()

    def labelling(self, x, y):
        """Return an int vector of labels as the model writes labellings."""
        if hasattr(self.model, "_reshape_y"):  # grids
            return self.model._reshape_y(y, np.shape(x), False)
        return y

    def joint_feature(self, x, y):
        """Return the features of a labelling or of marginals, by the model."""
        return self.model.joint_feature(x, y)

    def loss(self, y, y_hat):
        """Return the loss of a labelling, by the model."""
        return self.model.loss(y, y_hat)

    def max_loss(self, y):
        """Return the largest loss that a labelling may have, by the model."""
        return self.model.max_loss(y)

    def loss_scores(self, x, y):
        """Return the loss of every state of every node, as the model adds it to its potentials."""
        scores = np.zeros((y.size, self.model.n_states))
        self.model.loss_augment_unaries(scores, y)
        return scores.ravel()

    def _decode_with_loss(self, X, Y, w):
        labels = super()._decode_with_loss(X, Y, w)
        return [self.labelling(x, y) for x, y in zip(X, labels, strict=True)]

    def _check_labels(self, X, Y):
        return super()._check_labels(X, [self.labels(y) for y in Y])

    def __repr__(self):
        return f"wrap({self.model!r})"


class SingleLabelModel(PystructModel):
    """A model whose inputs have one label each."""

    def states(self, x):
        """Return the number of labels, shape (1,)."""
        return np.array([self.model.n_states])

    def labelling(self, x, y):
        """Return the label."""
        return y[0]

    def loss_scores(self, x, y):
        """Return the loss of every label."""
        every = [self.labelling(x, [k]) for k in range(self.model.n_states)]
        return np.array([self.model.loss(every[y[0]], found) for found in every], np.float64)


def unary_order(n_states, n_features, n_others):
    """Return `Problem.order` for weights (K, F) that are packed as (F, K), and others after them.

    pystruct has a row per state, our tables have one per attribute.
    """
    first = np.arange(n_states * n_features).reshape(n_states, n_features).T.ravel()
    return np.concatenate([first, first.size + np.arange(n_others)])
