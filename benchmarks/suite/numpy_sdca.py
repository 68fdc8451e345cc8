"""SDCA for chains in plain NumPy, in the style of the paper's own code.

Marginals are kept as logarithms, the oracle is a forward-backward pass in the log domain, and the
line search is a safeguarded Newton method from gamma = 0.5 to the paper's sub-precision. Loops run
over the nodes of a chain; everything else is an array operation. It stands for what a careful
Python programmer gets without a compiler.
"""

import numpy as np

SUBPRECISION = 1e-3
MAX_NEWTON = 50


class NumpySDCA:
    """The dual point, the weights, and one step of Algorithm 2.

    Parameters
    ----------
    X : list of arrays of shape (T, n_features)
    Y : list of integer arrays of shape (T,)
    n_states : int
    lam : float
    epsilon : float
        Weight of the uniform distribution in the initial point.
    subprecision : float
        The line search ends when its next step is shorter.
    """

    def __init__(self, X, Y, n_states, lam, epsilon=1e-5, subprecision=SUBPRECISION):
        self.X = [with_biases(x) for x in X]
        self.lam_n, self.subprecision = lam * len(X), subprecision
        self.emissions = np.zeros((self.X[0].shape[1], n_states))
        self.transitions = np.zeros((n_states, n_states))
        self.gaps = np.full(len(X), 100.0)
        self.alpha = []
        for x, y in zip(self.X, Y, strict=True):
            nodes, pairs = truth(y, n_states)
            block = (
                (1 - epsilon) * nodes + epsilon / n_states,
                (1 - epsilon) * pairs + epsilon / n_states**2,
            )
            self.alpha.append(tuple(map(np.log, block)))
            self._add(x, nodes - block[0], pairs - block[1], 1 / self.lam_n)

    def step(self, i):
        """Do one step on sample i; return gamma."""
        x, alpha = self.X[i], self.alpha[i]
        beta = log_marginals(x @ self.emissions, self.transitions)
        a, b = tuple(map(np.exp, alpha)), tuple(map(np.exp, beta))
        counting = counting_numbers(len(x))
        self.gaps[i] = divergence(counting, a, alpha, beta)
        nodes, pairs = b[0] - a[0], b[1] - a[1]
        curvature = (squared_norm(x.T @ nodes) + squared_norm(pairs.sum(axis=0))) / self.lam_n
        gamma = self._line_search(counting, a, b, beta, (nodes, pairs), curvature)
        self.alpha[i] = tuple(
            np.log((1 - gamma) * p + gamma * q) for p, q in zip(a, b, strict=True)
        )
        self._add(x, nodes, pairs, -gamma / self.lam_n)
        return gamma

    def _line_search(self, counting, a, b, log_b, delta, curvature):
        """Return the best step from a towards b, each a pair of node and pair marginals."""
        low, high, gamma = 0.0, 1.0, 0.5
        for _ in range(MAX_NEWTON):
            mixed = [(1 - gamma) * p + gamma * q for p, q in zip(a, b, strict=True)]
            slopes = [d * (lq - np.log(m)) for d, lq, m in zip(delta, log_b, mixed, strict=True)]
            bends = [d**2 / m for d, m in zip(delta, mixed, strict=True)]
            first = (counting * slopes[0]).sum() + slopes[1].sum() - curvature * gamma
            second = -(counting * bends[0]).sum() - bends[1].sum() - curvature
            low, high = (gamma, high) if first > 0 else (low, gamma)
            step = -first / second
            if abs(step) <= self.subprecision:
                break
            gamma = gamma + step if low < gamma + step < high else 0.5 * (low + high)
        return gamma

    def _add(self, x, nodes, pairs, scale):
        """Add multiples of the features that go with marginals to the weights."""
        self.emissions += scale * (x.T @ nodes)
        self.transitions += scale * pairs.sum(axis=0)


def with_biases(x):
    """Return the attributes of a chain and the biases any, first and last position."""
    biases = np.zeros((len(x), 3))
    biases[:, 0] = biases[0, 1] = biases[-1, 2] = 1.0
    return np.hstack([x, biases])


def truth(y, n_states):
    """Return the marginals of nodes and of pairs that are sure of the labels y."""
    nodes = np.eye(n_states)[y]
    return nodes, nodes[:-1, :, None] * nodes[1:, None, :]


def squared_norm(array):
    """Return the sum of squares."""
    return np.vdot(array, array)


def log_sum_exp(table, axis):
    """Return log sum exp along an axis."""
    largest = table.max(axis=axis, keepdims=True)
    return np.log(np.exp(table - largest).sum(axis=axis)) + largest.squeeze(axis)


def log_marginals(scores, transitions):
    """Return the log marginals of nodes (T, K) and of pairs (T - 1, K, K)."""
    forward, backward = scores.copy(), np.zeros_like(scores)
    for t in range(1, len(scores)):
        forward[t] += log_sum_exp(forward[t - 1][:, None] + transitions, axis=0)
    for t in range(len(scores) - 2, -1, -1):
        backward[t] = log_sum_exp(transitions + (scores[t + 1] + backward[t + 1]), axis=1)
    log_z = log_sum_exp(forward[-1], axis=0)
    ahead = (scores + backward)[1:, None, :]
    return forward + backward - log_z, forward[:-1, :, None] + transitions + ahead - log_z


def counting_numbers(n_nodes):
    """Return how often the entropy counts each node; it counts every pair once."""
    counting = np.full((n_nodes, 1), -1.0)
    counting[0] += 1
    counting[-1] += 1
    return counting


def divergence(counting, a, log_a, log_b):
    """Return KL(a || b) of pairs of node and pair marginals."""
    nodes, pairs = (p * (lp - lq) for p, lp, lq in zip(a, log_a, log_b, strict=True))
    return (counting * nodes).sum() + pairs.sum()
