"""Vector kernels of the library, chosen for this machine when the module is imported.

The environment variable ``SDCASTRUCT_SIMD`` (``baseline``, ``avx2`` or ``avx512``) overrides the
choice.
"""

import os

import numpy as np


# Best first.
NAMES = "avx512", "avx2", "baseline"


def available():
    """Return the names of the instruction sets that this machine can run, best first."""
    return [name for name in NAMES if sdcastruct_kernels(name.encode()) != NULL]


def active():
    """Return the name of the instruction set in use."""
    return kernels.name.decode()


def select(name):
    """Use the kernels called `name`; not while a solver runs.

    Parameters
    ----------
    name : {"avx512", "avx2", "baseline"}
    """
    global kernels
    cdef const Kernels *table = sdcastruct_kernels(name.encode())
    if table == NULL:
        raise ValueError(f"SIMD kernels {name!r} cannot run here; expected one of {available()}")
    kernels = table


def exp(const double[::1] x):
    """Return exp(x), the kernel's own; for tests of its accuracy."""
    out = np.empty(x.shape[0])
    cdef double[::1] view = out
    if x.shape[0]:
        kernels.exp_shifted(&x[0], 0.0, &view[0], x.shape[0])
    return out


def log(const double[::1] x):
    """Return log(x) for normal positive x, the kernel's own; for tests of its accuracy."""
    out = np.empty(x.shape[0])
    cdef double[::1] view = out
    if x.shape[0]:
        kernels.log(&x[0], &view[0], x.shape[0])
    return out


def _select_by_environment():
    name = os.environ.get("SDCASTRUCT_SIMD")
    if name and name not in available():
        raise ValueError(f"SDCASTRUCT_SIMD={name!r}: expected one of {available()}")
    select(name or available()[0])


_select_by_environment()
