"""A sampler of one's own: random permutations instead of independent draws."""

from sdcastruct import datasets
from sdcastruct.models import ChainModel
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


letters = datasets.load_ocr()
problem = ChainModel(n_states=26, n_features=128).bind(letters.X[:500], letters.y[:500])
for sampler in (Uniform(), Permutation(), Gap(non_uniformity=0.8)):
    result = SDCA(sampler=sampler, random_state=0).solve(problem, tol=1e-2)
    print(f"{type(sampler).__name__:12s} {result.n_epochs:3d} epochs, gap {result.gap:.2e}")
