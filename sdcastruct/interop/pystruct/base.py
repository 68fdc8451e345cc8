"""What the wrappers of pystruct's models share."""

import numpy as np

from sdcastruct.models import Model


class PystructModel(Model):
    """A pystruct model as a `Model`; made by `wrap`.

    Attributes
    ----------
    model : object
        The pystruct model.
    """

    untouched = ()  # methods that a subclass of a class of pystruct must not have changed

    def __init__(self, model):
        self.model = model

    @classmethod
    def supports(cls, model):
        """Return whether a model can be packed."""
        return True

    def initialize(self, X, Y):
        """Let the model take its sizes from the data."""
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

    def __repr__(self):
        return f"wrap({self.model!r})"


def unary_order(n_states, n_features, n_others):
    """Return `Problem.order` for weights (K, F) that are packed as (F, K), and others after them.

    pystruct has a row per state, our tables have one per attribute.
    """
    first = np.arange(n_states * n_features).reshape(n_states, n_features).T.ravel()
    return np.concatenate([first, first.size + np.arange(n_others)])
