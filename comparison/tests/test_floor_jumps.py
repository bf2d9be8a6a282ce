"""Jumps of the noise floor: worked examples, and the false alarm rate by simulation through the shipped code."""

from math import comb

import numpy as np
import pytest
from noise_shapes import SHAPES

from wqlab_comparison.canaries import boot_deviation
from wqlab_comparison.floor_jumps import ALARM_ALPHA, LEAST_HISTORY, RECENT, find_jump, rank_sum_p

QUIET = [1.0 + 0.01 * number for number in range(20)]


def floors(rng, shape, canaries, factor=1.0):
    """Return the floors of canaries of six blocks, whose noise is `factor` times that of the shape."""
    boots = SHAPES[shape](rng, canaries, 6)
    return [factor * boot_deviation(d) for d in boots[..., 1] - boots[..., 0]]


def alarms(values):
    """Return the number of alarms of a device whose canaries are watched one by one; an alarm restarts the record."""
    start = count = 0
    for end in range(1, len(values) + 1):
        if find_jump(values[start:end]) is not None:
            start, count = end, count + 1
    return count


def test_three_canaries_above_all_others_are_a_jump():
    found = find_jump([*QUIET, 2.0, 2.1, 2.2])
    assert found.before == pytest.approx(1.095)
    assert found.now == 2.1
    assert found.ratio == pytest.approx(2.1 / 1.095)
    assert found.p == pytest.approx(1 / comb(23, 3))


@pytest.mark.parametrize(
    "values",
    [
        [*QUIET[::-1], 2.0, 2.1],
        [*QUIET, 1.05, 2.1, 2.2],
        [*QUIET, 1.3, 1.4, 1.5],
        [*QUIET[: LEAST_HISTORY - 1], 9.0, 9.0, 9.0],
        [0.0] * 20 + [1.0, 1.0, 1.0],
        [*QUIET, 0.1, 0.1, 0.1],
        [],
    ],
    ids=["two", "one of three is quiet", "too small to matter", "short history", "no noise before", "fall", "none"],
)
def test_no_jump(values):
    assert find_jump(values) is None


def test_rank_sum_counts_every_choice():
    # of the 10 pairs of the ranks 1..5, {4, 5} and {3, 5} sum to at least 8
    assert rank_sum_p([1.0, 2.0, 4.0], [3.0, 5.0]) == pytest.approx(2 / 10)
    assert rank_sum_p([1.0, 1.0, 1.0], [1.0, 1.0]) == 1
    assert rank_sum_p([1.0, 2.0, 2.0], [2.0, 3.0]) == pytest.approx(3 / 10)  # ties: 3, 3, 3 of the ranks 1, 3, 3, 3, 5


def test_shortest_history_can_reach_the_level():
    assert 1 / comb(LEAST_HISTORY + RECENT, RECENT) <= ALARM_ALPHA < 1 / comb(17, RECENT)


@pytest.mark.parametrize("shape", SHAPES)
def test_false_alarms_are_rarer_than_one_in_a_thousand_canaries(shape):
    """Devices whose noise never changes, each watched over 200 canaries."""
    rng = np.random.default_rng(31)
    devices, canaries = 30, 200
    count = sum(alarms(floors(rng, shape, canaries)) for _ in range(devices))
    # At 1 in 1000, 6 are expected of 6,000 canaries; 12 or more have a probability of 2 % (Poisson).
    assert count < 12


@pytest.mark.parametrize(("factor", "within", "least"), [(2, 6, 0.6), (3, 3, 0.75), (3, 6, 0.9)])
def test_jump_of_a_normal_device_is_found(factor, within, least):
    rng = np.random.default_rng(32)
    found = [alarms(floors(rng, "normal", 40) + floors(rng, "normal", within, factor)) > 0 for _ in range(120)]
    assert np.mean(found) >= least
