"""Profiles of hypothesis: HYPOTHESIS_PROFILE=thorough draws 500 examples a property, at random.

Tests that talk to other processes ask for `time_limit`.
"""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from sdcastruct.simd import kernels

settings.register_profile(
    "default",
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough", settings.get_profile("default"), max_examples=500, derandomize=False
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A run in the background may have been told to ignore Ctrl-C, and so would the processes it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

TIME_LIMIT = 240  # seconds


@pytest.fixture
def time_limit():
    """End a test that waits for something that never comes."""

    def stop(*_):
        raise TimeoutError(f"the test has not ended after {TIME_LIMIT} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(TIME_LIMIT)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(params=kernels.available())
def instruction_set(request):
    """Run a test with the kernels of each instruction set of this machine."""
    before = kernels.active()
    kernels.select(request.param)
    yield request.param
    kernels.select(before)
