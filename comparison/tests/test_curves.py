"""Curves over an ordered quantity: points and crossings."""

from __future__ import annotations

import pytest

from wqlab_comparison import curves
from wqlab_comparison.curves import without_evidence
from wqlab_contracts.api.report import BootValue
from wqlab_contracts.enums import Arm
from wqlab_contracts.specs import TestPlan

POINTS = {"ONE": 1, "FEW": 4, "MANY": 16, "ALL": 64}
SPREAD = (-0.5, 0.3, 0.0, 0.4, -0.2, 0.1)


def plan(scale: str = "difference") -> TestPlan:
    metric = {"summary": "s", "unit": "%", "scale": scale, "direction": "none", "taken_from": "traced"}
    return TestPlan.model_validate(
        {
            "name": "fan",
            "summary": "s",
            "script": "run.sh",
            "parser": "values",
            # Not ordered by position, which is measured.
            "scenarios": [{"name": name, "summary": name} for name in sorted(POINTS)],
            "axes": [{"name": "scope", "values": ["system", "cache", "cpu"]}],
            "reference_setting": "scope=system",
            "hardware": {"settings": ["scope=system"]},
            "emulated": {"settings": ["scope=system"]},
            "metrics": [
                {**metric, "name": "issuers", "class": "mechanism"},
                {**metric, "name": "share", "class": "mechanism"},
                {**metric, "name": "bandwidth", "class": "performance"},
            ],
            "curve": {"over": "issuers", "metrics": ["share", "bandwidth"]},
        }
    )


def measured(metric: str, by_setting: dict[str, list[float]], boots: int = 6) -> list[BootValue]:
    """Return a value per boot around each setting's level at each point.

    The deviation of a boot is the same for all settings, except for a small part per setting.
    """
    found = []
    for at, (scenario, x) in enumerate(POINTS.items()):
        for number, (setting, levels) in enumerate(by_setting.items()):
            for block in range(boots):
                own = SPREAD[(block + number) % 6] / 5
                value = levels[at] + SPREAD[block % 6] + own
                where = {"arm": Arm.BASELINE, "block": block, "scenario": scenario, "setting": f"scope={setting}"}
                found.append(BootValue(**where, metric=metric, value=value))
                found.append(BootValue(**where, metric="issuers", value=x))
    return found


def test_points_are_ordered_by_the_measured_quantity() -> None:
    (curve,) = curves(plan(), True, measured("share", {"system": [10, 20, 30, 40]}))
    assert (curve.metric, curve.over, curve.kernel, curve.crossings, curve.says) == (
        "share",
        "issuers",
        "baseline",
        [],
        [],
    )
    (line,) = curve.lines
    assert [(point.scenario, point.x, point.n) for point in line.points] == [(name, x, 6) for name, x in POINTS.items()]
    assert line.points[0].mean == pytest.approx(10, abs=0.1)


def test_crossing_lies_between_points_with_certain_sign() -> None:
    (curve,) = curves(plan(), True, measured("share", {"system": [10, 10, 20, 30], "cache": [20, 20, 10, 10]}))
    (crossing,) = curve.crossings
    assert (crossing.first, crossing.second) == ("scope=cache", "scope=system")
    assert (crossing.low, crossing.high) == (4, 16)
    assert crossing.estimate == pytest.approx(8, rel=0.02), "half way from 4 to 16 on a logarithmic axis"
    assert curve.says == [
        "scope=system overtakes scope=cache between 4 and 16 % (the estimated differences change sign near 8)"
    ]


def test_uncertain_points_widen_the_crossing() -> None:
    (curve,) = curves(plan(), True, measured("share", {"system": [10, 10, 10.0, 30], "cache": [20, 10, 10.0, 10]}))
    (crossing,) = curve.crossings
    assert (crossing.low, crossing.high) == (1, 64)
    assert 1 <= crossing.estimate <= 64


def test_lines_that_only_touch_do_not_cross() -> None:
    levels = {"system": [10, 10, 10, 10], "cache": [20, 10, 10, 20], "cpu": [30, 30, 30, 30]}
    (curve,) = curves(plan(), True, measured("share", levels))
    assert curve.crossings == []
    assert curve.says == ["3 pairs of settings without a certain change of sign"]


def test_few_boots_are_drawn_without_crossings() -> None:
    (curve,) = curves(plan(), True, measured("share", {"system": [1, 1, 9, 9], "cache": [5, 5, 5, 5]}, boots=5))
    assert [len(line.points) for line in curve.lines] == [4, 4]
    assert (curve.crossings, curve.says) == ([], ["no crossing can be determined with 5 boots: an interval needs 6"])


def test_two_sign_changes_are_two_crossings() -> None:
    (curve,) = curves(plan(), True, measured("share", {"system": [10, 30, 30, 10], "cache": [20, 20, 20, 20]}))
    assert [(each.second, each.low, each.high) for each in curve.crossings] == [
        ("scope=system", 1, 4),
        ("scope=cache", 16, 64),
    ]


def test_ratios_cross_at_one_and_zeros_have_no_crossing() -> None:
    levels = {"system": [100, 100, 400, 400], "cache": [200, 200, 200, 200]}
    (curve,) = curves(plan("ratio"), True, measured("share", levels))
    assert curve.crossings[0].estimate == pytest.approx(8, rel=0.02)
    zeros = [each.model_copy(update={"value": 0.0}) for each in measured("share", levels) if each.metric == "share"]
    places = [each for each in measured("share", levels) if each.metric == "issuers"]
    assert curves(plan("ratio"), True, zeros + places)[0].crossings == []


def test_metric_without_evidence_has_no_curve() -> None:
    values = measured("bandwidth", {"system": [1, 1, 9, 9], "cache": [5, 5, 5, 5]})
    assert curves(plan(), True, values) == []
    assert without_evidence(plan(), True) == ["bandwidth"]
    assert without_evidence(plan(), False) == []
    assert [curve.metric for curve in curves(plan(), False, values)] == ["bandwidth"]


def test_points_without_position_and_plans_without_curve_give_no_curve() -> None:
    values = measured("share", {"system": [1, 2, 3, 4]})
    assert curves(plan(), True, [each for each in values if each.metric != "issuers"]) == []
    assert curves(plan().model_copy(update={"curve": None}), True, values) == []
