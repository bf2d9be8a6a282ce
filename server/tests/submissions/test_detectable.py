"""What so many blocks can show, from the spread that past runs had."""

from __future__ import annotations

import math
import random

import pytest

from wqlab_contracts.enums import Arm, Evidence
from wqlab_contracts.specs import Metric, TestPlan
from wqlab_server.submissions.detectable import PastValue, detectable, primary

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
    """Blocks whose candidate is exp(log) times the baseline."""
    return [
        PastValue(run_id, block, arm, "high", setting, 1000.0 * (math.exp(log) if arm is Arm.CANDIDATE else 1.0))
        for block, log in enumerate(logs)
        for arm in Arm
    ]


def effect(past: list[PastValue], metric: Metric = BW, blocks: int = 6, **more: bool) -> float | None:
    asked = {"emulated": False, "series": True} | more
    return detectable(PLAN, metric, blocks=blocks, past=past, **asked).effect


def test_the_primary_metric_of_each_kind_of_device() -> None:
    assert primary(PLAN, emulated=False) is BW
    assert primary(PLAN, emulated=True) is LOCKS
    assert primary(PLAN.model_copy(update={"metrics": []}), emulated=True) is None


def test_it_is_what_the_comparison_would_find() -> None:
    """Against a simulation of the t test at that effect: about four of five are found."""
    from scipy.stats import ttest_1samp

    deviation = 0.01
    past = pairs(1, [deviation, -deviation] * 50)
    percent = effect(past, blocks=8)
    assert percent is not None
    true = math.log1p(percent / 100)
    draw = random.Random(5)
    spread = math.sqrt(100 / 99) * deviation
    found = sum(ttest_1samp([draw.gauss(true, spread) for _ in range(8)], 0.0).pvalue <= 0.05 for _ in range(1000))
    assert 740 <= found <= 860


def test_a_past_effect_is_not_a_spread() -> None:
    still, moved = pairs(1, [0.01, -0.01] * 3), pairs(1, [0.31, 0.29] * 3)
    assert effect(moved) == pytest.approx(effect(still))
    assert effect(still + pairs(2, [0.51, 0.49] * 3)) == pytest.approx(
        effect(pairs(1, [0.01, -0.01] * 3), blocks=6), rel=0.3
    )


def test_the_widest_scenario_or_setting_counts() -> None:
    narrow, wide = pairs(1, [0.01, -0.01] * 3), pairs(1, [0.05, -0.05] * 3, "scope=cache")
    assert effect(narrow + wide) == effect(wide)


def test_more_blocks_show_less() -> None:
    past = pairs(1, [0.01, -0.01] * 3)
    few, many = effect(past, blocks=6), effect(past, blocks=24)
    assert few is not None
    assert many is not None
    assert many < few / 1.8


def test_where_nothing_can_be_said() -> None:
    assert effect(pairs(1, [0.01, -0.01] * 3), blocks=5) is None
    unknown = detectable(PLAN, BW, emulated=False, series=True, blocks=6, past=[])
    assert (unknown.effect, unknown.blocks_measured) == (None, 0)
    assert "never measured" in unknown.why
    assert effect(pairs(1, [0.01])) is None, "one block has no spread"
    zero = [PastValue(1, block, arm, "high", "scope=system", 0.0) for block in range(6) for arm in Arm]
    assert effect(zero) is None, "a ratio to nothing"


def test_counts_that_never_vary() -> None:
    past = [
        PastValue(1, block, arm, "high", "scope=system", 34.0 if arm is Arm.BASELINE else 4.0)
        for block in range(2)
        for arm in Arm
    ]
    found = detectable(PLAN, LOCKS, emulated=True, series=True, blocks=2, past=past)
    assert (found.exact, found.effect, found.evidence, found.delta) == (True, None, Evidence.MECHANISM, 1)
    assert "any difference shows" in found.why
    varied = [*past, PastValue(1, 2, Arm.BASELINE, "high", "scope=system", 35.0)]
    assert not detectable(PLAN, LOCKS, emulated=True, series=True, blocks=2, past=varied).exact
    timed = detectable(PLAN, BW, emulated=False, series=True, blocks=6, past=past)
    assert not timed.exact, "figures of a clock can agree by rounding"


def test_a_study_pairs_settings_within_a_boot() -> None:
    past = [
        PastValue(1, block, Arm.BASELINE, "high", setting, value)
        for block, noise in enumerate([1.0, 1.3, 0.8, 1.1, 0.9, 1.2])
        for setting, value in (("scope=system", 100.0 * noise), ("scope=cache", 110.0 * noise))
    ]
    assert effect(past, series=False) == pytest.approx(0.0, abs=1e-9), "what a boot does to both takes no part"
    assert effect(past, series=True) is None, "there is no second kernel to pair with"
