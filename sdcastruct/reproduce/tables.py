"""The tables: rows of numbers for CSV files, and Table 1 beside the paper's."""

import csv

import numpy as np

from sdcastruct.reproduce.solvers import REFERENCES
from sdcastruct.reproduce.tasks import DIFFERENCES, PAPER_TABLE

PRECISIONS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


def needs(runs, lines):
    """Return what each run needs for each precision; empty where it was not reached."""
    rows = [("task", "run", "precision", "updates / n", "oracle calls / n", "CPU seconds")]
    for task, of_task in runs.items():
        for label, name in lines.items():
            if name in of_task:
                rows += [
                    (task, label, precision, *_needs(of_task, name, precision))
                    for precision in PRECISIONS
                ]
    return rows


def _needs(runs, name, precision):
    for column in ("n_updates", "n_oracle_calls", "seconds"):
        known = column in runs[name]
        needed = runs.needs(name, column, precision) if known else np.inf
        yield "" if np.isinf(needed) else float(f"{needed:.4g}")


def optima(runs, _):
    """Return the certified values of the two methods that give the optimum."""
    rows = [("task", "run", "primal", "dual", "gap", "epochs")]
    for task, of_task in runs.items():
        for name in REFERENCES:
            found = of_task.records[name].results
            rows.append((task, name, *(found[k] for k in ("primal", "dual", "gap", "n_epochs"))))
    return rows


def data_sets(runs, _):
    """Return Table 1 beside the paper's."""
    rows = [("task", "whose", *next(iter(PAPER_TABLE.values())))]
    for task, of_task in runs.items():
        for whose, column in (("ours", of_task.table), ("paper", PAPER_TABLE[task])):
            rows.append((task, whose, *(_shown(column[key]) for key in PAPER_TABLE[task])))
    return rows


def differences(runs):
    """Say for each task why our column of Table 1 is not the paper's, if it is not."""
    return [
        f"{task}: {DIFFERENCES[task]}"
        for task, of_task in runs.items()
        if any(of_task.table[k] != n for k, n in PAPER_TABLE[task].items() if k != "GiB")
    ]


def write(path, rows):
    """Write rows as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def markdown(rows):
    """Return rows as a Markdown table."""
    head, *body = [" | ".join(map(str, row)) for row in rows]
    rule = " | ".join("---" for _ in rows[0])
    return "\n".join(f"| {line} |" for line in (head, rule, *body))


def _shown(number):
    return number if isinstance(number, int) else f"{number:.2g}"
