"""Noisy bisection: known answers, and how often and how cheaply the culprit is found."""

from __future__ import annotations

import numpy as np
import pytest

from wqlab_comparison.bisection import (
    Boots,
    Confirmation,
    ConfirmationBoots,
    Crash,
    Found,
    Measurement,
    Shift,
    conclude,
    next_commit,
    plain_boots,
    pooled_deviation,
    probabilities,
)

COMMITS = 64
BLOCKS = 2
"""Blocks of one measurement."""
PLAIN_BOOTS = 6 * 10 * 2
"""Boots of a plain bisection of 64 commits, with ten blocks at each of its six steps."""


def bisect(rng, culprit, *, effect=3.0, deviation=1.0, unusable=(), limit=200, shape="normal"):
    """Bisect a simulated tree, and return what was found and the number of boots."""
    seen = []
    change = Shift(effect, deviation)
    while True:
        chances = probabilities(COMMITS, change, seen)
        found = conclude(chances, unusable)
        boots = sum(len(each.differences) for each in seen) * 2
        if found is not None or boots > limit:
            return found, boots
        commit = next_commit(chances, unusable)
        noise = rng.normal(0, 1, BLOCKS) if shape == "normal" else rng.standard_t(3, BLOCKS) / np.sqrt(3)
        seen.append(Measurement(commit, tuple(noise * deviation + (effect if commit >= culprit else 0.0))))


def test_nothing_measured_makes_all_commits_equal():
    assert probabilities(4, Shift(3, 1), []) == pytest.approx([0.25] * 4)
    assert next_commit(probabilities(4, Shift(3, 1), [])) == 2
    assert conclude(probabilities(4, Shift(3, 1), [])) is None


def test_clear_measurements_name_the_culprit():
    seen = [Measurement(2, (0.0,) * 4), Measurement(3, (5.0,) * 4)]
    found = conclude(probabilities(4, Shift(5, 1), seen))
    assert found is not None and (found.first, found.last) == (3, 3)


def test_broken_commits_are_reported_as_a_range():
    seen = [Measurement(1, (0.0,) * 4), Measurement(4, (5.0,) * 4)]
    found = conclude(probabilities(6, Shift(5, 1), seen), unusable={2, 3})
    assert found is not None and (found.first, found.last) == (2, 4)
    assert conclude(probabilities(6, Shift(5, 1), seen)) is None  # 2 and 3 can be measured
    assert next_commit(probabilities(6, Shift(5, 1), seen)) in {2, 3}


def test_nothing_left_to_measure_ends_in_a_range_of_all():
    chances = probabilities(3, Shift(5, 1), [])
    assert next_commit(chances, unusable={1, 2}) is None
    assert conclude(chances, unusable={1, 2}) == Found(1, 3, 1.0)


def test_confirmation_against_the_parent_speaks_of_one_commit_only():
    seen = [Measurement(2, (0.0,) * 4), Measurement(3, (5.0,) * 4)]
    refuted = probabilities(4, Shift(5, 1), [*seen, Confirmation(3, 3, (0.0,) * 6)])
    assert refuted[2] < 0.5  # the measurement of 3 or that of 2 was wrong
    shown = probabilities(4, Shift(5, 1), [Confirmation(3, 3, (5.0,) * 6)])
    assert shown[2] == max(shown) and shown[0] == shown[1] == shown[3]
    failed = probabilities(4, Crash(0.5), [ConfirmationBoots(2, 3, passed=0, failed=4)])
    assert failed[1] == failed[2] > 0.49
    with pytest.raises(ValueError, match="commit 5 is not between 1 and 4"):
        probabilities(4, Shift(5, 1), [Confirmation(3, 5, (5.0,))])


def test_noise_is_pooled_over_measurements_of_different_commits():
    assert pooled_deviation(5.0, [[1.0, 3.0], [11.0, 13.0], [7.0]]) == pytest.approx(2**0.5)
    assert pooled_deviation(-6.0, [[-6.0, -6.0]]) == pytest.approx(0.6)  # exact counts
    with pytest.raises(ValueError, match="not zero"):
        pooled_deviation(0.0, [[1.0, 2.0]])


def test_boots_of_a_plain_bisection():
    assert plain_boots(64, 10, Shift(3, 1)) == PLAIN_BOOTS
    assert plain_boots(1, 10, Shift(3, 1)) == 0
    assert plain_boots(64, 2, Crash(0.5)) == 6 * 2 * 5
    assert plain_boots(65, 2, Crash(1.0)) == 7 * 2 * 2


def test_crash_that_comes_in_half_of_the_boots():
    change = Crash(0.5)
    passed_once = probabilities(4, change, [Boots(2, passed=1, failed=0)])
    passed_often = probabilities(4, change, [Boots(2, passed=8, failed=0)])
    assert passed_often[:2].sum() < 0.05 < passed_once[:2].sum()
    failed = probabilities(4, change, [Boots(2, passed=3, failed=1)])
    assert failed[:2].sum() > 0.8
    found = conclude(probabilities(4, change, [Boots(2, passed=9, failed=0), Boots(3, passed=0, failed=2)]))
    assert found is not None and (found.first, found.last) == (3, 3)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="not between 1 and 4"):
        probabilities(4, Shift(5, 1), [Measurement(5, (1.0,))])
    with pytest.raises(TypeError, match="belong to a shift"):
        probabilities(4, Crash(1.0), [Measurement(2, (1.0,))])
    with pytest.raises(ValueError, match="not zero"):
        Shift(0.0, 1.0)
    with pytest.raises(ValueError, match="rate of failures"):
        Crash(0.0)


@pytest.mark.parametrize("shape", ["normal", "heavy tails"])
@pytest.mark.parametrize("effect", [2.0, 3.0])
def test_culprit_among_64_commits_is_found_with_fewer_boots(effect, shape):
    """Effects in deviations of a block, as the demo's devices have them."""
    rng = np.random.default_rng(6)
    culprits = rng.integers(1, COMMITS + 1, 100)
    found = [bisect(rng, culprit, effect=effect, shape=shape) for culprit in culprits]
    right = sum(each is not None and each.first == culprit for (each, _), culprit in zip(found, culprits, strict=True))
    assert right >= 95
    assert np.mean([boots for _, boots in found]) < PLAIN_BOOTS / 2


def test_range_that_cannot_be_built_contains_the_culprit():
    rng = np.random.default_rng(7)
    unusable = set(range(20, 31))
    results = [bisect(rng, 25, unusable=unusable)[0] for _ in range(20)]
    assert sum(each is not None and (each.first, each.last) == (20, 31) for each in results) >= 19
