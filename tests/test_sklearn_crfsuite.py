"""A script that imports our module as sklearn_crfsuite runs unchanged."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import sdcastruct
from sdcastruct.interop import sklearn_crfsuite

X = [[{"w": "the", "i": 1}, {"w": "cat"}], [["w:a"], ["w:dog"]], [["w:the"], ["w:dog"]]]
Y = [["DET", "NOUN"]] * 3


def test_same_optimum_as_with_our_names():
    theirs = sklearn_crfsuite.CRF(algorithm="lbfgs", c2=0.05, tol=1e-9, random_state=0).fit(X, Y)
    ours = sdcastruct.CRF(C=10, tol=1e-9, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(theirs.coef_, ours.coef_)
    assert theirs.predict(X) == Y
    assert theirs.duality_gap_ <= 1e-9 * theirs.primal_objective_


def test_defaults_are_crfsuites():
    crf = sklearn_crfsuite.CRF().fit(X, Y)
    assert (crf.C, crf.max_epochs) == (0.5, 100)  # CRFsuite's c2 = 1


@pytest.mark.parametrize("min_freq", [None, 0, 1, 2, 3])
def test_min_freq_is_crfsuites(min_freq):
    theirs = pytest.importorskip("sklearn_crfsuite").CRF(min_freq=min_freq).fit(X, Y)
    crf = sklearn_crfsuite.CRF(min_freq=min_freq).fit(X, Y)
    assert sorted(crf.attributes_) == sorted(theirs.attributes_)


def test_scikit_learn_and_files(tmp_path):
    search = GridSearchCV(sklearn_crfsuite.CRF(random_state=0), {"c2": [0.1, 1.0]}, cv=3)
    best = search.fit(X, Y).best_estimator_
    assert clone(best).get_params() == best.get_params()
    assert pickle.loads(pickle.dumps(best)).predict(X) == Y
    best.save(tmp_path / "model")
    loaded = sklearn_crfsuite.CRF.load(tmp_path / "model")
    assert loaded.get_params() == best.get_params()
    assert loaded.predict(X) == Y


def test_metrics_are_theirs():
    theirs = pytest.importorskip("sklearn_crfsuite.metrics")
    assert sklearn_crfsuite.metrics is theirs
    assert sklearn_crfsuite.metrics.flat_accuracy_score(Y, Y) == 1.0
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        sklearn_crfsuite.nothing  # noqa: B018


def test_c1_is_ignored_aloud():
    with pytest.warns(UserWarning, match=r"c1=0.1 is ignored: there is no L1 term"):
        sklearn_crfsuite.CRF(c1=0.1, c2=0.1).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "ap"}, r"algorithm='ap': expected one of \('lbfgs', 'l2sgd'\)"),
        ({"c2": 0.0}, r"c2=0.0: expected a number > 0"),
        ({"c2": "much"}, r"c2='much': expected a number > 0"),
        ({"max_iterations": -1}, r"max_epochs=-1"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        sklearn_crfsuite.CRF(**options).fit(X, Y)
