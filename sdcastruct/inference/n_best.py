"""The n best labellings of a chain."""

import numpy as np


def n_best(nodes, transitions, n):
    """Return the n labellings of highest score, best first, and their scores.

    Every state of every position keeps its n best ways to get there.

    Parameters
    ----------
    nodes : array of shape (T, K)
        Scores of the positions.
    transitions : array of shape (K, K)
        Scores from one state (row) to the next (column); -infinity forbids.
    n : int
        Fewer are returned if there are not so many.

    Returns
    -------
    labels : int array of shape (at most n, T)
    scores : array of shape (at most n,)
    """
    T, K = nodes.shape
    scores = nodes[0][:, None]  # (K, number of ways kept)
    origins = []
    for t in range(1, T):
        ways = scores.shape[1]
        candidates = (scores[:, :, None] + transitions[:, None, :]).reshape(K * ways, K)
        best = _largest(candidates, n)  # (kept, K): which state and way each one comes from
        origins.append((best // ways, best % ways))
        scores = np.take_along_axis(candidates, best, axis=0).T + nodes[t][:, None]
    ways = scores.shape[1]
    last = _largest(scores.reshape(-1, 1), n)[:, 0]
    last = last[scores.ravel()[last] > -np.inf]
    labels = np.empty((last.size, T), np.int64)
    for r, entry in enumerate(last):
        state, way = divmod(int(entry), ways)
        labels[r, T - 1] = state
        for t in range(T - 2, -1, -1):
            states, kept = origins[t]
            state, way = int(states[way, state]), int(kept[way, state])
            labels[r, t] = state
    return labels, scores.ravel()[last]


def _largest(values, n):
    """Return the rows of the n largest values of each column, largest first."""
    if n < len(values):
        rows = np.argpartition(-values, n - 1, axis=0)[:n]
    else:
        rows = np.broadcast_to(np.arange(len(values))[:, None], values.shape)
    order = np.argsort(-np.take_along_axis(values, rows, axis=0), axis=0, kind="stable")
    return np.take_along_axis(rows, order, axis=0)
