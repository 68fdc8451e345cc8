"""Which measurements there are; each is stored when it is done and read when it is asked again."""

import hashlib
import sys
from functools import cached_property, partial
from pathlib import Path

import sdcastruct
from sdcastruct.reproduce import tasks
from sdcastruct.reproduce.store import Store
from suite import corpus, costs, trainers
from suite.processes import NO_LIMIT, measure

PRECISIONS = (1e-1, 1e-2, 1e-3, 1e-4)
OPTIMUM_TOLERANCE = 1e-6
SLOW_SECONDS = 300
THREADS, THREADS_TOLERANCE = (1, 2), 1e-3
# A run is repeated, up to so many times, while more than this part of its processors was stolen.
ATTEMPTS, LITTLE_STOLEN = 6, 0.02
STORAGE, STORAGE_TOLERANCE = {"float64": {}, "float32": trainers.FLOAT32}, 1e-4
MAPPED, MAPPED_TOLERANCE = {"in-memory": {}, "mapped": {"resident": 0.5}}, 1e-3
PARTS_OF_CORPUS = (8, 4, 2, 1)
# Chains that fill the same memory, so that caches see no difference.
LENGTHS, NODES, LENGTHS_STATES = (25, 50, 100, 200, 400), 40_000, 22
STATES, STATES_LENGTH, STATES_ENTRIES = (10, 22, 45, 100, 200), 25, 40_000_000


class Laboratory:
    """Measures what is missing.

    Parameters
    ----------
    output : Path
        Folder of the results.
    sentences : int or None
        Use only so many sequences of each task.
    repeats, slow_repeats : int
        How often everything is measured; trainers that take more than five minutes on a task are
        measured `slow_repeats` times there.
    max_seconds : float
        A trainer is ended after so many seconds.
    """

    def __init__(self, output, sentences, repeats, slow_repeats, max_seconds=NO_LIMIT):
        self.output, self.sentences, self.max_seconds = output, sentences, max_seconds
        self.repeats, self.slow_repeats = repeats, min(repeats, slow_repeats)
        self.store = Store(output)

    @cached_property
    def build(self):
        """A fingerprint of the compiled code: numbers of two builds are never mixed."""
        digest = hashlib.sha256()
        for path in sorted(Path(sdcastruct.__file__).parent.rglob("*.so")):
            digest.update(path.read_bytes())
        return digest.hexdigest()[:12]

    def corpus(self, task):
        """Return the file of a task, written if need be."""
        path = self.output / "corpora" / f"{task}-{self.sentences or 'all'}.npz"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            corpus.from_task(tasks.load(task, self.sentences)).save(path)
        return path

    def record(self, task, name, function, *arguments, ours=True, settings=(), **limits):
        """Return the record of a measurement, made if need be."""
        identity = {"sentences": self.sentences, **dict(settings)}
        if ours:
            identity["build"] = self.build
        if not self.store.has(task, name):
            found = measure(function, *arguments, **limits)
            self.store.write(task, name, identity, found)
            last = ", ".join(f"{key} {column[-1]:.4g}" for key, column in found.columns.items())
            print(f"{task} {name}: {last}", file=sys.stderr)
        return self.store.read(task, name, identity)

    def optimum(self, task):
        """Return P*, the middle of the certified interval."""
        arguments = trainers.certified_sdca, self.corpus(task), OPTIMUM_TOLERANCE
        found = self.record(task, "optimum", *arguments).columns
        return 0.5 * (found.primal[0] + found.dual[0])

    def traces(self, task, names):
        """Return P*, and {name: [record of each repetition]} of trainers, which take turns."""
        optimum = self.optimum(task)
        goal = optimum * (1.0 + PRECISIONS[-1])
        found = {name: [] for name in names}
        for repeat in range(self.repeats):
            for name in names:
                if repeat < self._allowed(found[name]):
                    trainer = trainers.TRAINERS[name]
                    record = self.record(
                        task,
                        f"{name}-{repeat}",
                        trainer.train,
                        self.corpus(task),
                        goal,
                        ours=trainer.ours,
                        settings={"max_seconds": self.max_seconds},
                        enough=None if trainer.ours else lambda row: row.primal <= goal,
                        max_seconds=self.max_seconds,
                    )
                    found[name].append(record)
        return optimum, found

    def _allowed(self, done):
        slow = done and done[0].columns.seconds[-1] > SLOW_SECONDS
        return self.slow_repeats if slow else self.repeats

    def certified(self, task, variants, tol):
        """Return {variant: [record of each repetition]} of runs to a certified gap."""
        found = {variant: [] for variant in variants}
        for seed in range(self.repeats):
            for variant, options in variants.items():
                name = f"certified-{variant}-{seed}"
                found[variant].append(self._certified(task, name, tol, seed, **options))
        return found

    def _certified(self, task, name, tol, seed, **options):
        train = partial(trainers.certified_sdca, random_state=seed, **options)
        return self.record(task, name, train, self.corpus(task), tol, settings={"seed": seed})

    def threads(self, task):
        """Return a record of each repetition: runs with one thread and with more in one process.

        It is that of the first attempt of which the host has stolen little, or of the one with the
        least stolen. Which number of threads comes first changes from seed to seed.
        """
        found, how = [], {"owned": 2.0, **trainers.FLOAT32}
        for seed in range(self.repeats):
            n_jobs = THREADS if seed % 2 == 0 else THREADS[::-1]
            attempts = []
            for attempt in range(ATTEMPTS):
                name = f"certified-threads-{seed}-{attempt}"
                attempts.append(
                    self._certified(task, name, THREADS_TOLERANCE, seed, n_jobs=n_jobs, **how)
                )
                if _stolen(attempts[-1]) <= LITTLE_STOLEN:
                    break
            found.append(min(attempts, key=_stolen))
        return found

    def storage(self, task):
        """Return runs with marginals in double and single precision, to the same certified gap."""
        return self.certified(task, STORAGE, STORAGE_TOLERANCE)

    def mapped(self, task):
        """Return runs with marginals in memory, and mapped into half as much as they need."""
        return self.certified(task, MAPPED, MAPPED_TOLERANCE)

    def epoch_cost(self, task, sampler, epochs):
        """Return seconds of epochs and of oracle passes."""
        return self.record(
            task,
            f"epoch-{sampler}",
            costs.epoch_against_oracle,
            self.corpus(task),
            sampler,
            epochs,
            settings={"epochs": epochs},
        ).columns

    def updates(self, task, repeats):
        """Return seconds per update, ours and NumPy's."""
        arguments = costs.updates_against_numpy, self.corpus(task), repeats
        return self.record(task, "updates", *arguments, settings={"repeats": repeats}).columns

    def dense(self, repeats):
        """Return seconds of products of dense attributes, ours and NumPy's, by number of labels."""
        how = {"settings": {"repeats": repeats}}
        return {
            K: self.record(
                "synthetic", f"dense-{K}", costs.dense_against_numpy, K, repeats, **how
            ).columns
            for K in costs.DENSE_STATES
        }

    def scaling(self, task, epochs):
        """Yield (what grows, its value, seconds) as a corpus, chains and labels grow."""
        how = {"settings": {"epochs": epochs}}
        for step in PARTS_OF_CORPUS:
            arguments = costs.epoch_of_part, self.corpus(task), step, epochs
            found = self.record(task, f"scaling-n-{step}", *arguments, **how).columns
            yield "n", found.n[0], found.epoch
        for length in LENGTHS:
            shape = NODES // length, length, LENGTHS_STATES
            arguments = costs.epoch_of_synthetic, *shape, epochs
            found = self.record("synthetic", f"scaling-T-{length}", *arguments, **how).columns
            yield "T", length, found.epoch / found.n
        for n_states in STATES:
            n_chains = STATES_ENTRIES // (STATES_LENGTH * n_states**2)
            arguments = costs.epoch_of_synthetic, n_chains, STATES_LENGTH, n_states, epochs
            found = self.record("synthetic", f"scaling-K-{n_states}", *arguments, **how).columns
            yield "K", n_states, found.epoch / found.n


def _stolen(record):
    return record.columns.stolen.max()
