"""Curves of a report: metrics over the ordered quantity that a plan's scenarios are points of (`TestPlan.curve`)."""

from __future__ import annotations

from ..enums import Arm, Evidence
from ..messages import Message


class CurvePoint(Message):
    """One scenario under one setting, over boots."""

    scenario: str
    x: float
    mean: float
    stddev: float | None
    """Null for a single boot."""
    n: int


class CurveLine(Message):
    setting: str
    points: list[CurvePoint]
    """By rising x."""


class Crossing(Message):
    """Where the difference of two settings changes its sign: certainly one way at `low`, certainly the other at `high`.

    Certain is a point whose 95 % interval of the difference, paired within boots, leaves out zero.
    """

    first: str
    second: str
    """The setting whose metric is larger behind the crossing."""
    low: float
    high: float
    estimate: float
    """Between them, where the line through the estimated differences, drawn over log x, is zero."""


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
    """The crossings in words, and what is to be said of the pairs without one."""
