"""`check_model` passes on a right model, and names the identity that a wrong one breaks."""

import dataclasses

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from scipy.special import logsumexp, softmax

from sdcastruct import datasets, duality, testing
from sdcastruct.models import ChainModel, Model, MulticlassModel, TreeModel
from sdcastruct.solvers import SDCA
from sdcastruct.testing import check_model

K = 3
MODEL = ChainModel(n_states=K, n_features=2)
ENUMERATION = (
    "log Z = logsumexp of all scores",
    "mu = sum p(y) truth(y)",
    "H and KL of the joints",
    "mixture = a joint with its marginals",
)


def samples(lengths, scale=1.0):
    rng = np.random.default_rng(0)
    X = [scale * rng.normal(size=(length, 2)) for length in lengths]
    return X, [rng.integers(K, size=length) for length in lengths]


class MutantProblem:
    """A problem with some methods replaced by ``change(method, i, *arguments)``."""

    def __init__(self, problem, changes):
        self.problem, self.changes = problem, changes

    def __getattr__(self, name):
        method = getattr(self.problem, name)
        if name not in self.changes:
            return method
        return lambda i, *arguments: self.changes[name](method, i, *arguments)


class MutantModel:
    """A chain model that binds to mutant problems; other attributes are the chain's."""

    def __init__(self, **changes):
        self.changes = changes

    def __getattr__(self, name):
        return getattr(MODEL, name)

    def bind(self, X, Y=None):
        return MutantProblem(MODEL.bind(X, Y), self.changes)


def broken_identities(model, scale=1.0, **options):
    """Return the identities that the model breaks, and the message that says so."""
    with pytest.raises(AssertionError) as caught:
        check_model(model, *samples([2, 3, 4], scale), **options)
    return named_identities(caught), str(caught.value)


def named_identities(caught):
    """Return the identities that the message of an error names."""
    lines = str(caught.value).split("\n\n")[0].splitlines()[1:]
    return {line.split(": off by")[0] for line in lines}


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_chains_pass(scale):
    X, Y = samples([1, 2, 3, 6], scale)
    report = check_model(MODEL, X, Y, random_state=1)
    assert not report.failures
    assert {check.name for check in report.checks} == set(testing.HINTS)
    assert {check.where for check in report.checks} == {"X[0]", "X[1]", "X[2]", "X[3]", "X[:4]"}


@pytest.mark.parametrize(("n_states", "n_features"), [(1, 0), (1, 2), (4, 0)])
def test_degenerate_chains_pass(n_states, n_features):
    X = [np.zeros((length, n_features)) for length in (1, 4)]
    Y = [np.zeros(length, int) for length in (1, 4)]
    assert not check_model(ChainModel(n_states, n_features), X, Y).failures


def test_sparse_and_long_chains_pass():
    X, Y = samples([70, 300])
    names = {check.name for check in check_model(MODEL, list(map(csr_array, X)), Y).checks}
    assert names == set(testing.HINTS) - set(ENUMERATION)


@pytest.mark.parametrize("container", [np.asarray, csr_array, csr_matrix])
def test_rows_of_a_matrix_are_samples_too(container):
    X, Y = np.random.default_rng(0).normal(size=(12, 3)), np.arange(12) % 4
    report = check_model(MulticlassModel(n_states=4, n_features=3), container(X), Y)
    assert {check.name for check in report.checks} == set(testing.HINTS)


def test_forests_of_several_parts_pass():
    (nodes,), Y = samples([6])
    X = [(nodes, np.array(edges).reshape(-1, 2)) for edges in ([(1, 0), (1, 2), (5, 1)], [])]
    assert not check_model(TreeModel(n_states=K, n_features=2), X, Y * 2).failures


def test_letters_pass():
    letters = datasets.load_ocr()
    model = ChainModel(n_states=26, n_features=128)
    assert not check_model(model, letters.X[:3], letters.y[:3], lam=0.01).failures


def test_max_labelings_limits_the_enumeration():
    X, Y = samples([2, 3])
    for limit, expected in ((8, set()), (9, {"X[0]"}), (26, {"X[0]"}), (27, {"X[0]", "X[1]"})):
        checks = check_model(MODEL, X, Y, max_labelings=limit).checks
        assert {check.where for check in checks if check.name in ENUMERATION} == expected


def test_same_seed_same_report():
    X, Y = samples([2, 3])
    first, second = (check_model(MODEL, X, Y, random_state=7).checks for _ in range(2))
    assert first == second
    assert first != check_model(MODEL, X, Y, random_state=8).checks


def test_report_prints_one_line_per_identity():
    lines = str(check_model(MODEL, *samples([2, 3]))).splitlines()
    assert lines[0].split() == ["identity", "checks", "worst", "on", "error", "tolerance"]
    assert [line.split("  ")[0] for line in lines[1:]] == list(testing.HINTS)
    assert all(line.endswith("  ok") for line in lines[1:])


def scaled_marginals(infer, i, theta):
    mu, log_z = infer(i, theta)
    return mu * (1 - 1e-6), log_z


def swapped_marginals(infer, i, theta):
    mu, log_z = infer(i, theta)
    mu[[0, 1]] = mu[[1, 0]]
    return mu, log_z


def negative_marginals(infer, i, theta):
    mu, log_z = infer(i, theta)
    mu[-1] = -1e-20
    return mu, log_z


def undefined_marginals(infer, i, theta):
    mu, log_z = infer(i, theta)
    return np.full_like(mu, np.nan), log_z


def shifted_log_z(infer, i, theta):
    mu, log_z = infer(i, theta)
    return mu, log_z + 1e-6


def clipped_infer(infer, i, theta):
    return infer(i, np.clip(theta, -1000, 1000))


def wrong_counting(counting, i):
    c = counting(i)
    c[0] += 1
    return c


def mutual_information(counting, i):
    """Count nodes minus pairs: still one in all for every labelling, but no entropy."""
    n_edges = np.count_nonzero(counting(i) > 0) // (K * K)
    return np.repeat([1.0, -1.0], [(n_edges + 1) * K, n_edges * K * K])


def suboptimal(decode, i, theta):
    y = decode(i, theta)
    y[-1] = (y[-1] + 1) % K
    return y


def transposed(features, i, m):
    result = features(i, m)
    result[-K * K :] = result[-K * K :].reshape(K, K).T.ravel()
    return result


def misplaced(truth, i):
    return np.roll(truth(i), 1)


def misplaced_in_a_batch(truth, i):
    """Place the truth of the middle sample of three as that of its left neighbour."""
    mu = truth(i)
    if truth.__self__.n_samples == 3 and i == 1:
        mu[:] = np.resize(truth(0), mu.size)
    return mu


def reversed_slots(gather, i, mu):
    return gather(i, mu)[::-1].copy()


def no_transitions(score, i, w):
    return np.concatenate([score(i, w)[: -K * K], np.zeros(K * K)])


def no_transition_features(features, i, m):
    return features(i, np.concatenate([m[: -K * K], np.zeros(K * K)]))


def nodes_only(counting, i):
    """Right for p(y | x; w) without transitions, but wrong for mixtures: pairs are regions too."""
    n_edges = np.count_nonzero(counting(i) > 0) // (K * K)
    return np.repeat([1.0, 0.0], [(n_edges + 1) * K, n_edges * K * K])


ADJOINT = "<score(w), m> = <w, features(m)>"
NORM2 = "features_norm2 = ||features||^2"
COUNTING = "sum c truth(y) = number of parts"
GRADIENT = "grad log Z = marginals"
ENTROPY = "H(mu) = log Z - <theta, m>"
DIVERGENCE = "KL(mu || nu) from counting numbers"
JOINT = "log p(y) = sum c log mu"
DECODE = "decode = argmax"
LOG_Z, MARGINALS, JOINTS, MIXTURE = ENUMERATION

# What is replaced, and all identities that this breaks.
MUTANTS = {
    "marginals scaled": (
        {"infer": scaled_marginals},
        {GRADIENT, ENTROPY, DIVERGENCE, JOINT, MARGINALS, JOINTS, MIXTURE},
    ),
    "marginals swapped": (
        {"infer": swapped_marginals},
        {GRADIENT, ENTROPY, DIVERGENCE, MARGINALS, MIXTURE},
    ),
    "marginals negative": (
        {"infer": negative_marginals},
        {
            *("0 <= mu <= 1", "H is concave", GRADIENT, ENTROPY, DIVERGENCE, JOINT),
            *(MARGINALS, JOINTS, MIXTURE),
        },
    ),
    "log_z shifted": (
        {"infer": shifted_log_z},
        {"log Z(0) = log(number of labellings)", ENTROPY, DIVERGENCE, JOINT, LOG_Z},
    ),
    "infer clips large scores": ({"infer": clipped_infer}, {DECODE}),
    "one counting number wrong": (
        {"counting": wrong_counting},
        {COUNTING, ENTROPY, DIVERGENCE, JOINT, JOINTS, MIXTURE},
    ),
    "counting numbers of no entropy": (
        {"counting": mutual_information},
        {"H is concave", ENTROPY, DIVERGENCE, JOINT, JOINTS, MIXTURE},
    ),
    "counting numbers of no junction tree": (
        {
            "counting": nodes_only,
            "score": no_transitions,
            "features": no_transition_features,
            "features_norm2": no_transition_features,
        },
        {MIXTURE},
    ),
    "decode suboptimal": ({"decode": suboptimal}, {DECODE}),
    "features not adjoint": ({"features": transposed}, {ADJOINT}),
    "features_norm2 scaled": (
        {"features_norm2": lambda norm2, i, m: norm2(i, m) * (1 + 1e-6)},
        {NORM2},
    ),
    "scores reversed": ({"score": lambda score, i, w: score(i, w)[::-1].copy()}, {ADJOINT}),
    "truth misplaced": (
        {"truth": misplaced},
        {COUNTING, JOINT, DECODE, LOG_Z, MARGINALS, JOINTS, MIXTURE},
    ),
    "truth of another sample": ({"truth": misplaced_in_a_batch}, {"a sample alone = among others"}),
    "slots reversed": (
        {"gather": reversed_slots},
        {GRADIENT, ENTROPY, DIVERGENCE, JOINT, DECODE, LOG_Z, MARGINALS, JOINTS},
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_break_the_identities_they_should(mutant):
    changes, expected = MUTANTS[mutant]
    broken, _ = broken_identities(MutantModel(**changes))
    assert broken == expected


@pytest.mark.parametrize(
    "mutant", sorted(MUTANTS.keys() - {"counting numbers of no junction tree"})
)
def test_mutants_are_found_without_enumeration(mutant):
    changes, expected = MUTANTS[mutant]
    broken, _ = broken_identities(MutantModel(**changes), max_labelings=0)
    assert broken == expected - set(ENUMERATION)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_every_template_counts_whatever_the_size_of_its_attributes(scale):
    def decode_nodes(decode, i, theta):
        return decode(i, np.concatenate([theta[: -K * K], np.zeros(K * K)]))

    def decode_transitions(decode, i, theta):
        return decode(i, np.concatenate([np.zeros(theta.size - K * K), theta[-K * K :]]))

    for decode in (decode_nodes, decode_transitions):
        assert broken_identities(MutantModel(decode=decode), scale)[0] == {DECODE}


def test_marginals_that_are_not_numbers_fail():
    broken, _ = broken_identities(MutantModel(infer=undefined_marginals))
    assert {"0 <= mu <= 1", GRADIENT, ENTROPY} <= broken


def test_message_says_what_broke_where_by_how_much_and_why():
    shift = {"infer": lambda infer, i, theta: (infer(i, theta)[0], infer(i, theta)[1] + (i == 2))}
    _, message = broken_identities(MutantModel(**shift), max_labelings=0)
    assert f"{ENTROPY}: off by 1 on X[2], tolerance " in message
    assert "(2 checks failed). Look here: a counting number is wrong, or log_z does" in message
    assert "FAILED" in message
    assert "SDCA" not in message


def test_exceptions_of_the_model_propagate():
    def fail(infer, i, theta):
        raise ZeroDivisionError("in infer")

    with pytest.raises(ZeroDivisionError, match="in infer"):
        check_model(MutantModel(infer=fail), *samples([2]))


class Triangle(Model):
    """Three nodes of two states and their three edges, in Python, by enumeration.

    The regions are the edges and the whole triangle; Bethe's are the edges and the nodes.
    """

    edges = ((0, 1), (0, 2), (1, 2))
    labelings = np.indices((2, 2, 2)).reshape(3, -1).T

    def __init__(self, bethe=False):
        self.bethe = bethe

    def templates(self):
        return {"edges": (2, 4)}

    def slots(self, x):
        return {"edges": x}

    def regions(self, x):
        others = np.full(6 if self.bethe else 8, -1)
        counting = np.repeat([1.0, -1.0] if self.bethe else [0.0, 1.0], [12, others.size])
        return counting, np.concatenate([np.arange(12), others])

    def states(self, x):
        return np.full(3, 2)

    def truth(self, x, y):
        edges = [np.eye(4)[2 * y[u] + y[v]] for u, v in self.edges]
        others = np.eye(2)[y].ravel() if self.bethe else np.eye(8)[4 * y[0] + 2 * y[1] + y[2]]
        return np.concatenate([*edges, others])

    def infer(self, x, theta):
        truths = np.array([self.truth(x, y) for y in self.labelings])
        scores = truths[:, :12] @ theta
        return softmax(scores) @ truths, logsumexp(scores)

    def argmax(self, x, theta):
        return max(self.labelings, key=lambda y: self.truth(x, y)[:12] @ theta)


def test_a_loop_needs_a_junction_tree():
    rng = np.random.default_rng(0)
    X, Y = [rng.normal(size=(3, 2)) for _ in range(3)], rng.integers(2, size=(3, 3))
    assert not check_model(Triangle(), X, Y).failures
    with pytest.raises(
        AssertionError, match=r"(?s)bethe=True.*a counting number is wrong"
    ) as caught:
        check_model(Triangle(bethe=True), X, Y)
    broken = {COUNTING, ENTROPY, DIVERGENCE, JOINT, JOINTS, MIXTURE}
    assert named_identities(caught) == broken


class Lowering:
    """A state whose steps go back to where the first one started from."""

    def __init__(self, state):
        self.state, self.start = state, state.alpha.copy()

    def __getattr__(self, name):
        return getattr(self.state, name)

    def step(self, i):
        if self.state.n_updates > 0:
            self.state.alpha[:] = self.start
        return self.state.step(i) if self.state.n_updates == 0 else 0.0


class MutantSolver(SDCA):
    """SDCA that goes back, or whose weights or certificate are wrong."""

    fault = None

    def init(self, problem, lam, warm_start=None):
        state = super().init(problem, lam, getattr(warm_start, "state", warm_start))
        if self.fault == "weights":
            state.w[0] += 1e-3
        return Lowering(state) if self.fault == "lowers" and warm_start is None else state

    def solve(self, *arguments, **options):
        result = super().solve(*arguments, **options)
        if self.fault != "certificate":
            return result
        return dataclasses.replace(result, gap=result.gap / 2)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("lowers", {"SDCA never lowers the dual", "w = w_hat(alpha)"}),
        ("weights", {"w = w_hat(alpha)"}),
        ("certificate", {"certificate = duality.gap"}),
    ],
)
def test_faults_of_the_solver_are_found(monkeypatch, fault, expected):
    monkeypatch.setattr(MutantSolver, "fault", fault)
    monkeypatch.setattr(testing, "SDCA", MutantSolver)
    assert broken_identities(MODEL)[0] == expected


def test_wrong_block_gaps_are_found(monkeypatch):
    block_gaps = duality.block_gaps
    monkeypatch.setattr(duality, "block_gaps", lambda *arguments: 1.001 * block_gaps(*arguments))
    assert broken_identities(MODEL)[0] == {"P - D = mean block gap"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Y": None}, "Y is None"),
        ({"X": [], "Y": []}, "X is empty"),
        ({"lam": 0.0}, "lam=0.0: expected a finite number > 0"),
        ({"lam": "1"}, "lam='1'"),
        ({"max_labelings": -1}, "max_labelings=-1: expected an integer >= 0"),
        ({"max_labelings": 1.5}, "max_labelings=1.5"),
    ],
)
def test_bad_arguments(options, message):
    X, Y = samples([2])
    with pytest.raises(ValueError, match=message):
        check_model(MODEL, **{"X": X, "Y": Y, **options})
