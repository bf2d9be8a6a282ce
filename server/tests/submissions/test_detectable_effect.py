"""Detectable effect, from the spread of past runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtri

from wqlab_comparison import ALPHA
from wqlab_comparison.significance import sign_flip
from wqlab_contracts.enums import PAIR, Arm, Evidence
from wqlab_contracts.specs import Metric, TestPlan
from wqlab_server.submissions.detectable_effect import PastValue, estimate, primary_metric

PLAN = TestPlan.model_validate(
    {
        "name": "p", "summary": "s", "script": "s", "parser": "p", "scenarios": [{"name": "high", "summary": "s"}],
        "axes": [{"name": "scope", "values": ["cache", "system"]}], "reference_setting": "scope=system",
        "hardware": {"settings": ["scope=system"]}, "emulated": {"settings": ["scope=system"]},
        "metrics": [
            {"name": "bw", "summary": "s", "unit": "MiB/s", "scale": "ratio", "direction": "higher_is_better",
             "class": "performance", "taken_from": "untraced", "role_hardware": "primary", "delta": 1},
            {"name": "locks", "summary": "s", "unit": "locks", "scale": "difference", "direction": "lower_is_better",
             "class": "mechanism", "taken_from": "traced", "role_emulated": "primary", "delta": 1},
        ],
    }
)  # fmt: skip
BW, LOCKS = PLAN.metrics


def pairs(run_id: int, logs: list[float], setting: str = "scope=system") -> list[PastValue]:
    """Return blocks in which the candidate is exp(log) times the baseline."""
    return [
        PastValue(run_id, block, arm, "high", setting, 1000.0 * (math.exp(log) if arm is Arm.CANDIDATE else 1.0))
        for block, log in enumerate(logs)
        for arm in PAIR
    ]


def effect(past: list[PastValue], metric: Metric = BW, blocks: int = 6, **more: bool) -> float | None:
    arguments = {"emulated": False, "series": True} | more
    return estimate(PLAN, metric, blocks=blocks, past=past, **arguments).effect


def test_primary_metric_depends_on_emulation() -> None:
    assert primary_metric(PLAN, emulated=False) is BW
    assert primary_metric(PLAN, emulated=True) is LOCKS
    assert primary_metric(PLAN.model_copy(update={"metrics": []}), emulated=True) is None


def test_effect_is_detected_in_four_of_five_simulations() -> None:
    """An interval is beyond the threshold of 1 % in about four of five cases with this effect."""
    rng = np.random.default_rng(5)
    past = pairs(1, list(0.01 * ndtri((np.arange(100) + 0.5) / 100)))
    percent = effect(past, blocks=8)
    assert percent is not None
    beyond = math.log1p(percent / 100) - math.log1p(0.01)
    found = [sign_flip(beyond + rng.normal(0, 0.01, 8)) <= ALPHA for _ in range(1000)]
    assert 740 <= sum(found) <= 860


def test_slow_boots_of_the_past_hardly_raise_the_detectable_effect() -> None:
    """One boot in 20 is 15 % slow: a quote from the standard deviation would be four times as large."""
    noise = np.random.default_rng(6).normal(0, 0.01, 100)
    slow = noise.copy()
    slow[::20], slow[10::20] = -0.15, 0.15
    quiet, with_slow = effect(pairs(1, list(noise)), blocks=16), effect(pairs(1, list(slow)), blocks=16)
    assert quiet is not None
    assert with_slow is not None
    assert with_slow < 2.5 * quiet
    assert np.std(slow) > 4 * np.std(noise)


def test_too_many_slow_boots_have_no_detectable_effect() -> None:
    noise = np.random.default_rng(7).normal(0, 0.01, 100)
    noise[::4] = -0.15
    found = estimate(PLAN, BW, emulated=False, series=True, blocks=6, past=pairs(1, list(noise)))
    assert found.effect is None or found.effect > 10
    assert found.effect is not None or "far from the others" in found.why


def test_effects_of_past_runs_do_not_add_spread() -> None:
    unchanged, shifted = pairs(1, [0.01, -0.01] * 3), pairs(1, [0.31, 0.29] * 3)
    assert effect(shifted) == pytest.approx(effect(unchanged))
    assert effect(unchanged + pairs(2, [0.51, 0.49] * 3)) == pytest.approx(
        effect(pairs(1, [0.01, -0.01] * 3), blocks=6), rel=0.3
    )


def test_largest_spread_of_scenarios_and_settings_counts() -> None:
    narrow, wide = pairs(1, [0.01, -0.01] * 3), pairs(1, [0.05, -0.05] * 3, "scope=cache")
    assert effect(narrow + wide) == effect(wide)


def test_more_blocks_detect_a_smaller_effect() -> None:
    past = pairs(1, [0.01, -0.01] * 3)
    few, many = effect(past, blocks=6), effect(past, blocks=24)
    assert few is not None
    assert many is not None
    assert many < few / 1.8


def test_effect_is_unknown_without_enough_data() -> None:
    assert effect(pairs(1, [0.01, -0.01] * 3), blocks=5) is None
    unknown = estimate(PLAN, BW, emulated=False, series=True, blocks=6, past=[])
    assert (unknown.effect, unknown.blocks_measured) == (None, 0)
    assert "has not been measured" in unknown.why
    assert effect(pairs(1, [0.01])) is None, "one block has no spread"
    zero = [PastValue(1, block, arm, "high", "scope=system", 0.0) for block in range(6) for arm in PAIR]
    assert effect(zero) is None, "there is no ratio to zero"


def test_equal_counts_in_every_boot_are_exact() -> None:
    past = [
        PastValue(1, block, arm, "high", "scope=system", 34.0 if arm is Arm.BASELINE else 4.0)
        for block in range(2)
        for arm in PAIR
    ]
    found = estimate(PLAN, LOCKS, emulated=True, series=True, blocks=2, past=past)
    assert (found.exact, found.effect, found.evidence, found.delta) == (True, None, Evidence.MECHANISM, 1)
    assert "any difference is detected" in found.why
    varied = [*past, PastValue(1, 2, Arm.BASELINE, "high", "scope=system", 35.0)]
    assert not estimate(PLAN, LOCKS, emulated=True, series=True, blocks=2, past=varied).exact
    timed = estimate(PLAN, BW, emulated=False, series=True, blocks=6, past=past)
    assert not timed.exact, "timed figures can be equal by rounding"


def test_settings_study_pairs_settings_within_a_boot() -> None:
    past = [
        PastValue(1, block, Arm.BASELINE, "high", setting, value)
        for block, noise in enumerate([1.0, 1.3, 0.8, 1.1, 0.9, 1.2])
        for setting, value in (("scope=system", 100.0 * noise), ("scope=cache", 110.0 * noise))
    ]
    assert effect(past, series=False) == pytest.approx(1.0), (
        "an influence on both settings of a boot cancels out, and only the threshold of 1 % remains"
    )
    assert effect(past, series=True) is None, "there is no second kernel to pair with"
