"""All benchmarks of training: against CRFsuite, Wapiti and NumPy, threads, memory, scaling.

    pip install '.[bench]' libwapiti
    python benchmarks/run_all.py                                    # hours
    python benchmarks/run_all.py --sentences 300 --repeats 1        # a quick look
    python benchmarks/run_all.py --parts time --tasks CONLL --peers crfsuite-lbfgs

Every measurement runs in a process of its own and is stored in the folder --output as a CSV file
when it is done; the same command goes on where an earlier one ended. Repetitions of runs to a
certificate (threads, storage, mapped) have a seed each. All seconds are wall time, so
leave the machine alone. The parts:

time     seconds until P(w) is within 1e-1, ..., 1e-4 of the optimum P*, which SDCA certifies to
         1e-6, and peak memory of the whole process, Python and the imports of all trainers, about
         150 MB, included; trainers take turns (what their clocks include: suite/trainers.py)
threads  seconds of `solve` until a relative gap of 1e-3 is certified, one and two threads in turn
         in one process. A virtual machine may have less than two processors: the pair is repeated,
         up to six times, while more than 2 % of their time is stolen by others, and the pair with
         the least counts, whatever its seconds. Threads that share weights are slower on processors
         that share no cache, between which its host may move it: where a cache line takes more than
         80 ns from one to the other, pairs are also told apart. Others that use the same caches and
         cores are seen by nobody: take --repeats 9 or more
storage  memory and seconds until 1e-4 is certified, marginals in float64 and float32
mapped   the same until 1e-3, marginals in memory, and mapped from a file with no more resident
         memory of the whole process than half of their size (Linux; on few sentences the rest of
         the process alone needs more)
epoch    cost of an epoch of SDCA in passes of the marginal oracle over all samples
numpy    cost of an update against SDCA in NumPy
dense    cost of the products of dense attributes (random numbers as embeddings of words) against
         those of the BLAS of NumPy
scaling  how the cost of epochs grows with samples, lengths and labels
"""

import argparse
import sys
from pathlib import Path

from suite import figure, tables, trainers
from suite.laboratory import Laboratory

from sdcastruct.reproduce.tables import markdown
from sdcastruct.reproduce.tasks import LOADERS

THREADS_TASKS = "CONLL", "NER"
EPOCH_TASKS = "OCR", "CONLL", "POS"
STORAGE_TASK = SCALING_TASK = "CONLL"
MAPPED_TASK = "POS"
NUMPY_TASK = "OCR"
PEERS = [name for name, trainer in trainers.TRAINERS.items() if not trainer.ours]


def time_part(laboratory, options):
    """Compare trainers; draw how they converge."""
    missing = trainers.missing()
    for name, reason in missing.items():
        print(f"Without {trainers.TRAINERS[name].title}: {reason}.\n")
    wanted = [n for n, t in trainers.TRAINERS.items() if t.ours or n in options.peers]
    names = [name for name in wanted if name not in missing]
    traces = {task: laboratory.traces(task, names) for task in options.tasks}
    path = options.output / "convergence.png"
    figure.convergence(traces).savefig(path, dpi=120)
    return f"Seconds to a suboptimality, drawn in {path}", tables.times(traces)


def threads_part(laboratory, options):
    """Compare one thread with two."""
    found = {task: laboratory.threads(task) for task in options.tasks if task in THREADS_TASKS}
    return "Seconds to a certified relative gap of 1e-3", tables.threads(found) if found else []


def storage_part(laboratory, options):
    """Compare double with single precision."""
    if STORAGE_TASK not in options.tasks:
        return "", []
    found = laboratory.storage(STORAGE_TASK)
    return f"{STORAGE_TASK} to a certified relative gap of 1e-4", tables.storage(found)


def mapped_part(laboratory, options):
    """Compare marginals in memory with marginals in a file."""
    if MAPPED_TASK not in options.tasks or sys.platform != "linux":
        return "", []
    found = laboratory.mapped(MAPPED_TASK)
    return f"{MAPPED_TASK} to a certified relative gap of 1e-3", tables.storage(found)


def epoch_part(laboratory, options):
    """Compare epochs with oracle passes."""
    found = {
        (task, sampler): laboratory.epoch_cost(task, sampler, options.epochs)
        for task in options.tasks
        if task in EPOCH_TASKS
        for sampler in ("gap", "uniform")
    }
    return "Cost of an epoch in passes of the oracle", tables.epoch_costs(found)


def numpy_part(laboratory, options):
    """Compare updates with those of NumPy."""
    tasks = [task for task in options.tasks if task == NUMPY_TASK]
    found = {task: laboratory.updates(task, options.epochs) for task in tasks}
    return "Cost of an update, uniform sampling", tables.updates(found)


def dense_part(laboratory, options):
    """Compare products of dense attributes with those of NumPy."""
    found = laboratory.dense(options.epochs)
    return "Products of dense attributes, 768 per word", tables.dense(found)


def scaling_part(laboratory, options):
    """Fit powers to the growth of the cost."""
    if SCALING_TASK not in options.tasks:
        return "", []
    found = laboratory.scaling(SCALING_TASK, options.epochs)
    return "Growth, medians after warm-up epochs", tables.scaling(found, SCALING_TASK)


PARTS = {
    "time": time_part,
    "threads": threads_part,
    "storage": storage_part,
    "mapped": mapped_part,
    "epoch": epoch_part,
    "numpy": numpy_part,
    "dense": dense_part,
    "scaling": scaling_part,
}


def positive(text):
    """Return an integer >= 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected an integer >= 1")
    return int(text)


def parse():
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tasks, parts = tuple(LOADERS), tuple(PARTS)
    parser.add_argument("--output", type=Path, default=Path("benchmark-results"), metavar="FOLDER")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--tasks", nargs="+", choices=tasks, default=tasks)
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=PEERS)
    parser.add_argument("--sentences", type=positive, metavar="N", help="only the first N of each")
    parser.add_argument("--repeats", type=positive, default=3, metavar="N")
    parser.add_argument(
        "--repeats-slow",
        type=positive,
        metavar="N",
        help="repetitions of a trainer that takes more than five minutes on a task (--repeats)",
    )
    parser.add_argument(
        "--epochs", type=positive, default=9, metavar="N", help="repetitions of single epochs"
    )
    parser.add_argument(
        "--max-seconds", type=float, default=3600.0, metavar="S", help="end a trainer after S"
    )
    return parser.parse_args()


def main():
    """Measure what is missing; print and write the tables."""
    options = parse()
    laboratory = Laboratory(
        options.output,
        options.sentences,
        options.repeats,
        options.repeats_slow or options.repeats,
        options.max_seconds,
    )
    texts = []
    for part in options.parts:
        title, rows = PARTS[part](laboratory, options)
        if len(rows) > 1:
            texts.append(f"**{title}**\n\n{markdown(rows)}\n")
            print(texts[-1], flush=True)
    (options.output / "tables.md").write_text("\n".join(texts), encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except (FileNotFoundError, ValueError) as error:  # no corpus, or results of another run
        sys.exit(f"run_all.py: {error}")
    except KeyboardInterrupt:
        sys.exit("run_all.py: interrupted, the same command goes on")
