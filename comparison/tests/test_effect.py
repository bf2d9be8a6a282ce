"""Effect estimate and its confidence interval."""

from itertools import combinations_with_replacement
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_comparison import effect, significance
from wqlab_contracts.enums import Scale

numbers = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))


def array(*values):
    return np.array(values, float)


@given(st.lists(numbers, min_size=1, max_size=12))
def test_estimate_is_the_median_of_the_walsh_averages(values):
    walsh = [(a + b) / 2 for a, b in combinations_with_replacement(values, 2)]
    assert effect.hodges_lehmann(array(*values)) == pytest.approx(median(walsh), abs=1e-6)


@pytest.mark.parametrize(
    ("pairs", "inward"),
    [(5, 0), (6, 1), (7, 3), (8, 4), (9, 6), (10, 9), (12, 14), (15, 26), (20, 53), (25, 90)],
)
def test_interval_ranks_agree_with_the_signed_rank_table(pairs, inward):
    """Two-sided .05 critical values of the signed-rank statistic (Hollander, Wolfe, Chicken, table A.4), plus one."""
    assert effect._count_in(pairs, 0.95) == inward


def test_interval_of_six_pairs_is_their_range():
    assert effect.interval(array(3, 1, 2, 6, 5, 4)) == (1, 6)
    assert effect.interval(array(1, 2, 3, 4, 5)) is None


def test_interval_of_a_worked_example():
    #  -1   0   1   2   3   4   5   6     eight differences, evenly spread: the middle is 2.5,
    #            [       .       ]        and the fourth of 36 averages from each end is 0 and 5
    assert effect.interval(array(-1, 0, 1, 2, 3, 4, 5, 6)) == (0, 5)
    assert effect.hodges_lehmann(array(-1, 0, 1, 2, 3, 4, 5, 6)) == 2.5


def test_bisection_agrees_with_the_full_list_of_averages():
    x = np.sort(np.random.default_rng(3).normal(5, 2, 300))
    for rank in (1, 2, 1000, 22_575, 45_150):
        assert effect._walsh_by_bisection(x, rank) == pytest.approx(effect._walsh(x, [rank])[0], rel=1e-9)


def test_interval_and_sign_flip_handle_200000_pairs():
    x = np.random.default_rng(4).normal(1, 1, 200_000)
    low, high = effect.interval(x)
    assert low < effect.hodges_lehmann(x) < high
    assert low == pytest.approx(1, abs=0.02)
    assert significance.sign_flip(x) < 1e-9


def test_ratios_need_positive_values():
    assert effect.differences(array(1, 0), array(1, 1), Scale.RATIO) is None
    assert effect.differences(array(1, 2), array(1, -1), Scale.RATIO) is None
    assert effect.differences(array(1e308), array(-1e308), Scale.DIFFERENCE) is None
    assert effect.differences(array(100), array(101), Scale.RATIO) == pytest.approx([0.00995033])
