"""The estimator: what users of scikit-learn and of sklearn-crfsuite expect of it."""

import itertools
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from sdcastruct import CRF
from sdcastruct.features.rules import iob2_rules
from sdcastruct.models import ChainModel
from sdcastruct.solvers import SDCA


def sentences(n=40, seed=0):
    """Return items and labels: names begin with a capital, and titles go before them."""
    rng = np.random.default_rng(seed)
    words = {"B-PER": ["Mr", "Ms", "Dr"], "I-PER": ["Ada", "Bob", "Cy"], "O": ["and", "saw", "met"]}
    X, y = [], []
    for _ in range(n):
        labels = []
        for _ in range(rng.integers(1, 4)):
            labels += ["B-PER", "I-PER"] if rng.random() < 0.5 else ["O"]
        tokens = [words[label][rng.integers(3)] for label in labels]
        X.append([["w=" + token, "cap=" + str(token[0].isupper())] for token in tokens])
        y.append(labels)
    return X, y


X, Y = sentences()
X_TEST, Y_TEST = sentences(20, seed=1)


@pytest.fixture(scope="module")
def crf():
    return CRF(C=10, random_state=0, tol=1e-4).fit(X, Y)


def test_fit_certifies(crf):
    assert crf.converged_
    assert crf.duality_gap_ <= 1e-4 * crf.primal_objective_
    gap = crf.primal_objective_ - crf.dual_objective_
    assert_allclose(crf.duality_gap_, gap, rtol=0, atol=1e-12)
    assert crf.classes_ == ["B-PER", "I-PER", "O"]
    assert set(crf.attributes_) == {a for x in X for item in x for a in item}
    assert len(crf.history_.gap) == crf.n_epochs_ + 1


def test_predictions(crf):
    predicted = crf.predict(X_TEST)
    assert predicted == Y_TEST
    assert all(isinstance(labels, list) for labels in predicted)
    assert crf.predict_single(X_TEST[0]) == Y_TEST[0]
    assert crf.score(X_TEST, Y_TEST) == 1.0


def test_sequences_of_one_length_stay_lists(crf):
    assert all(type(labels) is list for labels in crf.predict([X_TEST[0][:1]] * 3))


def test_marginals(crf):
    for xseq, rows in zip(X_TEST, crf.predict_marginals(X_TEST), strict=True):
        assert len(rows) == len(xseq)
        assert all(list(row) == crf.classes_ for row in rows)
        assert_allclose([sum(row.values()) for row in rows], 1, rtol=1e-12)
    assert crf.predict_marginals_single(X_TEST[0]) == crf.predict_marginals(X_TEST)[0]
    for xseq, pairs in zip(X_TEST, crf.predict_pair_marginals(X_TEST), strict=True):
        assert pairs.shape == (len(xseq) - 1, 3, 3)


def test_n_best_and_log_probability(crf):
    xseq = X_TEST[0][:3]
    labellings = [list(labels) for labels in itertools.product(crf.classes_, repeat=len(xseq))]
    log_p = crf.log_probability([xseq] * len(labellings), labellings)
    assert_allclose(logsumexp(log_p), 0, rtol=0, atol=1e-12)
    best = crf.predict_n_best([xseq], 5)[0]
    order = np.argsort(-log_p)[:5]
    assert [labels for labels, _ in best] == [labellings[k] for k in order]
    assert_allclose([p for _, p in best], np.exp(log_p[order]), rtol=1e-9)
    assert len(crf.predict_n_best([xseq], 10**4)[0]) == len(labellings)


def test_explanations_add_up(crf):
    explanation = crf.explain(X_TEST[0])
    assert explanation.labels == crf.predict_single(X_TEST[0])
    weights, transitions = crf.state_features_, crf.transition_features_
    for t, item in enumerate(X_TEST[0]):
        for label in crf.classes_:
            votes = dict(explanation.votes[t][label])
            for attribute in item:
                assert votes[attribute] == weights[attribute, label]
            if t > 0:
                before = explanation.labels[t - 1]
                assert votes[f"(after {before})"] == transitions[before, label]
    assert explanation.labels[0] in str(explanation)


def test_it_is_the_chain_model():
    features = [np.eye(3)[np.arange(len(y)) % 3] for y in Y]
    codes = [[sorted({"B-PER", "I-PER", "O"}).index(label) for label in y] for y in Y]
    result = SDCA(random_state=0).solve(ChainModel(3, 3).bind(features, codes), tol=1e-6)
    crf = CRF(tol=1e-6, random_state=0).fit(features, Y)
    assert_allclose(crf.coef_, result.w, rtol=0, atol=1e-12)
    assert crf.attributes_ == ["0", "1", "2"]
    sparse_rows = [sparse.csr_matrix(x) for x in features]
    assert crf.predict(sparse_rows) == crf.predict(features)


@pytest.mark.parametrize("solver", ["sdca", "oeg", "sag", "lbfgs"])
def test_solvers_agree(solver):
    crf = CRF(solver=solver, tol=1e-4, max_epochs=1000, random_state=0).fit(X, Y)
    best = CRF(tol=1e-8, max_epochs=1000, random_state=0).fit(X, Y)
    assert crf.converged_
    assert best.dual_objective_ - 1e-12 <= crf.primal_objective_
    assert crf.primal_objective_ <= best.primal_objective_ + crf.duality_gap_ + 1e-12


@pytest.mark.parametrize("sampler", ["gap", "uniform", "importance", "gap_importance", "max_gap"])
def test_samplers(sampler):
    assert CRF(sampler=sampler, non_uniformity=0.5, random_state=0).fit(X, Y).converged_


@pytest.mark.parametrize("labels", [(1, 2, 3), (True, False, None), (("a", 1), "b", 2.5)])
def test_labels_of_any_hashable_type(labels):
    names = dict(zip(["B-PER", "I-PER", "O"], labels, strict=True))
    renamed = [[names[label] for label in y] for y in Y]
    crf = CRF(C=10, random_state=0).fit(X, renamed)
    assert crf.predict(X) == renamed


def test_unseen_attributes_are_ignored(crf):
    changed = [[[*item, "w=never seen"] for item in xseq] for xseq in X_TEST]
    assert crf.predict(changed) == crf.predict(X_TEST)
    assert len(crf.predict([[["w=never seen"], []]])[0]) == 2


def test_labels_that_a_fold_lacks_are_wrong_not_an_error(crf):
    assert crf.score(X_TEST[:1], [["NEW"] * len(X_TEST[0])]) == 0.0
    with pytest.raises(ValueError, match=r"y\[0\] has the label 'NEW', expected one of"):
        crf.log_probability(X_TEST[:1], [["NEW"] * len(X_TEST[0])])


def test_scikit_learn_takes_it():
    crf = CRF(C=0.5, max_epochs=7, random_state=0)
    assert clone(crf).get_params() == crf.get_params()
    assert cross_val_score(crf, X, Y, cv=3).min() > 0.9
    search = GridSearchCV(crf, {"C": [0.01, 10]}, cv=2, n_jobs=2).fit(X, Y)
    assert search.best_score_ > 0.9
    assert search.predict(X_TEST) == Y_TEST


def test_pickle(crf):
    copy = pickle.loads(pickle.dumps(crf))
    assert copy.predict_marginals(X_TEST) == crf.predict_marginals(X_TEST)
    assert copy.get_params() == crf.get_params()


def test_warm_start_goes_on():
    crf = CRF(C=1, warm_start=True, random_state=0, tol=1e-3).fit(X[:30], Y[:30])
    first = crf.n_epochs_
    crf.fit(X[:30], Y[:30])
    assert crf.n_epochs_ <= 1
    crf.set_params(C=2).fit(X, Y)  # sequences added, with new words
    cold = CRF(C=2, random_state=0, tol=1e-3).fit(X, Y)
    assert crf.converged_
    assert crf.primal_objective_ <= cold.primal_objective_ + crf.duality_gap_
    assert first > 1


@pytest.mark.parametrize("solver", ["sdca", "oeg", "sag", "lbfgs"])
def test_warm_start_with_new_attributes(solver):
    items, labels = [[["a"], ["b"]], [["a"], ["c"]]], [["D", "N"]] * 2
    crf = CRF(solver=solver, warm_start=True, random_state=0).fit(items, labels)
    crf.fit([*items, [["a"], ["z"]]], [*labels, ["D", "N"]])
    assert crf.converged_
    assert crf.attributes_ == ["a", "b", "c", "z"]


def test_a_failed_fit_leaves_the_estimator_as_it_was():
    crf = CRF(random_state=0).fit(X, Y)
    before = crf.predict(X)
    crf.tol = -1.0
    with pytest.raises(ValueError, match="tol=-1"):
        crf.fit([[["new"]]], [["label"]])
    assert crf.tol == -1.0
    assert crf.predict(X) == before


def test_all_cores():
    assert CRF(n_jobs=-1, random_state=0).fit(X, Y).converged_


def test_warm_start_with_other_labels_takes_the_weights():
    crf = CRF(warm_start=True, random_state=0).fit(X, Y)
    renamed = [["OUT" if label == "O" else label for label in y] for y in Y]
    assert crf.fit(X, renamed).converged_
    assert crf.classes_ == ["B-PER", "I-PER", "OUT"]
    copy = pickle.loads(pickle.dumps(crf))
    assert copy.fit(X, renamed).n_epochs_ <= crf.n_epochs_


def test_dev_set_and_patience():
    crf = CRF(random_state=0, tol=0, max_epochs=30, patience=3)
    crf.fit(X, Y, X_TEST, Y_TEST)
    accuracies = crf.history_.dev_accuracy[1:]
    assert len(accuracies) == crf.n_epochs_ < 30
    assert crf.score(X_TEST, Y_TEST) == accuracies.max()
    assert crf.n_epochs_ - np.argmax(accuracies) - 1 == 3
    assert crf.duality_gap_ == crf.primal_objective_ - crf.dual_objective_ >= 0


def test_weights():
    times = np.ones(len(X))
    times[:5] = 3
    weighted = CRF(random_state=0, tol=1e-7, max_epochs=500).fit(X, Y, sample_weight=times)
    again = [*range(len(X)), *range(5), *range(5)]
    repeated = CRF(random_state=0, tol=1e-7, max_epochs=500)
    repeated.fit([X[i] for i in again], [Y[i] for i in again])
    assert weighted.attributes_ == repeated.attributes_
    assert_allclose(weighted.coef_, repeated.coef_, rtol=0, atol=1e-2)
    heavy = CRF(random_state=0, class_weight={"O": 5.0}).fit(X, Y)
    light = CRF(random_state=0, class_weight="balanced").fit(X, Y)
    assert not np.allclose(heavy.coef_, light.coef_)


def test_suspects_are_the_wrong_labels():
    wrong = [list(labels) for labels in Y]
    victims = [i for i, labels in enumerate(wrong) if len(labels) > 2][:3]
    for i in victims:
        wrong[i][1] = "O" if wrong[i][1] != "O" else "B-PER"
    crf = CRF(random_state=0).fit(X, wrong)
    assert {i for i, _ in crf.suspects_[:3]} == set(victims)
    gaps = [gap for _, gap in crf.suspects_]
    assert gaps == sorted(gaps, reverse=True)
    index, gap = crf.suspects_[0]
    assert_allclose(gap, -crf.log_probability([X[index]], [wrong[index]])[0], rtol=1e-9)


def test_forbidden_transitions_never_happen():
    rules = set(iob2_rules(["B-PER", "I-PER", "O"]))
    assert rules == {("O", "I-PER"), (None, "I-PER")}
    confusing = [[["w=Ada"]], [["w=Ada"], ["w=Ada"]], [["w=saw"], ["w=Ada"]]]
    free = CRF(random_state=0).fit(X, Y)
    ruled = CRF(random_state=0, forbidden="iob2", tol=1e-6).fit(X, Y)
    assert ruled.converged_
    assert free.predict_marginals(confusing)[0][0]["I-PER"] > 0.0
    for labels in ruled.predict(confusing) + ruled.predict(X_TEST):
        assert not rules & set(itertools.pairwise([None, *labels]))
    marginals = ruled.predict_marginals(confusing)
    assert marginals[0][0]["I-PER"] == 0.0
    pairs = ruled.predict_pair_marginals(confusing)[2]
    assert pairs[0, 2, 1] == 0.0
    assert ruled.log_probability([confusing[0]], [["B-PER"]])[0] > -np.inf


def test_n_best_obeys_the_rules():
    ruled = CRF(random_state=0, forbidden=[(None, "I-PER"), ("O", "I-PER")]).fit(X, Y)
    for xseq in X_TEST[:5]:
        found = ruled.predict_n_best([xseq], 1000)[0]
        assert_allclose(sum(p for _, p in found), 1, rtol=1e-9)
        for labels, _ in found:
            assert ("O", "I-PER") not in set(itertools.pairwise(labels))
            assert labels[0] != "I-PER"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0}, "C=0: expected a finite number > 0"),
        ({"C": "1"}, "C='1': expected"),
        ({"solver": "adam"}, "solver='adam': expected one of"),
        ({"sampler": "magic"}, "sampler='magic': expected one of"),
        ({"patience": 0}, "patience=0: expected an integer >= 1"),
        ({"patience": 2}, "patience=2: expected X_dev and y_dev"),
        ({"class_weight": "heavy"}, "class_weight='heavy': expected 'balanced'"),
        ({"class_weight": {"X": 1}}, "class_weight has the label 'X'"),
        ({"forbidden": "bio"}, "forbidden='bio': expected 'iob2'"),
        ({"forbidden": ["O"]}, "forbidden has 'O': expected pairs"),
        ({"forbidden": [("B-PER", "I-PER")]}, "'B-PER' -> 'I-PER' is forbidden"),
        ({"tol": -1}, "tol=-1: expected"),
        ({"max_epochs": 1.5}, "max_epochs=1.5: expected"),
        ({"n_jobs": 0}, "n_jobs=0: expected"),
        ({"random_state": "x"}, "random_state='x': expected"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        CRF(**options).fit(X, Y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], []), "y is empty|X is empty"),
        ((X, Y[:-1]), "Y has 39 samples but X has 40|y has 39"),
        ((X[:1], [Y[0][:-1]]), r"Y\[0\] has .* labels but X\[0\] has|y\[0\]"),
        (("abc", Y), "X is str: expected a list of sequences"),
        ((X, {"a": 1}), "y is dict: expected a list of sequences"),
        ((X, Y, X_TEST), "X_dev and y_dev: expected both"),
    ],
)
def test_bad_samples(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        CRF().fit(*arguments)


def test_bad_weights():
    with pytest.raises(ValueError, match=r"sample_weight has shape \(2,\), expected \(40,\)"):
        CRF().fit(X, Y, sample_weight=[1, 2])


def test_not_fitted():
    for use in (CRF().predict, CRF().predict_marginals, CRF().explain):
        with pytest.raises(Exception, match="not fitted"):
            use(X)
