"""Change points of histories: known answers, and rates by simulation."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

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
    assert starts([34.0] * 6 + [4.0, 35.0] + [4.0] * 5) == [0, 6]  # nor does it delay one


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


def with_outliers(seed, step, outliers):
    """Return 40 values with a step at 20, both in standard deviations, and outliers `{index: size}`."""
    values = np.random.default_rng(seed).normal(1000, 5, 40) + np.where(np.arange(40) < 20, 0, 5 * step)
    for index, size in outliers.items():
        values[index] += 5 * size
    return values.tolist()


@pytest.mark.parametrize("step", [-10, 5, 10])
@pytest.mark.parametrize(
    "outliers",
    [{17: 12}, {17: -12}, {17: 1e5}, {22: 12}, {22: -12}, {17: 30, 24: -30}, {3: -20, 16: -20, 36: 20}],
    ids=lambda outliers: ",".join(f"{index}:{size:+g}" for index, size in outliers.items()),
)
def test_outliers_near_a_step_do_not_move_it(step, outliers):
    right = sum(starts(with_outliers(seed, step, outliers)) == [0, 20] for seed in range(200))
    assert right >= 190


def test_outliers_move_a_small_step_no_more_than_noise_does():
    alone = sum(starts(with_outliers(seed, 3, {})) == [0, 20] for seed in range(200))
    beside = sum(starts(with_outliers(seed, 3, {17: 12})) == [0, 20] for seed in range(200))
    assert beside >= alone - 10


def test_heavy_tails_are_no_changes():
    rng = np.random.default_rng(6)
    alarms = sum(len(find_levels((1000 + rng.standard_t(3, 100)).tolist(), Scale.RATIO)) > 1 for _ in range(400))
    assert wilson_upper(alarms, 400) < 0.05


def test_steps_after_an_anomalous_drop():
    """Of the shape of the throughput of TigerBeetle that Apache Otava tests with (tests/tigerbeetle_test.py).

    It drops to 60 % once at 10, and steps at 15, 61, 71 and 95; then it rises slowly. The numbers are drawn here.
    """
    rng = np.random.default_rng(7)
    levels = [(15, 26_700, 150), (46, 23_650, 130), (10, 24_500, 230), (24, 28_430, 200), (50, 27_350, 260)]
    values = np.concatenate([rng.normal(middle, sd, count) for count, middle, sd in levels])
    values[10] = 15_672
    rise = np.linspace(28_400, 29_500, 200) + rng.normal(0, 300, 200)
    found = starts([*values, *rise])
    assert found[:5] == [0, 15, 61, 71, 95]


@pytest.mark.nightly
@pytest.mark.skipif("WQLAB_OTAVA" not in os.environ, reason="needs a checkout of apache/otava in WQLAB_OTAVA")
def test_series_of_tigerbeetle_in_otavas_tests():
    """Otava itself finds the drop from 15 on and the rise from 71 on (`test_tb_old_defaults`)."""
    text = (Path(os.environ["WQLAB_OTAVA"]) / "tests/tigerbeetle_test.py").read_text()
    series = re.search(r"return (\[[\d, ]+\])", text)
    assert series
    found = starts(json.loads(series[1]))
    assert {15, 71} <= set(found) and 10 not in found, found
