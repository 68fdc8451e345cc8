"""Checks of the options that solvers share."""

import os
from numbers import Integral, Real
from pathlib import Path

import numpy as np

from sdcastruct.samplers import Sampler


def check_sampler(sampler):
    """Check that an option is a sampler, or None."""
    if sampler is not None and not isinstance(sampler, Sampler):
        raise TypeError(f"sampler={sampler!r}: expected an instance of Sampler")


def check_number(name, value, low, high, others=""):
    """Check that an option is a finite number above `low` and at most `high`."""
    if not isinstance(value, Real) or not low < value <= high or not np.isfinite(value):
        above = "" if high == np.inf else f" and at most {high:g}"
        raise ValueError(f"{name}={value!r}: expected {others}a number above {low:g}{above}")


def check_integer(name, value, least):
    """Check that an option is an integer, at least `least`."""
    if not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}={value!r}: expected an integer >= {least}")


def check_choice(name, value, choices):
    """Check that an option is one of some names."""
    if value not in choices:
        expected = " or ".join(map(repr, choices))
        raise ValueError(f"{name}={value!r}: expected {expected}")


def check_folder(name, value):
    """Check that an option is a folder in which files can be made, or None."""
    if value is not None and not (Path(value).is_dir() and os.access(value, os.W_OK)):
        raise ValueError(f"{name}={value!r}: expected a folder in which files can be made, or None")


def generator(random_state):
    """Return the random numbers that an option asks for."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state={random_state!r}: expected an integer >= 0, a "
            "numpy.random.Generator or None"
        ) from error
