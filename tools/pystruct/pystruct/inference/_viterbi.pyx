"""The best labelling of a chain, by dynamic programming.

With unary potentials u and pairwise potentials p, the best score of a path that ends in state k of
node t is s[0, k] = u[0, k] and s[t, k] = max_j (s[t - 1, j] + u[t, k] + p[t - 1, j, k]).
"""

import numpy as np

from libc.math cimport INFINITY


def viterbi(double[:, :] score not None, const double[:, :, :] trans_score not None):
    """Return the labelling of a chain with the highest score; ties go to the lowest state.

    Parameters
    ----------
    score : ndarray of float64, shape (n_nodes, n_states)
        Unary potentials; overwritten with the best scores of the paths that end in each state.
    trans_score : ndarray of float64, shape (n_nodes - 1, n_states, n_states)
        Pairwise potentials: ``[t, j, k]`` is for state j at node t and state k at node t + 1.

    Returns
    -------
    labels : ndarray of intp, shape (n_nodes,)
    """
    cdef Py_ssize_t n_nodes = score.shape[0], n_states = score.shape[1], t, j, k, best
    cdef double candidate, highest
    if n_nodes == 0 or n_states == 0:
        raise ValueError(f"score has shape {(n_nodes, n_states)}, expected a node and a state")
    if (
        trans_score.shape[0] < n_nodes - 1
        or trans_score.shape[1] != n_states
        or trans_score.shape[2] != n_states
    ):
        raise ValueError(
            f"trans_score has shape {np.shape(trans_score)}, "
            f"expected {(n_nodes - 1, n_states, n_states)}"
        )
    cdef Py_ssize_t[:, :] previous = np.empty((n_nodes, n_states), dtype=np.intp)
    for t in range(1, n_nodes):
        for k in range(n_states):
            best, highest = 0, -INFINITY
            for j in range(n_states):
                candidate = score[t - 1, j] + score[t, k] + trans_score[t - 1, j, k]
                if candidate > highest:
                    best, highest = j, candidate
            previous[t, k], score[t, k] = best, highest

    labels = np.empty(n_nodes, dtype=np.intp)
    cdef Py_ssize_t[:] path = labels
    path[n_nodes - 1] = np.argmax(score[n_nodes - 1])
    for t in range(n_nodes - 1, 0, -1):
        path[t - 1] = previous[t, path[t]]
    return labels
