from itertools import combinations_with_replacement, product
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_comparison import effect, significance
from wqlab_comparison.power import blocks_that_decide, smallest_effect
from wqlab_contracts.enums import Scale

numbers = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))


def array(*values):
    return np.array(values, float)


@given(st.lists(numbers, min_size=1, max_size=12))
def test_the_estimate_is_the_median_of_the_walsh_averages(values):
    walsh = [(a + b) / 2 for a, b in combinations_with_replacement(values, 2)]
    assert effect.hodges_lehmann(array(*values)) == pytest.approx(median(walsh), abs=1e-6)


@pytest.mark.parametrize(
    ("pairs", "inward"),
    [(5, 0), (6, 1), (7, 3), (8, 4), (9, 6), (10, 9), (12, 14), (15, 26), (20, 53), (25, 90)],
)
def test_the_interval_counts_in_as_the_signed_rank_table_says(pairs, inward):
    """Two-sided .05 critical values of the signed-rank statistic (Hollander, Wolfe, Chicken, table A.4), plus one."""
    assert effect._count_in(pairs, 0.95) == inward


def test_the_interval_of_six_pairs_is_their_range():
    assert effect.interval(array(3, 1, 2, 6, 5, 4)) == (1, 6)
    assert effect.interval(array(1, 2, 3, 4, 5)) is None


def test_a_worked_interval():
    #  -1   0   1   2   3   4   5   6     eight differences, evenly spread: the middle is 2.5,
    #            [       .       ]        and the fourth of 36 averages from each end is 0 and 5
    assert effect.interval(array(-1, 0, 1, 2, 3, 4, 5, 6)) == (0, 5)
    assert effect.hodges_lehmann(array(-1, 0, 1, 2, 3, 4, 5, 6)) == 2.5


def test_many_pairs_take_the_other_road_to_the_same_place():
    x = np.sort(np.random.default_rng(3).normal(5, 2, 300))
    for rank in (1, 2, 1000, 22_575, 45_150):
        assert effect._walsh_by_bisection(x, rank) == pytest.approx(effect._walsh(x, [rank])[0], rel=1e-9)


def test_half_a_million_pairs_are_no_trouble():
    x = np.random.default_rng(4).normal(1, 1, 200_000)
    low, high = effect.interval(x)
    assert low < effect.hodges_lehmann(x) < high
    assert low == pytest.approx(1, abs=0.02)
    assert significance.sign_flip(x) < 1e-9


@given(st.lists(numbers, min_size=1, max_size=9))
def test_sign_flip_is_the_share_of_sign_patterns_as_far_out(values):
    size = max(map(abs, values))
    if size == 0:
        assert significance.sign_flip(array(*values)) == 1
        return
    seen = abs(sum(values)) - 1e-9 * size
    patterns = [abs(np.dot(signs, values)) >= seen for signs in product((1, -1), repeat=len(values))]
    assert significance.sign_flip(array(*values)) == pytest.approx(np.mean(patterns))


@pytest.mark.parametrize(("pairs", "least"), [(5, 0.0625), (6, 0.03125), (8, 0.0078125)])
def test_sign_flip_has_a_floor(pairs, least):
    assert significance.sign_flip(np.linspace(1, 2, pairs)) == least


@pytest.mark.parametrize("pairs", [31, 32, 33, 40, 1000, 1001])
def test_sign_flip_agrees_across_its_three_roads(pairs):
    d = np.random.default_rng(pairs).normal(0.3, 1, pairs)
    exact = significance.paired_t(d)
    assert significance.sign_flip(d) == pytest.approx(exact, abs=0.02)


def test_paired_t_against_a_textbook():
    # Student's sleep data: extra hours of sleep, ten patients, two drugs (Biometrika 1908): t = -4.0621, p = .002833
    one = array(0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
    two = array(1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)
    assert significance.paired_t(two - one) == pytest.approx(0.002833, abs=1e-6)
    low, high = significance.t_interval(two - one, 0.95)
    assert (low, high) == (pytest.approx(0.7001, abs=1e-4), pytest.approx(2.4599, abs=1e-4))


def test_no_spread_has_no_t():
    assert significance.paired_t(array(2, 2, 2, 2)) is None
    assert significance.paired_t(array(0.3 - 0.2, 0.4 - 0.3, 0.5 - 0.4)) is None
    assert significance.paired_t(array(1)) is None


def test_holm_steps_down():
    assert significance.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_benjamini_hochberg_steps_up():
    assert significance.benjamini_hochberg([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.02, 0.04, 0.04, 0.02])


@given(st.lists(st.floats(0, 1), max_size=8))
def test_adjusted_p_values_are_never_smaller_and_holm_is_the_stricter(ps):
    for p, h, bh in zip(ps, significance.holm(ps), significance.benjamini_hochberg(ps), strict=True):
        assert p <= bh * (1 + 1e-12)
        assert bh <= h * (1 + 1e-12) <= 1.001


def test_ratios_need_positive_values():
    assert effect.differences(array(1, 0), array(1, 1), Scale.RATIO) is None
    assert effect.differences(array(1, 2), array(1, -1), Scale.RATIO) is None
    assert effect.differences(array(1e308), array(-1e308), Scale.DIFFERENCE) is None
    assert effect.differences(array(100), array(101), Scale.RATIO) == pytest.approx([0.00995033])


def test_blocks_that_decide():
    # One sd per block against a threshold of one: equivalence at no effect takes (1.73 + .86)^2, about 10 blocks.
    assert blocks_that_decide(6, 0.0, 1.0, (-1.0, 1.0), 0.05) in range(8, 13)
    # An effect of one sd: (2.26 + .88)^2, about 10.
    assert blocks_that_decide(6, 1.0, 1.0, (-1.0, 1.0), 0.05) in range(8, 13)
    # A hundred blocks do not see a hundredth of a sd.
    assert blocks_that_decide(6, 0.01, 1.0, (-0.01, 0.01), 0.05) is None
    assert blocks_that_decide(2, 10.0, 0.1, (-1.0, 1.0), 0.05) == 6


@pytest.mark.parametrize("blocks", [6, 8, 20, 90])
def test_the_smallest_effect_is_the_one_for_which_so_many_blocks_decide(blocks: int) -> None:
    """The two formulas are each other's inverse: a shade more is found with these blocks, a shade less needs more."""
    smallest = smallest_effect(blocks, 0.01, significance.ALPHA)
    assert smallest is not None

    def deciding(mean: float) -> int | None:
        return blocks_that_decide(blocks - 1, mean, 0.01, (-1.0, mean), significance.ALPHA)  # never equivalent

    assert deciding(smallest * 1.001) == blocks
    assert (deciding(smallest * 0.999) or 101) > blocks


def test_too_few_blocks_find_no_effect_of_any_size() -> None:
    assert smallest_effect(5, 0.01, significance.ALPHA) is None
