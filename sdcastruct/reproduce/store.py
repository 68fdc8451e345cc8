"""A folder of CSV files, one per run: written when the run is done, read when it is asked again.

The first line of a file is a comment in JSON: what the run was (``identity``) and its ``results``
that are no columns. A run that is asked for with another identity is an error, so that numbers of
different settings are never mixed.
"""

import csv
import io
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch


class Record(NamedTuple):
    """What is known of a run: numbers, and columns of equal length."""

    results: dict
    columns: Bunch


class Store:
    """The records of all runs below a folder, made if need be."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, task, name):
        """Return the file of a run."""
        return self.folder / "runs" / task / f"{name}.csv"

    def has(self, task, name):
        """Return whether a run was done."""
        return self.path(task, name).exists()

    def write(self, task, name, identity, record):
        """Keep a record; the file is there as a whole or not at all."""
        path = self.path(task, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = io.StringIO()
        text.write(f"# {json.dumps({'identity': identity, 'results': record.results})}\n")
        table = csv.writer(text, lineterminator="\n")
        table.writerow(record.columns)
        table.writerows(zip(*(column.tolist() for column in record.columns.values()), strict=True))
        unfinished = path.with_suffix(".part")
        unfinished.write_text(text.getvalue(), encoding="utf-8")
        unfinished.replace(path)

    def read(self, task, name, identity=None):
        """Return the record of a run.

        Raises
        ------
        ValueError
            The file is damaged, or the run was another one than `identity` says.
        """
        path = self.path(task, name)
        lines = path.read_text(encoding="utf-8").splitlines()
        try:
            about = json.loads(lines[0].removeprefix("# "))
            found, results = about["identity"], about["results"]
            columns = _columns(lines[1:])
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise ValueError(f"{path} is damaged ({error}): delete it to run it again") from error
        for key, value in (identity or {}).items():
            if found.get(key) != value:
                raise ValueError(
                    f"{path} has {key} {found.get(key)!r}, expected {value!r}: choose another "
                    "--output, or delete the file to run it again"
                )
        return Record(results, columns)


def _columns(lines):
    names, *rows = csv.reader(lines)
    for number, row in enumerate(rows, 3):
        if len(row) != len(names):
            raise ValueError(f"line {number} has {len(row)} numbers, expected {len(names)}")
    table = np.array(rows, dtype=float).reshape(len(rows), len(names))
    return Bunch(**{name: table[:, j] for j, name in enumerate(names)})
