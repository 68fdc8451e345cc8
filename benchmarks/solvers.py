"""All solvers on one problem: parameter updates and oracle calls until the primal is close.

    python benchmarks/solvers.py
    python benchmarks/solvers.py --task conll2000

Both axes of the paper's comparison, in passes over the data: n updates, or n calls of the marginal
oracle, make one pass; "-" was not reached. The optimum is that of SDCA to a relative gap of 1e-8.
The last column is the memory of the solver's state beside w, as a part of SDCA's.
"""

import argparse

import numpy as np
from tqdm import tqdm

from sdcastruct.reproduce import tasks
from sdcastruct.samplers import Gap, Uniform
from sdcastruct.solvers import OEG, SAG, SDCA

TASKS = {"ocr": "OCR", "conll2000": "CONLL"}
PRECISIONS = (1e-1, 1e-2, 1e-3, 1e-4)
SOLVERS = {
    "SDCA": SDCA(Uniform(), random_state=0),
    "SDCA-gap": SDCA(Gap(non_uniformity=0.8), random_state=0),
    "OEG": OEG(Uniform(), random_state=0),
    "OEG-gap": OEG(Gap(non_uniformity=0.8), random_state=0),
    "OEG-gap, exact gaps": OEG(Gap(non_uniformity=0.8), exact_gaps=True, random_state=0),
    "SAG": SAG(sampling="uniform", line_search="always", random_state=0),
    "SAG-NUS": SAG(sampling="nus", line_search="always", random_state=0),
    "SAG-NUS*": SAG(sampling="nus", line_search="skip", random_state=0),
}


def state_bytes(state):
    """Return the memory of a state, without its weights."""
    return sum(array.nbytes for name, array in state.arrays().items() if name != "w")


def passes(history, optimum, column, n_samples):
    """Return the passes of a column of the history at which each precision was reached."""
    below = (history.primal - optimum) / optimum
    reached = [np.flatnonzero(below <= precision) for precision in PRECISIONS]
    return [f"{history[column][r[0]] / n_samples:6.1f}" if r.size else "     -" for r in reached]


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=TASKS, default="ocr")
    parser.add_argument("--max-epochs", type=int, default=60)
    parser.add_argument("--samples", type=int, help="only so many samples")
    options = parser.parse_args()
    task = tasks.load(TASKS[options.task])
    n = options.samples or len(task.X)
    problem = task.model.bind(task.X[:n], task.Y[:n])
    optimum = SDCA(random_state=0).solve(problem, tol=1e-8, max_epochs=1000)
    bounds = f"{optimum.dual:.9f} and {optimum.primal:.9f}"
    print(f"{options.task}: {n} samples, optimum between {bounds}")
    largest, best = state_bytes(optimum.state), optimum.primal
    del optimum
    heads = " ".join(f"{p:6.0e}" for p in PRECISIONS)
    print(f"{'':20s}   updates / n to            oracle calls / n to")
    print(f"{'':20s} {heads}   {heads}  memory", flush=True)
    for name, solver in tqdm(SOLVERS.items(), unit="solver"):
        result = solver.solve(
            problem,
            tol=0,
            max_epochs=options.max_epochs,
            certify_every=1,
            callback=lambda row: row.primal <= best * (1 + PRECISIONS[-1]),
        )
        updates = " ".join(passes(result.history, best, "n_updates", n))
        calls = " ".join(passes(result.history, best, "n_oracle_calls", n))
        memory = state_bytes(result.state) / largest
        tqdm.write(f"{name:20s} {updates}   {calls} {memory:7.2f}")
        del result


if __name__ == "__main__":
    main()
