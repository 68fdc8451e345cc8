"""Build of pystruct's two compiled modules; everything else about it is in pyproject.toml."""

from Cython.Build import cythonize
from setuptools import setup

setup(
    ext_modules=cythonize(
        ["pystruct/inference/_viterbi.pyx", "pystruct/models/utils.pyx"],
        compiler_directives={"language_level": 3, "boundscheck": False, "wraparound": False},
    )
)
