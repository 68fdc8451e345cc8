"""
Find names of people and places
===============================

CoNLL-2002: persons, organisations, locations and other names in Spanish newspapers. Attributes are
dicts as sklearn-crfsuite's users write them. A dev set says when to stop, and impossible labels are
ruled out: ``I-PER`` may only follow ``B-PER`` or ``I-PER``.

The corpus is found through the environment variable ``SDCASTRUCT_DATA``, or downloaded.
"""

import numpy as np
from matplotlib import pyplot

from sdcastruct import CRF, datasets
from sdcastruct.evaluation import evaluate, phrases
from sdcastruct.plotting import convergence, dev_accuracy

N_TRAIN, N_DEV, N_TEST = 1000, 300, 500  # the corpus has 8323, 1915 and 1517 sentences

# %%
# Attributes
# ----------


def word2features(sentence, t):
    """Return the attributes of token t of a sentence of (word, tag, label) tuples."""
    word, tag, _ = sentence[t]
    features = {
        "word": word.lower(),
        "ending": word[-3:],
        "capital": word.istitle(),
        "capitals": word.isupper(),
        "number": word.isdigit(),
        "tag": tag,
    }
    for place, s in (("before", t - 1), ("after", t + 1)):
        if 0 <= s < len(sentence):
            neighbour, neighbour_tag, _ = sentence[s]
            features[place] = {
                "word": neighbour.lower(),
                "capital": neighbour.istitle(),
                "tag": neighbour_tag,
            }
    return features


def load(split, n_sentences):
    """Return tokens, attributes and labels of the first sentences of a part of the corpus."""
    corpus = datasets.load_conll2002("spanish", split)
    tokens = corpus.tokens[:n_sentences]
    X = [[word2features(sentence, t) for t in range(len(sentence))] for sentence in tokens]
    return tokens, X, corpus.y[:n_sentences]


_, X, y = load("train", N_TRAIN)
_, X_dev, y_dev = load("testa", N_DEV)
tokens, X_test, y_test = load("testb", N_TEST)
print(X[0][0])

# %%
# Training with a dev set
# -----------------------
#
# After every epoch the dev set is labelled. When its accuracy has not risen for five epochs,
# training ends and the best weights are kept. They have a certificate too.

crf = CRF(forbidden="iob2", tol=1e-4, patience=5, random_state=0)
crf.fit(X, y, X_dev, y_dev)
best = int(np.nanargmax(crf.history_.dev_accuracy))
print(f"stopped after {crf.n_epochs_} epochs, kept the weights of epoch {best}")
print(f"they are at most {crf.duality_gap_ / crf.primal_objective_:.1%} above the optimum")

figure, (left, right) = pyplot.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
convergence(crf, ax=left)
dev_accuracy(crf, ax=right)
right.axvline(best, color="gray", linestyle=":")
figure.savefig("named_entities.png", dpi=150)
print("drawn in named_entities.png")

# %%
# Scores
# ------

y_found = crf.predict(X_test)
print(evaluate(y_test, y_found))

# %%
# What speaks for the first word of a person's name, what for that of a place?

for label in ("B-PER", "B-LOC"):
    weights = sorted((w, a) for (a, of), w in crf.state_features_.items() if of == label)
    print(label, ", ".join(f"{attribute} {w:.2f}" for w, attribute in reversed(weights[-6:])))

# %%
# The names that it finds in the first test sentences, and how sure it is of their first words:

for sentence, x, labels in zip(tokens[:6], X_test, y_found, strict=False):
    marginals = crf.predict_marginals_single(x)
    for kind, first, last in phrases(labels):
        name = " ".join(word for word, _, _ in sentence[first : last + 1])
        print(f"{kind:4s} {marginals[first][labels[first]]:4.0%}  {name}")
