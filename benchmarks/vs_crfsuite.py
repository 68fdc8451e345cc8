"""SDCA with gap sampling against CRFsuite's L-BFGS on CoNLL-2000, one thread each.

    pip install '.[bench]'
    python benchmarks/vs_crfsuite.py                    # all sentences: several minutes
    python benchmarks/vs_crfsuite.py --sentences 500    # a quick look

Both minimise n P(w) = sum -log p(y_i | x_i; w) + 1/2 ||w||^2 over the same weights (see
sdcastruct/reproduce/crfsuite.py). Printed are the seconds until P(w) / P* - 1 is at most 1e-1, 1e-2
and 1e-3. Both clocks start when the samples are loaded and packed. CRFsuite reports its
objective by itself; the weights of SDCA after each epoch are kept and judged after the clock has
stopped. P* is certified by SDCA to a relative gap of 1e-6.
"""

import argparse

import numpy as np
import tasks

from sdcastruct.problem import batch
from sdcastruct.reproduce import crfsuite
from sdcastruct.samplers import Gap
from sdcastruct.solvers import SDCA

TARGETS = (1e-1, 1e-2, 1e-3)


def objective(problem, w):
    """Return n P(w) for lam = 1/n."""
    return batch.losses(problem, w).sum() + 0.5 * (w @ w)


def optimum(problem):
    """Return n P*, the middle of a certified interval of relative width 1e-6, and the interval."""
    result = SDCA(random_state=1).solve(problem, tol=1e-6, max_epochs=500)
    low, high = problem.n_samples * result.dual, problem.n_samples * result.primal
    if not result.converged:
        raise RuntimeError(f"optimum only known to lie in [{low}, {high}]")
    return 0.5 * (low + high), (low, high)


def run_sdca(problem, seed):
    """Return the (seconds, n P(w)) of each epoch of SDCA, until the last target is reached."""
    points = []
    solver = SDCA(sampler=Gap(non_uniformity=0.8), random_state=seed)

    def keep(row):
        points.append((row.seconds, row.w))

    solver.solve(problem, tol=TARGETS[-1], max_epochs=100, callback=keep)
    return [(seconds, objective(problem, w)) for seconds, w in points]


def times_to_targets(trace, best):
    """Return the first second at which each target is met, NaN where it never is."""
    seconds, values = np.array(trace).T
    met = [np.flatnonzero(values / best - 1.0 <= target) for target in TARGETS]
    return np.array([seconds[hit[0]] if hit.size else np.nan for hit in met])


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, help="train on the first N sentences only")
    parser.add_argument("--repeats", type=int, default=3, help="runs of SDCA, median reported")
    options = parser.parse_args()
    task = tasks.conll2000(options.sentences)
    problem = task.model.bind(task.X, task.Y)
    print(
        f"{problem.n_samples} sentences, {task.model.n_features} attributes + 3 biases, "
        f"{task.model.n_states} labels, {problem.dim} weights"
    )
    best, (low, high) = optimum(problem)
    print(f"n P* = {best:.2f}, certified between {low:.3f} and {high:.3f}")

    runs = [times_to_targets(run_sdca(problem, seed), best) for seed in range(options.repeats)]
    ours = np.median(runs, axis=0)
    goal = best * (1.0 + TARGETS[-1])
    trace = crfsuite.trace(task.attributes, task.labels, stop_below=goal)
    theirs = times_to_targets(trace, best)
    print("suboptimality   CRFsuite L-BFGS   sdcastruct SDCA-gap   ratio")
    for target, slow, fast in zip(TARGETS, theirs, ours, strict=True):
        print(f"{target:13.0e} {slow:15.1f} s {fast:19.2f} s {slow / fast:7.1f}")


if __name__ == "__main__":
    main()
