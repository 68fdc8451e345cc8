"""Memory for vectors: arrays that begin with a cache line.

Where they do not, half of the vectors of a row lie in two lines, and reading and writing them takes
longer.
"""

import numpy as np

CACHE_LINE = 64


def empty(size, dtype=np.float64):
    """Return an array of shape (size,) that begins with a cache line, with anything in it."""
    n_bytes = size * np.dtype(dtype).itemsize
    memory = np.empty(n_bytes + CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    return memory[start : start + n_bytes].view(dtype)


def whole_lines(size):
    """Return a number of doubles, not less than `size`, that fills cache lines."""
    return -(-size // 8) * 8
