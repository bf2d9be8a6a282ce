"""Paired t test, sign-flip test and p value adjustment."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_comparison import significance

numbers = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))


def array(*values):
    return np.array(values, float)


@given(st.lists(numbers, min_size=1, max_size=9))
def test_sign_flip_p_is_the_share_of_extreme_sign_patterns(values):
    size = max(map(abs, values))
    if size == 0:
        assert significance.sign_flip(array(*values)) == 1
        return
    seen = abs(sum(values)) - 1e-9 * size
    patterns = [abs(np.dot(signs, values)) >= seen for signs in product((1, -1), repeat=len(values))]
    assert significance.sign_flip(array(*values)) == pytest.approx(np.mean(patterns))


@pytest.mark.parametrize(("pairs", "least"), [(5, 0.0625), (6, 0.03125), (8, 0.0078125)])
def test_sign_flip_p_has_a_lower_bound(pairs, least):
    assert significance.sign_flip(np.linspace(1, 2, pairs)) == least


@pytest.mark.parametrize("pairs", [31, 32, 33, 40, 1000, 1001])
def test_three_sign_flip_algorithms_agree(pairs):
    d = np.random.default_rng(pairs).normal(0.3, 1, pairs)
    exact = significance.paired_t(d)
    assert significance.sign_flip(d) == pytest.approx(exact, abs=0.02)


def test_paired_t_agrees_with_a_textbook_example():
    # Student's sleep data: extra hours of sleep, ten patients, two drugs (Biometrika 1908): t = -4.0621, p = .002833
    one = array(0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
    two = array(1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)
    assert significance.paired_t(two - one) == pytest.approx(0.002833, abs=1e-6)
    low, high = significance.t_interval(two - one, 0.95)
    assert (low, high) == (pytest.approx(0.7001, abs=1e-4), pytest.approx(2.4599, abs=1e-4))


def test_values_without_spread_have_no_t_test():
    assert significance.paired_t(array(2, 2, 2, 2)) is None
    assert significance.paired_t(array(0.3 - 0.2, 0.4 - 0.3, 0.5 - 0.4)) is None
    assert significance.paired_t(array(1)) is None


def test_holm_steps_down():
    assert significance.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_benjamini_hochberg_steps_up():
    assert significance.benjamini_hochberg([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.02, 0.04, 0.04, 0.02])


@given(st.lists(st.floats(0, 1), max_size=8))
def test_adjusted_p_values_are_not_smaller_and_holm_is_stricter(ps):
    for p, h, bh in zip(ps, significance.holm(ps), significance.benjamini_hochberg(ps), strict=True):
        assert p <= bh * (1 + 1e-12)
        assert bh <= h * (1 + 1e-12) <= 1.001
