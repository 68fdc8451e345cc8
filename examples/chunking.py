"""
Find phrases with templates
===========================

CoNLL-2000: cut sentences of the Wall Street Journal into noun phrases, verb phrases and the like,
from words and their parts of speech. The attributes come from a template as CRF++ has them, and a
learning curve tells whether more sentences would help.

The corpus is found through the environment variable ``SDCASTRUCT_DATA``, or downloaded.
"""

from matplotlib import pyplot

from sdcastruct import CRF, datasets
from sdcastruct.evaluation import confusions, evaluate, phrases
from sdcastruct.features import parse_crfpp

SIZES = [100, 200, 400, 800]  # the corpus has 8936 sentences, and 2012 to test on
N_TEST = 500

train, test = datasets.load_conll2000("train"), datasets.load_conll2000("test")
for word, tag, chunk in train.tokens[0][:6]:
    print(f"{word:12s} {tag:4s} {chunk}")

# %%
# Templates
# ---------
#
# ``%x[-1,0]`` is column 0, the word, of the token before. Each line makes one attribute a token.
# The loader has made the attributes of CRFsuite's tutorial already, ``train.X``; these are fewer.

TEMPLATE = """
U00:%x[-1,0]
U01:%x[0,0]
U02:%x[1,0]
U10:%x[-2,1]
U11:%x[-1,1]
U12:%x[0,1]
U13:%x[1,1]
U14:%x[2,1]
U20:%x[-1,1]/%x[0,1]
U21:%x[0,1]/%x[1,1]
B
"""
templates = parse_crfpp(TEMPLATE)


def attributes(sentences):
    """Apply the templates to words and tags; the label must not be among them."""
    return templates.extract_all([[token[:2] for token in sentence] for sentence in sentences])


X_train, X_test = attributes(train.tokens[: SIZES[-1]]), attributes(test.tokens[:N_TEST])
y_test = test.y[:N_TEST]
print(X_test[0][0])

# %%
# Learning curve
# --------------
#
# Each fit ends at a certified optimum, so that the curve is about the data, not about patience.

crf = CRF(random_state=0)
scores = []
print("sentences  epochs  relative gap    F1")
for size in SIZES:
    crf.fit(X_train[:size], train.y[:size])
    scores.append(evaluate(y_test, crf.predict(X_test)))
    gap = crf.duality_gap_ / crf.primal_objective_
    print(f"{size:9d} {crf.n_epochs_:7d} {gap:13.1e} {100 * scores[-1].f1:5.1f}")

figure, ax = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
for kind in ("PP", "NP", "SBAR", "ADVP", "ADJP"):
    ax.plot(SIZES, [score.types[kind].f1 for score in scores], "o-", label=kind)
ax.plot(SIZES, [score.f1 for score in scores], "s--", color="black", label="all phrases")
ax.set_xscale("log", base=2)
ax.set_xticks(SIZES, SIZES)
ax.set(xlabel="sentences to train on", ylabel="F1 on test sentences")
ax.grid(alpha=0.3)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
figure.savefig("chunking.png", dpi=150)
print("drawn in chunking.png")

# %%
# What it finds
# -------------
#
# The scores are those of the program of the shared task, conlleval:

y_found = crf.predict(X_test)
print(evaluate(y_test, y_found))
for true, found, count in confusions(y_test, y_found)[:5]:
    print(f"{count:4d} times {found} instead of {true}")

# %%
# A sentence of the test set, cut into phrases:

words = [token[0] for token in test.tokens[3]]
print(" ".join(f"[{kind} {' '.join(words[a : b + 1])}]" for kind, a, b in phrases(y_found[3])))
