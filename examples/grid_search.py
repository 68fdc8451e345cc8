"""
Choose C with scikit-learn
==========================

``CRF`` is a scikit-learn estimator: cross-validation and grid search take it as it is, on several
cores if asked. Where only C changes, a path of warm starts does with fewer epochs.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score

from sdcastruct import CRF, datasets

letters = datasets.load_ocr()
chosen = np.flatnonzero(letters.folds == 0)
X, y = [letters.X[i] for i in chosen], [letters.classes[letters.y[i]] for i in chosen]

# %%
# Cross-validation
# ----------------
#
# The score is the share of correct letters. These 626 words are copies, by many hands, of only 55
# different ones. Where copies of a word are in both parts, its spelling has been learned; where all
# are in one part, the score is that of new words.

words = ["".join(labels) for labels in y]
crf = CRF(C=1.0, random_state=0)
apart, together = KFold(3, shuffle=True, random_state=0), GroupKFold(3)
print(f"known words: {cross_val_score(crf, X, y, cv=apart).mean():.1%} of the letters correct")
print(f"new words:   {cross_val_score(crf, X, y, cv=together, groups=words).mean():.1%}")

# %%
# Grid search
# -----------
#
# Every candidate is trained to the same certified gap, so that they differ in nothing but C.

grid = {"C": np.logspace(-2, 0, 5)}
search = GridSearchCV(crf, grid, cv=together, n_jobs=2).fit(X, y, groups=words)
print(f"best C {search.best_params_['C']:.3g}: {search.best_score_:.1%} correct")
print(f"refitted on all words, certified gap {search.best_estimator_.duality_gap_:.1e}")

# %%
# Regularisation path
# -------------------
#
# From strong to weak regularisation, each fit starting from the dual point of the last.

path = CRF(warm_start=True, random_state=0)
warm = [path.set_params(C=C).fit(X, y).n_epochs_ for C in grid["C"]]
cold = [CRF(C=C, random_state=0).fit(X, y).n_epochs_ for C in grid["C"]]
print(f"{sum(warm)} epochs with warm starts, {sum(cold)} without")

figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
mean, spread = (search.cv_results_[f"{part}_test_score"] for part in ("mean", "std"))
left.errorbar(grid["C"], mean, yerr=spread, fmt="o-", capsize=3)
left.set(ylabel="correct letters of new words")
right.plot(grid["C"], cold, "o-", label="cold starts")
right.plot(grid["C"], warm, "o-", label="warm starts")
right.set(ylabel="epochs", ylim=(0, None))
right.legend(frameon=False)
for ax in (left, right):
    ax.set(xscale="log", xlabel="C")
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
figure.savefig("grid_search.png", dpi=150)
print("drawn in grid_search.png")
