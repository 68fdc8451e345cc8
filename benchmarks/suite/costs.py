"""What epochs and updates cost, and how that grows.

Epochs are measured after warm-up epochs, when all memory has been touched and the sampler knows the
gaps. Each function runs in a process of its own and reports one row per repetition.
"""

import time

import numpy as np

from sdcastruct.models import ChainModel
from sdcastruct.problem import batch
from sdcastruct.samplers import Gap, Uniform
from sdcastruct.solvers import SDCA
from suite import corpus, trainers
from suite.numpy_sdca import NumpySDCA

WARM_UP_EPOCHS = 3
NUMPY_STEPS = 300
# Sentences whose words have embeddings.
DENSE_CHAINS, DENSE_LENGTH, DENSE_FEATURES, DENSE_STATES = 200, 25, 768, (9, 26)
SAMPLERS = {"gap": Gap(non_uniformity=0.8), "uniform": Uniform()}


def seconds(function, *arguments):
    """Return how long a call takes."""
    started = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - started


def warm_state(problem, sampler):
    """Return a state of SDCA after some epochs."""
    solver = SDCA(sampler=SAMPLERS[sampler], random_state=0, **trainers.FLOAT32)
    state = solver.init(problem, 1.0 / problem.n_samples)
    for _ in range(WARM_UP_EPOCHS):
        state.epoch()
    return state


def epoch_against_oracle(report, path, sampler, repeats):
    """Measure epochs and passes of the oracle over all samples, taking turns.

    An oracle pass scores every sample and infers its marginals, `oracle` in the order of memory,
    `drawn` for n samples that are drawn as the epoch draws them. An epoch does the latter and adds
    the block gap, the line search and the updates of the dual point and of the weights. Gap
    sampling prefers long chains, so that its draws see more nodes than a pass: `nodes` times as
    many.
    """
    data = corpus.load(path)
    problem = data.bind()
    state = warm_state(problem, sampler)
    lengths, rng = np.diff(data.starts), np.random.default_rng(0)
    for _ in range(repeats):
        chances = state.sampler.probabilities()
        draws = rng.choice(problem.n_samples, problem.n_samples, p=chances)
        report(
            oracle=seconds(batch.infer_each, problem, state.w),
            epoch=seconds(state.epoch),
            drawn=seconds(batch.infer_each, problem, state.w, draws),
            nodes=chances @ lengths / lengths.mean(),
        )


def updates_against_numpy(report, path, repeats):
    """Measure seconds per update of our compiled code and of NumPy's, taking turns."""
    data = corpus.load(path)
    problem = data.bind()
    n = problem.n_samples
    ours = warm_state(problem, "uniform")
    numpy = NumpySDCA(*data.chains(), data.n_states, 1.0 / n)
    rng = np.random.default_rng(0)

    def steps(samples):
        for i in samples:
            numpy.step(i)

    steps(rng.permutation(n))  # every block has left the initial point
    for _ in range(repeats):
        samples = rng.integers(n, size=NUMPY_STEPS)
        theirs = seconds(steps, samples) / NUMPY_STEPS
        report(ours=seconds(ours.epoch) / n, numpy=theirs)


def dense_against_numpy(report, n_states, repeats):
    """Measure the products of dense attributes and NumPy's of the same matrices, taking turns.

    `score` is X_i W of every chain, `add` the sum of X_i^T m_i, both per chain, and `epoch` an
    epoch of SDCA likewise.
    """
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(DENSE_LENGTH, DENSE_FEATURES)) for _ in range(DENSE_CHAINS)]
    Y = [rng.integers(n_states, size=DENSE_LENGTH) for _ in X]
    problem = ChainModel(n_states, DENSE_FEATURES).bind(X, Y)
    state = warm_state(problem, "uniform")
    m = [rng.normal(size=(DENSE_LENGTH, n_states)) for _ in X]
    W = rng.normal(size=(DENSE_FEATURES, n_states))
    w = np.empty(problem.dim)

    def numpy_scores():
        for x in X:
            x @ W

    def numpy_sum():
        total = np.zeros_like(W)
        for x, own in zip(X, m, strict=True):
            total += x.T @ own

    for _ in range(repeats):
        calls = {
            "score": (batch.scores, problem, state.w),
            "numpy_score": (numpy_scores,),
            "add": (batch.conjugate_weights, problem, state.m, 1.0, w),
            "numpy_add": (numpy_sum,),
            "epoch": (state.epoch,),
        }
        report(**{name: seconds(*call) / len(X) for name, call in calls.items()})


def epoch_of_part(report, path, step, repeats):
    """Measure epochs on every step-th chain of a corpus."""
    _epochs(report, corpus.load(path).every(step), repeats)


def epoch_of_synthetic(report, n_chains, length, n_states, repeats):
    """Measure epochs on random chains."""
    _epochs(report, corpus.synthetic(n_chains, length, n_states), repeats)


def _epochs(report, data, repeats):
    state = warm_state(data.bind(), "gap")
    for _ in range(repeats):
        report(epoch=seconds(state.epoch), n=data.n_chains)
