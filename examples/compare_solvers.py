"""
Compare the solvers
===================

All solvers have the same ``solve``, the same history and the same certificate. So they can be
compared on one problem, here 626 handwritten words: by epochs, by calls of the marginal oracle, and
by seconds.
"""

import numpy as np
from matplotlib import pyplot

from sdcastruct import datasets
from sdcastruct.models import ChainModel
from sdcastruct.plotting import convergence
from sdcastruct.samplers import Gap, Uniform
from sdcastruct.solvers import LBFGS, OEG, SAG, SDCA

letters = datasets.load_ocr()
chosen = np.flatnonzero(letters.folds == 0)
X, y = [letters.X[i] for i in chosen], [letters.y[i] for i in chosen]
problem = ChainModel(n_states=26, n_features=128).bind(X, y)
solvers = {
    "SDCA": SDCA(Uniform(), random_state=0),
    "SDCA-gap": SDCA(Gap(non_uniformity=0.8), random_state=0),
    "OEG": OEG(Uniform(), random_state=0),
    "SAG-NUS": SAG(sampling="nus", line_search="always", random_state=0),
    "L-BFGS": LBFGS(),
}

# %%
# An epoch is n updates, or an iteration of L-BFGS. ``certify_every=1`` makes a full pass after
# each, so that the histories have exact values; that pass is not counted as oracle calls, but it
# takes some of the seconds.

results = {
    name: solver.solve(problem, tol=1e-5, max_epochs=40, certify_every=1)
    for name, solver in solvers.items()
}
print("solver    epochs  oracle calls / n  seconds     primal  relative gap")
for name, result in results.items():
    calls, seconds = result.n_oracle_calls / problem.n_samples, result.history.seconds[-1]
    print(
        f"{name:9s} {result.n_epochs:6d} {calls:17.1f} {seconds:8.2f} {result.primal:10.6f} "
        f"{result.relative_gap:13.1e}"
    )

# %%
# The duality gap of each solver is a bound on how far it is from the optimum. The bounds differ in
# how tight they are: SDCA and OEG have a dual point of their own, SAG and L-BFGS take the one of
# their weights.

figure, axes = pyplot.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
for ax, x in zip(axes, ("epoch", "n_oracle_calls", "seconds"), strict=True):
    convergence(results, x=x, ax=ax)
    ax.get_legend().remove()
    ax.label_outer()
figure.legend(
    *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False
)
figure.savefig("compare_solvers.png", dpi=150)
print("drawn in compare_solvers.png")

# %%
# The optimum lies between the best dual and the best primal value of all runs. So the distance of
# a primal value from the best dual one says how far the weights alone may be from the optimum.

best_primal = min(result.primal for result in results.values())
best_dual = max(result.dual for result in results.values())
print(f"optimum between {best_dual:.7f} and {best_primal:.7f}")

figure, ax = pyplot.subplots(figsize=(6, 4), layout="constrained")
convergence(results, x="n_oracle_calls", optimum=best_dual, ax=ax)
figure.savefig("compare_solvers_primal.png", dpi=150)
print("drawn in compare_solvers_primal.png")
