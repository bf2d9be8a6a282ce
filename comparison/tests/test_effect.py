"""Effect estimate and its confidence interval, the inversion of the test."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wqlab_comparison import effect, significance
from wqlab_contracts.enums import Scale

numbers = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
whole = st.integers(-4, 4).map(float)


def array(*values):
    return np.array(values, float)


def interval(d, level=0.95):
    return effect.interval(d, effect.estimate(d), level)


def test_estimate_of_differences_without_outliers_is_their_mean():
    assert effect.estimate(array(-1, 0, 1, 2, 3, 4, 5, 6)) == pytest.approx(2.5)
    assert effect.estimate(array(7)) == 7


def test_one_outlier_moves_the_estimate_by_its_limit():
    # d - 1.4 = .4, .4, ... (nine times) and 98.6, which counts as 2.5 times the median size: 9 x .4 = 3.6 > 1.0
    d = array(*[1.0, 1.2, 0.8, 1.1, 0.9, 1.3, 0.7, 1.0, 1.0], 100)
    assert effect.estimate(d) == pytest.approx(1.0, abs=0.1)


@given(st.lists(st.one_of(numbers, whole), min_size=6, max_size=16))
@example([0.0] * 5 + [5.0, 6.0])
@example([-1.0] + [1.0] * 9)
@example([1.0] * 6)
def test_interval_excludes_zero_exactly_if_p_is_at_most_05(values):
    d = array(*values)
    low, high = interval(d)
    middle = effect.estimate(d)
    assert low <= middle <= high
    if significance.has_spread(d):
        assert (low > 0 or high < 0) == (significance.sign_flip(d) <= 0.05)
    assert interval(-d) == pytest.approx((-high, -low), abs=1e-9 + 1e-9 * max(abs(low), abs(high)))


@given(st.lists(numbers, min_size=6, max_size=12, unique=True))
def test_ends_of_the_interval_are_where_the_test_begins_to_reject(values):
    d = array(*values)
    low, high = interval(d)
    span = float(d.max() - d.min())
    assert significance.sign_flip(d - low) > 0.05
    assert significance.sign_flip(d - high) > 0.05
    assert significance.sign_flip(d - (d.min() - 1e-3 * span)) <= 0.05


def test_interval_of_six_pairs_is_their_range():
    assert interval(array(3, 1, 2, 6, 5, 4)) == (1, 6)
    assert interval(array(1, 2, 3, 4, 5)) is None


@pytest.mark.parametrize("blocks", [6, 8, 10, 16, 24])
def test_interval_covers_the_effect_in_95_percent(blocks):
    rng = np.random.default_rng(blocks)
    intervals = [interval(rng.standard_t(3, blocks) + 1) for _ in range(600)]
    assert np.mean([low <= 1 <= high for low, high in intervals]) == pytest.approx(0.955, abs=0.025)


@given(st.lists(numbers, min_size=6, max_size=12), st.floats(0.1, 1e6))
def test_effect_is_within_bounds_if_its_90_percent_interval_is(values, bound):
    d = array(*values)
    low, high = interval(d, 0.90)
    clear = 1e-3 * float(d.max() - d.min()) + 1e-9
    if effect.is_within(d, -bound, bound):
        assert -bound - clear <= low
        assert high <= bound + clear
    elif significance.has_spread(d):
        assert low <= -bound + clear or high >= bound - clear


def test_interval_handles_200000_pairs():
    x = np.random.default_rng(4).normal(1, 1, 200_000)
    low, high = interval(x)
    assert low < effect.estimate(x) < high
    assert low == pytest.approx(1, abs=0.02)
    assert significance.sign_flip(x) < 1e-9


def test_ratios_need_positive_values():
    assert effect.differences(array(1, 0), array(1, 1), Scale.RATIO) is None
    assert effect.differences(array(1, 2), array(1, -1), Scale.RATIO) is None
    assert effect.differences(array(1e308), array(-1e308), Scale.DIFFERENCE) is None
    assert effect.differences(array(100), array(101), Scale.RATIO) == pytest.approx([0.00995033])
