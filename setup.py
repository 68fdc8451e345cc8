"""Build of the compiled kernels; everything else about the package is in pyproject.toml."""

import os
import sys
from pathlib import Path

import Cython
import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup

PACKAGE = Path("sdcastruct")
INTERFACES = [Path("setup.py"), *PACKAGE.rglob("*.pxd")]
SIMD = [str(PACKAGE / "simd" / name) for name in ("baseline.c", "avx2.c", "avx512.c", "dispatch.c")]

# SDCASTRUCT_BOUNDSCHECK=1 makes Cython check every index into an array, for a slow test run.
MARK = "SDCASTRUCT_BOUNDSCHECK"
CHECKED = os.environ.get(MARK, "0") == "1"
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": CHECKED,
    "wraparound": False,
    "initializedcheck": CHECKED,
    "cdivision": True,
    "embedsignature": True,
}

# -fopenmp-simd honours `#pragma omp simd` and needs no OpenMP runtime.
FLAGS = (
    ["/O2", "/std:c11"]
    if sys.platform == "win32"
    else ["-O3", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math"]
)


def translated(source: Path) -> Path:
    """Return the C file that an earlier build has made of a .pyx file, or else the file itself.

    Cython would also look at the dates of its own files, which pip unpacks anew for every build.
    """
    c = source.with_suffix(".c")
    if not c.exists() or newest(source, *INTERFACES) >= newest(c):
        return source
    head = c.read_text(encoding="utf-8")[:1000]  # the version of Cython and the macros
    alike = f"Cython {Cython.__version__} " in head and (MARK in head) == CHECKED
    return c if alike else source


def newest(*paths: Path) -> float:
    """Return when the last of some files was changed."""
    return max(path.stat().st_mtime for path in paths)


def extension(source: Path) -> Extension:
    """Return the extension of one .pyx file; only the simd module carries the C kernels."""
    module = ".".join(source.with_suffix("").parts)
    return Extension(
        module,
        [str(translated(source)), *(SIMD if module == "sdcastruct.simd.kernels" else [])],
        depends=[str(header) for header in PACKAGE.rglob("*.h")],
        include_dirs=[np.get_include(), "."],
        extra_compile_args=FLAGS,
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")] + CHECKED * [(MARK, "1")],
    )


setup(
    ext_modules=cythonize(
        [extension(source) for source in sorted(PACKAGE.rglob("*.pyx"))],
        compiler_directives=DIRECTIVES,
        force=True,
    ),
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
