"""What generality costs: the OCR letters as chains, as trees and as graphs.

    python benchmarks/structures.py

ChainModel, TreeModel and GraphModel (through PairwiseModel) are given the same words with the same
features: the biases of ChainModel become three more attributes of the nodes. The first table has
the seconds of an SDCA epoch, epochs of the three taking turns, and the median of the ratios to
ChainModel. The second has the optimum that each certifies.
"""

import argparse
import time

import numpy as np

from sdcastruct.models import ChainModel, PairwiseModel, TreeModel
from sdcastruct.reproduce import tasks
from sdcastruct.samplers import Uniform
from sdcastruct.solvers import SDCA

WARM_UP_EPOCHS = 2


def with_biases(x):
    """Return the attributes of a word and the biases any, first and last position."""
    biases = np.zeros((len(x), 3))
    biases[:, 0] = biases[0, 1] = biases[-1, 2] = 1.0
    return np.hstack([x, biases])


def path(x):
    """Return the edges of a chain."""
    return np.stack([np.arange(len(x) - 1), np.arange(1, len(x))], axis=1)


def bind_all(words):
    """Return the problems of the three models, and the seconds that binding took."""
    chain = tasks.load("OCR")
    X, Y = chain.X[:words], chain.Y[:words]
    graphs = [(with_biases(x), path(x)) for x in X]
    A, K = chain.model.n_features, chain.model.n_states
    inputs = {
        "ChainModel": (ChainModel(K, A), X),
        "TreeModel": (TreeModel(K, A + 3), graphs),
        "GraphModel": (PairwiseModel(K, A + 3), graphs),
    }
    problems, seconds = {}, {}
    for name, (model, samples) in inputs.items():
        started = time.perf_counter()
        problems[name] = model.bind(samples, Y)
        seconds[name] = time.perf_counter() - started
    return problems, seconds


def epoch_seconds(problems, repeats):
    """Return the seconds of epochs of each problem, taking turns, shape (repeats, 3)."""
    states = []
    for problem in problems.values():
        state = SDCA(sampler=Uniform(), random_state=0).init(problem, 1.0 / problem.n_samples)
        for _ in range(WARM_UP_EPOCHS):
            state.epoch()
        states.append(state)
    rows = np.empty((repeats, len(states)))
    for r in range(repeats):
        for k, state in enumerate(states):
            started = time.perf_counter()
            state.epoch()
            rows[r, k] = time.perf_counter() - started
    return rows


def main():
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=int, help="only so many words")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--tol", type=float, default=1e-9, help="relative gap of the optima")
    options = parser.parse_args()
    problems, binding = bind_all(options.words)
    rows = epoch_seconds(problems, options.repeats)
    ratios = np.median(rows / rows[:, :1], axis=0)
    print("model       bind s  epoch s  times ChainModel  stored marginals MB")
    for (name, problem), seconds, ratio in zip(
        problems.items(), np.median(rows, axis=0), ratios, strict=True
    ):
        megabytes = 8e-6 * problem.n_marginals
        print(f"{name:10s} {binding[name]:7.2f} {seconds:8.3f} {ratio:17.2f} {megabytes:20.0f}")
    print("\nmodel       epochs  primal           dual             relative gap")
    primals = []
    for name, problem in problems.items():
        result = SDCA(random_state=0).solve(problem, tol=options.tol, max_epochs=2000)
        primals.append(result.primal)
        print(
            f"{name:10s} {result.n_epochs:7d}  {result.primal:.12f}  {result.dual:.12f}  "
            f"{result.relative_gap:.1e}"
        )
    print(f"largest difference of the primals: {max(primals) - min(primals):.1e}")


if __name__ == "__main__":
    main()
