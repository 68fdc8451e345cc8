"""Work on stretches of samples in threads; what they call gives the GIL away.

Starting a thread may take longer than a short pass. So a solver keeps its threads from one pass to
the next, and ends them when it has come to its result.
"""

import os
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from itertools import pairwise

import numpy as np

# How many stretches `share` makes for each thread.
STRETCHES = 16

_kept = threading.local()


@contextmanager
def kept(n_threads):
    """Keep up to so many threads for all that this thread starts inside."""
    outer = getattr(_kept, "threads", None)
    with ThreadPoolExecutor(n_threads) as pool:
        _kept.threads = pool, n_threads, os.getpid()
        try:
            yield
        finally:
            _kept.threads = outer


@contextmanager
def started(function, arguments):
    """Call ``function(*args)`` for each ``args`` of a list in threads; at the end all have ended.

    Yields
    ------
    list of concurrent.futures.Future
    """
    futures = []
    with _pool(len(arguments)) as pool:
        try:
            for args in arguments:
                futures.append(pool.submit(function, *args))
            yield futures
        finally:
            wait(futures)  # also after an error or Ctrl-C: they write to the caller's arrays


def _pool(n_threads):
    """Return the threads that are kept, or others for once."""
    pool, most, process = getattr(_kept, "threads", None) or (None, 0, None)
    # A process that was forked inside has the pool of its parent, but not its threads.
    if most < n_threads or process != os.getpid():
        return ThreadPoolExecutor(n_threads)
    return nullcontext(pool)


def spread(work, n, n_jobs):
    """Return [work(first, last), ...] of stretches first, ..., last - 1 of range(n), in order.

    There is one for each thread, always the same, so that sums are the same bit for bit.
    """
    return _in_threads(work, _stretches(n, max(1, min(n_jobs, n))))


def share(work, n, n_jobs, then=(), first=None):
    """Return [work(stretches), ...] of threads that take (first, last) from the same iterator.

    Which thread will have which stretches of range(n) depends on how fast they are: one that starts
    late, or has to wait for a processor, leaves more to the others. When one fails, nobody begins
    with anything more.

    When a stretch is done, that is, when `work` asks for another, one of the functions `then` is
    called with it: they take turns, and each is called for one stretch after the other in their
    order, by whichever thread is free. So what they do has the same result each time, and the
    others go on meanwhile.

    If there is something else to do, one of the threads calls `first` before it takes part.
    """
    n_jobs = max(1, min(n_jobs, n))
    stretches = _stretches(n, 1 if n_jobs == 1 else min(n, STRETCHES * n_jobs))
    followers = [_InOrder(then[k], stretches[k :: len(then)]) for k in range(len(then))]
    waiting = enumerate(stretches)

    def taken():
        for k, stretch in waiting:
            yield stretch
            if followers:
                followers[k % len(followers)].follow(stretch)

    def work_or_stop(before=None):
        try:
            if before is not None:
                before()
            return work(taken())
        except BaseException:
            for _ in waiting:
                pass
            for follower in followers:
                follower.stop()
            raise

    return _in_threads(work_or_stop, [()] * (n_jobs - 1) + [(first,)])


class _InOrder:
    """Calls a function for stretches in their order, one at a time, in threads that are ready."""

    def __init__(self, function, stretches):
        self.function = function
        self.to_come = deque(stretches)
        self.done = set()
        self.busy = False
        self.lock = threading.Lock()

    def follow(self, stretch):
        """Call the function for a stretch that is done, and for others whose turn has come."""
        with self.lock:
            self.done.add(stretch)
            if self.busy:
                return  # another thread will come to it
            self.busy = True
        while (due := self._next_due()) is not None:
            self.function(*due)

    def stop(self):
        """Forget what is still to come."""
        with self.lock:
            self.to_come.clear()

    def _next_due(self):
        with self.lock:
            if self.to_come and self.to_come[0] in self.done:
                return self.to_come.popleft()
            self.busy = False
            return None


def _stretches(n, count):
    """Return (first, last) of stretches of about the same length, which make up range(n)."""
    return list(pairwise(np.linspace(0, n, count + 1).astype(int).tolist()))


def _in_threads(work, arguments):
    """Return [work(*args), ...], each in a thread of its own, the first in this one."""
    own, *others = arguments
    if not others:
        return [work(*own)]
    with started(work, others) as futures:
        return [work(*own), *(future.result() for future in futures)]
