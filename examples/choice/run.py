"""How much is an hour worth? Learn it from which of several connections travellers chose."""

import numpy as np
from choice import ChoiceModel
from scipy.optimize import minimize

from sdcastruct.samplers import Gap
from sdcastruct.solvers import SDCA
from sdcastruct.testing import check_model

# Connections differ in price (in 10 euros), hours and changes; here an hour is worth 20 euros.
rng = np.random.default_rng(0)
taste = np.array([-1.0, -2.0, -0.5])
X = [rng.uniform(0, [6, 4, 4], size=(rng.integers(2, 8), 3)) for _ in range(1000)]
Y = np.array([np.argmax(x @ taste + rng.gumbel(size=len(x))) for x in X])

model = ChoiceModel(n_features=3)
check_model(model, X[:10], Y[:10])

lam = 1 / len(X)
solver = SDCA(sampler=Gap(non_uniformity=0.8), random_state=0)
result = solver.solve(model.bind(X, Y), lam=lam, tol=1e-5)
price, hours, changes = result.w
print(f"primal {result.primal:.6f}, dual {result.dual:.6f}, relative gap {result.relative_gap:.1e}")
print(f"an hour is worth {10 * hours / price:.1f} euros, a change {10 * changes / price:.1f} euros")

# SciPy on the same objective. It curves at least like lam / 2 ||w||^2, so the gap also bounds how
# far the weights are from the best ones.
rows, first = np.concatenate(X), np.cumsum([0] + [len(x) for x in X[:-1]])


def objective(w):
    log_z = np.logaddexp.reduceat(rows @ w, first)
    return lam / 2 * w @ w + np.mean(log_z - rows[first + Y] @ w)


optimum = minimize(objective, np.zeros(3), tol=1e-10)
distance, bound = np.linalg.norm(result.w - optimum.x), np.sqrt(2 * result.gap / lam)
assert result.dual <= optimum.fun <= result.primal
assert distance <= bound
print(f"SciPy's optimum {optimum.fun:.6f} lies between dual and primal")
print(f"its weights are {distance:.1e} away, certified: at most {bound:.1e}")
