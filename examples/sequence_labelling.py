"""
Label sequences from scratch
============================

Which words of a line in a recipe are the quantity, the unit, the ingredient, and what is only a
remark? A word alone does not tell: in *2 cloves garlic* the cloves are a unit, in *1 teaspoon
ground cloves* they are the ingredient. A conditional random field labels all words of a line
together. This page trains one on two dozen lines and looks at it from all sides.
"""

# %%
# The lines
# ---------
#
# A label after each word: quantity, unit, name or remark.

import numpy as np
from matplotlib import pyplot

from sdcastruct import CRF

LINES = """
2/Q cups/U flour/N
1/Q cup/U brown/N sugar/N
3/Q tablespoons/U olive/N oil/N
1/Q teaspoon/U ground/R cinnamon/N
1/2/Q teaspoon/U ground/R ginger/N
2/Q cloves/U garlic/N ,/R minced/R
1/Q clove/U garlic/N ,/R finely/R chopped/R
1/4/Q teaspoon/U cloves/N
4/Q eggs/N
2/Q large/R eggs/N ,/R beaten/R
1/Q large/R onion/N ,/R chopped/R
3/Q small/R red/N onions/N
1/Q can/U chopped/R tomatoes/N
2/Q cans/U black/N beans/N ,/R drained/R
1/2/Q cup/U finely/R chopped/R parsley/N
1/Q pinch/U salt/N
salt/N to/R taste/R
black/N pepper/N to/R taste/R
olive/N oil/N for/R frying/R
200/Q g/U dark/N chocolate/N
500/Q g/U minced/R beef/N
1/Q slice/U bread/N
4/Q slices/U bacon/N ,/R fried/R
a/Q pinch/U of/R nutmeg/N
"""
NAMES = {"Q": "quantity", "U": "unit", "N": "name", "R": "remark"}


def read(line):
    """Return the words and the labels of a line."""
    pairs = [token.rsplit("/", 1) for token in line.split()]
    return [word for word, _ in pairs], [NAMES[label] for _, label in pairs]


words, y = zip(*map(read, LINES.strip().splitlines()), strict=True)

# %%
# Attributes
# ----------
#
# What may matter about a word: itself, its ending, its neighbours. A number or a string is as
# good as a truth value; neighbours beyond the ends are left out. The model adds weights for pairs
# of labels, and for labels at the beginning and at the end.


def attributes(words, t):
    """Return what the model may know about word t."""
    item = {
        "word": words[t],
        "ending": words[t][-2:],
        "number": words[t][0].isdigit(),
    }
    if t > 0:
        item["before"] = words[t - 1]
    if t < len(words) - 1:
        item["after"] = words[t + 1]
    return item


def line_attributes(words):
    """Return the attributes of all words of a line."""
    return [attributes(words, t) for t in range(len(words))]


X = [line_attributes(line) for line in words]
print(X[5][1], "->", y[5][1])

# %%
# Training ends with a proof
# --------------------------
#
# The best possible value of the objective lies between the dual and the primal value: their gap
# says how far from the optimum the weights can be at most.

crf = CRF(C=10, tol=1e-4, random_state=0).fit(X, y)
print(f"primal {crf.primal_objective_:.6f}, dual {crf.dual_objective_:.6f}")
print(f"duality gap {crf.duality_gap_:.1e} after {crf.n_epochs_} epochs: {crf.converged_=}")

# %%
# Predictions
# -----------

new_lines = ["2 cloves garlic , chopped", "1 teaspoon ground cloves", "3 large slices bread"]
X_new = [line_attributes(line.split()) for line in new_lines]
for line, labels in zip(new_lines, crf.predict(X_new), strict=True):
    print("  ".join(f"{word}/{label}" for word, label in zip(line.split(), labels, strict=True)))

# %%
# The last one is wrong: slices are a unit here. How sure was it? The best labellings of this line,
# and the probability of each label in all three:

for labels, p in crf.predict_n_best(X_new[2:], 3)[0]:
    print(f"{p:.3f}  {' '.join(labels)}")

lengths = [len(x) for x in X_new]
figure, axes = pyplot.subplots(
    1, 3, figsize=(9, 2.8), sharey=True, width_ratios=lengths, layout="constrained"
)
for ax, line, marginals in zip(axes, new_lines, crf.predict_marginals(X_new), strict=True):
    table = np.array([[p[label] for p in marginals] for label in NAMES.values()])
    ax.imshow(table, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for k, t in np.argwhere(table >= 0.05):
        colour = "white" if table[k, t] > 0.5 else "black"
        ax.text(t, k, f"{table[k, t]:.0%}", color=colour, ha="center", va="center", fontsize=8)
    ax.set_xticks(range(len(marginals)), line.split())
    ax.set_yticks(range(len(NAMES)), NAMES.values())
    ax.tick_params(length=0)
figure.savefig("sequence_labelling.png", dpi=150)
print("drawn in sequence_labelling.png")

# %%
# Labelled by hand and added to the others, the line is understood, and others like it:

crf.fit([*X, X_new[2]], [*y, ["quantity", "remark", "unit", "name"]])
print(crf.predict_single(X_new[2]))
print(crf.predict_single(line_attributes(["2", "small", "slices", "ham"])))

# %%
# Why?
# ----
#
# The votes for each predicted label, strongest first:

print(crf.explain(X_new[1]))

# %%
# And the other way around: what speaks most for a unit?

weights = sorted((w, a) for (a, label), w in crf.state_features_.items() if label == "unit")
print(", ".join(f"{attribute} {weight:+.2f}" for weight, attribute in reversed(weights[-5:])))
print(f"unit, then name: {crf.transition_features_['unit', 'name']:+.2f}")
print(f"name, then unit: {crf.transition_features_['name', 'unit']:+.2f}")

# %%
# Keep it
# -------
#
# One file without pickled objects, so that a model of others is safe to load.

crf.save("recipes.crf")
again = CRF.load("recipes.crf")
assert again.predict(X_new) == crf.predict(X_new)
print(f"loaded, certified gap {again.duality_gap_:.1e}")
