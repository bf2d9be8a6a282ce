"""A plan's curves in words and as a table: the same in every format."""

from __future__ import annotations

from wqlab_comparison import tables, words
from wqlab_comparison.curves import without_evidence
from wqlab_contracts.api.curves import CurvePoint, MetricCurve
from wqlab_contracts.api.report import ArmSummary, TargetReport

HEADING = "Curves"


def title(target: TargetReport, curve: MetricCurve) -> str:
    """`local_l3_share (%) over issuers`, with the kernel where there are two."""
    unit = f" ({curve.unit})" if curve.unit else ""
    several = len({each.kernel for each in target.curves}) > 1
    return f"{curve.metric}{unit} over {curve.over}" + (f", {curve.kernel} kernel" if several else "")


def header(curve: MetricCurve) -> list[str]:
    """The settings as their values alone; `knobs` says which."""
    _, labels = tables.setting_labels([line.setting for line in curve.lines])
    return [curve.over, "scenario", *(labels[line.setting] for line in curve.lines)]


def knobs(curve: MetricCurve) -> str:
    """What the columns of settings are the values of: `scope,strict`; empty where they say it themselves."""
    return tables.setting_labels([line.setting for line in curve.lines])[0]


def rows(curve: MetricCurve) -> list[list[str]]:
    """One a point, by rising x: x, the scenario, the mean and deviation under each setting."""
    places = {point.scenario: point.x for line in curve.lines for point in line.points}
    column = [_summary(point) for line in curve.lines for point in line.points]
    decimals = words.decimals(column)
    found = [{point.scenario: point for point in line.points} for line in curve.lines]
    return [
        [
            words.number(x),
            scenario,
            *(
                words.spread(_summary(line[scenario]), decimals) if scenario in line else tables.NOTHING
                for line in found
            ),
        ]
        for scenario, x in sorted(places.items(), key=lambda each: each[1])
    ]


def not_drawn(target: TargetReport) -> str:
    """What the plan would draw and this device gives no evidence of; empty when there is nothing."""
    names = without_evidence(target.plan, target.emulated)
    if not names:
        return ""
    what = f"{' and '.join(names)} over {target.plan.curve.over if target.plan.curve else ''}"
    return f"{what}: no evidence on an emulated device, so no curve is drawn and no crossing claimed."


def _summary(point: CurvePoint) -> ArmSummary:
    return ArmSummary(mean=point.mean, stddev=point.stddev, n=point.n)
