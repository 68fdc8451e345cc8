"""Problems in parts: what a cluster trains on, and which part a worker takes."""

import numpy as np

from sdcastruct.models.stacked import StackedRows
from sdcastruct.problem import batch


def bind(model, X, Y):
    """Bind a model to samples in memory, for `DaskSDCA` to share out.

    Parameters
    ----------
    model : Model
    X : list of inputs
    Y : list of int arrays

    Returns
    -------
    DistributedProblem
    """
    if len(X) != len(Y):
        raise ValueError(f"X has {len(X)} samples but Y has {len(Y)}")
    return DistributedProblem(model, Samples(X, Y), len(X))


class DistributedProblem:
    """A model bound to samples that workers will hold.

    It stands where solvers expect a `Problem`, but only `DaskSDCA` can train on it.

    Attributes
    ----------
    model : Model
    n_samples, dim : int
    weights : array of shape (n_samples,)
        How many times each sample counts.

    Parameters
    ----------
    source : object with ``parts(model, n, weights)``
        Where the samples come from: a list of at most n objects, each with ``bind() -> Problem``
        and a ``name``.
    """

    labelled = True

    def __init__(self, model, source, n_samples, weights=None):
        self.model, self.source, self.n_samples = model, source, n_samples
        self.dim, self.given_weights = model.dim, weights

    @property
    def weights(self):
        return np.ones(self.n_samples) if self.given_weights is None else self.given_weights

    def parts(self, n):
        """Return at most n parts that have all samples between them."""
        return self.source.parts(self.model, min(n, self.n_samples), self.given_weights)

    def weighted(self, weights):
        """Return this problem with other weights of the samples."""
        weights = np.asarray(weights, np.float64)
        if weights.shape != (self.n_samples,):
            raise ValueError(f"weights has shape {weights.shape}, expected ({self.n_samples},)")
        return DistributedProblem(self.model, self.source, self.n_samples, weights)

    def losses(self, w):
        """Return -log p(y_i | x_i; w) of all samples; None if this process does not have them."""
        return self.source.losses(self.model, w)

    def pack(self, w):
        """Return weights in the order of the model as they are packed."""
        order = self.source.order(self.model)
        return w if order is None else np.asarray(w)[order]

    def unpack(self, w):
        """Return packed weights in the order of the model, a copy."""
        order = self.source.order(self.model)
        out = np.array(w)
        if order is not None:
            out[order] = w
        return out

    def begins_with(self, other):
        """Return whether a dual point of another problem is one of these samples: unknown."""
        return False

    def __repr__(self):
        return f"DistributedProblem({self.model!r}, n_samples={self.n_samples})"


class Samples:
    """Samples in the memory of the driver."""

    def __init__(self, X, Y):
        self.X, self.Y = X, Y

    def parts(self, model, n, weights):
        """Return n parts; sample i goes to part i modulo n."""
        return [self._part(model, k, n, weights) for k in range(n)]

    def losses(self, model, w):
        """Return -log p(y_i | x_i; w) of all samples."""
        problem = model.bind(self.X, self.Y)
        return batch.losses(problem, problem.pack(w))

    def order(self, model):
        """Return the order of the model's weights, see `Problem`."""
        return model.bind(self.X[:1], self.Y[:1]).order

    def _part(self, model, k, n, weights):
        if isinstance(self.X, StackedRows):
            X = self.X.every(k, n)
        else:
            X = [self.X[i] for i in range(k, len(self.X), n)]
        Y = [self.Y[i] for i in range(k, len(self.Y), n)]
        name = f"samples {k}, {k + n}, ..." if n > 1 else "all samples"
        return SamplesPart(name, model, X, Y, None if weights is None else weights[k::n])


class SamplesPart:
    """Some samples, on their way to a worker."""

    def __init__(self, name, model, X, Y, weights):
        self.name, self.model, self.X, self.Y, self.weights = name, model, X, Y, weights

    def bind(self):
        """Return the packed samples."""
        problem = self.model.bind(self.X, self.Y)
        return problem if self.weights is None else problem.weighted(self.weights)
