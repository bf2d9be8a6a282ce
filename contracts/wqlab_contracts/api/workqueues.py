"""Workqueues of a report: what the busiest of them did while a plan's work was watched."""

from __future__ import annotations

from pydantic import Field

from ..enums import Arm
from ..messages import Message


class WorkqueueSeries(Message):
    """What one workqueue did during one watched repetition of one boot."""

    arm: Arm
    block: int
    workqueue: str
    points: list[tuple[float, float]]
    """(seconds since the repetition's start, work items completed per second since the point before)."""
    totals: dict[str, int]
    """Of `workqueues.COUNTERS`, those that are known, over the repetition."""
    in_flight_max: int
    """Most work items that were executing at once, of those moments that were looked at."""


class WorkqueueCell(Message):
    """The busiest workqueues of one scenario and setting: of each arm's first valid boot, one repetition."""

    scenario: str
    setting: str
    phase: str
    """`traced` or `warmup`: nothing is watched while it is timed."""
    source: str
    """`stats`: the kernel's own counters; `tracepoints`."""
    series: list[WorkqueueSeries]
    notes: list[str] = Field(default_factory=list)
    """What could not be measured, in words."""
