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
from sdcastruct.models.checks import check_labels, check_rows, check_samples
from sdcastruct.problem import Attributes, Problem, Regions, Template, Truth


cdef class ChoiceEngine(Engine):
    """Softmax over the candidates of each sample.

    Parameters
    ----------
    first : int64 array of shape (n + 1,)
        Sample i has first[i + 1] - first[i] candidates.
    """

    cdef const int64_t[::1] first

    def __init__(self, first):
        self.first = first
        self.scratch_size = 1  # none is needed; the least that can be allocated

    cdef Py_ssize_t n_nodes(self, Py_ssize_t i) except -1 nogil:
        return 1

    cdef int infer(self, Py_ssize_t i, const double *theta, double *mu, double *log_z,
                   double *scratch) except -1 nogil:
        cdef Py_ssize_t t, T = self.first[i + 1] - self.first[i]
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
        cdef Py_ssize_t t, T = self.first[i + 1] - self.first[i]
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

    @property
    def dim(self):
        return self.n_features

    def states(self, x):
        return np.array([np.shape(x)[0]])

    def bind(self, X, Y=None):
        """Check samples and pack them into a `Problem`.

        Parameters
        ----------
        X : list of arrays of shape (T, n_features), a row for each candidate
        Y : int array of shape (n,), optional
            Which candidate was chosen.
        """
        check_samples(X)
        rows, T = check_rows(X, self.n_features, row="candidate")
        n, first = len(T), np.append(0, np.cumsum(T))
        one_each = np.arange(n + 1)
        # Candidate t of a sample has the slot t, a table of width 1.
        slot = np.arange(first[n]) - np.repeat(first[:n], T)
        attributes = Attributes(first, [Template(rows, first, slot, 0, 1)])
        # One table of T marginals with counting number 1; it adds to the slots 0, ..., T - 1.
        tables = np.stack([np.zeros_like(T), np.zeros_like(T), T, np.ones_like(T)], axis=1)
        regions = Regions(first, one_each, T, np.ones(n), one_each, tables)
        truth = None
        if Y is not None:
            chosen = check_labels(np.reshape(Y, (-1, 1)), np.ones_like(T), T)
            truth = Truth(one_each, chosen, one_each, chosen)
        return Problem(attributes, regions, ChoiceEngine(first), truth)

    def decode(self, X, w):
        """Return the most probable choice of every sample, an int array of shape (n,)."""
        return np.concatenate(super().decode(X, w))
