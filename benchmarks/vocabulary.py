"""From items to matrices on CoNLL-2000, against CRFsuite's append and feature generation.

python benchmarks/vocabulary.py

The items are dicts, as a word2features function writes them, and lists of strings. Seconds are
medians of three runs; memory is the peak of what the vectorizer allocates, its matrix included,
against the corpus as a file of attributes in CRFsuite's format. The vocabulary that a fitted
vectorizer holds is compared with its attributes as a text file, one per line.
"""

import statistics
import time
import tracemalloc

import pycrfsuite

from sdcastruct import datasets
from sdcastruct.features import Vectorizer, template_name
from sdcastruct.features.templates import CHUNKING

RUNS = 3
NAMED = [(template_name(template), template) for template in CHUNKING]


def word2features(tokens, t):
    """Return the item of token t: one string per template that fits into the sentence."""
    item = {}
    for name, template in NAMED:
        if all(0 <= t + offset < len(tokens) for _, offset in template):
            fields = (tokens[t + offset][0 if field == "w" else 1] for field, offset in template)
            item[name] = "|".join(fields)
    return item


def crfsuite_seconds(X, y):
    """Return the seconds of append, and those that CRFsuite logs for feature generation."""
    trainer = pycrfsuite.Trainer(params={"max_iterations": 1}, verbose=False)
    start = time.perf_counter()
    for items, labels in zip(X, y, strict=True):
        trainer.append(items, labels)
    appended = time.perf_counter() - start
    trainer.train("")  # an empty name: no model file
    return appended, trainer.logparser.featgen_seconds


def seconds(function, *arguments):
    """Return the seconds of a call; what it returns is freed outside the clock."""
    start = time.perf_counter()
    result = function(*arguments)
    elapsed = time.perf_counter() - start
    del result
    return elapsed


def size_on_disk(X, y):
    """Return the bytes of the corpus in CRFsuite's format: label, attributes, one line per item."""
    size = 0
    for items, labels in zip(X, y, strict=True):
        for item, label in zip(pycrfsuite.ItemSequence(items).items(), labels, strict=True):
            size += len("\t".join([label, *item]).encode()) + 1
        size += 1
    return size


def peak_bytes(function, *arguments):
    """Return the most that a call held at one time of what it allocated."""
    tracemalloc.start()
    result = function(*arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del result
    return peak


def compare(kind, X, y):
    """Print the seconds and the memory of both for items of one kind."""
    vectorizer = Vectorizer()
    vectorized, appended, generated = [], [], []
    for _ in range(RUNS):
        vectorized.append(seconds(vectorizer.fit_transform, X))
        for times, elapsed in zip((appended, generated), crfsuite_seconds(X, y), strict=True):
            times.append(elapsed)
    theirs = statistics.median(map(sum, zip(appended, generated, strict=True)))
    print(f"{kind}: {sum(map(len, y))} items, {len(vectorizer.vocabulary_)} attributes")
    print(
        f"  CRFsuite {theirs:.2f} s (append {statistics.median(appended):.2f}, "
        f"feature generation {statistics.median(generated):.2f})"
    )
    ours = statistics.median(vectorized)
    print(f"  sdcastruct {ours:.2f} s, ratio {ours / theirs:.3f}")
    peak, disk = peak_bytes(vectorizer.fit_transform, X), size_on_disk(X, y)
    print(f"  peak memory {peak / 1e6:.1f} MB, corpus on disk {disk / 1e6:.1f} MB, ", end="")
    print(f"ratio {peak / disk:.2f}")
    held = vectorizer.vocabulary_.nbytes
    lines = sum(len(name.encode()) + 1 for name in vectorizer.attributes_)
    print(f"  vocabulary {held / 1e6:.1f} MB, on disk {lines / 1e6:.1f} MB, ", end="")
    print(f"ratio {held / lines:.2f}")


def main():
    """Compare on dicts and on lists of strings."""
    corpus = datasets.load_conll2000()
    dicts = [[word2features(tokens, t) for t in range(len(tokens))] for tokens in corpus.tokens]
    compare("dicts", dicts, corpus.y)
    del dicts
    compare("lists of strings", corpus.X, corpus.y)


if __name__ == "__main__":
    main()
