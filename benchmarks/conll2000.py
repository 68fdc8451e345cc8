"""Train on all of CoNLL-2000 and print the certificate after every epoch.

    python benchmarks/conll2000.py

lam = 1/n, gap sampling with non-uniformity 0.8; the attributes that occur at least three times.
"""

import argparse

import tasks

from sdcastruct.samplers import Gap
from sdcastruct.solvers import SDCA


def main():
    """Print one line per epoch, then the verdict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tol", type=float, default=2e-3, help="relative gap to certify")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    task = tasks.conll2000()
    problem = task.model.bind(task.X, task.Y)
    n = problem.n_samples
    print(f"{n} sentences, {task.model.n_features} attributes + 3 biases, {problem.dim} weights")
    print("epoch  seconds       n P       n D   relative gap")

    def show(row):
        print(
            f"{row.epoch:5d} {row.seconds:8.2f} {n * row.primal:9.2f} {n * row.dual:9.2f} "
            f"{row.gap / row.primal:14.2e}"
        )

    solver = SDCA(sampler=Gap(non_uniformity=0.8), random_state=options.seed)
    result = solver.solve(problem, tol=options.tol, certify_every=1, callback=show)
    print(
        f"{'certified' if result.converged else 'not reached'}: relative gap "
        f"{result.relative_gap:.2e} after {result.n_epochs} epochs, "
        f"n P* between {n * result.dual:.2f} and {n * result.primal:.2f}"
    )


if __name__ == "__main__":
    main()
