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


def ask_for(const unsigned char[::1] memory):
    cdef Py_ssize_t half = memory.shape[0] // 2
    cdef Ahead nothing = ahead_of(&memory[0], 0, NULL, 0)
    cdef Ahead ahead = ahead_of(&memory[1], half - 1, &memory[half], memory.shape[0] - half)
    ask(NULL)
    ask(&nothing)
    share_out(&nothing, 5)
    ask(&nothing)
    share_out(&ahead, 7)
    for _ in range(9):
        ask(&ahead)


def nodes(Engine engine, Problem problem):
    return engine.n_nodes(0), problem.n_samples
"""

SETUP = """
import numpy as np
import sdcastruct
from Cython.Build import cythonize
from setuptools import Extension, setup

folders = [np.get_include(), sdcastruct.get_include()]
coin = Extension("coin", ["coin.pyx"], include_dirs=folders)
setup(ext_modules=cythonize([coin], include_path=folders[1:], language_level=3))
"""

USE = """
import coin, numpy as np
for size in (2, 64, 1000, 10**6):
    coin.ask_for(bytes(size))
from sdcastruct.models import ChainModel
print(coin.nodes(coin.CoinEngine(), ChainModel(2, 1).bind([np.ones((1, 1))])))
"""


def test_an_engine_of_another_package_compiles(tmp_path):
    (tmp_path / "coin.pyx").write_text(ENGINE)
    (tmp_path / "setup.py").write_text(SETUP)
    for command in (["setup.py", "-q", "build_ext", "--inplace"], ["-c", USE]):
        run = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.strip() == "(7, 1)"
