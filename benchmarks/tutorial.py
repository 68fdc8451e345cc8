"""sklearn-crfsuite's tutorial with only the import changed: Spanish named entities, CoNLL-2002.

python benchmarks/tutorial.py [--converge]

`word2features` and the parameters are the tutorial's. Ours has no L1 term, so that sklearn-crfsuite
also trains with c1 = 0. Its 100 iterations end before the optimum; with --converge it also goes on,
on the weights that it generates and on all that ours has (all_possible_states), which takes many
minutes. F1 is that of whole entities on testb, seconds include reading the items.
"""

import argparse
import time
import warnings

import sklearn_crfsuite

from sdcastruct import datasets
from sdcastruct.evaluation import evaluate
from sdcastruct.interop import sklearn_crfsuite as ours

TUTORIAL = {"algorithm": "lbfgs", "c2": 0.1, "max_iterations": 100}
TUTORIAL["all_possible_transitions"] = True


def word2features(sent, i):
    """Return the item of token i of a sentence of (word, tag, label)."""
    word, postag = sent[i][:2]
    features = {
        "bias": 1.0,
        "word.lower()": word.lower(),
        "word[-3:]": word[-3:],
        "word[-2:]": word[-2:],
        "word.isupper()": word.isupper(),
        "word.istitle()": word.istitle(),
        "word.isdigit()": word.isdigit(),
        "postag": postag,
        "postag[:2]": postag[:2],
    }
    for name, j in (("-1", i - 1), ("+1", i + 1)):
        if 0 <= j < len(sent):
            word, postag = sent[j][:2]
            features[f"{name}:word.lower()"] = word.lower()
            features[f"{name}:word.istitle()"] = word.istitle()
            features[f"{name}:word.isupper()"] = word.isupper()
            features[f"{name}:postag"] = postag
            features[f"{name}:postag[:2]"] = postag[:2]
        else:
            features["BOS" if j < 0 else "EOS"] = True
    return features


def run(name, crf, train, test):
    """Train, and print seconds and scores."""
    start = time.perf_counter()
    crf.fit(*train)
    seconds = time.perf_counter() - start
    scores = evaluate(test[1], [list(labels) for labels in crf.predict(test[0])])
    print(f"{name:52s} {seconds:7.1f} s  F1 {100 * scores.f1:6.2f}", flush=True)


def main():
    """Train both on the same items."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--converge", action="store_true", help="let sklearn-crfsuite converge")
    options = parser.parse_args()
    parts = []
    for split in ("train", "testb"):
        corpus = datasets.load_conll2002("spanish", split)
        X = [[word2features(s, i) for i in range(len(s))] for s in corpus.tokens]
        parts.append((X, corpus.y))
    train, test = parts
    theirs = sklearn_crfsuite.CRF
    warnings.filterwarnings("ignore", message="c1=0.1 is ignored")
    crf = ours.CRF(**TUTORIAL, c1=0.1, random_state=0)
    run("sdcastruct, certified to 1e-3", crf, train, test)
    print(f"  relative gap {crf.duality_gap_ / crf.primal_objective_:.1e}, {crf.n_epochs_} epochs")
    run("sklearn-crfsuite, c1 = 0.1 as in the tutorial", theirs(**TUTORIAL, c1=0.1), train, test)
    run("sklearn-crfsuite, c1 = 0", theirs(**TUTORIAL), train, test)
    if options.converge:
        TUTORIAL["max_iterations"] = 10000
        run("sklearn-crfsuite, c1 = 0, to its end", theirs(**TUTORIAL), train, test)
        crf = theirs(**TUTORIAL, all_possible_states=True)
        run("sklearn-crfsuite, c1 = 0, all states, to its end", crf, train, test)


if __name__ == "__main__":
    main()
