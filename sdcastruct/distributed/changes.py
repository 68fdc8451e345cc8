"""Vectors on their way between driver and workers: only what changed, where that is less.

An entry that changed costs 12 bytes, its place and its value; in a vector that is sent as a whole
an entry costs 8. Values are absolute, so that nothing adds up but what was meant to.
"""

from typing import NamedTuple

import numpy as np


class Changes(NamedTuple):
    """What to write into a vector: `values` at `places`, or everywhere if places is None."""

    places: np.ndarray | None
    values: np.ndarray

    @classmethod
    def between(cls, old, new):
        """Return what turns the vector `old` into `new`; None knows nothing yet."""
        return cls(None, new.copy()) if old is None else cls.at(new != old, new)

    @classmethod
    def at(cls, changed, new):
        """Return what there is to know of a vector, given a mask of what has changed in it."""
        places = np.flatnonzero(changed)
        if 12 * places.size < 8 * new.size:
            return cls(places.astype(np.int32), new.take(places))
        return cls(None, new.copy())

    def write_to(self, vector):
        """Make the changes."""
        vector[... if self.places is None else self.places] = self.values

    @property
    def nbytes(self):
        """Bytes on the way."""
        return self.values.nbytes + (0 if self.places is None else self.places.nbytes)
