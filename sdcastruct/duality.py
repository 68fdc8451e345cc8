"""Primal, dual and the gap between them: Section 2 of the paper, line by line, in NumPy.

For n samples with log-partition functions phi_i, corrected features A_i (columns
psi_i(y) = F(x_i, y_i) - F(x_i, y)) and scores s_i = -A_i^T w the paper writes

    P(w)         = lam/2 ||w||^2 + 1/n sum_i phi_i(-A_i^T w)            primal problem
    D(alpha)     = -lam/2 ||w_hat(alpha)||^2 + 1/n sum_i H(alpha_i)     dual problem
    w_hat(alpha) = 1/(lam n) sum_i A_i alpha_i                          conjugate weights
    alpha_hat(w) = (p(.|x_i; w))_i                                      conjugate probabilities
    grad P(w)    = lam (w - w_hat(alpha_hat(w)))                        primal gradient
    g(w, alpha)  = P(w) - D(alpha) >= 0                                 duality gap

and for the two conjugate pairs

    g(w, alpha_hat(w))     = lam/2 ||w - w_hat(alpha_hat(w))||^2 = ||grad P(w)||^2 / (2 lam)
    g(w_hat(alpha), alpha) = 1/n sum_i F_i = 1/n sum_i KL(alpha_i || alpha_hat_i(w_hat(alpha)))

with the Fenchel gap F_i = phi_i(s_i) + phi_i^*(alpha_i) - s_i^T alpha_i (the paper prints + in
Section 2.5; its appendix has the minus).

A distribution over all labelings is too long to store. Here ``alpha`` holds its marginals on the
regions of the junction tree, all samples laid end to end; they stand for the joint distribution
of largest entropy among those with these marginals, prod_C mu_C / prod_S mu_S ("joint from
marginals", Section 3.2). Since A_i alpha_i depends on the marginals alone, every formula above
holds for them. Counting numbers ``c`` (+1 on cliques, minus the multiplicity on separators) turn
"entropy marginal" and "divergence marginal" into plain sums.

Samples may have weights s_i (`Problem.weighted`): then phi_i, A_i and H(alpha_i) stand for
s_i phi_i, s_i A_i and s_i H(alpha_i), and the block gaps are s_i F_i.

Nothing here is fast: the solvers have their own kernels, and the tests hold them to these lines.
"""

import numpy as np
from scipy.special import entr, kl_div


def entropy(c, mu):
    """Return H(mu) = -sum c mu log mu, the entropy of the joint ("entropy marginal").

    Parameters
    ----------
    c : array of shape (m,)
        Counting number of each entry of ``mu``.
    mu : array of shape (m,)
        Marginals of one sample.

    Returns
    -------
    float
    """
    return float(c @ entr(mu))


def kl(c, a, b):
    """Return KL(a||b) = sum c a log(a/b), the divergence of the joints ("divergence marginal").

    Each table sums to one, so sum c (b - a) = 0 and the sum may run over the Bregman divergences
    a log(a/b) - a + b. Close to b = a these are a (x - log1p(x)) with x = (b - a)/a, which stays
    accurate where the plain sum is nothing but rounding.

    Parameters
    ----------
    c, a, b : arrays of shape (m,)
        Counting numbers, and the marginals of one sample under two distributions.

    Returns
    -------
    float
        Infinity if ``a`` has mass where ``b`` has none.
    """
    if np.any((a > 0) & (b == 0)):
        return float("inf")
    close = np.abs(b - a) <= a / 2
    x = np.divide(b - a, a, out=np.zeros_like(a), where=close & (a > 0))
    return float(c @ np.where(close, a * (x - np.log1p(x)), kl_div(a, b)))


def primal(problem, w, lam):
    """Return P(w), the regularised negative log-likelihood ("primal problem").

    Parameters
    ----------
    problem : Problem
    w : array of shape (dim,)
    lam : float

    Returns
    -------
    float
    """
    losses = [_loss(problem, i, w) for i in range(problem.n_samples)]
    return float(lam / 2 * (w @ w) + np.mean(losses))


def _loss(problem, i, w):
    """Return phi_i(-A_i^T w) = log Z_i(w) - w^T F(x_i, y_i), times the weight of the sample."""
    theta = problem.score(i, w)
    _, log_z = problem.infer(i, theta)
    return problem.weights[i] * (log_z - theta @ problem.gather(i, problem.truth(i)))


def dual(problem, alpha, lam):
    """Return D(alpha) ("dual problem").

    Parameters
    ----------
    problem : Problem
    alpha : array of shape (n_marginals,)
        Marginals of all samples, laid end to end.
    lam : float

    Returns
    -------
    float
    """
    v = w_hat(problem, alpha, lam)
    entropies = [
        problem.weights[i] * entropy(problem.counting(i), alpha[problem.block(i)])
        for i in range(problem.n_samples)
    ]
    return float(-lam / 2 * (v @ v) + np.mean(entropies))


def gap(problem, w, alpha, lam):
    """Return g(w, alpha) = P(w) - D(alpha) >= 0 ("duality gap").

    Parameters
    ----------
    problem : Problem
    w : array of shape (dim,)
    alpha : array of shape (n_marginals,)
    lam : float

    Returns
    -------
    float
    """
    return primal(problem, w, lam) - dual(problem, alpha, lam)


def w_hat(problem, alpha, lam):
    """Return the conjugate weights 1/(lam n) sum_i A_i alpha_i ("weights from marginals").

    Parameters
    ----------
    problem : Problem
    alpha : array of shape (n_marginals,)
    lam : float

    Returns
    -------
    array of shape (dim,)
    """
    total = np.zeros(problem.dim)
    for i in range(problem.n_samples):
        total += _corrected_features(problem, i, alpha[problem.block(i)])
    return total / (lam * problem.n_samples)


def _corrected_features(problem, i, mu):
    """Return A_i alpha_i = E[psi_i] = F(x_i, y_i) - E[F(x_i, y)], from the marginals of alpha_i."""
    difference = problem.gather(i, problem.truth(i) - mu)
    return problem.weights[i] * problem.features(i, difference)


def alpha_hat(problem, w):
    """Return the marginals of the conjugate probabilities p(.|x_i; w) ("primal to dual").

    Parameters
    ----------
    problem : Problem
    w : array of shape (dim,)

    Returns
    -------
    array of shape (n_marginals,)
    """
    alpha = np.empty(problem.n_marginals)
    for i in range(problem.n_samples):
        alpha[problem.block(i)], _ = problem.infer(i, problem.score(i, w))
    return alpha


def gradient(problem, w, lam):
    """Return grad P(w) = lam w - 1/n sum_i A_i alpha_hat_i(w), by the chain rule.

    Parameters
    ----------
    problem : Problem
    w : array of shape (dim,)
    lam : float

    Returns
    -------
    array of shape (dim,)
    """
    total = np.zeros(problem.dim)
    for i in range(problem.n_samples):
        beta, _ = problem.infer(i, problem.score(i, w))
        total += _corrected_features(problem, i, beta)
    return lam * w - total / problem.n_samples


def block_gaps(problem, w, alpha):
    """Return the Fenchel gaps F_i = phi_i(s_i) + phi_i^*(alpha_i) - s_i^T alpha_i, s_i = -A_i^T w.

    The truth cancels: F_i = log Z_i - H(alpha_i) - <theta_i, alpha_i>. Their mean is the duality
    gap when w = w_hat(alpha).

    Parameters
    ----------
    problem : Problem
    w : array of shape (dim,)
    alpha : array of shape (n_marginals,)

    Returns
    -------
    array of shape (n_samples,)
    """
    gaps = np.empty(problem.n_samples)
    for i in range(problem.n_samples):
        mu = alpha[problem.block(i)]
        theta = problem.score(i, w)
        _, log_z = problem.infer(i, theta)
        gaps[i] = log_z - entropy(problem.counting(i), mu) - theta @ problem.gather(i, mu)
    return gaps * problem.weights


def non_uniformity(gaps):
    """Return chi = sqrt(mean g_i^2) / mean g_i in [1, sqrt n] (Section 5.3).

    Gap sampling improves the rate of uniform sampling by chi^2. Gaps that are all zero are as
    uniform as gaps can be: chi = 1.

    Parameters
    ----------
    gaps : array of shape (n_samples,)
        Non-negative block gaps.

    Returns
    -------
    float
    """
    gaps = np.asarray(gaps, dtype=float)
    largest = gaps.max()
    if largest == 0:
        return 1.0
    relative = gaps / largest
    return float(np.sqrt(np.mean(relative**2)) / np.mean(relative))
