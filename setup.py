"""Build of the compiled kernels; everything else about the package is in pyproject.toml."""

import os
import sys
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup

PACKAGE = Path("sdcastruct")
SIMD = [str(PACKAGE / "simd" / name) for name in ("baseline.c", "avx2.c", "avx512.c", "dispatch.c")]

# SDCASTRUCT_BOUNDSCHECK=1 makes Cython check every index into an array, for a slow test run.
CHECKED = os.environ.get("SDCASTRUCT_BOUNDSCHECK", "0") == "1"
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


def extension(source: Path) -> Extension:
    """Return the extension of one .pyx file; only the simd module carries the C kernels."""
    module = ".".join(source.with_suffix("").parts)
    return Extension(
        module,
        [str(source), *(SIMD if module == "sdcastruct.simd.kernels" else [])],
        depends=[str(header) for header in PACKAGE.rglob("*.h")],
        include_dirs=[np.get_include(), "."],
        extra_compile_args=FLAGS,
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
    )


setup(
    ext_modules=cythonize(
        [extension(source) for source in sorted(PACKAGE.rglob("*.pyx"))],
        compiler_directives=DIRECTIVES,
    ),
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
