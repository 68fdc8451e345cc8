"""What a step of SDCA costs: an epoch against one pass of the marginal oracle over all samples.

    python benchmarks/epoch_cost.py

An oracle pass scores every sample and infers its marginals. An SDCA epoch does that for n draws
and adds the block gap, the line search and the updates of the dual point and of the weights. Gap
sampling prefers long sequences, so that its n draws see more nodes than one pass; the column
"nodes" says how many, as a multiple of a pass. Oracle and epochs alternate, and the median of the
ratios is printed.
"""

import argparse
import time

import numpy as np
import tasks

from sdcastruct.problem import batch
from sdcastruct.samplers import Gap, Uniform
from sdcastruct.solvers import SDCA

WARM_UP_EPOCHS = 3


def seconds(function, *arguments):
    """Return how long a call takes."""
    started = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - started


def measure(task, sampler, repeats):
    """Return medians: epoch over oracle, seconds of the oracle, microseconds per step, nodes."""
    problem = task.model.bind(task.X, task.Y)
    state = SDCA(sampler=sampler, random_state=0).init(problem, 1.0 / problem.n_samples)
    for _ in range(WARM_UP_EPOCHS):
        state.epoch()
    lengths = np.array([x.shape[0] for x in task.X])
    nodes = state.sampler.probabilities() @ lengths / lengths.mean()
    rows = []
    for _ in range(repeats):
        oracle, epoch = seconds(batch.losses, problem, state.w), seconds(state.epoch)
        rows.append((epoch / oracle, oracle, 1e6 * epoch / problem.n_samples))
    return (*np.median(rows, axis=0), nodes)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--task", choices=("ocr", "conll2000"), help="only this one")
    options = parser.parse_args()
    print("task       sampler  epoch/oracle  oracle s  us/step  nodes")
    for name in [options.task] if options.task else ("ocr", "conll2000"):
        task = getattr(tasks, name)()
        for sampler in (Uniform(), Gap(non_uniformity=0.8)):
            ratio, oracle, step, nodes = measure(task, sampler, options.repeats)
            kind = type(sampler).__name__
            print(f"{name:10s} {kind:8s} {ratio:12.2f}  {oracle:8.3f} {step:8.1f} {nodes:6.2f}")


if __name__ == "__main__":
    main()
