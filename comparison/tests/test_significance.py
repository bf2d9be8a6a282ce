"""Sign-flip test on clipped differences, its approximations, and p value adjustment."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_comparison import looks, significance

numbers = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))


def array(*values):
    return np.array(values, float)


def test_differences_are_clipped_at_a_multiple_of_the_median_size():
    assert list(significance.clip(array(1, -2, 3, -100, 50))) == [1, -2, 3, -7.5, 7.5]
    assert list(significance.clip(array(0, 0, 0, 1, -9))) == [0, 0, 0, 1, -9], "zeros say nothing of the size"
    assert list(significance.clip(array(0, 0))) == [0, 0]


@given(st.lists(numbers, min_size=1, max_size=9))
def test_sign_flip_p_is_the_share_of_extreme_sign_patterns(values):
    u = significance.clip(array(*values))
    size = float(np.abs(u).max())
    if size == 0:
        assert significance.sign_flip(u) == 1
        return
    seen = abs(float(u.sum())) - 1e-9 * size
    patterns = [abs(np.dot(signs, u)) >= seen for signs in product((1, -1), repeat=len(values))]
    assert significance.sign_flip(array(*values)) == pytest.approx(np.mean(patterns))


@given(st.lists(numbers, min_size=1, max_size=9), st.randoms())
def test_order_and_exchange_of_the_arms_do_not_change_p(values, random):
    p = significance.sign_flip(array(*values))
    mixed = random.sample(values, len(values))
    assert significance.sign_flip(array(*mixed)) == pytest.approx(p)
    assert significance.sign_flip(-array(*values)) == pytest.approx(p)


@pytest.mark.parametrize(("pairs", "least"), [(5, 0.0625), (6, 0.03125), (8, 0.0078125)])
def test_sign_flip_p_has_a_lower_bound(pairs, least):
    assert significance.sign_flip(np.linspace(1, 2, pairs)) == least


@pytest.mark.parametrize("pairs", [20, 21, 24])
def test_approximation_agrees_with_the_exact_test(pairs):
    rng = np.random.default_rng(pairs)
    for _ in range(20):
        d = rng.standard_t(3, pairs) + 0.4
        exact = significance.exact_share(significance.clip(d))
        assert significance.box_andersen(d) == pytest.approx(exact, abs=0.004)
        assert significance.sign_flip(d) == pytest.approx(exact, abs=0.004)


def test_one_slow_boot_does_not_hide_a_difference():
    d = array(1.9, 2.1, 2.3, 1.8, 2.2, 2.0, 1.7, 2.4, 2.0, 15)
    assert significance.paired_t(d) > 0.02
    assert significance.sign_flip(d) == 2 / 2**10


def test_paired_t_agrees_with_a_textbook_example():
    # Student's sleep data: extra hours of sleep, ten patients, two drugs (Biometrika 1908): t = -4.0621, p = .002833
    one = array(0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
    two = array(1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)
    assert significance.paired_t(two - one) == pytest.approx(0.002833, abs=1e-6)


def test_values_without_spread_have_no_t_test():
    assert significance.paired_t(array(2, 2, 2, 2)) is None
    assert significance.paired_t(array(0.3 - 0.2, 0.4 - 0.3, 0.5 - 0.4)) is None
    assert significance.paired_t(array(1)) is None


class TestFamilies:
    difference = array(1.9, 2.1, 2.3, 1.8, 2.2, 2.0)
    noise = array(1, -1.2, 0.8, -0.9, 1.1, -1)

    def test_lone_test_keeps_its_exact_p(self):
        (alone,) = looks.adjust([looks.cut(self.difference, (), ())], significance.holm)
        assert alone == (significance.paired_t(self.difference), 2 / 2**6, 1)

    def test_six_blocks_can_be_significant_in_a_family(self):
        """The exact p of six blocks cannot be below .031, so the p of the t test is adjusted."""
        first, second = looks.adjust([looks.cut(d, (), ()) for d in (self.difference, self.noise)], significance.holm)
        assert first.p_student == significance.paired_t(self.difference)
        assert first.p_adjusted == 2 / 2**6, "never below the exact p"
        assert second.p_adjusted > 0.5
        assert first.family == 2

    def test_larger_families_need_more_blocks_for_the_sign_patterns(self):
        assert [significance.is_fine(blocks, 1) for blocks in (8, 9)] == [False, True]
        assert [significance.is_fine(blocks, 6) for blocks in (10, 11)] == [False, True]
        d = np.random.default_rng(1).normal(0.5, 1, 16)
        assert looks.continuous_p(looks.cut(d, (), ()), 6) == significance.box_andersen(d)


def test_holm_steps_down():
    assert significance.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_benjamini_hochberg_steps_up():
    assert significance.benjamini_hochberg([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.02, 0.04, 0.04, 0.02])


@given(st.lists(st.floats(0, 1), max_size=8))
def test_adjusted_p_values_are_not_smaller_and_holm_is_stricter(ps):
    for p, h, bh in zip(ps, significance.holm(ps), significance.benjamini_hochberg(ps), strict=True):
        assert p <= bh * (1 + 1e-12)
        assert bh <= h * (1 + 1e-12) <= 1.001


@pytest.mark.parametrize(("blocks", "layouts", "least", "most"), [(6, 1, 0.6, 1), (6, 4, 0.06, 0.15), (6, 6, 0, 0.05)])
def test_blocks_of_one_layout_are_not_independent(blocks, layouts, least, most):
    """Equal kernels whose layouts differ four times as much as their seeds: docs/comparison.md, Layouts."""
    rng = np.random.default_rng(1)
    called = 0
    for _ in range(500):
        of_layout = 4 * rng.normal(size=layouts)
        differences = of_layout[np.arange(blocks) % layouts] + rng.normal(size=blocks)
        called += significance.sign_flip(differences) <= significance.ALPHA
    assert least <= called / 500 <= most
