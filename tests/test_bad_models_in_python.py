"""What a model written in Python returns is checked, and errors say what, where and what else."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from sdcastruct.models import Model
from sdcastruct.solvers import SDCA

NAN, INF = float("nan"), float("inf")


class Choice(Model):
    """One node with two states, in Python; the tests replace what a method returns."""

    def __init__(self, **returned):
        self.returned = returned

    def __getattribute__(self, name):
        returned = object.__getattribute__(self, "__dict__").get("returned", {})
        if name in returned:
            return lambda *arguments: returned[name]
        return super().__getattribute__(name)

    def templates(self):
        return {"node": (3, 2)}

    def slots(self, x):
        return {"node": [x]}

    def regions(self, x):
        return [1.0, 1.0], [0, 1]

    def states(self, x):
        return [2]

    def infer(self, x, theta):
        return softmax(theta), logsumexp(theta)

    def argmax(self, x, theta):
        return np.array([theta.argmax()])

    def truth(self, x, y):
        return np.eye(2)[y[0]]


CHOICES = [[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]]


def test_a_model_in_python_is_accepted():
    problem = Choice().bind(CHOICES, [[0], [1]])
    assert SDCA(random_state=0).solve(problem, lam=1.0).converged
    assert [y.tolist() for y in Choice().decode(CHOICES, np.arange(6.0))] == [[1], [1]]


@pytest.mark.parametrize(
    ("method", "returned", "error", "message"),
    [
        ("templates", 3, TypeError, r"templates\(\) returned 3: expected \{name: \(number of"),
        ("templates", {"node": 3}, TypeError, r"templates\(\) returned .*3.*: expected \{name"),
        ("templates", {"node": (3, 0)}, ValueError, r"templates\(\)\['node'\]\[1\]=0: expected"),
        ("templates", {"node": (3.5, 2)}, TypeError, r"templates\(\)\['node'\]\[0\]=3.5: expected"),
        ("slots", None, TypeError, r"slots\(X\[0\]\) is NoneType: expected .*\['node'\]"),
        ("slots", {"edge": [[1.0]]}, ValueError, r"slots\(X\[0\]\) names 'edge': .*\['node'\]"),
        ("slots", {}, ValueError, r"slots\(X\[0\]\) is empty: expected at least one slot"),
        ("slots", {"node": [[1.0]]}, ValueError, r"slots\(X\[0\]\)\['node'\] has 1 columns, .* 3"),
        ("slots", {"node": [1.0, 2, 3]}, ValueError, r"\['node'\] has shape \(3,\), .*n_slots, 3"),
        ("slots", {"node": [[1.0, NAN, 0]]}, ValueError, r"\['node'\] contains nan: .*finite"),
        ("regions", None, TypeError, r"regions\(X\[0\]\) is NoneType: expected a tuple \(counting"),
        ("regions", ([1.0, 1.0],), TypeError, r"regions\(X\[0\]\) is tuple: expected a tuple \("),
        ("regions", ([1.0], [0, 1]), ValueError, r"regions\(X\[0\]\) has shapes \(1,\) and \(2,\)"),
        ("regions", ([], []), ValueError, r"regions\(X\[0\]\) has shapes \(0,\) and \(0,\): exp"),
        ("regions", ([1, 1], [0, 2]), ValueError, r"\[1\]\[1\] is 2: expected .* from 0 to 1, or"),
        ("regions", ([1, 1], [-2, 0]), ValueError, r"\[1\]\[0\] is -2: expected .* from 0 to 1"),
        ("regions", ([1, 1], [0.0, 1.0]), TypeError, r"\[1\] has dtype float64, expected integers"),
        ("regions", ([NAN, 1], [0, 1]), ValueError, r"regions\(X\[0\]\)\[0\] is not finite"),
        ("states", [2.0], ValueError, r"states\(X\[0\]\) has shape \(1,\) of float64: expected"),
        ("states", 2, ValueError, r"states\(X\[0\]\) has shape \(\) of int64: expected a vector"),
        ("states", [], ValueError, r"states\(X\[0\]\) has shape \(0,\) .*: expected a vector"),
        ("states", [0], ValueError, r"states\(X\[0\]\)\[0\] is 0: expected at least one state"),
        ("truth", [1, 0, 0], ValueError, r"truth\(X\[0\], Y\[0\]\) has shape \(3,\), expected \(2"),
        ("truth", [0.5, 0.5], ValueError, r"truth\(X\[0\], Y\[0\]\)\[0\] is 0.5: expected 0 or 1"),
    ],
)
def test_what_a_model_says_about_a_sample(method, returned, error, message):
    with pytest.raises(error, match=message):
        Choice(**{method: returned}).bind(CHOICES, [[0], [1]])


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (([1.0], 0.0), ValueError, r"marginals of shape \(1,\), expected \(2,\)"),
        (([[0.5, 0.5]], 0.0), ValueError, r"marginals of shape \(1, 2\), expected \(2,\)"),
        (([0.5, NAN], 0.0), ValueError, "numbers that are not finite"),
        (([0.5, 0.5], INF), ValueError, "numbers that are not finite"),
        (([1.25, -0.25], 0.0), ValueError, r"the negative marginal -0.25"),
        (None, TypeError, r"NoneType, expected a tuple \(mu, log_z\)"),
        (np.array([0.5, 0.5]), TypeError, r"ndarray, expected a tuple \(mu, log_z\)"),
        (([0.5, 0.5], [0.0, 1.0]), TypeError, r"expected a tuple \(mu, log_z\)"),
    ],
)
def test_what_a_model_infers(returned, error, message):
    model = Choice(infer=returned)
    problem = model.bind(CHOICES, [[0], [1]])
    for call in (
        lambda: problem.infer(0, np.zeros(2)),
        lambda: model.marginals(CHOICES, np.zeros(6)),
        lambda: SDCA().solve(problem),
    ):
        with pytest.raises(error, match=r"infer\(X\[0\], theta\) returned .*" + message):
            call()


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([0, 0], r"argmax\(X\[0\], theta\) returned shape \(2,\) of int64, expected \(1,\) integ"),
        (0, r"argmax\(X\[0\], theta\) returned shape \(\) of int64, expected \(1,\) integers"),
        ([0.0], r"argmax\(X\[0\], theta\) returned shape \(1,\) of float64, expected \(1,\) integ"),
        (None, r"argmax\(X\[0\], theta\) returned shape \(\) of object, expected \(1,\) integers"),
        ([2], r"argmax\(X\[0\], theta\)\[0\] is 2, expected a label from 0 to 1"),
        ([-1], r"argmax\(X\[0\], theta\)\[0\] is -1, expected a label from 0 to 1"),
    ],
)
def test_what_a_model_decodes(returned, message):
    with pytest.raises(ValueError, match=message):
        Choice(argmax=returned).decode(CHOICES, np.zeros(6))


@pytest.mark.parametrize("method", ["infer", "argmax"])
def test_errors_inside_a_model_come_through(method):
    class Broken(Choice):
        def infer(self, x, theta):
            raise ZeroDivisionError("in infer")

        def argmax(self, x, theta):
            raise ZeroDivisionError("in argmax")

    predict = Broken().marginals if method == "infer" else Broken().decode
    with pytest.raises(ZeroDivisionError, match=f"in {method}"):
        predict(CHOICES, np.zeros(6))


@pytest.mark.parametrize(
    "method", ["templates", "slots", "regions", "infer", "argmax", "truth", "states"]
)
def test_methods_that_are_missing_are_named(method):
    methods = {name: value for name, value in vars(Choice).items() if name != method}
    methods.pop("__getattribute__")
    if method == "states":  # abstract
        with pytest.raises(TypeError, match="states"):
            type("Incomplete", (Model,), methods)()
        return
    model = type("Incomplete", (Model,), methods)()
    with pytest.raises(NotImplementedError, match=f"Incomplete does not implement {method}"):
        SDCA().solve(model.bind(CHOICES, [[0], [1]])).w @ model.decode(CHOICES, np.zeros(6))
