"""The conditional logit: one of several candidates is chosen, p(t | x; w) ~ exp(x_t w).

An input has T candidates, each with a row of attributes; all share one vector of weights. So there
is one node with T states, whose scores are T slots of width 1, and one region: the T probabilities,
with counting number +1. `ChoiceEngine` does the inference in compiled code, without the GIL.
"""

import numpy as np

from libc.math cimport exp, log
from libc.stdint cimport int64_t

from sdcastruct.inference.engine cimport Engine

from sdcastruct.models import Model


cdef class ChoiceEngine(Engine):
    """Softmax over the candidates of each sample.

    Parameters
    ----------
    sizes : int64 array of shape (n,)
        Number of candidates of each sample.
    """

    cdef const int64_t[::1] sizes

    def __init__(self, sizes):
        self.sizes = sizes

    cdef Py_ssize_t n_nodes(self, Py_ssize_t i) except -1 nogil:
        return 1

    cdef int infer(self, Py_ssize_t i, const double *theta, double *mu, double *log_z,
                   double *scratch) except -1 nogil:
        cdef Py_ssize_t t, T = self.sizes[i]
        cdef double largest = theta[0], total = 0.0
        for t in range(1, T):
            largest = max(largest, theta[t])
        for t in range(T):
            mu[t] = exp(theta[t] - largest)
            total += mu[t]
        for t in range(T):
            mu[t] /= total
        log_z[0] = largest + log(total)
        return 0

    cdef int decode(self, Py_ssize_t i, const double *theta, int64_t *y,
                    double *scratch) except -1 nogil:
        cdef Py_ssize_t t, T = self.sizes[i]
        y[0] = 0
        for t in range(1, T):
            if theta[t] > theta[y[0]]:
                y[0] = t
        return 0


class ChoiceModel(Model):
    """One choice per sample.

    Parameters
    ----------
    n_features : int
        Number of attributes of a candidate, and of weights.
    """

    def __init__(self, n_features):
        self.n_features = n_features

    def templates(self):
        return {"candidate": (self.n_features, 1)}

    def slots(self, x):
        return {"candidate": x}

    def regions(self, x):
        T = np.shape(x)[0]
        return np.ones(T), np.arange(T)

    def states(self, x):
        return np.array([np.shape(x)[0]])

    def truth(self, x, y):
        return np.eye(np.shape(x)[0])[y[0]]

    def engine(self, X):
        return ChoiceEngine(np.array([np.shape(x)[0] for x in X]))

    def bind(self, X, Y=None):
        """Check samples and pack them into a `Problem`.

        Parameters
        ----------
        X : list of arrays of shape (T, n_features), a row for each candidate
        Y : int array of shape (n,), optional
            Which candidate was chosen.
        """
        return super().bind(X, None if Y is None else np.reshape(Y, (-1, 1)))

    def decode(self, X, w):
        """Return the most probable choice of every sample, an int array of shape (n,)."""
        return np.concatenate(super().decode(X, w))
