"""Checks that a model is right: every identity that training and prediction rely on.

`check_model` evaluates, on each sample and at small and large scores theta, with slot marginals m,
region marginals mu, nu and their counting numbers c::

    <score(w), m> = <w, features(m)>                 scores and features are adjoint
    sum c truth(y) = number of connected parts       counting numbers, whatever y
    grad log Z(theta) = m                            by fourth-order differences
    H(mu) = log Z - <theta, m> = -sum c mu log mu    entropy
    KL(mu || nu) = sum c mu log(mu / nu)             divergence
    log p(y) = <theta, m(y)> - log Z = sum c log mu  joint from marginals, over truth(y)
    max_y <theta, m(y)> = lim log Z(b theta) / b     decoding, b -> infinity

then the same against all labellings where these are few, and last the steps and the certificate
of SDCA. Scores are scaled so that no marginal underflows: every logarithm above can be seen.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import product
from numbers import Integral, Real

import numpy as np
from scipy import sparse
from scipy.special import entr, logsumexp, rel_entr, softmax, xlogy

from sdcastruct import duality
from sdcastruct.solvers import SDCA

# The one tolerance: each value is a sum of at most some thousand float64 terms, each rounded to
# 1.1e-16 of its size, so an error of 1e-12 times the sum of magnitudes needs a defect.
ROUNDING = 1e-12

LARGE_SCORE = 5.0  # largest |theta| at the larger weights; the small ones reach a tenth of it
LARGEST_TOTAL = 300.0  # of |theta| over a labelling: marginals stay above exp(-600)
SHARP_SCORE = 1e4  # largest |b theta|, where log Z / b is the highest score but for O(1 / b)
N_DIRECTIONS = 3
N_RANDOM_LABELINGS = 10
N_TRAINED, N_EPOCHS = 10, 3  # samples and epochs of the checks of the solver

# What to look at where an identity is broken; later ones build on earlier ones.
HINTS = {
    "a sample alone = among others": "bind packs something of one sample into another's place",
    "<score(w), m> = <w, features(m)>": "score and features disagree about the attributes of a "
    "slot or the place of a weight",
    "features_norm2 = ||features||^2": "the Gram matrix is not that of the attributes, or two "
    "templates share weights",
    "sum c truth(y) = number of parts": "a counting number is wrong (+1 on cliques, minus the "
    "multiplicity on separators), or truth misses a region",
    "log Z(0) = log(number of labellings)": "infer sums over other labellings than states() counts",
    "grad log Z = marginals": "infer returns marginals that do not belong to its log_z, or "
    "regions() sends them to the wrong slots",
    "0 <= mu <= 1": "infer returns numbers that are not probabilities",
    "H(mu) = log Z - <theta, m>": "a counting number is wrong, or log_z does not belong to the "
    "marginals",
    "KL(mu || nu) from counting numbers": "a counting number is wrong, or the separators are not "
    "the intersections of their cliques",
    "log p(y) = sum c log mu": "truth marks a wrong entry of mu, or a counting number is wrong",
    "decode = argmax": "argmax misses the best labelling, numbers its states otherwise than truth, "
    "or infer is wrong at large scores",
    "H is concave": "the counting numbers are not those of a junction tree",
    "log Z = logsumexp of all scores": "infer leaves out or repeats a score, or regions() and "
    "truth disagree about slots",
    "mu = sum p(y) truth(y)": "infer returns wrong marginals, or in another order than truth",
    "H and KL of the joints": "the counting numbers do not give the entropy of the joint",
    "mixture = a joint with its marginals": "the regions are no junction tree: the counting "
    "numbers hold for p(y | x; w) but not for a mixture of two",
    "SDCA never lowers the dual": "the compiled features_norm2 or counting numbers are wrong",
    "w = w_hat(alpha)": "the compiled slots of the true labels or of the marginals are wrong",
    "P - D = mean block gap": "features of truth and marginals do not match the scores",
    "certificate = duality.gap": "the compiled slots of the true labels do not match truth",
}


@dataclass(frozen=True)
class Check:
    """One evaluation of an identity; it holds if error <= tolerance < infinity."""

    name: str
    where: str
    error: float
    tolerance: float

    @property
    def severity(self):
        """The error in units of the tolerance; what cannot be compared is worst."""
        if not np.isfinite([self.error, self.tolerance]).all():
            return np.inf
        return self.error / max(self.tolerance, np.finfo(float).tiny)

    @property
    def passed(self):
        """Whether the error is within the tolerance."""
        return self.severity <= 1


@dataclass
class Report:
    """What `check_model` found; prints as a table with the worst error of each identity."""

    checks: list = field(default_factory=list)

    @property
    def failures(self):
        """The checks that do not hold."""
        return [check for check in self.checks if not check.passed]

    def equal(self, name, where, left, right, size):
        """Record that left = right up to the rounding of terms of this size."""
        with np.errstate(invalid="ignore"):
            self.at_most(name, where, np.abs(np.subtract(left, right)), 0.0, size)

    def at_most(self, name, where, value, bound, size):
        """Record that value <= bound up to the rounding of terms of this size."""
        excess = np.max(np.maximum(np.subtract(value, bound), 0.0))
        self.checks.append(Check(name, where, float(excess), float(ROUNDING * size)))

    def __str__(self):
        rows = [("identity", "checks", "worst on", "error", "tolerance", "")]
        for name, checks in _by_name(self.checks).items():
            worst, verdict = checks[0], "ok" if all(c.passed for c in checks) else "FAILED"
            numbers = f"{worst.error:.1e}", f"{worst.tolerance:.1e}"
            rows.append((name, str(len(checks)), worst.where, *numbers, verdict))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)

    def explain(self):
        """Return for each broken identity where it is worst, by how much, and what to look at."""
        return "\n".join(
            f"{name}: off by {checks[0].error:.3g} on {checks[0].where}, tolerance "
            f"{checks[0].tolerance:.3g} ({len(checks)} checks failed). Look here: {HINTS[name]}."
            for name, checks in _by_name(self.failures).items()
        )


def _by_name(checks):
    """Return the checks of each identity, worst first."""
    groups = defaultdict(list)
    for check in sorted(checks, key=lambda check: -check.severity):
        groups[check.name].append(check)
    return {name: groups[name] for name in HINTS if name in groups}


def check_model(model, X, Y, *, lam=None, max_labelings=5000, random_state=0):
    """Check every identity that a model must satisfy, on every sample.

    A dozen short sequences, trees or graphs show as much as a corpus. The solver runs last, on
    the first ten samples, and only if all else holds: on wrong marginals it proves nothing.

    Parameters
    ----------
    model : Model
    X, Y : inputs and labels as `model.bind` takes them
    lam : float, optional
        Strength of the regulariser for the checks of the solver; None means 1 / n.
    max_labelings : int
        Samples with at most so many labellings are also checked against all of them.
    random_state : int, numpy.random.Generator or None
        Seed of weights, directions and labellings.

    Returns
    -------
    Report
        Its ``checks`` have name, where, error and tolerance; it prints as a table.

    Raises
    ------
    AssertionError
        If an identity is broken: which one, where, by how much, and what to look at.
    """
    _check_arguments(Y, lam, max_labelings)
    problem, rng, report = model.bind(X, Y), np.random.default_rng(random_state), Report()
    for i in range(problem.n_samples):
        sample = _Sample(model, X, Y, problem, i, max_labelings, rng)
        _check_structure(report, sample, rng)
        points = [sample.point(scale, rng) for scale in (LARGE_SCORE / 10, LARGE_SCORE)]
        for point in points:
            _check_features(report, sample, point, rng)
            _check_oracle(report, sample, point, rng)
            _check_decoding(report, sample, point)
        _check_pair(report, sample, *points)
        if sample.complete:
            _check_enumeration(report, sample, *points)
    if not report.failures:
        _check_solver(report, model.bind(X[:N_TRAINED], Y[:N_TRAINED]), lam, rng)
    if report.failures:
        raise AssertionError(
            f"{model!r} is not right; start at the top:\n{report.explain()}\n\n{report}"
        )
    return report


def _check_arguments(Y, lam, max_labelings):
    if Y is None:
        raise ValueError("Y is None: expected the labels of every sample")
    if lam is not None and (not isinstance(lam, Real) or not 0 < lam < np.inf):
        raise ValueError(f"lam={lam!r}: expected a finite number > 0, or None for 1/n")
    if not isinstance(max_labelings, Integral) or max_labelings < 0:
        raise ValueError(f"max_labelings={max_labelings!r}: expected an integer >= 0")


class _Sample:
    """A sample with all its labellings if they are few, else with its own and random ones."""

    def __init__(self, model, X, Y, problem, i, max_labelings, rng):
        self.problem, self.i, self.where = problem, i, f"X[{i}]"
        self.model, self.X, self.scalar_labels = model, X, np.ndim(Y[i]) == 0
        self.alone = model.bind(X[i : i + 1], Y[i : i + 1])
        self.c, truth = problem.counting(i), problem.truth(i)
        self.n_terms = max(problem.gather(i, truth).sum(), 1.0)  # scores that a labelling adds up
        states = np.asarray(model.states(X[i]))
        self.log_labelings = np.log(states).sum()
        self.complete = self.log_labelings <= np.log(max(max_labelings, 0.5)) + ROUNDING
        if self.complete:
            labelings = np.array(list(product(*map(range, states))))
        else:
            others = rng.integers(states, size=(N_RANDOM_LABELINGS, states.size))
            labelings = np.vstack([np.atleast_1d(Y[i]), others])
        self.truths, self.slots = self.indicators(labelings)
        random_slots = rng.normal(size=(4, self.slots.shape[1]))
        self.units = np.linalg.norm([problem.features(i, m) for m in random_slots], axis=0)

    def indicators(self, labelings):
        """Return the region and slot marginals of labellings, as sparse rows."""
        n = len(labelings)
        copies = self.X[np.full(n, self.i)] if hasattr(self.X, "shape") else [self.X[self.i]] * n
        Y = labelings[:, 0] if self.scalar_labels else list(labelings)
        problem = self.model.bind(copies, Y)
        truths, slots = [], []
        for k in range(problem.n_samples):
            truths.append(sparse.csr_array(problem.truth(k)[None]))
            slots.append(sparse.csr_array(problem.gather(k, problem.truth(k))[None]))
        return sparse.vstack(truths, "csr"), sparse.vstack(slots, "csr")

    def point(self, scale, rng):
        """Return random weights whose largest score is scale, with all that follows.

        Weights are in units of their features, so that each template has a say in the scores.
        """
        w = rng.normal(size=self.problem.dim) / np.where(self.units > 0, self.units, 1.0)
        largest = np.abs(self.problem.score(self.i, w)).max()
        if largest > 0:
            w *= min(scale, LARGEST_TOTAL / self.n_terms) / largest
        return _Point(self, w)


class _Point:
    """Scores, marginals and their entropy at weights w."""

    def __init__(self, sample, w):
        self.w, self.theta = w, sample.problem.score(sample.i, w)
        self.mu, self.log_z = sample.problem.infer(sample.i, self.theta)
        self.m = sample.problem.gather(sample.i, self.mu)
        self.entropy = duality.entropy(sample.c, self.mu)
        # The magnitudes that meet in log Z, in the score of a labelling and in the entropy.
        self.size = 1 + sample.n_terms * np.abs(self.theta).max() + sample.log_labelings
        self.size += np.abs(sample.c) @ entr(self.mu.clip(0, 1))


def _check_structure(report, sample, rng):
    problem, i, where, c = sample.problem, sample.i, sample.where, sample.c
    name = "a sample alone = among others"
    w = rng.normal(size=problem.dim)
    report.equal(name, where, sample.alone.truth(0), problem.truth(i), 0.0)
    report.equal(name, where, sample.alone.counting(0), c, 0.0)
    theta = problem.score(i, w)
    report.equal(name, where, sample.alone.score(0, w), theta, np.linalg.norm(theta))
    counts, size = sample.truths @ c, (sample.truths @ np.abs(c)).max()
    name = "sum c truth(y) = number of parts"
    report.equal(name, where, counts, max(1.0, np.rint(counts[0])), size)
    _, log_z = problem.infer(i, np.zeros_like(theta))
    name = "log Z(0) = log(number of labellings)"
    report.equal(name, where, log_z, sample.log_labelings, 1 + sample.log_labelings)


def _check_features(report, sample, point, rng):
    problem, i = sample.problem, sample.i
    m = rng.normal(size=point.theta.size)
    features = problem.features(i, m)
    size = np.linalg.norm(point.theta) * np.linalg.norm(m)
    size += np.linalg.norm(point.w) * np.linalg.norm(sample.units)
    name = "<score(w), m> = <w, features(m)>"
    report.equal(name, sample.where, point.theta @ m, point.w @ features, size)
    size = m.size * (sample.units @ sample.units)  # features_norm2 may sum over all pairs of slots
    name = "features_norm2 = ||features||^2"
    report.equal(name, sample.where, problem.features_norm2(i, m), features @ features, size)


def _check_oracle(report, sample, point, rng):
    where, c, mu = sample.where, sample.c, point.mu
    report.at_most("0 <= mu <= 1", where, -mu, 0.0, 0.0)  # no rounding makes a sum negative
    report.at_most("0 <= mu <= 1", where, mu, 1.0, point.size)
    expected = point.log_z - point.theta @ point.m
    report.equal("H(mu) = log Z - <theta, m>", where, point.entropy, expected, point.size)
    log_p, log_mu = sample.slots @ point.theta - point.log_z, xlogy(c, mu)
    size = point.size + (sample.truths @ np.abs(log_mu)).max()
    report.equal("log p(y) = sum c log mu", where, sample.truths @ log_mu, log_p, size)
    for _ in range(N_DIRECTIONS):
        _check_gradient(report, sample, point, rng.uniform(-1, 1, point.theta.size))


def _check_gradient(report, sample, point, u):
    """Compare (8 f(h) - 8 f(-h) - f(2h) + f(-2h)) / 12h of f(t) = log Z(theta + t u) with <u, m>.

    All labellings have |<u, m(y)>| <= 1, so that the fifth derivative of f, their fifth cumulant,
    is at most 28 and the formula errs by less than h^4. Rounding each f by ROUNDING size = h^5 adds
    18 h^5 / 12h: in all 2.5 h^4 = 2.5 ROUNDING size / h.
    """
    u, h = u / sample.n_terms, (ROUNDING * point.size) ** 0.2
    steps = [sample.problem.infer(sample.i, point.theta + t * h * u)[1] for t in (1, -1, 2, -2)]
    slope = np.dot([8, -8, -1, 1], steps) / (12 * h)
    name = "grad log Z = marginals"
    report.equal(name, sample.where, slope, u @ point.m, 2.5 * point.size / h)


def _check_decoding(report, sample, point):
    problem, i, theta, name = sample.problem, sample.i, point.theta, "decode = argmax"
    _, slots = sample.indicators(problem.decode(i, theta)[None])
    (score,) = slots @ theta
    b = SHARP_SCORE / (np.abs(theta).max() or SHARP_SCORE)
    soft_maximum = problem.infer(i, b * theta)[1] / b
    report.at_most(name, sample.where, score, soft_maximum, point.size)
    report.at_most(name, sample.where, soft_maximum - sample.log_labelings / b, score, point.size)
    report.at_most(name, sample.where, sample.slots @ theta, score, point.size)


@np.errstate(all="ignore")  # a wrong model may give infinities, which fail
def _check_pair(report, sample, a, b):
    where, c = sample.where, sample.c
    for p, q in ((a, b), (b, a)):
        expected = q.log_z - p.entropy - q.theta @ p.m
        size = p.size + q.size + np.abs(c) @ np.abs(rel_entr(p.mu, q.mu))
        name = "KL(mu || nu) from counting numbers"
        report.equal(name, where, duality.kl(c, p.mu, q.mu), expected, size)
    path = [duality.entropy(c, (1 - t) * a.mu + t * b.mu) for t in np.linspace(0, 1, 5)]
    report.at_most("H is concave", where, np.diff(path, 2), 0.0, a.size + b.size)


@np.errstate(all="ignore")
def _check_enumeration(report, sample, a, b):
    where, c, truths = sample.where, sample.c, sample.truths
    joints = [softmax(sample.slots @ point.theta) for point in (a, b)]
    for point, p in zip((a, b), joints, strict=True):
        log_z = logsumexp(sample.slots @ point.theta)
        report.equal("log Z = logsumexp of all scores", where, point.log_z, log_z, point.size)
        report.equal("mu = sum p(y) truth(y)", where, point.mu, p @ truths, point.size)
        report.equal("H and KL of the joints", where, point.entropy, entr(p).sum(), point.size)
    size = a.size + b.size + np.abs(c) @ np.abs(rel_entr(a.mu, b.mu))
    divergence = rel_entr(*joints).sum()
    report.equal("H and KL of the joints", where, duality.kl(c, a.mu, b.mu), divergence, size)
    mixture, name = (a.mu + b.mu) / 2, "mixture = a joint with its marginals"
    log_mixture = xlogy(c, mixture)
    size = a.size + b.size + (truths @ np.abs(log_mixture)).max()
    p = np.exp(truths @ log_mixture)
    report.equal(name, where, p.sum(), 1.0, size)
    report.equal(name, where, p @ truths, mixture, size)
    report.equal(name, where, entr(p).sum(), duality.entropy(c, mixture), size)


def _check_solver(report, problem, lam, rng):
    n = problem.n_samples
    lam, where, solver = lam or 1 / n, f"X[:{n}]", SDCA(search_every=1, random_state=rng)
    state = solver.init(problem, lam)
    dual = duality.dual(problem, state.alpha, lam)
    for i in np.tile(np.arange(n), N_EPOCHS):
        state.step(i)
        before, dual = dual, duality.dual(problem, state.alpha, lam)
        _, size = _objective_sizes(problem, state, lam)
        report.at_most("SDCA never lowers the dual", f"X[{i}]", before, dual, size)
    w = duality.w_hat(problem, state.alpha, lam)
    w_size, size = _objective_sizes(problem, state, lam)
    report.equal("w = w_hat(alpha)", where, problem.unpack(state.w), w, w_size.max())
    gap = duality.gap(problem, w, state.alpha, lam)
    mean = duality.block_gaps(problem, w, state.alpha).mean()
    report.equal("P - D = mean block gap", where, gap, mean, size)
    result = solver.solve(problem, lam, tol=1e-3, max_epochs=20, warm_start=state)
    _, size = _objective_sizes(problem, result.state, lam)
    w, alpha, name = result.w, result.state.alpha, "certificate = duality.gap"
    report.equal(name, where, result.primal, duality.primal(problem, w, lam), size)
    report.equal(name, where, result.dual, duality.dual(problem, alpha, lam), size)
    report.equal(name, where, result.gap, duality.gap(problem, w, alpha, lam), size)


def _objective_sizes(problem, state, lam):
    """Return the magnitudes that meet in each weight, and in primal, dual and gap."""
    w, w_size, sizes = problem.unpack(state.w), np.zeros(problem.dim), []
    for i in range(problem.n_samples):
        c, mu, truth = problem.counting(i), state.alpha[problem.block(i)], problem.truth(i)
        for marginals in (mu, truth):
            w_size += np.abs(problem.features(i, problem.gather(i, marginals)))
        theta = problem.score(i, w)
        scores = problem.gather(i, truth).sum() * np.abs(theta).max()
        sizes.append(scores + abs(problem.infer(i, theta)[1]) + np.abs(c) @ entr(mu))
    w_size /= lam * problem.n_samples
    return w_size, 1 + lam * np.abs(w) @ w_size + max(sizes)
