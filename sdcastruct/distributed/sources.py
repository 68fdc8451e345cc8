"""What sequences are read from.

A source is small enough to be sent around: the name of a file, or the recipe of a partition.
"""

from itertools import islice

from sdcastruct.features import read_columns, read_crfsuite

CHUNK = 1000  # sequences whose items a worker holds at once


def chunks(source):
    """Yield the sequences of a source as lists (X, y), not too many at once."""
    pairs = iter(source.read())
    while chunk := list(islice(pairs, CHUNK)):
        X, y = zip(*chunk, strict=True)
        yield list(X), list(y)


class File:
    """A file of columns, or in CRFsuite's format if there are no templates."""

    def __init__(self, path, templates):
        self.path, self.templates = path, templates

    def read(self):
        """Yield pairs (items, labels)."""
        with open(self.path, encoding="utf-8") as file:
            if self.templates is None:
                for labels, items in read_crfsuite(file, name=self.path):
                    yield items, labels
                return
            for rows in read_columns(file, name=self.path):
                self.templates.check_columns(len(rows[0]) - 1)
                items = self.templates.extract([row[:-1] for row in rows])
                yield items, [row[-1] for row in rows]

    def __str__(self):
        return self.path


class Partition:
    """A partition of a bag."""

    def __init__(self, number, delayed):
        self.number, self.delayed = number, delayed

    def read(self):
        """Return pairs (items, labels)."""
        pairs = list(self.delayed.compute(scheduler="synchronous"))
        for pair in pairs:
            if not isinstance(pair, tuple | list) or len(pair) != 2 or len(pair[0]) != len(pair[1]):
                raise ValueError(
                    f"{self} has {pair!r}: expected pairs (items, labels) of the same length"
                )
        return pairs

    def __str__(self):
        return f"partition {self.number} of the bag"
