"""Train in less memory than the marginals take: Linux only.

The kernel takes pages of mapped files away from a process when memory is short. So does this thread
when the process has more resident than its limit, without a machine that is really short of memory:
it hands all mapped pages back, they stay in the file, and the next access fetches them again.
"""

import ctypes
import re
import resource
import threading
from contextlib import contextmanager
from pathlib import Path

CHECK_SECONDS = 0.001
SAFETY = 0.85  # what is touched between two checks comes on top
MADV_DONTNEED = 4
STATM = Path("/proc/self/statm")
MAPPING = re.compile(r"(?P<first>[0-9a-f]+)-(?P<last>[0-9a-f]+) \S+s \S+ \S+ \d+ +(?P<path>/.*)")


@contextmanager
def resident_limit(folder, n_bytes):
    """Keep this process below so many resident bytes by giving up pages of files in `folder`."""
    done = threading.Event()
    thread = threading.Thread(target=_watch, args=(Path(folder), SAFETY * n_bytes, done))
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _watch(folder, n_bytes, done):
    while not done.wait(CHECK_SECONDS):
        if int(STATM.read_text().split()[1]) * resource.getpagesize() > n_bytes:
            give_up_pages(folder)


def give_up_pages(folder):
    """Make no page of the shared mappings of files in a folder resident."""
    libc = ctypes.CDLL(None, use_errno=True)
    for line in Path("/proc/self/maps").read_text().splitlines():
        found = MAPPING.fullmatch(line)
        if found and Path(found["path"]).is_relative_to(folder.resolve()):
            first, last = int(found["first"], 16), int(found["last"], 16)
            code = libc.madvise(
                ctypes.c_void_p(first), ctypes.c_size_t(last - first), MADV_DONTNEED
            )
            if code != 0:
                raise OSError(ctypes.get_errno(), "madvise failed")
