"""Problems of moderate size, and the dual points that the states of all solvers stand for."""

import numpy as np
from scipy.sparse import csr_array

from sdcastruct import duality
from sdcastruct.models import ChainModel
from sdcastruct.samplers import Gap
from sdcastruct.solvers import LBFGS, OEG, SAG, SDCA

SOLVERS = {
    "SDCA": lambda seed=0: SDCA(random_state=seed),
    "OEG": lambda seed=0: OEG(random_state=seed),
    "OEG-gap": lambda seed=0: OEG(Gap(), random_state=seed),
    "SAG": lambda seed=0: SAG("uniform", "always", random_state=seed),
    "SAG-NUS": lambda seed=0: SAG("nus", "always", random_state=seed),
    "SAG-NUS*": lambda seed=0: SAG(random_state=seed),
    "L-BFGS": lambda seed=0: LBFGS(),
}


def samples(n=8, n_states=3, n_features=4, seed=0):
    """Return random chains (X, Y); the first ones do not depend on their number."""
    X, Y = [], []
    for i in range(n):
        rng = np.random.default_rng([seed, i])
        X.append(rng.normal(size=(rng.integers(1, 6), n_features)))
        Y.append(rng.integers(n_states, size=len(X[-1])))
    return X, Y


def letters(n=8, n_states=3, n_features=4, seed=0, sparse=False):
    """Return a problem of random chains."""
    X, Y = samples(n, n_states, n_features, seed)
    X = [csr_array(x) for x in X] if sparse else X
    return ChainModel(n_states=n_states, n_features=n_features).bind(X, Y)


def slots(problem, values):
    """Cut values of all slots into those of each sample."""
    w = np.zeros(problem.dim)
    sizes = [problem.score(i, w).size for i in range(problem.n_samples)]
    return np.split(values, np.cumsum(sizes)[:-1])


def dual_point(state):
    """Return the marginals alpha that a state stands for: its own, or those at its weights."""
    problem = state.problem
    if hasattr(state, "alpha"):
        return state.alpha
    if hasattr(state, "theta"):
        blocks = slots(problem, state.theta)
        return np.concatenate([problem.infer(i, theta)[0] for i, theta in enumerate(blocks)])
    return duality.alpha_hat(problem, state.w)
