"""CRFsuite's L-BFGS on the same problem as ours, with its objective and clock at every iteration.

With c1 = 0 and c2 = 1/2 CRFsuite minimises

    sum_i -log p(y_i | x_i; w) + 1/2 ||w||^2  =  n P(w)     for lam = 1/n.

The weights are the same as well: all (attribute, label) pairs, all transitions, and the biases of
our chain model as attributes: ``bias`` at every token, ``BOS`` at the first, ``EOS`` at the last.

CRFsuite cannot be stopped between two iterations without leaking its memory into the process that
is being measured, so it trains in a process of its own.
"""

import multiprocessing
import time

import pycrfsuite

PARAMETERS = {
    "c1": 0.0,
    "c2": 0.5,
    "feature.minfreq": 0,
    "feature.possible_states": True,
    "feature.possible_transitions": True,
    # Stop at max_iterations or where the line search finds no descent, not earlier.
    "epsilon": 1e-12,
    "delta": 0.0,
}


class TimedTrainer(pycrfsuite.Trainer):
    """A trainer that reports (seconds, loss) of each iteration as soon as CRFsuite logs it.

    The clock starts when CRFsuite has generated its features.
    """

    report = staticmethod(print)

    def on_featgen_end(self, log):
        self.start = time.perf_counter()

    def on_iteration(self, log, info):
        self.report((time.perf_counter() - self.start, info["loss"]))

    def _ignore(self, *args):
        """Keep the rest of the log off the screen."""

    on_start = on_featgen_progress = on_prepared = on_optimization_end = on_end = _ignore


def with_biases(sentence):
    """Return the attribute lists of a sentence with those of the three biases added."""
    tokens = [[*attributes, "bias"] for attributes in sentence]
    tokens[0].append("BOS")
    tokens[-1].append("EOS")
    return tokens


def make_trainer(X, y, max_iterations):
    """Return a trainer that holds the corpus.

    Parameters
    ----------
    X : list of lists of lists of str
        Sentences, tokens, attributes, without biases.
    y : list of lists of str
        The labels.
    max_iterations : int
    """
    trainer = TimedTrainer(params={**PARAMETERS, "max_iterations": max_iterations})
    for sentence, labels in zip(X, y, strict=True):
        trainer.append(with_biases(sentence), labels)
    return trainer


def train_lbfgs(X, y, max_iterations, stop_below=None):
    """Train and return what CRFsuite reached when.

    Parameters
    ----------
    X, y, max_iterations
        As for :func:`make_trainer`.
    stop_below : float, optional
        End as soon as n P(w) is below this value.

    Returns
    -------
    list of (seconds, n P(w)) tuples
        One per iteration; the time is that of training alone.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_train, args=(X, y, max_iterations, sender), daemon=True)
    child.start()
    sender.close()
    trace = []
    try:
        while (point := receiver.recv()) is not None:
            trace.append(point)
            if stop_below is not None and point[1] < stop_below:
                break
    except EOFError:
        child.join()
        raise RuntimeError(f"CRFsuite's process ended with exit code {child.exitcode}") from None
    finally:
        child.kill()
        child.join()
    return trace


def _train(X, y, max_iterations, sender):
    trainer = make_trainer(X, y, max_iterations)
    trainer.report = sender.send
    trainer.train("")  # an empty name: no model file
    sender.send(None)
