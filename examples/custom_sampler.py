"""
Write a sampler
===============

Which sample next? A sampler of one's own is a class with two methods: random permutations instead
of independent draws, compared with the samplers of the package.
"""

import numpy as np

from sdcastruct import datasets
from sdcastruct.models import ChainModel
from sdcastruct.plotting import convergence
from sdcastruct.samplers import Gap, Sampler, Uniform
from sdcastruct.solvers import SDCA


class Permutation(Sampler):
    """Visit all samples once per epoch, in a new random order each time."""

    def reset(self, problem, lam):
        super().reset(problem, lam)
        self.order = []

    def draw(self, rng):
        if not self.order:
            self.order = rng.permutation(self.n_samples).tolist()
        return self.order.pop()


# %%
# A third method, ``update(i, gap)``, would be told the duality gap of each sample that was drawn;
# ``Gap`` draws more often where it is large.

letters = datasets.load_ocr()
chosen = np.flatnonzero(letters.folds == 0)
X, y = [letters.X[i] for i in chosen], [letters.y[i] for i in chosen]
problem = ChainModel(n_states=26, n_features=128).bind(X, y)
results = {}
for sampler in (Uniform(), Permutation(), Gap(non_uniformity=0.8)):
    name = type(sampler).__name__
    results[name] = SDCA(sampler, random_state=0).solve(problem, tol=1e-3, certify_every=1)
    print(f"{name:12s} {results[name].n_epochs:3d} epochs, gap {results[name].gap:.2e}")

convergence(results).figure.savefig("custom_sampler.png", dpi=150)
print("drawn in custom_sampler.png")
