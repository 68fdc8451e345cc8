"""Peak memory of training on CoNLL-2000, as a multiple of the stored marginals.

python benchmarks/memory.py
"""

import gc
import resource
import sys

import tasks

from sdcastruct.solvers import SDCA

EPOCHS = 2


def main():
    """Train for a few epochs and print the peak resident set."""
    model, X, Y = tasks.conll2000()[:3]
    gc.collect()
    problem = model.bind(X, Y)
    SDCA(random_state=0).solve(problem, tol=0, max_epochs=EPOCHS)
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    marginals = 8 * problem.n_marginals
    print(f"stored marginals {marginals / 1e6:.0f} MB, peak resident set {peak / 1e6:.0f} MB")
    print(f"ratio {peak / marginals:.2f}")


if __name__ == "__main__":
    main()
