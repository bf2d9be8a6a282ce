"""Change points of histories: known answers, and rates by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from test_simulations import wilson_upper

from wqlab_comparison.change_points import LEAST_POINTS, find_levels
from wqlab_contracts.enums import Scale


def starts(values, scale=Scale.RATIO):
    return [level.start for level in find_levels(values, scale)]


def test_no_values_have_no_level():
    assert find_levels([], Scale.RATIO) == []


def test_few_values_are_one_level():
    (level,) = find_levels([3.0, 100.0, 4.0], Scale.RATIO)
    assert (level.start, level.end, level.middle) == (0, 3, 4.0)


def test_step_is_found_at_its_point():
    noise = np.random.default_rng(1).normal(0, 0.3, 40)
    values = np.where(np.arange(40) < 23, 100.0, 97.0) + noise
    first, second = find_levels(values.tolist(), Scale.RATIO)
    assert second.start == first.end == 23
    assert first.middle == pytest.approx(100, abs=0.3) and second.middle == pytest.approx(97, abs=0.3)
    assert first.spread == pytest.approx(0.3, rel=0.5)


def test_exact_counts_need_two_points_and_no_more():
    assert starts([34.0] * 6 + [35.0] + [34.0] * 3) == [0]  # one value is no level
    assert starts([34.0] * 6 + [4.0] * 2) == [0, 6]
    assert starts([34.0] * 6) == [0]


def test_zeros_and_negative_values_are_compared_as_they_are():
    assert starts([0.0] * 8 + [2.0] * 8) == [0, 8]
    noise = np.random.default_rng(2).normal(0, 1, 40)
    assert starts((np.where(np.arange(40) < 20, -20.0, 20.0) + noise).tolist(), Scale.DIFFERENCE) == [0, 20]


def test_scale_of_the_values_does_not_matter():
    noise = np.random.default_rng(3).normal(0, 0.01, 30)
    values = np.where(np.arange(30) < 15, 1.0, 1.1) + noise
    assert starts(values.tolist()) == starts((values * 1e9).tolist()) == [0, 15]


@pytest.mark.parametrize("points", [20, 100])
def test_few_series_without_a_change_have_a_change_point(points):
    rng = np.random.default_rng(4)
    alarms = sum(len(find_levels(rng.normal(1000, 5, points).tolist(), Scale.RATIO)) > 1 for _ in range(400))
    assert wilson_upper(alarms, 400) < 0.12


def test_step_of_two_deviations_is_found_nearly_always():
    rng = np.random.default_rng(5)
    missed = 0
    for _ in range(200):
        values = np.where(np.arange(60) < 40, 1000.0, 1010.0) + rng.normal(0, 5, 60)
        found = starts(values.tolist())
        missed += not any(abs(each - 40) <= LEAST_POINTS for each in found[1:])
    assert wilson_upper(missed, 200) < 0.05
