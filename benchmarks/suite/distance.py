"""How far apart two processors are: how long a cache line travels from one to the other.

Processors that share a cache pass it on in some 30 ns; others, on another part of the same chip or
in another socket, in 100 to 300 ns. Threads that change the same weights feel that. The host of a
virtual machine may move its processors from one moment to the next.
"""

import ctypes
import math
import os
import statistics
import subprocess
import sysconfig
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from threading import Barrier, BrokenBarrierError

BOUNCE = """
#include <stdatomic.h>
void bounce(_Atomic long *ball, long side, long n) {
    for (long i = side; i < 2 * n; i += 2) {
        while (atomic_load(ball) != i) {}
        atomic_store(ball, i + 1);
    }
}
"""
ROUNDS, REPEATS = 1000, 20
# Processors that share a cache are nearer than this.
NEAR = 80.0


def nanoseconds():
    """Return how long a cache line travels between the first two processors of this process.

    That is nan where there are no two, or no C compiler, or another system than Linux, on which
    threads can be told where to run.
    """
    if not hasattr(os, "sched_setaffinity"):
        return math.nan
    processors = sorted(os.sched_getaffinity(0))[:2]
    bounce = _bounce()
    if len(processors) < 2 or bounce is None:
        return math.nan
    balls = [ctypes.c_long() for _ in range(REPEATS)]
    both_there = Barrier(2)

    def play(side):
        try:
            os.sched_setaffinity(0, {processors[side]})  # of this thread only
        except OSError:
            both_there.abort()
        both_there.wait()
        times = [time.perf_counter()]
        for ball in balls:
            bounce(ctypes.byref(ball), side, ROUNDS)
            times.append(time.perf_counter())
        return times

    with ThreadPoolExecutor(2) as threads:
        try:
            times, _ = threads.map(play, range(2))
        except BrokenBarrierError:
            return math.nan
    # The median is of rounds that nobody has interrupted.
    return 1e9 * statistics.median(b - a for a, b in pairwise(times)) / (2 * ROUNDS)


@cache
def _bounce():
    """Return the compiled function, or None where there is no compiler."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "bounce.c"), Path(folder, "bounce.so")
        source.write_text(BOUNCE)
        try:
            command = [*compiler, "-O2", "-shared", "-fPIC", "-o", library, source]
            subprocess.run(command, check=True, capture_output=True)
            function = ctypes.CDLL(os.fspath(library)).bounce
        except (OSError, subprocess.CalledProcessError):
            return None
    function.argtypes = ctypes.c_void_p, ctypes.c_long, ctypes.c_long
    return function
