"""Other packages can compile against the installed .pxd files and headers."""

import subprocess
import sys

ENGINE = """
from libc.stdint cimport int64_t

from sdcastruct.inference.engine cimport Engine
from sdcastruct.problem.problem cimport Problem
from sdcastruct.simd.ahead cimport Ahead, ahead_of, ask, share_out


cdef class CoinEngine(Engine):
    cdef Py_ssize_t n_nodes(self, Py_ssize_t i) except -1 nogil:
        return 7


    cdef bint expect(self, Py_ssize_t i, const double *theta, double *m, double *mu,
                     double *log_z, double *scratch, Ahead *ahead) except -1 nogil:
        share_out(ahead, 3)
        ask(ahead)
        return False


cdef extern from "asked.h" nogil:
    const char *asked[]
    int n_asked


def lines_asked_for(const unsigned char[::1] memory, Py_ssize_t n, Py_ssize_t second,
                    Py_ssize_t n_of_second, int shares):
    # Returns the lines that are asked for, counted from the one where the memory begins.
    global n_asked
    cdef Ahead ahead = ahead_of(&memory[0], n, &memory[second], n_of_second)
    n_asked = 0
    ask(NULL)
    share_out(&ahead, shares)
    for _ in range(shares):
        ask(&ahead)
    return [(<size_t> asked[k] >> 6) - (<size_t> &memory[0] >> 6) for k in range(n_asked)]


def nodes(Engine engine, Problem problem):
    return engine.n_nodes(0), problem.n_samples
"""

# Instead of asking for memory it is written down what is asked for.
ASKED = """
#ifndef ASKED_H
#define ASKED_H
static const char *asked[100000];
static int n_asked;
#define AHEAD_PREFETCH(ADDRESS) ((void)(asked[n_asked++] = (const char *)(ADDRESS)))
#endif
"""

SETUP = """
import sys

import numpy as np
import sdcastruct
from Cython.Build import cythonize
from setuptools import Extension, setup

folders = [np.get_include(), sdcastruct.get_include()]
first = ["/FI", "asked.h"] if sys.platform == "win32" else ["-include", "asked.h"]
folders.append(".")
coin = Extension("coin", ["coin.pyx"], include_dirs=folders, extra_compile_args=first)
setup(ext_modules=cythonize([coin], include_path=folders[1:2], language_level=3))
"""

USE = """
import coin, numpy as np
memory = np.zeros(2 * 10**6, np.uint8)
start = -memory.ctypes.data % 64
MOST = 2**19
for n, second, m in [(64, 0, 0), (1, 64, 1), (64, 640, 128), (1000, 6400, 5000), (0, 0, 900),
                     (MOST + 999, 0, 64), (1000, 10**6, MOST), (64, 6400, 2 * MOST)]:
    expected = [*range(-(-n // 64))][: MOST // 64]
    rest = max(0, MOST - n)
    expected += range(second // 64, -(-(second + min(m, rest)) // 64))
    for shares in (1, 2, 7, 100, 1000):
        assert coin.lines_asked_for(memory[start:], n, second, m, shares) == expected, (n, shares)
    # From the middle of a line on: all lines that have a part of it.
    found = coin.lines_asked_for(memory[start + 40 :], 70, 640, 10, 3)
    assert found == [0, 1, 10], found
from sdcastruct.models import ChainModel
print(coin.nodes(coin.CoinEngine(), ChainModel(2, 1).bind([np.ones((1, 1))])))
"""


def test_an_engine_of_another_package_compiles(tmp_path):
    (tmp_path / "coin.pyx").write_text(ENGINE)
    (tmp_path / "setup.py").write_text(SETUP)
    (tmp_path / "asked.h").write_text(ASKED)
    for command in (["setup.py", "-q", "build_ext", "--inplace"], ["-c", USE]):
        run = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.strip() == "(7, 1)"
