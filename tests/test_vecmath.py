"""Our own exp and log against NumPy in long double, over all arguments that they are made for.

Errors are counted in units in the last place (ulp) of the true value. The bounds are the next round
numbers above what was measured on millions of arguments: 1.1 ulp for exp, 3.0 for log near one and
6.4 elsewhere, where log m and the exponent times log 2 cancel in part.
"""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdcastruct import entropy
from sdcastruct.simd import kernels

EXP_ULP, LOG_ULP, LOG_NEAR_ONE_ULP = 2, 8, 4
LOWEST, HIGHEST = -708.0, 709.0  # below exp is zero, above it need not be right
TINY = 2.0**-1000  # what entropies add before a logarithm
SMALLEST_NORMAL, LARGEST = np.finfo(float).smallest_normal, np.finfo(float).max
DENORMAL = 5e-324
EXACT = np.longdouble

pytestmark = pytest.mark.skipif(
    np.finfo(EXACT).nmant < 63, reason="long double has no more digits than double here"
)
INSTRUCTION_SETS = pytest.mark.parametrize("name", kernels.available())
EXP_ARGUMENTS = st.floats(LOWEST, HIGHEST)
LOG_ARGUMENTS = st.floats(SMALLEST_NORMAL, LARGEST, allow_subnormal=False)


@contextmanager
def instruction_set(name):
    """Use the kernels of an instruction set for a while."""
    before = kernels.active()
    kernels.select(name)
    try:
        yield
    finally:
        kernels.select(before)


def exp(name, x):
    """Return exp(x) of an instruction set."""
    with instruction_set(name):
        return kernels.exp(np.array(x, dtype=float))


def log(name, x):
    """Return log(x) of an instruction set."""
    with instruction_set(name):
        return kernels.log(np.array(x, dtype=float))


def entropy_of(name, mu):
    """Return the entropy of a single table by an instruction set."""
    with instruction_set(name):
        return entropy.entropy(np.ones(len(mu)), np.array(mu, dtype=float))


def ulps(found, exact):
    """Return the largest error in units in the last place of the exact value."""
    unit = np.spacing(np.abs(exact.astype(float))).astype(EXACT)
    return float(np.max(np.abs(found.astype(EXACT) - exact) / unit))


def exp_ulps(name, x):
    """Return the largest error of exp."""
    return ulps(exp(name, x), np.exp(np.array(x, dtype=EXACT)))


def log_ulps(name, x):
    """Return the largest error of log."""
    return ulps(log(name, x), np.log(np.array(x, dtype=EXACT)))


def neighbours(x, distance=4):
    """Return every number with the next numbers on both sides."""
    steps = np.arange(-distance, distance + 1)
    return (np.asarray(x)[:, None] + steps * np.spacing(np.asarray(x))[:, None]).ravel()


@INSTRUCTION_SETS
def test_exp_over_its_range(name):
    rng = np.random.default_rng(0)
    assert exp_ulps(name, np.linspace(LOWEST, HIGHEST, 300_001)) <= EXP_ULP
    assert exp_ulps(name, rng.uniform(LOWEST, HIGHEST, 300_000)) <= EXP_ULP
    assert exp_ulps(name, rng.uniform(-1, 1, 300_000)) <= EXP_ULP


@INSTRUCTION_SETS
@pytest.mark.parametrize("offset", [0.0, 0.5], ids=["multiples", "between two multiples"])
def test_exp_around_multiples_of_log_2(name, offset):
    # At the multiples the remainder changes its sign, half-way the multiple changes.
    x = neighbours((np.arange(-1020, 1022) + offset) * np.log(2))
    assert exp_ulps(name, x) <= EXP_ULP


@INSTRUCTION_SETS
@given(x=st.lists(EXP_ARGUMENTS, min_size=1, max_size=9))
def test_exp_of_any_numbers(name, x):
    assert exp_ulps(name, x) <= EXP_ULP


@INSTRUCTION_SETS
@given(x=st.floats(-1e-3, 1e-3))
def test_exp_near_zero(name, x):
    assert exp_ulps(name, [x]) <= EXP_ULP


@INSTRUCTION_SETS
def test_exp_of_zero_is_one(name):
    assert exp(name, [0.0, -0.0, DENORMAL, -DENORMAL]).tolist() == [1.0] * 4


@INSTRUCTION_SETS
def test_exp_is_zero_below_the_cut(name):
    # Results that would be subnormal or close to it: what is lost is less than 3.4e-308.
    assert exp_ulps(name, [LOWEST]) <= EXP_ULP
    below = np.concatenate([[np.nextafter(LOWEST, -np.inf)], np.linspace(-745, -708.001, 1001)])
    assert not exp(name, below).any()
    assert not exp(name, [-746, -1e4, -1e300, -LARGEST, -np.inf]).any()
    assert np.exp(EXACT(LOWEST)) < 3.4e-308


@INSTRUCTION_SETS
def test_exp_keeps_nan(name):
    assert np.isnan(exp(name, [np.nan, 0.0])).tolist() == [True, False]


@INSTRUCTION_SETS
def test_log_at_every_exponent(name):
    rng = np.random.default_rng(0)
    exponents = np.arange(-1022, 1024)
    for mantissa in rng.uniform(1, 2, 100):
        assert log_ulps(name, np.ldexp(mantissa, exponents)) <= LOG_ULP
    assert log_ulps(name, np.ldexp(1.0, exponents[exponents != 0])) <= LOG_ULP


@INSTRUCTION_SETS
def test_log_of_probabilities(name):
    rng = np.random.default_rng(0)
    assert log_ulps(name, rng.uniform(0.5, 2, 1_000_000)) <= LOG_ULP
    assert log_ulps(name, 10.0 ** rng.uniform(-300, 0, 300_000)) <= LOG_ULP


@INSTRUCTION_SETS
def test_log_where_the_exponent_changes(name):
    x = neighbours(np.ldexp([2**0.5, 0.5**0.5], np.arange(-500, 500)[:, None]).ravel(), 20)
    assert log_ulps(name, x) <= LOG_ULP


@INSTRUCTION_SETS
def test_log_near_one(name):
    distances = np.concatenate([10.0 ** np.linspace(-15, -2, 100_000), np.arange(1, 99) * 2.0**-52])
    assert log_ulps(name, 1 + distances) <= LOG_NEAR_ONE_ULP
    assert log_ulps(name, 1 - distances) <= LOG_NEAR_ONE_ULP
    assert log(name, [1.0]) == [0.0]


@INSTRUCTION_SETS
def test_log_at_the_ends(name):
    x = [SMALLEST_NORMAL, np.nextafter(SMALLEST_NORMAL, 1), TINY, np.nextafter(LARGEST, 0), LARGEST]
    assert log_ulps(name, x) <= LOG_ULP


@INSTRUCTION_SETS
@given(x=st.lists(LOG_ARGUMENTS.filter(lambda x: x != 1), min_size=1, max_size=9))
def test_log_of_any_numbers(name, x):
    assert log_ulps(name, x) <= LOG_ULP


@INSTRUCTION_SETS
@given(x=st.floats(-700, 700))
def test_log_takes_exp_back(name, x):
    # An error of u ulp of exp(x) is one of at most u eps in x.
    error = abs(log(name, exp(name, [x]))[0] - x)
    eps = np.finfo(float).eps
    assert error <= EXP_ULP * eps + LOG_ULP * np.spacing(max(abs(x), eps))


@INSTRUCTION_SETS
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 9, 31])
def test_zeros_add_nothing_to_an_entropy(name, length):
    sure = np.zeros(length)
    sure[length // 2] = 1.0
    assert entropy_of(name, sure) == 0.0
    assert entropy_of(name, np.zeros(length)) == 0.0
    uncertain = [0.25, 0.75]
    assert entropy_of(name, [*uncertain, *np.zeros(length)]) == pytest.approx(
        entropy_of(name, uncertain), rel=1e-15
    )


@INSTRUCTION_SETS
@given(
    tiny=st.lists(st.floats(0, SMALLEST_NORMAL, allow_subnormal=True), min_size=1, max_size=8),
    large=st.floats(0.01, 0.99),
)
def test_denormals_in_an_entropy(name, tiny, large):
    # -x log x of all of them together is less than 1e-304, far below the rounding of the rest.
    found = entropy_of(name, [*tiny, large])
    exact = -EXACT(large) * np.log(EXACT(large))
    assert abs(found - exact) <= (LOG_ULP + 1) * np.spacing(float(exact))


@INSTRUCTION_SETS
@given(x=st.floats(0, 1e-280, allow_subnormal=True))
def test_an_entropy_of_tiny_numbers_alone(name, x):
    # x log(x + TINY) is never infinite, and at most TINY away from x log x.
    found = entropy_of(name, [x])
    exact = 0.0 if x == 0 else float(-EXACT(x) * np.log(EXACT(x)))
    assert 0 <= found <= exact * (1 + 1e-14) + DENORMAL
    assert exact - found <= TINY + 1e-14 * exact


@INSTRUCTION_SETS
@given(mu=st.lists(st.floats(1e-284, 1), min_size=1, max_size=40))
def test_entropy_of_a_table(name, mu):
    # TINY is below the rounding of numbers above 1e-284.
    exact = -np.array(mu, EXACT) * np.log(np.array(mu, EXACT))
    bound = (LOG_ULP + len(mu)) * np.finfo(float).eps * np.abs(exact).sum()
    assert abs(entropy_of(name, mu) - exact.sum()) <= bound
