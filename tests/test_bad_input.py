"""Bad input is refused before training starts, by an error that says what, where and what else."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from scipy.sparse import csr_array

from sdcastruct.models import ChainModel
from sdcastruct.samplers import Gap, GapImportance, Importance, MaxGap, Uniform
from sdcastruct.solvers import LBFGS, OEG, SAG, SDCA

NAN, INF = float("nan"), float("inf")


@pytest.fixture
def model():
    return ChainModel(n_states=3, n_features=2)


@pytest.fixture
def problem(model):
    return model.bind([np.ones((2, 2)), np.zeros((3, 2))], [[0, 1], [2, 1, 0]])


def samples_with(x):
    """Return three samples, the last of which is x, with labels for four rows."""
    return [np.ones((2, 2)), np.ones((1, 2)), x], [[0, 1], [2], [0, 1, 2, 0]]


def inputs(value, sparse):
    """Return a (4, 2) input with one bad value."""
    x = np.ones((4, 2))
    x[2, 1] = value
    return csr_array(x) if sparse else x


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_attributes_must_be_finite(model, value, sparse):
    with pytest.raises(ValueError, match=rf"X\[2\].*{value}.*finite"):
        model.bind(*samples_with(inputs(value, sparse)))


@pytest.mark.parametrize("convert", [np.asarray, csr_array])
@pytest.mark.parametrize("n_columns", [1, 3])
def test_columns_must_match(model, convert, n_columns):
    with pytest.raises(
        ValueError, match=rf"X\[2\] has {n_columns} columns?.*expected 2.*n_features"
    ):
        model.bind(*samples_with(convert(np.ones((4, n_columns)))))


@pytest.mark.parametrize("x", [np.ones(2), np.ones((4, 2, 1)), np.float64(1)])
def test_inputs_must_be_tables(model, x):
    with pytest.raises(ValueError, match=r"X\[2\] has shape .*expected \(n_nodes, 2\)"):
        model.bind(*samples_with(x))


@pytest.mark.parametrize("dtype", [str, object, complex])
def test_attributes_must_be_real_numbers(model, dtype):
    with pytest.raises(TypeError, match=r"X\[2\] has dtype .*expected real numbers"):
        model.bind(*samples_with(np.ones((4, 2)).astype(dtype)))


def test_ragged_rows(model):
    with pytest.raises(ValueError, match=r"X\[2\]"):
        model.bind(*samples_with([[1.0, 2.0], [3.0], [4.0, 5.0], [6.0, 7.0]]))


@pytest.mark.parametrize("empty", [np.ones((0, 2)), csr_array((0, 2))])
def test_sequences_must_not_be_empty(model, empty):
    X, Y = [np.ones((2, 2)), empty], [[0, 1], []]
    with pytest.raises(ValueError, match=r"X\[1\] has no rows.*at least one"):
        model.bind(X, Y)


def test_there_must_be_samples(model):
    with pytest.raises(ValueError, match=r"X is empty.*at least one sample"):
        model.bind([], [])


@pytest.mark.parametrize(
    ("X", "Y", "name"), [(None, [[0]], "X"), (3, [[0]], "X"), ([[[1, 1]]], 3, "Y")]
)
def test_samples_must_be_lists(model, X, Y, name):
    with pytest.raises(TypeError, match=rf"\b{name}\b"):
        model.bind(X, Y)


@pytest.mark.parametrize("Y", [[[0]], [[0], [1], [2]]])
def test_numbers_of_samples_must_match(model, Y):
    with pytest.raises(ValueError, match=f"Y has {len(Y)} samples? but X has 2"):
        model.bind([np.ones((1, 2))] * 2, Y)


@pytest.mark.parametrize("y", [[0, 1, 2], [0, 1, 2, 0, 1], []])
def test_numbers_of_labels_must_match(model, y):
    X, Y = samples_with(np.ones((4, 2)))
    with pytest.raises(ValueError, match=rf"Y\[2\] has {len(y)} labels.* but X\[2\] has 4 nodes"):
        model.bind(X, [*Y[:2], y])


@pytest.mark.parametrize("label", [-1, 3, 100])
def test_labels_must_be_in_range(model, label):
    X, Y = samples_with(np.ones((4, 2)))
    with pytest.raises(ValueError, match=rf"Y\[2\]\[3\] is {label}, expected .*0 to 2"):
        model.bind(X, [*Y[:2], [0, 1, 2, label]])


@pytest.mark.parametrize(
    "y", [[0.0, 1.0, 2.0, 0.0], ["a", "b", "c", "a"], [True] * 4, [None] * 4, [0, 1, 2, NAN]]
)
def test_labels_must_be_integers(model, y):
    X, Y = samples_with(np.ones((4, 2)))
    with pytest.raises(TypeError, match=r"Y\[2\] has dtype .*expected integers"):
        model.bind(X, [*Y[:2], y])


@pytest.mark.parametrize("y", [3, np.zeros((4, 1), dtype=int)])
def test_labels_must_be_vectors(model, y):
    X, Y = samples_with(np.ones((4, 2)))
    with pytest.raises(ValueError, match=r"Y\[2\] has shape .* X\[2\] has 4 nodes"):
        model.bind(X, [*Y[:2], y])


@pytest.mark.parametrize("name", ["n_states", "n_features"])
@pytest.mark.parametrize(("value", "error"), [(-1, ValueError), (1.5, TypeError), ("2", TypeError)])
def test_sizes_of_a_model(name, value, error):
    sizes = {"n_states": 2, "n_features": 2, name: value}
    with pytest.raises(error, match=f"{name}=.*{value}.*expected"):
        ChainModel(**sizes)


def test_a_model_needs_a_state():
    with pytest.raises(ValueError, match=r"n_states=0: expected at least 1"):
        ChainModel(n_states=0, n_features=2)


@pytest.mark.parametrize("method", ["decode", "marginals"])
def test_weights_for_prediction(model, method):
    predict = getattr(model, method)
    with pytest.raises(ValueError, match=rf"w has shape \(3,\), expected \({model.dim},\)"):
        predict([np.ones((1, 2))], np.zeros(3))
    w = np.zeros(model.dim)
    w[4] = NAN
    with pytest.raises(ValueError, match=r"w\[4\].*not finite"):
        predict([np.ones((1, 2))], w)
    with pytest.raises(ValueError, match=r"X\[1\] has 3 columns, expected 2"):
        predict([np.ones((1, 2)), np.ones((1, 3))], np.zeros(model.dim))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("lam", 0, "> 0"),
        ("lam", -1.0, "> 0"),
        ("lam", NAN, "> 0"),
        ("lam", INF, "finite"),
        ("lam", "small", "number"),
        ("tol", -1e-9, ">= 0"),
        ("tol", NAN, ">= 0"),
        ("tol", "small", "number"),
        ("max_epochs", -1, "integer >= 0"),
        ("max_epochs", 1.5, "integer >= 0"),
        ("certify_every", 0, "integer >= 1"),
        ("certify_every", 2.5, "integer >= 1"),
        ("callback", 3, "callable"),
        ("n_jobs", 0, ""),
        ("n_jobs", "all", ""),
        ("warm_start", 3, "state"),
    ],
)
def test_arguments_of_solve(problem, name, value, expected):
    with pytest.raises((ValueError, TypeError), match=f"{name}={value!r}: expected.*{expected}"):
        SDCA().solve(problem, **{name: value})


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("subprecision", 0.0, "above 0"),
        ("subprecision", NAN, "above 0"),
        ("max_newton", 0, ">= 1"),
        ("max_newton", 1.5, "integer"),
        ("start", "newton", "'quadratic', 'previous'"),
        ("start", 0.0, "above 0"),
        ("start", 1.5, "at most 1"),
        ("step_size", "large", "'safe'"),
        ("step_size", 0, "above 0"),
        ("step_size", 1.5, "at most 1"),
        ("epsilon", 0.0, "above 0"),
        ("epsilon", 1.5, "at most 1"),
        ("epsilon", NAN, "above 0"),
        ("sampler", "gap", "Sampler"),
        ("sampler", Gap, "Sampler"),
        ("random_state", "seed", ""),
        ("random_state", -1, ""),
    ],
)
def test_options_of_sdca(problem, name, value, expected):
    with pytest.raises((ValueError, TypeError), match=f"{name}={value!r}: expected.*{expected}"):
        SDCA(**{name: value}).solve(problem)


@pytest.mark.parametrize(
    ("solver", "name", "value", "expected"),
    [
        (SDCA, "search_every", 0, ">= 1"),
        (SDCA, "search_every", 1.5, "integer"),
        (OEG, "epsilon", 0.0, "above 0"),
        (OEG, "epsilon", 1.5, "at most 1"),
        (OEG, "epsilon", NAN, "above 0"),
        (OEG, "sampler", "gap", "Sampler"),
        (OEG, "sampler", Gap, "Sampler"),
        (OEG, "random_state", -1, ""),
        (SAG, "sampling", "gap", "'nus' or 'uniform'"),
        (SAG, "sampling", None, "'nus' or 'uniform'"),
        (SAG, "line_search", "never", "'skip' or 'always'"),
        (SAG, "line_search", True, "'skip' or 'always'"),
        (SAG, "random_state", "seed", ""),
        (LBFGS, "memory", 0, ">= 1"),
        (LBFGS, "memory", 2.5, "integer"),
        (LBFGS, "memory", "long", "integer"),
    ],
)
def test_options_of_solvers(solver, name, value, expected):
    with pytest.raises((ValueError, TypeError), match=f"{name}={value!r}: expected.*{expected}"):
        solver(**{name: value})


@pytest.mark.parametrize("solver", [OEG, SAG, LBFGS])
def test_arguments_of_other_solvers(problem, model, solver):
    for name, value in (("lam", 0), ("tol", -1.0), ("n_jobs", 0), ("warm_start", 3), ("resume", 3)):
        with pytest.raises((ValueError, TypeError), match=f"{name}={value!r}: expected"):
            solver().solve(problem, **{name: value})
    for w, what in ((np.zeros(3), r"shape \(3,\)"), (np.full(model.dim, NAN), "not finite")):
        with pytest.raises(ValueError, match=f"warm_start has .*{what}"):
            solver().solve(problem, warm_start=w)
    with pytest.raises(ValueError, match=r"problem=.*expected .*labels"):
        solver().solve(model.bind([np.ones((2, 2))]))
    for lam in (0.0, -1.0, NAN, INF):
        with pytest.raises(ValueError, match=f"lam={lam}: expected"):
            solver().init(problem, lam)
    with pytest.raises(TypeError, match="colour"):
        solver(colour="red")


@pytest.mark.parametrize("kind", [Importance, Gap, GapImportance, MaxGap])
@pytest.mark.parametrize("value", [-0.1, 1.1, NAN, "most", None])
def test_non_uniformity(kind, value):
    with pytest.raises(ValueError, match=rf"non_uniformity={value!r}: expected .*\[0, 1\]"):
        kind(non_uniformity=value)


@pytest.mark.parametrize("kind", [Uniform, Importance, Gap, GapImportance, MaxGap])
@pytest.mark.parametrize("value", [0, -1, 1.5, "often"])
def test_refresh_every(kind, value):
    with pytest.raises(ValueError, match=rf"refresh_every={value!r}: expected"):
        kind(refresh_every=value)


def test_unknown_options(problem):
    for call in (
        SDCA,
        Gap,
        Uniform,
        ChainModel,
        lambda **options: SDCA().solve(problem, **options),
    ):
        with pytest.raises(TypeError, match="colour"):
            call(colour="red")


@pytest.mark.parametrize("what", [None, [1, 2], "problem"])
def test_problem_must_be_a_problem(what):
    with pytest.raises((ValueError, TypeError), match=r"problem=.*expected"):
        SDCA().solve(what)


def test_problem_must_have_labels(model):
    with pytest.raises(ValueError, match=r"problem=.*expected .*labels"):
        SDCA().solve(model.bind([np.ones((2, 2))]))


def test_warm_start_must_fit(model, problem):
    other = SDCA().solve(model.bind([np.ones((4, 2))], [[0, 1, 2, 0]]))
    with pytest.raises(ValueError, match=r"warm_start has .* 1 samples.*expected 2 samples"):
        SDCA().solve(problem, warm_start=other)


def test_nothing_reads_outside_of_its_memory(tmp_path):
    # In a process of its own: where a check is missing, the interpreter would go down.
    script = """
        import numpy as np
        from sdcastruct.models import ChainModel
        from sdcastruct.samplers import Gap, MaxGap
        from sdcastruct.problem import batch
        from sdcastruct.solvers import SDCA

        model = ChainModel(n_states=2, n_features=1)
        bare = model.bind([np.ones((3, 1))])
        bound = model.bind([np.ones((3, 1))], [[0, 1, 0]])
        rng, w = np.random.default_rng(0), np.zeros(model.dim)

        def updated(kind):
            sampler = kind()
            sampler.reset(bound, 0.1)
            sampler.update(10**9, 1.0)

        calls = [
            lambda: bound.block(10**9),
            lambda: bound.block(-1),
            lambda: bound.score(10**9, w),
            lambda: bound.infer(10**9, np.zeros(10)),
            lambda: bound.features(10**9, np.zeros(10)),
            lambda: bound.truth(10**9),
            lambda: bare.truth(0),
            lambda: bare.radii(),
            lambda: batch.initial_point(bare, 0.1),
            lambda: SDCA().init(bare, 0.1),
            lambda: SDCA().init(bound, 0.1).step(5),
            lambda: Gap().draw(rng),
            lambda: Gap().update(0, 1.0),
            lambda: MaxGap(1.0).draw(rng),
            lambda: MaxGap().update(0, 1.0),
            lambda: updated(Gap),
            lambda: updated(MaxGap),
        ]
        for number, call in enumerate(calls):
            print(number, end=" ", flush=True)
            try:
                call()
            except (IndexError, ValueError, RuntimeError) as error:
                print("refused:", error)
            else:
                raise SystemExit("accepted")
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
