"""
Read handwritten words
======================

A word is a chain, a letter a node of it with 128 pixels. A chain CRF, trained to a certified gap,
reads the letters of a word together: what is hard to see in one is often clear from its neighbours.
"""

import numpy as np
from matplotlib import pyplot

from sdcastruct import datasets
from sdcastruct.models import ChainModel
from sdcastruct.samplers import Gap
from sdcastruct.solvers import SDCA

letters = datasets.load_ocr()
train, test = np.flatnonzero(letters.folds == 0), np.flatnonzero(letters.folds == 1)
model = ChainModel(n_states=26, n_features=128)
problem = model.bind([letters.X[i] for i in train], [letters.y[i] for i in train])

result = SDCA(sampler=Gap(non_uniformity=0.8), random_state=0).solve(problem, tol=1e-3)
print(f"primal {result.primal:.5f}, dual {result.dual:.5f}, relative gap {result.relative_gap:.1e}")

# %%
# The optimum lies between the dual and the primal value. Now read the words of another fold:

X_test, y_test = [letters.X[i] for i in test], [letters.y[i] for i in test]
predicted = model.decode(X_test, result.w)
print(f"test error {np.mean(np.concatenate(predicted) != np.concatenate(y_test)):.1%}")

# %%
# Six words, with the letters that were read and their probabilities. What is wrong is red, with the
# true letter in brackets. (The first letter of each word, a capital, is not part of the corpus.)


def draw_word(ax, x, y, guess, marginals):
    """Draw the images of a word, and below each the letter that was read."""
    ax.imshow(np.hstack([np.pad(image.reshape(16, 8), (0, 1)) for image in x]), cmap="gray_r")
    ax.set(xlim=(-2, 9 * 9 + 2), ylim=(25, -1))
    ax.axis("off")
    for t, (true, read) in enumerate(zip(y, guess, strict=True)):
        name = letters.classes[read] + ("" if read == true else f" ({letters.classes[true]})")
        text = f"{name}\n{marginals[t, read]:.0%}"
        colour = "black" if read == true else "tab:red"
        ax.text(9 * t + 3.5, 18, text, color=colour, ha="center", va="top")


marginals = [nodes for nodes, _ in model.marginals(X_test, result.w)]
spelled = np.array(["".join(letters.classes[y]) for y in y_test])
errors = np.array([np.sum(guess != y) for guess, y in zip(predicted, y_test, strict=True)])
_, different = np.unique(spelled, return_index=True)
shown = [i for n in (0, 1, 2) for i in different[errors[different] == n][:2]]

figure, axes = pyplot.subplots(3, 2, figsize=(9, 5), layout="constrained")
for ax, i in zip(axes.flat, shown, strict=True):
    draw_word(ax, X_test[i], y_test[i], predicted[i], marginals[i])
figure.savefig("ocr.png", dpi=150)
print("drawn in ocr.png")
