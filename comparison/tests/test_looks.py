"""Looks: shares of the level, tests over several looks, and their intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal_samples import paired
from noise_shapes import SHAPES, differences

from wqlab_comparison import compare, looks, significance
from wqlab_comparison.looks import Cut, Look, Part
from wqlab_comparison.significance import sign_flip
from wqlab_contracts.enums import Verdict

BLOCKS = list(range(16))
CUTS = [Cut(5, looks.share(0)), Cut(9, looks.share(1)), Cut(15, looks.share(2))]


def parts(d: np.ndarray) -> list[Part]:
    return looks.cut(d, BLOCKS[: len(d)], [each for each in CUTS if each.block < len(d)])


class TestShares:
    def test_sum_of_any_number_of_shares_is_at_most_one(self):
        assert sum(looks.share(index) for index in range(50)) == pytest.approx(1)
        assert all(looks.share(index) > 0 for index in range(20))

    def test_first_share_is_what_six_blocks_of_one_sign_need(self):
        assert 2 / 2**6 / looks.share(0) <= significance.ALPHA

    def test_run_of_fixed_size_has_one_look_with_the_whole_level(self):
        assert looks.taken((), 8) == [Look(8, 1.0)]

    @pytest.mark.parametrize(
        ("blocks", "expected"),
        [
            (2, [(2, 0)]),
            (6, [(6, 0)]),
            (10, [(6, 0), (10, 1)]),
            (16, [(6, 0), (10, 1), (16, 2)]),
            (13, [(6, 0), (10, 1), (13, 2)]),  # ended early
            (32, [(6, 0), (10, 1), (16, 2), (32, 3)]),  # a look was added
        ],
    )
    def test_looks_that_have_taken_place(self, blocks, expected):
        assert looks.taken((2, 6, 10, 16), blocks) == [Look(number, looks.share(index)) for number, index in expected]


class TestSmallestP:
    def test_p_never_rises_from_look_to_look(self):
        for d in differences("normal", np.random.default_rng(1), 40, 16, 0.7):
            if len({float(np.sign(d[:n].sum())) for n in (6, 10, 16)}) == 1:
                ps = [looks.smallest_p(parts(d[:n]), sign_flip) for n in (6, 10, 16)]
                assert ps == sorted(ps, reverse=True)

    def test_earlier_look_in_the_other_direction_does_not_count(self):
        d = np.array([1.0, 1.1, 0.9, 1.2, 0.8, 1.3, -9, -9.5, -8.5, -9.2])
        assert sign_flip(d[:6]) == 2 / 2**6
        assert looks.smallest_p(parts(d), sign_flip) == pytest.approx(min(1, sign_flip(d) / looks.share(1)))
        assert looks.smallest_p(parts(d), sign_flip) > 0.05

    def test_tests_without_data_count_in_the_family(self):
        d = np.array([1.9, 2.1, 2.3, 1.8, 2.2, 2.0])
        (alone,) = looks.adjust([parts(d)], significance.holm)
        (one_of_three,) = looks.adjust([parts(d)], significance.holm, pending=2)
        assert alone.p_adjusted == pytest.approx(0.05)
        assert one_of_three.family == 3
        assert one_of_three.p_adjusted >= 3 * one_of_three.p_student


class TestInterval:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_interval_excludes_zero_if_and_only_if_p_is_at_most_the_level(self, shape):
        for d in differences(shape, np.random.default_rng(2), 20, 16, 0.8):
            for n in (6, 10, 16):
                seen = parts(d[:n])
                low, high = looks.interval(seen, looks.effect.estimate(d[:n]))
                assert (looks.smallest_p(seen, sign_flip) <= 0.05) == (low > 0 or high < 0)

    def test_interval_is_wider_than_that_of_a_fixed_size(self):
        d = differences("normal", np.random.default_rng(3), 1, 16, 1.0)[0]
        middle = looks.effect.estimate(d)
        low, high = looks.interval(parts(d), middle)
        fixed = looks.interval(looks.cut(d, BLOCKS, ()), middle)
        assert low <= fixed[0]
        assert fixed[1] <= high
        assert low <= middle <= high

    @given(st.lists(st.floats(-5, 5), min_size=16, max_size=16))
    def test_estimate_is_always_inside(self, values):
        d = np.array(values)
        middle = looks.effect.estimate(d)
        found = looks.interval(parts(d), middle)
        assert found is not None
        assert found[0] <= middle <= found[1]


def test_csv_without_targets_is_compared_with_the_looks_that_are_given():
    d = differences("normal", np.random.default_rng(4), 1, 10, 2.0)[0]
    table = paired([1000.0] * 10, (1000 * np.exp(d / 100)).tolist())
    (fixed,), (looked) = compare(table), compare(table, default_looks=(6, 10))[0]
    assert fixed.verdict is looked.verdict is Verdict.IMPROVEMENT
    assert looked.p >= fixed.p
    assert "over 2 looks" in looked.reason
    assert looked.ci95[0] <= fixed.ci95[0]
