"""Tokens tagged per second on the CoNLL-2000 test set, against CRFsuite's Tagger.

python benchmarks/tagging.py

Both are trained on the same part of the training set, with the same attributes. The clock covers
everything from items to labels: the lookup of attributes, scores and Viterbi. Items are dicts, as a
word2features function writes them, and lists of strings; sentences come all at once and one by one.
Seconds are medians of seven runs, taken in turn. The sizes of the model files are compared as well.
"""

import statistics
import tempfile
import time
from pathlib import Path

import pycrfsuite
from vocabulary import word2features

from sdcastruct import CRF, datasets

RUNS = 7
N_TRAIN = 2000


def train_crfsuite(X, y, path):
    """Train CRFsuite and write its model."""
    options = {"c2": 0.5, "max_iterations": 50, "feature.possible_transitions": True}
    trainer = pycrfsuite.Trainer(params=options, verbose=False)
    for items, labels in zip(X, y, strict=True):
        trainer.append(items, labels)
    trainer.train(str(path))


def compare(kind, X, methods):
    """Print the tokens per second of every method on the same items."""
    n_tokens, seconds = sum(map(len, X)), {name: [] for name in methods}
    for _ in range(RUNS):
        for name, tag in methods.items():
            start = time.perf_counter()
            tag(X)
            seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    print(f"{kind}: {len(X)} sentences, {n_tokens} tokens")
    for name, median in medians.items():
        ratio = medians["CRFsuite"] / median
        print(f"  {name:24s} {n_tokens / median:10.0f} tokens/s  {ratio:5.2f} times CRFsuite")


def main():
    """Train both, check that they agree, compare their speed and their files."""
    corpus, test = datasets.load_conll2000("train"), datasets.load_conll2000("test")
    X, y = corpus.X[:N_TRAIN], corpus.y[:N_TRAIN]
    crf = CRF(random_state=0).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = Path(folder, "crfsuite"), Path(folder, "sdcastruct")
        train_crfsuite(X, y, theirs)
        crf.save(ours)
        print(f"model files: CRFsuite {theirs.stat().st_size / 1e6:.1f} MB, ", end="")
        print(f"sdcastruct {ours.stat().st_size / 1e6:.1f} MB, ", end="")
        crf.save(ours, prune=1e-2)
        print(f"without weights below 0.01 {ours.stat().st_size / 1e6:.1f} MB")
        tagger = pycrfsuite.Tagger()
        tagger.open(str(theirs))
        methods = {
            "CRFsuite": lambda X: [tagger.tag(items) for items in X],
            "sdcastruct": crf.predict,
            "sdcastruct, one by one": lambda X: [crf.predict_single(items) for items in X],
        }
        pairs = zip(crf.predict(test.X), methods["CRFsuite"](test.X), strict=True)
        same = [ours == theirs for pair in pairs for ours, theirs in zip(*pair, strict=True)]
        print(f"labels in common: {sum(same) / len(same):.2%}")
        compare("lists of strings", test.X, methods)
        dicts = [[word2features(tokens, t) for t in range(len(tokens))] for tokens in test.tokens]
        compare("dicts", dicts, methods)


if __name__ == "__main__":
    main()
