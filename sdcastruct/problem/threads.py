"""Work on stretches of samples in threads; what they call gives the GIL away."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np


def spread(work, n, n_jobs):
    """Return [work(first, last), ...] of stretches first, ..., last - 1 of range(n)."""
    n_jobs = max(1, min(n_jobs, n))
    if n_jobs == 1:
        return [work(0, n)]
    ends = np.linspace(0, n, n_jobs + 1).astype(int)
    with ThreadPoolExecutor(n_jobs) as pool:
        return list(pool.map(work, ends[:n_jobs], ends[1:]))
