"""Measure in a process of its own, which no earlier measurement has warmed up or filled."""

import ctypes
import multiprocessing
import os
import resource
import signal
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits

from sdcastruct.reproduce.store import Record

STATUS, STATISTICS = Path("/proc/self/status"), Path("/proc/stat")
STOLEN = 8  # of the words in the first line of STATISTICS
NO_LIMIT = 1e6
# Options of mallopt: freed memory stays with the process, and all of it is in one heap.
KEEP_MEMORY = {"M_TRIM_THRESHOLD": (-1, -1), "M_MMAP_MAX": (-4, 0), "M_ARENA_MAX": (-8, 1)}


def measure(function, *arguments, enough=None, max_seconds=NO_LIMIT):
    """Call ``function(report, *arguments)`` in a new process and collect what it reports.

    Parameters
    ----------
    function : callable
        Calls ``report(**numbers)`` once per row, with the same names each time.
    arguments
        Anything that can be pickled.
    enough : callable, optional
        The process is ended when ``enough(row)`` is true,
    max_seconds : float, optional
        or after so many seconds.

    Returns
    -------
    Record
        The columns of the rows; among the results ``peak``, the largest resident memory in bytes.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_run, args=(function, sender, arguments), daemon=True)
    child.start()
    sender.close()
    deadline = time.perf_counter() + max_seconds
    rows, peak = [], 0
    try:
        while receiver.poll(max(0.0, deadline - time.perf_counter())):
            message = receiver.recv()
            if message is None:
                child.join()
                break
            row, peak = message
            rows.append(row)
            if enough is not None and enough(Bunch(**row)):
                break
    except EOFError:
        child.join()
        raise RuntimeError(f"{function} ended with code {child.exitcode}") from None
    finally:
        child.kill()
        child.join()
    if not rows:
        raise RuntimeError(f"{function} has reported nothing in {max_seconds:g} seconds")
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return Record({"peak": peak}, Bunch(**columns))


def _run(function, sender, arguments):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    with threadpool_limits(1):  # threads are those that a trainer is asked for
        function(lambda **row: sender.send((row, peak_bytes())), *arguments)
    sender.send(None)


def own_memory(n_bytes):
    """Touch so much memory and keep it for what this process allocates from now on.

    Memory that the system has to find first may cost seconds per GB, above all on virtual machines,
    and something else every time. Only the C library of Linux knows how to keep it.
    """
    if sys.platform == "linux":
        allocator = ctypes.CDLL(None)
        for option in KEEP_MEMORY.values():
            allocator.mallopt(*option)
        np.ones(int(n_bytes) // 8)


def stolen_seconds():
    """Return what others have taken from the processors of this virtual machine since its start.

    That is the time for which a processor had something to do and the host let it wait; only Linux
    tells.
    """
    if not STATISTICS.exists():
        return 0.0
    with STATISTICS.open() as lines:
        return int(next(lines).split()[STOLEN]) / os.sysconf("SC_CLK_TCK")


def peak_bytes():
    """Return the largest resident memory of this process so far.

    Linux passes the maximum of `getrusage` on from the process that started this one; its own high
    water mark is in /proc.
    """
    if STATUS.exists():
        (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
