"""Work on stretches of samples in threads; what they call gives the GIL away.

Starting a thread may take longer than a short pass, so threads are kept: every thread that asks has
its own, and they end with it.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise

import numpy as np

_kept = threading.local()


def submit(function, arguments):
    """Call ``function(*args)`` for each ``args`` of a list in a thread of its own.

    Returns
    -------
    list of concurrent.futures.Future
    """
    size = len(arguments)
    pool = getattr(_kept, "pool", None)
    # A process that was forked has the pool of its parent, but not its threads.
    if pool is None or _kept.size < size or _kept.process != os.getpid():
        pool = _kept.pool = ThreadPoolExecutor(size)
        _kept.size, _kept.process = size, os.getpid()
    return [pool.submit(function, *args) for args in arguments]


def spread(work, n, n_jobs):
    """Return [work(first, last), ...] of stretches first, ..., last - 1 of range(n)."""
    n_jobs = max(1, min(n_jobs, n))
    if n_jobs == 1:
        return [work(0, n)]
    ends = np.linspace(0, n, n_jobs + 1).astype(int).tolist()
    stretches = list(pairwise(ends))
    others = submit(work, stretches[1:])
    try:
        return [work(*stretches[0]), *(other.result() for other in others)]
    finally:
        wait(others)  # also after an error or Ctrl-C: they write to the caller's arrays
