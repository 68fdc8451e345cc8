"""
Hunt for label errors
=====================

A training sequence whose labels the model cannot believe, even after it was trained on them, is
likely to be labelled wrongly. ``CRF.suspects_`` lists the sequences by -log p(labels), the gap that
their given labels leave. Here one letter in each of a hundred words is changed: are they found?
"""

import numpy as np
from matplotlib import pyplot

from sdcastruct import CRF, datasets

N_WRONG = 100

letters = datasets.load_ocr()
chosen = np.flatnonzero(letters.folds <= 2)
X, y = [letters.X[i] for i in chosen], [list(letters.classes[letters.y[i]]) for i in chosen]

rng = np.random.default_rng(0)
changed = {}
for i in rng.choice(len(X), N_WRONG, replace=False).tolist():
    t = rng.integers(len(y[i]))
    changed[i] = t
    y[i][t] = rng.choice([letter for letter in letters.classes if letter != y[i][t]])

# %%
# Train on all words, the wrong ones included, and look at the first suspects:

crf = CRF(random_state=0).fit(X, y)
print(f"{crf.n_epochs_} epochs, relative gap {crf.duality_gap_ / crf.primal_objective_:.1e}")

suspects = [i for i, _ in crf.suspects_]
hits = np.cumsum([i in changed for i in suspects])
for k in (10, 50, 100, 200):
    print(f"{hits[k - 1]:3d} of the {N_WRONG} wrong words are among the first {k} suspects")

# %%
# Of the words that one looks at, how many are wrong?

ranks = np.arange(1, 301)
figure, ax = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
ax.plot(ranks, hits[:300] / ranks, label="suspects of the CRF")
ax.plot(ranks, np.minimum(1, N_WRONG / ranks), "--", color="gray", label="best possible")
ax.axhline(N_WRONG / len(X), color="gray", linestyle=":", label="at random")
ax.set(xlabel="words looked at", ylabel="share of wrong ones", ylim=(0, 1.03))
ax.grid(alpha=0.3)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc=(0.6, 0.62))
figure.savefig("label_errors.png", dpi=150)
print("drawn in label_errors.png")

# %%
# Which letter of a suspect is it? The one whose given label is least probable. And the model has
# another label to offer.


def doubt(i):
    """Return the place of the least probable letter of a word, and the most probable one there."""
    marginals = crf.predict_marginals_single(X[i])
    worst = np.argmin([p[letter] for p, letter in zip(marginals, y[i], strict=True)])
    return worst, max(marginals[worst], key=marginals[worst].get)


located = sum(doubt(i)[0] == t for i, t in changed.items())
print(f"in {located} of the {N_WRONG} wrong words the least probable letter is the changed one")

# %%
# The first suspects that were changed, and the first ones that were not. The latter are hard to
# read, and many are in capitals, which are rare in this corpus.


def draw_suspect(ax, i):
    """Draw a word with its given letters, the doubtful one in red, and another one to choose."""
    ax.imshow(np.hstack([np.pad(image.reshape(16, 8), (0, 1)) for image in X[i]]), cmap="gray_r")
    ax.set(xlim=(-2, 9 * 14 + 2), ylim=(29, -1))
    ax.axis("off")
    worst, better = doubt(i)
    for t, letter in enumerate(y[i]):
        colour = "tab:red" if t == worst else "black"
        ax.text(9 * t + 3.5, 18, letter, color=colour, ha="center", va="top")
    ax.text(9 * worst + 3.5, 24, f"{better}?", color="tab:green", ha="center", va="top")


rows = 5
found = [i for i in suspects if i in changed][:rows]
others = [i for i in suspects if i not in changed][:rows]
figure, axes = pyplot.subplots(rows, 2, figsize=(9, 5.5), layout="constrained")
for ax, i in zip(axes.T.flat, found + others, strict=True):
    draw_suspect(ax, i)
axes[0, 0].set_title("changed by us")
axes[0, 1].set_title("as the corpus has them")
figure.savefig("label_errors_words.png", dpi=150)
print("drawn in label_errors_words.png")
