"""`CRFLearner`: pystruct's learner interface over our solvers, on our models and on pystruct's."""

import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from matplotlib import pyplot
from numpy.testing import assert_allclose, assert_array_equal
from reference import ROUNDING
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

from sdcastruct import CRFLearner, duality
from sdcastruct.interop.pystruct import wrap
from sdcastruct.models import ChainModel, MulticlassModel, PairwiseModel
from sdcastruct.samplers import Gap
from sdcastruct.solvers import SDCA

CURVES = ("objective_curve_", "primal_objective_curve_")


def words(n=30, seed=0):
    """Return noisy pictures of the letters of short words, and the letters."""
    rng = np.random.default_rng(seed)
    Y = [np.array([0, 1, 2, 1])[: rng.integers(1, 5)] for _ in range(n)]
    return [np.eye(3)[y] + rng.normal(size=(len(y), 3)) for y in Y], Y


X, Y = words()
X_TEST, Y_TEST = words(20, seed=1)


def chain():
    """Return a chain model of ours with the features of pystruct's."""
    return ChainModel(n_states=3, n_features=3, bias=False)


def chain_of_pystruct(**options):
    """Return pystruct's chain model."""
    return pytest.importorskip("pystruct.models").ChainCRF(**options)


models = pytest.mark.parametrize("make", [chain, chain_of_pystruct], ids=["ours", "pystruct's"])


def objective(learner, C):
    """Return 1/2 ||w||^2 + C sum_i -log p(y_i | x_i; w)."""
    w, problem, losses = learner.w, chain().bind(X, Y), []
    if not isinstance(learner.model, ChainModel):  # pystruct has a row per state
        w = np.concatenate([w[:9].reshape(3, 3).T.ravel(), w[9:]])
    for i in range(len(X)):
        theta = problem.score(i, w)
        truth = problem.gather(i, problem.truth(i))
        losses.append(problem.infer(i, theta)[1] - theta @ truth)
    return 0.5 * w @ w + C * np.sum(losses)


@models
def test_certificate_in_the_units_of_pystruct(make):
    learner = CRFLearner(make(), C=0.3, tol=1e-4, random_state=0).fit(X, Y)
    assert learner.converged_
    assert learner.w.shape == (18,)
    primal, dual = learner.primal_objective_curve_[-1], learner.objective_curve_[-1]
    assert_allclose(primal, objective(learner, C=0.3), rtol=100 * ROUNDING)
    assert_allclose(learner.duality_gap_, primal - dual, rtol=0, atol=100 * ROUNDING)
    assert 0 <= learner.duality_gap_ <= 1e-4 * primal
    assert learner.n_iter_ == learner.result_.n_epochs > 0


@models
def test_curves(make):
    learner = CRFLearner(make(), tol=1e-6, check_dual_every=3, random_state=0).fit(X, Y)
    dual, primal = (np.array(getattr(learner, name)) for name in CURVES)
    assert len(dual) == len(primal) == len(learner.timestamps_) - 1
    # At the start, after every third epoch, and wherever the estimate is within the tolerance.
    assert 1 + learner.n_iter_ // 3 <= len(dual) <= 2 + learner.n_iter_ // 2
    assert (primal >= dual).all()
    assert (np.diff(dual) >= -ROUNDING * primal[1:]).all()
    assert_allclose(primal[0] / len(X), learner.result_.history.primal[0], rtol=ROUNDING)
    assert learner.timestamps_[0] > 1.6e9  # when it began
    assert (np.diff(learner.timestamps_[1:]) >= 0).all()
    assert learner.timestamps_[1] >= 0
    assert learner.loss_curve_ == []


def test_curves_without_certificates_in_between():
    learner = CRFLearner(
        chain(), check_dual_every=0, sampler="uniform", max_iter=3, tol=1e-9, random_state=0
    ).fit(X, Y)
    assert len(learner.objective_curve_) == len(learner.primal_objective_curve_) == 1
    assert len(learner.timestamps_) == 2


@models
def test_loss_curve(make):
    scores = []

    def keep(learner, epoch):
        scores.append((epoch, 1.0 - learner.score(X, Y)))

    learner = CRFLearner(make(), show_loss_every=2, logger=keep, random_state=0).fit(X, Y)
    assert [epoch for epoch, _ in scores] == [*range(1, learner.n_iter_ + 1), "final"]
    assert learner.loss_curve_ == [score for epoch, score in scores[:-1] if epoch % 2 == 0]


def test_logger_sees_the_curves_grow():
    seen = []

    def keep(learner, epoch):
        seen.append((epoch, len(learner.objective_curve_), learner.w.copy()))

    learner = CRFLearner(chain(), max_iter=4, tol=0, check_dual_every=2, logger=keep).fit(X, Y)
    assert [entry[:2] for entry in seen] == [(1, 0), (2, 1), (3, 1), (4, 2), ("final", 3)]
    assert_array_equal(seen[-1][2], learner.w)
    assert_array_equal(seen[-2][2], learner.w)
    assert not np.array_equal(seen[0][2], learner.w)


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_verbose(verbose, capfd):
    CRFLearner(chain(), verbose=verbose, random_state=0).fit(X, Y)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert ("primal" in shown.err) == (verbose > 0)


@models
def test_warm_start_goes_on(make):
    learner = CRFLearner(make(), tol=1e-4, random_state=0).fit(X, Y)
    rough = learner.primal_objective_curve_[-1], learner.objective_curve_[-1]
    learner.set_params(tol=1e-5).fit(X, Y, warm_start=True)
    found = learner.primal_objective_curve_[0], learner.objective_curve_[0]
    assert_allclose(found, rough, rtol=1e-9)
    cold = CRFLearner(make(), tol=1e-5, random_state=0).fit(X, Y)
    assert learner.n_iter_ < cold.n_iter_
    primals = learner.primal_objective_curve_[-1], cold.primal_objective_curve_[-1]
    assert_allclose(*primals, rtol=2e-5)


def test_warm_start_with_another_C():
    learner = CRFLearner(chain(), C=1.0, tol=1e-5, random_state=0).fit(X, Y)
    learner.set_params(C=1.1).fit(X, Y, warm_start=True)
    cold = CRFLearner(chain(), C=1.1, tol=1e-5, random_state=0).fit(X, Y)
    assert learner.n_iter_ < cold.n_iter_
    assert learner.converged_
    assert_allclose(learner.primal_objective_curve_[-1], objective(learner, 1.1), rtol=1e-9)


def test_warm_start_from_given_weights_and_from_nothing():
    cold = CRFLearner(chain(), tol=1e-5, random_state=0).fit(X, Y, warm_start=True)
    learner = CRFLearner(chain(), tol=1e-5, random_state=0)
    learner.w = cold.w
    learner.fit(X, Y, warm_start=True)
    assert learner.n_iter_ < cold.n_iter_
    learner.w = np.zeros(3)
    with pytest.raises(ValueError, match=r"warm_start has shape \(3,\), expected weights \(18,\)"):
        learner.fit(X, Y, warm_start=True)


def test_warm_start_of_a_pickled_learner():
    learner = CRFLearner(chain(), tol=1e-5, random_state=0).fit(X, Y)
    again = pickle.loads(pickle.dumps(learner)).fit(X, Y, warm_start=True)
    assert again.n_iter_ < learner.n_iter_


def test_warm_start_with_other_samples_takes_the_weights():
    learner = CRFLearner(chain(), tol=1e-4, random_state=0).fit(X, Y)
    learner.fit(X_TEST, Y_TEST, warm_start=True)
    cold = CRFLearner(chain(), tol=1e-4, random_state=0).fit(X_TEST, Y_TEST)
    primals = learner.primal_objective_curve_[-1], cold.primal_objective_curve_[-1]
    assert_allclose(*primals, rtol=2e-4)


@pytest.mark.parametrize("solver", ["sdca", "oeg", "sag", "lbfgs", SDCA(Gap(0.5), random_state=0)])
def test_solvers_agree(solver):
    learner = CRFLearner(chain(), solver=solver, tol=1e-7, max_iter=2000, random_state=0).fit(X, Y)
    best = CRFLearner(chain(), tol=1e-9, max_iter=2000, random_state=0).fit(X, Y)
    assert learner.converged_
    primals = learner.primal_objective_curve_[-1], best.primal_objective_curve_[-1]
    assert_allclose(*primals, rtol=2e-7)


@pytest.mark.parametrize("sampler", ["uniform", "importance", "gap_importance", "max_gap", Gap(1)])
def test_samplers(sampler):
    learner = CRFLearner(chain(), sampler=sampler, random_state=0).fit(X, Y)
    assert learner.converged_


@models
def test_predictions(make):
    learner = CRFLearner(make(), random_state=0).fit(X, Y)
    predicted, marginals = learner.predict(X_TEST), learner.predict_marginals(X_TEST)
    assert isinstance(predicted, list)
    wrong = sum(np.sum(y != z) for y, z in zip(Y_TEST, predicted, strict=True))
    assert_allclose(learner.score(X_TEST, Y_TEST), 1 - wrong / sum(map(len, Y_TEST)))
    assert learner.score(X_TEST, Y_TEST) > 0.6
    for x, (nodes, edges) in zip(X_TEST, marginals, strict=True):
        assert nodes.shape == (len(x), 3)
        assert edges.shape == (len(x) - 1, 3, 3)
        assert_allclose(nodes.sum(axis=1), 1)
        assert_allclose(edges.sum(axis=2), nodes[:-1], rtol=1e-9)


def test_other_models_of_ours():
    rows = np.vstack([x[:1] for x in X])
    classes = np.arange(len(rows)) % 2
    learner = CRFLearner(MulticlassModel(n_states=2, n_features=3), random_state=0)
    assert learner.fit(rows, classes).converged_
    assert np.shape(learner.predict_marginals(rows)) == (len(rows), 2)
    right = np.mean(np.array(learner.predict(rows)) == classes)
    assert_allclose(learner.score(rows, classes), right)
    ring = [[0, 1], [1, 2], [2, 0]]
    graphs = [(x[:3], ring) for x in X if len(x) >= 3]
    labels = [y[:3] for y in Y if len(y) >= 3]
    learner = CRFLearner(PairwiseModel(n_states=3, n_features=3), random_state=0)
    assert learner.fit(graphs, labels).converged_
    assert 0 < learner.score(graphs, labels) <= 1


@models
def test_scikit_learn(make):
    learner = CRFLearner(make(), C=2.0, random_state=0)
    copy = clone(learner)
    assert copy.model is not learner.model
    assert {k: v for k, v in copy.get_params().items() if k != "model"} == {
        k: v for k, v in learner.get_params().items() if k != "model"
    }
    search = GridSearchCV(learner, {"C": [0.01, 1.0]}, cv=3).fit(X, Y)
    scores = [cross_val_score(clone(learner).set_params(C=C), X, Y, cv=3) for C in (0.01, 1.0)]
    assert_allclose(search.cv_results_["mean_test_score"], np.mean(scores, axis=1))
    assert search.best_estimator_.converged_
    assert len(search.predict(X_TEST)) == len(X_TEST)


@models
def test_pickle(make):
    learner = CRFLearner(make(), random_state=0).fit(X, Y)
    loaded = pickle.loads(pickle.dumps(learner))
    assert_array_equal(loaded.w, learner.w)
    assert loaded.score(X_TEST, Y_TEST) == learner.score(X_TEST, Y_TEST)
    assert loaded.objective_curve_ == learner.objective_curve_
    assert loaded.result_.state is None


def test_a_given_seed_repeats():
    first, second = (CRFLearner(chain(), random_state=3).fit(X, Y).w for _ in range(2))
    assert_array_equal(first, second)


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
@pytest.mark.parametrize("check_dual_every", [0, 1])
def test_ctrl_c_keeps_a_certified_model(check_dual_every, tmp_path):
    script = f"""
        import os, signal, threading
        import numpy as np
        from sdcastruct import CRFLearner
        from sdcastruct.models import ChainModel

        n, K, T = 3000, 20, 10
        Y = list(np.random.default_rng(0).integers(K, size=(n, T)))
        X = [np.ones((T, 1))] * n
        names = []

        def press(learner, epoch):
            names.append(epoch)
            if epoch == 1:
                threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()

        learner = CRFLearner(
            ChainModel(K, 1), C=1e3, tol=0, max_iter=10**6, logger=press,
            check_dual_every={check_dual_every},
        ).fit(X, Y)
        certificate = learner.result_.state.certify()
        primal, dual = learner.primal_objective_curve_[-1], learner.objective_curve_[-1]
        print(learner.result_.interrupted, names[-1] == "final", not learner.converged_)
        print(np.isclose(primal, 1e3 * n * certificate.primal, rtol=1e-12))
        print(np.isclose(learner.duality_gap_, primal - dual, rtol=1e-9))
        print(len(learner.timestamps_) == len(learner.objective_curve_) + 1)
        print(len(learner.predict(X[:2])) == 2)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["True"] * 7


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"model": 3}, TypeError, r"model is 'int': expected a model of pystruct's interface"),
        ({"max_iter": -1}, ValueError, r"max_iter=-1: expected an integer >= 0"),
        ({"max_iter": 1.5}, ValueError, r"max_iter=1.5: expected an integer >= 0"),
        ({"C": 0}, ValueError, r"C=0: expected a finite number > 0"),
        ({"C": np.inf}, ValueError, r"C=inf: expected a finite number > 0"),
        ({"C": "1"}, ValueError, r"C='1': expected a finite number > 0"),
        ({"verbose": "much"}, ValueError, r"verbose='much': expected an integer >= 0"),
        ({"n_jobs": 0}, ValueError, r"n_jobs=0: expected an integer >= 1"),
        ({"n_jobs": 2, "solver": "sag"}, ValueError, r"n_jobs=2: expected 1 for SAG"),
        ({"show_loss_every": -1}, ValueError, r"show_loss_every=-1: expected an integer >= 0"),
        ({"logger": "log.txt"}, TypeError, r"logger='log.txt': expected a callable, or None"),
        ({"tol": -1}, ValueError, r"tol=-1: expected a finite number >= 0"),
        ({"check_dual_every": None}, ValueError, r"check_dual_every=None: expected an integer"),
        ({"solver": "adam"}, ValueError, r"solver='adam': expected one of \('sdca', "),
        ({"sampler": "best"}, ValueError, r"sampler='best': expected one of \['uniform', "),
        ({"non_uniformity": 2}, ValueError, r"non_uniformity=2: expected a number in \[0, 1\]"),
        ({"random_state": "x"}, (TypeError, ValueError), r"random_state='x': expected an integer"),
    ],
)
def test_bad_parameters(options, error, message):
    learner = CRFLearner(chain()).set_params(**options)
    with pytest.raises(error, match=message):
        learner.fit(X, Y)


def test_bad_samples():
    learner = CRFLearner(chain())
    with pytest.raises(ValueError, match=r"Y has 29 samples but X has 30"):
        learner.fit(X, Y[1:])
    with pytest.raises(ValueError, match=r"X is empty"):
        learner.fit([], [])
    learner.fit(X, Y)
    with pytest.raises(ValueError, match=r"Y has 1 labellings but X has 2 inputs"):
        learner.score(X[:2], Y[:1])


def test_not_fitted():
    learner = CRFLearner(chain())
    for method in (learner.predict, learner.predict_marginals):
        with pytest.raises(NotFittedError):
            method(X)
    with pytest.raises(NotFittedError):
        learner.score(X, Y)


def test_objectives_are_those_of_the_solver():
    learner = CRFLearner(chain(), C=2.0, random_state=0).fit(X, Y)
    problem, lam = chain().bind(X, Y), 1 / (2.0 * len(X))
    gap = duality.gap(problem, learner.w, learner.result_.state.alpha, lam)
    assert_allclose(learner.duality_gap_, 2.0 * len(X) * gap, rtol=0, atol=1e-9)


class KeepPickles:
    """A logger that keeps what SaveLogger would write."""

    def __init__(self):
        self.saved = []

    def __call__(self, learner, epoch):
        self.saved.append(pickle.dumps(learner))

    def __getstate__(self):
        return {"saved": []}


def test_learners_can_be_saved_in_the_middle():
    logger = KeepPickles()
    learner = CRFLearner(chain(), logger=logger, random_state=0).fit(X, Y)
    loaded = [pickle.loads(saved) for saved in logger.saved]
    assert_array_equal(loaded[-1].w, learner.w)
    assert not np.array_equal(loaded[0].w, learner.w)
    assert loaded[0].score(X, Y) > 0.5
    loaded[0].fit(X, Y, warm_start=True)
    assert loaded[0].converged_


def test_save_logger_of_pystruct(tmp_path):
    logger = pytest.importorskip("pystruct.utils").SaveLogger(str(tmp_path / "learner"))
    learner = CRFLearner(chain_of_pystruct(), logger=logger, random_state=0).fit(X, Y)
    loaded = logger.load()
    assert_array_equal(loaded.w, learner.w)
    assert loaded.score(X_TEST, Y_TEST) == learner.score(X_TEST, Y_TEST)


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
@pytest.mark.parametrize("time", [True, False])
@pytest.mark.parametrize("show_loss_every", [0, 1])
def test_plot_learning_of_pystruct(time, show_loss_every, capsys):
    plot_learning = pytest.importorskip("pystruct.plot_learning").plot_learning
    pyplot.switch_backend("agg")
    options = {"tol": 1e-5, "check_dual_every": 1, "show_loss_every": show_loss_every}
    learner = CRFLearner(chain_of_pystruct(), random_state=0, **options).fit(X, Y)
    plot_learning(learner, time=time)
    assert f"Objective: {learner.objective_curve_[-1]:f}" in capsys.readouterr().out
    dual, primal = pyplot.gcf().axes[0].lines
    pyplot.close()
    assert_array_equal(dual.get_ydata(), learner.objective_curve_)
    assert_array_equal(primal.get_ydata(), learner.primal_objective_curve_)


def pixels():
    """Return pictures and their masks."""
    masks = [np.pad(np.ones((2, 2), int), ((a, 1 - a), (b, 1 - b))) for a in (0, 1) for b in (0, 1)]
    rng = np.random.default_rng(0)
    return [np.eye(2)[mask] + rng.normal(size=(3, 3, 2)) for mask in masks], masks


def rows():
    """Return rows and their classes."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(20, 3)), rng.integers(3, size=20)


@pytest.mark.parametrize(
    ("name", "options", "samples"),
    [
        ("ChainCRF", {}, (X, Y)),
        ("ChainCRF", {"class_weight": [1, 2, 3]}, (X, Y)),
        ("GridCRF", {"inference_method": "lp"}, pixels()),
        ("MultiClassClf", {}, rows()),
        ("MultiClassClf", {"class_weight": [1, 2, 3]}, rows()),
        (
            "MultiLabelClf",
            {"inference_method": "unary"},
            (rows()[0], np.eye(3, dtype=int)[rows()[1]]),
        ),
        ("BinaryClf", {}, (rows()[0], np.sign(rows()[1] - 0.5).astype(int))),
    ],
)
def test_weights_and_scores_are_pystructs(name, options, samples):
    BaseSSVM = pytest.importorskip("pystruct.learners.ssvm").BaseSSVM
    model = getattr(pytest.importorskip("pystruct.models"), name)(**options)
    learner = CRFLearner(model, random_state=0).fit(*samples)
    assert learner.converged_
    theirs = BaseSSVM(model)
    theirs.w = learner.w
    for found, expected in zip(
        learner.predict(samples[0]), theirs.predict(samples[0]), strict=True
    ):
        assert_array_equal(found, expected)
    assert_allclose(learner.score(*samples), theirs.score(*samples), rtol=ROUNDING)


def test_weights_go_from_pystruct_to_us_and_back():
    FrankWolfeSSVM = pytest.importorskip("pystruct.learners").FrankWolfeSSVM
    ssvm = FrankWolfeSSVM(chain_of_pystruct(), C=1.0, max_iter=10, random_state=0).fit(X, Y)
    learner = CRFLearner(ssvm.model, tol=1e-5, random_state=0)
    learner.w = ssvm.w
    assert learner.score(X_TEST, Y_TEST) == ssvm.score(X_TEST, Y_TEST)
    learner.fit(X, Y, warm_start=True)
    cold = CRFLearner(chain_of_pystruct(), tol=1e-5, random_state=0).fit(X, Y)
    primals = learner.primal_objective_curve_[-1], cold.primal_objective_curve_[-1]
    assert_allclose(*primals, rtol=2e-5)
    ssvm.w = learner.w
    assert ssvm.score(X_TEST, Y_TEST) == learner.score(X_TEST, Y_TEST)


def test_wrapped_models_are_models():
    model = wrap(chain_of_pystruct(), max_table_bytes=2**20)
    learner = CRFLearner(model, random_state=0).fit(X, Y)
    plain = CRFLearner(chain_of_pystruct(), random_state=0).fit(X, Y)
    assert_array_equal(learner.w, plain.w)
    assert learner.score(X_TEST, Y_TEST) == plain.score(X_TEST, Y_TEST)
