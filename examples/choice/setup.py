"""Build of an inference engine against the installed headers of sdcastruct."""

from Cython.Build import cythonize
from setuptools import Extension, setup

import sdcastruct

headers = sdcastruct.get_include()
choice = Extension("choice", ["choice.pyx"], include_dirs=[headers])
directives = {"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True}

setup(
    name="choice",
    version="0.1",
    install_requires=["sdcastruct"],
    ext_modules=cythonize([choice], include_path=[headers], compiler_directives=directives),
)
