"""The judge: CRFs by enumeration of all labelings, sharing no code with the package.

A sample is its M labelings (K^T for a chain of T nodes with K states) and the features of each.
Everything of Section 2 is written on the joint simplex of size M, from the definitions: scores
s = -A^T w, log-partition phi(s), entropy, Kullback-Leibler divergence, corrected features
psi(y) = F(x, y_i) - F(x, y), radius R = max_y ||psi(y)||^2. Marginals are sums over labelings.
``NaiveSDCA`` is Algorithm 2 with this oracle and bisection as its line search; ``NaiveOEG`` and
``NaiveSAG`` are those of Collins et al. (2008) and Schmidt et al. (2015), dense in everything.
"""

from functools import cached_property
from itertools import product

import numpy as np
from scipy.optimize import minimize
from scipy.special import entr, logsumexp, rel_entr, softmax

# Values are sums of some thousand products of float64 numbers, each rounded to 1.1e-16 of its
# size: an error of 1e-12 times the sum of magnitudes is never reached without a defect.
ROUNDING = 1e-12
SINGLE = 1e-6  # per node and unit of entropy, for what is computed in single precision


def enumerate_labelings(n_nodes, n_states):
    """Return all labelings, shape (K^T, T)."""
    return np.array(list(product(range(n_states), repeat=n_nodes)), dtype=np.intp)


def feature_map(x, y, n_states):
    """Return F(x, y): attributes x label | bias (any, first, last) x label | transitions."""
    attributes = np.zeros((x.shape[1], n_states))
    bias = np.zeros((3, n_states))
    transitions = np.zeros((n_states, n_states))
    for t, label in enumerate(y):
        attributes[:, label] += x[t]
        bias[0, label] += 1
        if t > 0:
            transitions[y[t - 1], label] += 1
    bias[1, y[0]] += 1
    bias[2, y[-1]] += 1
    return np.concatenate([attributes.ravel(), bias.ravel(), transitions.ravel()])


def region_indicators(labelings, n_states):
    """Return the 0/1 marginals of each labeling, shape (M, T K + (T-1) K^2)."""
    n_labelings, n_nodes = labelings.shape
    nodes = np.zeros((n_labelings, n_nodes, n_states))
    pairs = np.zeros((n_labelings, n_nodes - 1, n_states, n_states))
    for row, y in enumerate(labelings):
        nodes[row, np.arange(n_nodes), y] = 1
        pairs[row, np.arange(n_nodes - 1), y[:-1], y[1:]] = 1
    return np.hstack([nodes.reshape(n_labelings, -1), pairs.reshape(n_labelings, -1)])


def counting_numbers(n_nodes, n_states):
    """Return +1 for each entry of an edge and 1 - degree for each entry of a node."""
    degree = np.zeros(n_nodes)
    degree[1:] += 1
    degree[:-1] += 1
    return np.concatenate([np.repeat(1 - degree, n_states), np.ones((n_nodes - 1) * n_states**2)])


def slot_scores(labelings, theta, n_states):
    """Return the score of each labeling: theta is T K unary, then K K transitions if T > 1."""
    n_nodes = labelings.shape[1]
    unary = theta[: n_nodes * n_states].reshape(n_nodes, n_states)
    nodes = unary[np.arange(n_nodes), labelings].sum(axis=1)
    if n_nodes == 1:
        return nodes
    transitions = theta[n_nodes * n_states :].reshape(n_states, n_states)
    return nodes + transitions[labelings[:, :-1], labelings[:, 1:]].sum(axis=1)


def log_sum_exp(s):
    """Return phi(s) for real or complex s: analytic, so a complex step differentiates it."""
    top = s.real.max()
    return top + np.log(np.exp(s - top).sum())


def entropy(joint):
    """Return H of a distribution over labelings."""
    return entr(joint).sum()


def divergence(joint_a, joint_b):
    """Return KL(a||b) of two distributions over labelings."""
    return rel_entr(joint_a, joint_b).sum()


class EnumeratedSample:
    """One sample (x, y): all labelings of x, shape (M, T), and the features of each, (M, dim).

    `regions` are the 0/1 marginals of each labeling, shape (M, r), `counting` their numbers; what
    does not speak of marginals does without.
    """

    def __init__(self, labelings, features, y, regions=None, counting=None):
        self.labelings, self.features = labelings, features
        self.regions, self.counting = regions, counting
        self.truth = self.row_of(y)
        self.psi = features[self.truth] - features  # the columns of A_i, as rows

    def row_of(self, y):
        """Return which of all labelings y is."""
        return int(np.flatnonzero((self.labelings == y).all(axis=1))[0])

    @property
    def radius(self):
        """R_i = max_y ||psi_i(y)||^2."""
        return (self.psi**2).sum(axis=1).max()

    def posterior(self, w):
        """Return the joint distribution p(.|x; w)."""
        return softmax(self.features @ w)

    def marginals(self, joint):
        """Return the marginals of a joint distribution on all regions."""
        return joint @ self.regions

    def joint(self, mu):
        """Return prod_C mu_C / prod_S mu_S, or zero where a clique is zero."""
        log_mu = np.log(np.where(mu == 0, 1, mu))
        possible = self.regions @ (mu == 0) == 0
        return np.exp(np.where(possible, self.regions @ (self.counting * log_mu), -np.inf))

    def divergence(self, mu, nu):
        """Return KL of the joints that belong to two vectors of marginals."""
        return divergence(self.joint(mu), self.joint(nu))


class Sample(EnumeratedSample):
    """One chain (x, y)."""

    def __init__(self, x, y, n_states):
        self.n_states = n_states
        labelings = enumerate_labelings(len(y), n_states)
        features = np.array([feature_map(x, z, n_states) for z in labelings])
        regions = region_indicators(labelings, n_states)
        super().__init__(labelings, features, y, regions, counting_numbers(len(y), n_states))


class EnumeratedProblem:
    """n samples, with primal and dual of Section 2 on the product of joint simplices."""

    def __init__(self, samples):
        self.samples = samples
        self.dim = samples[0].psi.shape[1]

    def __len__(self):
        return len(self.samples)

    @cached_property
    def radii(self):
        """The exact R_i, shape (n,)."""
        return np.array([sample.radius for sample in self.samples])

    def primal(self, w, lam):
        """Return P(w), for real or complex w."""
        losses = [log_sum_exp(-sample.psi @ w) for sample in self.samples]
        return lam / 2 * (w @ w) + sum(losses) / len(self)

    def gradient(self, w, lam, step=1e-30):
        """Return grad P(w) by complex steps, exact to rounding."""
        steps = 1j * step * np.eye(self.dim)
        return np.array([self.primal(w + e, lam).imag for e in steps]) / step

    def hessian(self, w, lam):
        """Return lam I + 1/n sum_i Cov[F(x_i, y)]."""
        total = np.zeros((self.dim, self.dim))
        for sample in self.samples:
            p = sample.posterior(w)
            centred = sample.psi - p @ sample.psi
            total += (centred.T * p) @ centred
        return lam * np.eye(self.dim) + total / len(self)

    def optimum(self, lam):
        """Return w* = argmin P: Newton's method, its last steps without a look at the objective."""

        def gradient(w, lam):
            return lam * (w - self.w_hat(self.alpha_hat(w), lam))

        functions = {"jac": gradient, "hess": self.hessian, "method": "trust-exact"}
        w = minimize(self.primal, np.zeros(self.dim), args=(lam,), **functions).x
        for _ in range(3):
            w = w - np.linalg.solve(self.hessian(w, lam), gradient(w, lam))
        return w

    def alpha_hat(self, w):
        """Return the joint distributions p(.|x_i; w)."""
        return [sample.posterior(w) for sample in self.samples]

    def w_hat(self, joints, lam):
        """Return 1/(lam n) sum_i A_i alpha_i."""
        terms = [joint @ s.psi for s, joint in zip(self.samples, joints, strict=True)]
        return sum(terms) / (lam * len(self))

    def dual(self, joints, lam):
        """Return D(alpha) of joint distributions."""
        w = self.w_hat(joints, lam)
        return -lam / 2 * (w @ w) + sum(map(entropy, joints)) / len(self)

    def fenchel_gaps(self, w, joints):
        """Return phi(s) + phi*(alpha) - s.alpha for s = -A_i^T w, shape (n,)."""
        scores = [-sample.psi @ w for sample in self.samples]
        return np.array(
            [logsumexp(s) - entropy(a) - s @ a for s, a in zip(scores, joints, strict=True)]
        )

    def marginals(self, joints):
        """Return the flat marginals of all samples."""
        return np.concatenate(
            [s.marginals(joint) for s, joint in zip(self.samples, joints, strict=True)]
        )


class JointProblem(EnumeratedProblem):
    """n chains."""

    def __init__(self, X, Y, n_states):
        super().__init__([Sample(x, y, n_states) for x, y in zip(X, Y, strict=True)])


def line_search_slope(c, a, b, curvature, gamma):
    """Return f'(gamma) of f = -KL((1-gamma) a + gamma b || b) - curvature gamma^2 / 2."""
    mixed = (1 - gamma) * a + gamma * b
    used = mixed > 0
    return c[used] * (b - a)[used] @ np.log(b[used] / mixed[used]) - curvature * gamma


def line_search(c, a, b, curvature):
    """Return the maximiser of the concave f on [0, 1] by bisection of its slope."""
    low, high = 0.0, 1.0
    for _ in range(80):
        middle = (low + high) / 2
        if line_search_slope(c, a, b, curvature, middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def draw_in_proportion(rng, weights):
    """Draw an index in proportion to weights from one random number."""
    ticket = rng.random() * weights.sum()
    return int(np.searchsorted(np.cumsum(weights), ticket, side="right"))


def draw_mixture(rng, non_uniformity, weights):
    """Draw in proportion to weights with probability non_uniformity, else uniformly."""
    if non_uniformity > 0 and rng.random() < non_uniformity and weights.sum() > 0:
        return draw_in_proportion(rng, weights)
    return int(rng.random() * len(weights))


class NaiveSDCA:
    """Algorithm 2, with v_i = B_i delta_i / (lam n) (the paper prints w_hat(delta_i)/(lam n))."""

    def __init__(self, joint_problem, lam, alpha):
        self.samples = joint_problem.samples
        self.scale = lam * len(joint_problem)
        sizes = [len(sample.counting) for sample in self.samples]
        self.mu = np.split(alpha, np.cumsum(sizes)[:-1])
        terms = [s.joint(mu) @ s.psi for s, mu in zip(self.samples, self.mu, strict=True)]
        self.w = sum(terms) / self.scale
        self.gaps = np.full(len(self.samples), 100.0)

    def step(self, i, gamma=None):
        """Update block i by the given step size, or by line search; return the step size."""
        sample, mu = self.samples[i], self.mu[i]
        joint, posterior = sample.joint(mu), sample.posterior(self.w)
        nu = sample.marginals(posterior)
        self.gaps[i] = max(divergence(joint, posterior), 0.0)
        v = (posterior - joint) @ sample.psi / self.scale
        if gamma is None:
            gamma = line_search(sample.counting, mu, nu, self.scale * (v @ v))
        self.mu[i] = (1 - gamma) * mu + gamma * nu
        self.w = self.w + gamma * v
        return gamma


class NaiveOEG:
    """Exponentiated gradient steps on the scores of all labelings, alpha_i = softmax(scores_i).

    `margin` is the smallest gain, up or down, that has decided about a step: runs that round
    differently take the same decisions as long as it is far above rounding.
    """

    def __init__(self, joint_problem, lam, scores):
        self.samples, self.scores = joint_problem.samples, list(scores)
        self.scale = lam * len(joint_problem)
        self.w = joint_problem.w_hat([softmax(s) for s in scores], lam)
        self.etas = np.full(len(joint_problem), 0.5)
        self.gaps = np.full(len(joint_problem), 100.0)
        self.n_oracle_calls, self.margin = 0, np.inf

    def step(self, i, exact=False):
        """Move the scores of block i towards those of w as far as the dual does not drop."""
        sample, old, eta = self.samples[i], self.scores[i], self.etas[i]
        goal, alpha = sample.features @ self.w, softmax(self.scores[i])
        while True:
            new = (1 - eta) * old + eta * goal
            beta = softmax(new)
            self.n_oracle_calls += 1
            v = (beta - alpha) @ sample.psi / self.scale
            gain = entropy(beta) - entropy(alpha) - self.scale * (self.w @ v + v @ v / 2)
            self.margin = min(self.margin, abs(gain))
            if gain >= 0 or eta < 1e-10:
                break
            eta = eta / 2
        ahead, change = goal - old, logsumexp(new) - logsumexp(old)
        self.gaps[i] = change - eta * ahead @ alpha + (1 - eta) * ahead @ (beta - alpha)
        if exact and eta < 1:
            self.gaps[i] = divergence(alpha, softmax(goal))
            self.n_oracle_calls += 1
        if gain >= 0:
            self.etas[i] = min(1.05 * eta, 1.0)
            self.scores[i], self.w = new, self.w + v


class NaiveSAG:
    """SAG with line searches for all L_i; every step moves all of w.

    `margin` is the smallest distance of a comparison from a tie, see `NaiveOEG`.
    """

    def __init__(self, joint_problem, lam, sampling, line_search):
        n = len(joint_problem)
        self.samples, self.lam = joint_problem.samples, lam
        self.averaged, self.skipping = sampling == "nus", line_search == "skip"
        self.w, self.gradients = np.zeros(joint_problem.dim), np.zeros((n, joint_problem.dim))
        self.lipschitz, self.losses = np.zeros(n), np.zeros(n)
        self.successes, self.skips = np.zeros(n, int), np.zeros(n, int)
        self.n_oracle_calls, self.margin = 0, np.inf

    def loss(self, i, w):
        """Return f_i(w), a call of the oracle."""
        self.n_oracle_calls += 1
        return log_sum_exp(-self.samples[i].psi @ w)

    def step(self, i):
        """Refresh the gradient of sample i and follow the mean of all; return the step size."""
        self.losses[i] = self.loss(i, self.w)
        gradient = -self.samples[i].posterior(self.w) @ self.samples[i].psi
        self.search(i, gradient)
        self.gradients[i] = gradient
        known = self.lipschitz[self.lipschitz > 0]
        size = 1 / (known.max() + self.lam)
        if self.averaged:
            size = (size + 1 / (known.mean() + self.lam)) / 2
        total = self.gradients.sum(axis=0)
        self.w = (1 - size * self.lam) * self.w - size / len(known) * total
        return size

    def search(self, i, gradient):
        """Find L_i, unless its turn is to be skipped."""
        known = self.lipschitz[self.lipschitz > 0]
        if self.skipping and self.skips[i] > 0:
            self.skips[i] -= 1
            return
        L, norm2, doubled = self.lipschitz[i], gradient @ gradient, False
        seen = L > 0
        if not seen:
            first = norm2 / (2 * self.losses[i]) if norm2 > 0 else 1.0
            L = known.mean() / 2 if known.size else first
        self.margin = min(self.margin, abs(norm2 / (1e-8 * L) - 1))
        searching = norm2 > 1e-8 * L
        if searching and seen:
            L = 0.9 * L
        while searching:
            decrease = self.losses[i] - self.loss(i, self.w - gradient / L) - norm2 / (2 * L)
            self.margin = min(self.margin, abs(decrease))
            if decrease >= 0:
                break
            L, doubled = 2 * L, True
        self.lipschitz[i] = L
        self.successes[i] = 0 if doubled else self.successes[i] + 1
        self.skips[i] = 2 ** (self.successes[i] - 1) if self.successes[i] else 0
