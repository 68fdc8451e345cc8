"""
Chains of higher order
======================

Declare tables over three letters in a row, write no inference code. The letters of a word depend on
their images and on their neighbours: in a chain of order m, each window of m + 1 letters has a
score. ``GraphModel`` needs to know only which nodes are in a window.
Shorter windows keep their tables too, so that a word of one or two letters is nothing special.

What to expect: order 2 makes half as many errors on words that occur in the training set, and more
on words that do not. The corpus has only 55 different words, and order 2 learns them by heart.
"""

import numpy as np
from matplotlib import pyplot

from sdcastruct import datasets
from sdcastruct.models import Clique, GraphModel
from sdcastruct.samplers import Gap
from sdcastruct.solvers import SDCA
from sdcastruct.testing import check_model


class HigherOrderChain(GraphModel):
    """Chains with a table of scores for each window of 2, 3, ..., order + 1 nodes.

    An input is an array of shape (T, n_features), as for `ChainModel`.
    """

    def __init__(self, n_states, n_features, order):
        windows = {f"window of {m}": Clique((n_states,) * m) for m in range(2, order + 2)}
        super().__init__({"node": Clique(n_states, n_features), **windows})

    def cliques_of(self, x):
        T = x.shape[0]
        cliques = {"node": (np.arange(T)[:, None], x)}
        for name, clique in self.cliques.items():
            m = len(clique.n_states)
            if 2 <= m <= T:
                cliques[name] = np.arange(T - m + 1)[:, None] + np.arange(m)
        return cliques


# %%
# Words to train on and to test on:

letters = datasets.load_ocr()
train, test = np.flatnonzero(letters.folds == 0)[:400], np.flatnonzero(letters.folds == 1)
X_train, y_train = [letters.X[i] for i in train], [letters.y[i] for i in train]
X_test, y_test = [letters.X[i] for i in test], [letters.y[i] for i in test]

# %%
# Is the model right? Three letters instead of 26 leave few enough labellings to try them all.

lengths = (1, 2, 3, 5)
small = HigherOrderChain(n_states=3, n_features=128, order=2)
check_model(small, [X_train[0][:T] for T in lengths], [y_train[0][:T] % 3 for T in lengths])

# %%
# The corpus repeats 55 words, so a model may learn them by heart: look at unseen ones apart.

seen = {tuple(y) for y in y_train}
is_new = np.array([tuple(y) not in seen for y in y_test])
print(f"{len(train)} words to train on, {len(test)} to test on, {is_new.sum()} of them never seen")

print("                                               letters wrong in")
print("order  weights   primal     dual  relative gap  seen words  new words")
errors = {}
for order in (1, 2):
    model = HigherOrderChain(n_states=26, n_features=128, order=order)
    solver = SDCA(sampler=Gap(non_uniformity=0.8), random_state=0)
    result = solver.solve(model.bind(X_train, y_train), tol=1e-3)
    wrong = [y != z for y, z in zip(model.decode(X_test, result.w), y_test, strict=True)]
    seen_words, new_words = errors[order] = [
        np.mean(np.concatenate([wrong[i] for i in np.flatnonzero(group)]))
        for group in (~is_new, is_new)
    ]
    print(
        f"{order:5d} {model.dim:8d} {result.primal:8.5f} {result.dual:8.5f} "
        f"{result.relative_gap:13.1e} {seen_words:11.1%} {new_words:10.1%}"
    )

# %%
# What was learned by heart helps only where it applies:

figure, ax = pyplot.subplots(figsize=(5, 3.4), layout="constrained")
for order, shares in errors.items():
    bars = ax.bar(np.arange(2) + 0.4 * (order - 1.5), shares, width=0.36, label=f"order {order}")
    ax.bar_label(bars, fmt="{:.0%}", padding=2)
ax.set_xticks(range(2), ["seen words", "new words"])
ax.set(ylabel="letters wrong", ylim=(0, 0.58))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper left")
figure.savefig("higher_order_chain.png", dpi=150)
print("drawn in higher_order_chain.png")
