"""CRFsuite on the same problem as ours, with its objective and clock at every iteration.

With c1 = 0 and c2 = 1/2 CRFsuite minimises

    sum_i -log p(y_i | x_i; w) + 1/2 ||w||^2  =  n P(w)     for lam = 1/n.

The weights are the same as well: all (attribute, label) pairs, all transitions, and the biases of
our chain model as attributes: ``bias`` at every token, ``BOS`` at the first, ``EOS`` at the last.

L-BFGS logs n P(w) itself. SGD logs the losses that it met on its way through the epoch, when most
of them were larger than at its end: its curve is a bit too high.

CRFsuite cannot be stopped between two iterations without leaking its memory into the process that
is being measured, so it trains in a process of its own. Needs python-crfsuite.
"""

import multiprocessing
import signal
import time

import numpy as np
import pycrfsuite
from sklearn.utils import Bunch

from sdcastruct.reproduce.store import Record

SAME_WEIGHTS = {
    "feature.minfreq": 0,
    "feature.possible_states": True,
    "feature.possible_transitions": True,
}
PARAMETERS = {
    # Stop at max_iterations or where the line search finds no descent, not earlier.
    "lbfgs": {**SAME_WEIGHTS, "c1": 0.0, "c2": 0.5, "epsilon": 1e-12, "delta": 0.0},
    "l2sgd": {**SAME_WEIGHTS, "c2": 0.5, "delta": 0.0},
}
LBFGS_ITERATIONS = 2000


class TimedTrainer(pycrfsuite.Trainer):
    """A trainer that reports (seconds, loss) of each iteration as soon as CRFsuite logs it.

    The clock starts when CRFsuite has generated its features.
    """

    report = staticmethod(print)
    clock = staticmethod(time.perf_counter)

    def on_featgen_end(self, log):
        self.start = self.clock()

    def on_iteration(self, log, info):
        self.report((self.clock() - self.start, info["loss"]))

    def _ignore(self, *args):
        """Keep the rest of the log off the screen."""

    on_start = on_featgen_progress = on_prepared = on_optimization_end = on_end = _ignore


def with_biases(sentence):
    """Return the attribute lists of a sentence with those of the three biases added."""
    tokens = [[*attributes, "bias"] for attributes in sentence]
    tokens[0].append("BOS")
    tokens[-1].append("EOS")
    return tokens


def make_trainer(X, y, algorithm, max_iterations):
    """Return a trainer that holds the corpus.

    Parameters
    ----------
    X : list of lists of lists of str
        Sentences, tokens, attributes, without biases.
    y : list of lists of str
        The labels.
    algorithm : {"lbfgs", "l2sgd"}
    max_iterations : int
    """
    parameters = {**PARAMETERS[algorithm], "max_iterations": max_iterations}
    trainer = TimedTrainer(algorithm, params=parameters)
    for sentence, labels in zip(X, y, strict=True):
        trainer.append(with_biases(sentence), labels)
    return trainer


def trace(
    X,
    y,
    algorithm="lbfgs",
    max_iterations=LBFGS_ITERATIONS,
    stop_below=-np.inf,
    clock=time.perf_counter,
):
    """Train and return what CRFsuite reached when.

    Parameters
    ----------
    X, y, algorithm, max_iterations
        As for :func:`make_trainer`.
    stop_below : float, optional
        End as soon as n P(w) is below this value.
    clock : callable, optional
        What counts the seconds.

    Returns
    -------
    list of (seconds, n P(w)) tuples
        One per iteration; the time is that of training alone.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    arguments = (X, y, algorithm, max_iterations, sender, clock)
    child = context.Process(target=_train, args=arguments, daemon=True)
    child.start()
    sender.close()
    points = []
    try:
        while (point := receiver.recv()) is not None:
            points.append(point)
            if point[1] < stop_below:
                break
    except EOFError:
        child.join()
        raise RuntimeError(f"CRFsuite's process ended with exit code {child.exitcode}") from None
    finally:
        child.kill()
        child.join()
    return points


def train(task, algorithm, goal, max_epochs):
    """Record how CRFsuite trains on a task until its primal is at most `goal`."""
    n = len(task.X)
    most = LBFGS_ITERATIONS if algorithm == "lbfgs" else max_epochs
    found = trace(task.items(), task.labels, algorithm, most, n * goal, time.process_time)
    points = np.array(found)
    return Record({}, Bunch(seconds=points[:, 0], primal=points[:, 1] / n))


def _train(X, y, algorithm, max_iterations, sender, clock):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    trainer = make_trainer(X, y, algorithm, max_iterations)
    trainer.report, trainer.clock = sender.send, clock
    trainer.train("")  # an empty name: no model file
    sender.send(None)
