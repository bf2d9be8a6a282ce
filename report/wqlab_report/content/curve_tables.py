"""Titles, notes and tables of a plan's curves, shared by all formats."""

from __future__ import annotations

from wqlab_comparison import words
from wqlab_comparison.curves import without_evidence
from wqlab_contracts.api.curves import CurvePoint, MetricCurve
from wqlab_contracts.api.report import ArmSummary, TargetReport

from .. import plain_text


def title(target: TargetReport, curve: MetricCurve) -> str:
    """Return the title, such as `local_l3_share (%) over issuers`; with several kernels it names the kernel."""
    unit = f" ({curve.unit})" if curve.unit else ""
    several = len({each.kernel for each in target.curves}) > 1
    name = words.metric_name(curve.metric)
    return f"{name}{unit} over {curve.over}" + (f", {curve.kernel} kernel" if several else "")


def header(curve: MetricCurve) -> list[str]:
    return [curve.over, "scenario", *(line.setting for line in curve.lines)]


def rows(curve: MetricCurve) -> list[list[str]]:
    """Return one row per point, by ascending x: x, the scenario, and mean and deviation with each setting."""
    positions = {point.scenario: point.x for line in curve.lines for point in line.points}
    column = [_summary(point) for line in curve.lines for point in line.points]
    decimals = words.decimals(column)
    found = [{point.scenario: point for point in line.points} for line in curve.lines]
    return [
        [
            words.number(x),
            scenario,
            *(
                words.spread(_summary(line[scenario]), decimals) if scenario in line else plain_text.NOTHING
                for line in found
            ),
        ]
        for scenario, x in sorted(positions.items(), key=lambda each: each[1])
    ]


def omission_note(target: TargetReport) -> str:
    """Return a note on the plan's curves that are left out for lack of evidence; empty if there are none."""
    names = [words.metric_name(each) for each in without_evidence(target.plan, target.emulated)]
    if not names:
        return ""
    curves = f"{' and '.join(names)} over {target.plan.curve.over if target.plan.curve else ''}"
    return f"{curves}: no evidence on an emulated device, so no curve is drawn and no crossing is reported."


def _summary(point: CurvePoint) -> ArmSummary:
    return ArmSummary(mean=point.mean, stddev=point.stddev, n=point.n)
