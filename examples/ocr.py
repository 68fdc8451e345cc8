"""Train a chain CRF on the bundled OCR letters to a certified gap and look at a word."""

import numpy as np

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

X_test, y_test = [letters.X[i] for i in test], [letters.y[i] for i in test]
predicted = model.decode(X_test, result.w)
print(f"test error {np.mean(np.concatenate(predicted) != np.concatenate(y_test)):.1%}")

nodes, pairs = model.marginals(X_test[:1], result.w)[0]
for k, p in zip(predicted[0], nodes.max(axis=1), strict=True):
    print(f"{letters.classes[k]}  p = {p:.3f}")
