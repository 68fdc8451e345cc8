"""Inference by a model written in Python: every call takes the GIL."""

import numpy as np

from libc.stdint cimport int64_t

from sdcastruct.inference.engine cimport Engine


cdef class CallbackEngine(Engine):
    """Calls ``model.infer(x, theta)`` and ``model.argmax(x, theta)``.

    Parameters
    ----------
    model : Model
    inputs : list
    states : list of int64 arrays
        Number of states of each node of each input.
    n_slots, n_regions : int64 arrays of shape (n,)
        Lengths of theta and mu of each input.
    """

    cdef object model
    cdef list inputs, states
    cdef const int64_t[::1] node_counts, n_slots, n_regions

    def __init__(self, model, inputs, states, n_slots, n_regions):
        self.model, self.inputs, self.states = model, inputs, states
        self.node_counts = np.array([s.size for s in states], np.int64)
        self.n_slots, self.n_regions = n_slots, n_regions
        self.scratch_size = 1

    cdef Py_ssize_t n_nodes(self, Py_ssize_t i) except -1 nogil:
        return self.node_counts[i]

    cdef int infer(self, Py_ssize_t i, const double *theta, double *mu, double *log_z,
                   double *scratch) except -1 nogil:
        with gil:
            self.call_infer(i, <double[:self.n_regions[i]]> mu, self.scores(i, theta), log_z)
        return 0

    cdef int decode(self, Py_ssize_t i, const double *theta, int64_t *y,
                    double *scratch) except -1 nogil:
        with gil:
            self.call_argmax(i, <int64_t[:self.node_counts[i]]> y, self.scores(i, theta))
        return 0

    cdef object scores(self, Py_ssize_t i, const double *theta):
        """Return a copy of theta that the model may keep or change."""
        return np.array(<double[:self.n_slots[i]]> <double *> theta)

    cdef int call_infer(self, Py_ssize_t i, double[:] out, theta, double *log_z) except -1:
        found = self.model.infer(self.inputs[i], theta)
        if not isinstance(found, tuple) or len(found) != 2 or np.ndim(found[1]) != 0:
            raise TypeError(f"infer(X[{i}], theta) returned {type(found).__name__}, "
                            "expected a tuple (mu, log_z)")
        mu, value = np.asarray(found[0], np.float64), found[1]
        if mu.shape != (out.shape[0],):
            raise ValueError(f"infer(X[{i}], theta) returned marginals of shape {mu.shape}, "
                             f"expected ({out.shape[0]},)")
        if not (np.isfinite(mu).all() and np.isfinite(value)):
            raise ValueError(f"infer(X[{i}], theta) returned numbers that are not finite")
        if mu.min() < 0.0:
            raise ValueError(f"infer(X[{i}], theta) returned the negative marginal {mu.min()}")
        np.asarray(out)[:] = mu
        log_z[0] = value
        return 0

    cdef int call_argmax(self, Py_ssize_t i, int64_t[:] out, theta) except -1:
        y = np.asarray(self.model.argmax(self.inputs[i], theta))
        if y.shape != (out.shape[0],) or y.dtype.kind not in "iu":
            raise ValueError(f"argmax(X[{i}], theta) returned shape {y.shape} of {y.dtype}, "
                             f"expected ({out.shape[0]},) integers")
        for v in np.flatnonzero((y < 0) | (y >= self.states[i])):
            raise ValueError(f"argmax(X[{i}], theta)[{v}] is {y[v]}, expected a label from 0 to "
                             f"{self.states[i][v] - 1}")
        np.asarray(out)[:] = y
        return 0
