"""Seeded simulations of the comparison: false positive rates and power.

Model: each boot has an offset, repetitions vary around it, and the machine drifts.
"""

import math

import numpy as np
import pytest
from literal_samples import DEFAULTS, claims_difference, one
from noise_shapes import BLOCKS, HEAVY, SHAPES, differences, is_claimed, is_claimed_by_two_tests

from wqlab_comparison import Samples, compare
from wqlab_contracts.enums import Verdict

REPETITIONS = 5
BOOT_DEVIATION, RUN_DEVIATION = 0.6, 0.3  # percent


def data_set(rng, blocks, effect=0.0, boot=BOOT_DEVIATION, run=RUN_DEVIATION, drift=0.0, scenarios=1):
    """Return samples of one run. Half of the blocks, in random order, boot the baseline first.

    `effect`, deviations and `drift` per boot are in percent.
    """
    candidate_first = rng.permutation(np.arange(blocks) % 2 == 1)
    position = np.stack([candidate_first, ~candidate_first], axis=1)  # of baseline, of candidate
    time = 2 * np.arange(blocks)[:, None] + position
    shape = (scenarios, blocks, 2, REPETITIONS)
    percent = rng.normal(0, boot, shape[:3])[..., None] + rng.normal(0, run, shape)
    percent = percent + (drift * time + np.array([0, effect]))[None, :, :, None]
    scenario, block, arm, repetition = (axis.ravel() for axis in np.indices(shape))
    return Samples.from_columns(
        **{
            **DEFAULTS,
            "scenario": [f"s{index}" for index in scenario],
            "block": block,
            "arm": [("baseline", "candidate")[index] for index in arm],
            "boot": [f"{b}" for b in block * 2 + arm],
            "repetition": repetition,
            "value": (1000 * np.exp(percent / 100)).ravel(),
        }
    )


def count_verdicts(rng, sets, verdicts, **how):
    """Return the number of data sets with one of `verdicts`, and the number of data sets."""
    return count(rng, sets, lambda comparison: comparison.verdict in verdicts, **how)


def count(rng, sets, holds, **how):
    """Return the number of data sets with a comparison of which `holds` is true, and the number of data sets."""
    found = [compare(data_set(rng, **how)) for _ in range(sets)]
    return sum(any(map(holds, one)) for one in found), sets


def wilson_upper(hits, sets, z=1.96):
    """Return the upper bound of the Wilson interval for hits / sets."""
    p = hits / sets
    middle, half = p + z * z / (2 * sets), z * math.sqrt(p * (1 - p) / sets + z * z / (4 * sets * sets))
    return (middle + half) / (1 + z * z / sets)


@pytest.mark.parametrize(
    ("seed", "how"),
    [
        (1, {"blocks": 6}),
        (2, {"blocks": 8, "drift": 0.15}),
        pytest.param(3, {"blocks": 10, "boot": 1.2, "drift": 0.15}, marks=pytest.mark.nightly),
        # six chances of a false claim, one family
        pytest.param(4, {"blocks": 8, "scenarios": 6, "drift": 0.15}, marks=pytest.mark.nightly),
    ],
)
def test_false_positive_rate_is_at_most_five_percent(seed, how):
    sets = 1200 if how.get("scenarios", 1) == 1 else 500
    hits, sets = count(np.random.default_rng(seed), sets, claims_difference, **how)
    assert hits / sets <= 0.05
    assert wilson_upper(hits, sets) < 0.075


@pytest.mark.parametrize(("seed", "blocks", "published"), [(21, 8, 0.78), (22, 10, 0.89)])
def test_power_for_one_percent_agrees_with_the_published_one(seed, blocks, published):
    hits, sets = count(np.random.default_rng(seed), 300, claims_difference, blocks=blocks, effect=1.0)
    assert hits / sets == pytest.approx(published, abs=0.07)


def test_effect_of_three_percent_is_an_improvement():
    rng = np.random.default_rng(23)
    hits, sets = count_verdicts(rng, 100, {Verdict.IMPROVEMENT}, blocks=8, effect=3.0)
    assert hits / sets >= 0.9
    assert count_verdicts(rng, 100, {Verdict.REGRESSION}, blocks=8, effect=3.0)[0] == 0


@pytest.mark.parametrize("effect", [0.9, 1.0])
def test_effect_up_to_the_threshold_is_rarely_called_relevant(effect):
    """The near end of a 95 % interval is beyond the true effect in 2.5 % of the cases; the point would be in half."""
    hits, sets = count_verdicts(np.random.default_rng(26), 600, {Verdict.IMPROVEMENT}, blocks=10, effect=effect)
    assert hits / sets <= 0.025 + 0.015


def test_equivalence_is_found_with_little_spread_and_rarely_wrong():
    rng = np.random.default_rng(24)
    quiet, sets = count_verdicts(rng, 100, {Verdict.EQUIVALENT}, blocks=8, boot=0.15, run=0.1)
    assert quiet / sets >= 0.85
    wrong, sets = count_verdicts(rng, 400, {Verdict.EQUIVALENT}, blocks=8, effect=1.0)
    assert wilson_upper(wrong, sets) < 0.075


def test_recommended_blocks_usually_decide():
    rng = np.random.default_rng(25)
    recommended = []
    for _ in range(60):
        (comparison,) = compare(data_set(rng, 6, effect=0.0, boot=0.5))
        if comparison.verdict is Verdict.INCONCLUSIVE and comparison.blocks_needed is not None:
            recommended.append(6 + comparison.blocks_needed)
    blocks = round(float(np.median(recommended)))
    decided, sets = count_verdicts(rng, 100, set(Verdict) - {Verdict.INCONCLUSIVE}, blocks=blocks, boot=0.5)
    assert decided / sets >= 0.6


class TestShapesOfNoise:
    """The rule for a difference, for boots that are not normal; benchmarks/verdict_power.py prints whole tables."""

    @pytest.mark.parametrize("blocks", BLOCKS)
    @pytest.mark.parametrize("shape", SHAPES)
    def test_false_claims_are_at_most_five_percent(self, shape, blocks):
        d = differences(shape, np.random.default_rng([1, blocks]), 1500, blocks)
        hits = sum(map(is_claimed, d))
        assert hits / len(d) <= 0.05 + 0.015

    @pytest.mark.parametrize("blocks", BLOCKS)
    @pytest.mark.parametrize("shape", SHAPES)
    def test_power_is_not_below_that_of_two_tests(self, shape, blocks):
        """The earlier method needed a t test and a sign-flip test; compared on the same data."""
        for effect in (1.0, 2.0):
            d = differences(shape, np.random.default_rng([2, blocks]), 400, blocks, effect)
            gain = np.mean([is_claimed(one) for one in d]) - np.mean([is_claimed_by_two_tests(one) for one in d])
            assert gain >= -0.02
            if shape in HEAVY and effect == 1.0:
                assert gain >= 0.01

    def test_two_percent_is_found_although_one_boot_in_20_is_slow(self):
        d = differences("outliers", np.random.default_rng(3), 400, 16, 2.0)
        assert np.mean([is_claimed(one) for one in d]) > 0.8
        assert np.mean([is_claimed_by_two_tests(one) for one in d]) < 0.55

    @pytest.mark.parametrize("shape", SHAPES)
    def test_verdict_interval_and_p_agree(self, shape):
        for d in differences(shape, np.random.default_rng(4), 25, 8, 1.0):
            comparison = one([1000.0] * 8, list(1000 * np.exp(d / 100)))
            low, high = comparison.ci95
            assert claims_difference(comparison) == is_claimed(d) == (comparison.p <= 0.05) == (low > 0 or high < 0)
            assert low <= comparison.effect <= high
