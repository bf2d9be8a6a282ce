"""Curves of a report: metrics over an ordered quantity of a plan's scenarios (`TestPlan.curve`)."""

from __future__ import annotations

from ..enums import Arm, Evidence
from ..messages import Message


class CurvePoint(Message):
    """One scenario under one setting, over boots."""

    scenario: str
    x: float
    mean: float
    stddev: float | None
    """null for a single boot."""
    n: int


class CurveLine(Message):
    """Points of one setting."""

    setting: str
    points: list[CurvePoint]
    """Points by rising x."""


class Crossing(Message):
    """Interval in which the difference of two settings changes its sign, certain at `low` and at `high`.

    The sign at a point is certain if the 95 % interval of the difference, paired within boots, excludes zero.
    """

    first: str
    second: str
    """Setting whose metric is larger after the crossing."""
    low: float
    high: float
    estimate: float
    """Zero of the line through the estimated differences over log x, between `low` and `high`."""


class MetricCurve(Message):
    """One metric on one kernel. Only metrics that are evidence on this device have a curve."""

    metric: str
    unit: str
    evidence: Evidence
    kernel: Arm
    over: str
    over_unit: str
    lines: list[CurveLine]
    crossings: list[Crossing]
    says: list[str]
    """Sentences on the crossings and on pairs of settings without one."""
