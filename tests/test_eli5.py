"""eli5 explains our estimator as it explains that of sklearn-crfsuite, once it knows it."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sdcastruct import CRF
from sdcastruct.interop import sklearn_crfsuite

eli5 = pytest.importorskip("eli5")
pytest.importorskip("sklearn_crfsuite")

X = [[["the"], ["cat"]], [["a"], ["dog"]], [["the"], ["dog"], ["sleeps"]]]
Y = [["B-NP", "I-NP"], ["B-NP", "I-NP"], ["B-NP", "I-NP", "O"]]


@pytest.fixture(scope="module")
def crf():
    import sdcastruct.interop.eli5  # noqa: F401

    return CRF(C=10, random_state=0).fit(X, Y)


def test_weights_are_those_of_the_estimator(crf):
    explanation = eli5.explain_weights(crf, top=None)
    assert explanation.error is None
    assert [target.target for target in explanation.targets] == ["O", "B-NP", "I-NP"]
    shown = {
        (feature.feature, target.target): feature.weight
        for target in explanation.targets
        for feature in (*target.feature_weights.pos, *target.feature_weights.neg)
    }
    assert shown == crf.state_features_
    names = explanation.transition_features.class_names
    expected = [[crf.transition_features_[a, b] for b in names] for a in names]
    assert_array_equal(explanation.transition_features.coef, expected)


def test_options_of_eli5(crf):
    explanation = eli5.explain_weights(crf, top=1, targets=["O"], feature_re="^s")
    (target,) = explanation.targets
    assert target.target == "O"
    assert [feature.feature for feature in target.feature_weights.pos] == ["sleeps"]


def test_the_class_with_parameters_of_crfsuite(crf):
    theirs = sklearn_crfsuite.CRF(c2=0.05, random_state=0).fit(X, Y)
    shown, expected = (eli5.explain_weights(estimator) for estimator in (theirs, crf))
    assert shown.targets == expected.targets


def test_weights_as_text(crf):
    text = eli5.format_as_text(eli5.explain_weights(crf))
    assert "Transition features" in text
    assert "y='B-NP' top features" in text


def test_columns_of_arrays_are_named_by_their_numbers(crf):
    arrays = CRF(random_state=0).fit([np.eye(2)], [["a", "b"]])
    (first, _) = eli5.explain_weights(arrays).targets
    assert [feature.feature for feature in first.feature_weights.pos] == ["0"]


def test_training_does_not_import_eli5(tmp_path):
    code = "import sdcastruct, sys; assert 'eli5' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "eli5.sklearn_crfsuite", None)
    monkeypatch.delitem(sys.modules, "sdcastruct.interop.eli5", raising=False)
    with pytest.raises(ImportError, match="pip install sklearn-crfsuite"):
        import sdcastruct.interop.eli5  # noqa: F401
