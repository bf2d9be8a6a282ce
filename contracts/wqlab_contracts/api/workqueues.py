"""Activity of the busiest workqueues in a report."""

from __future__ import annotations

from pydantic import Field

from ..enums import Arm
from ..messages import Message


class WorkqueueSeries(Message):
    """Activity of one workqueue during one observed repetition of one boot."""

    arm: Arm
    block: int
    workqueue: str
    points: list[tuple[float, float]]
    """(seconds since the start of the repetition, work items completed per second since the previous point)."""
    totals: dict[str, int]
    """Known counters over the repetition, keyed by the names in `workqueue_series.COUNTERS`."""
    in_flight_max: int
    """Maximum number of work items executing at the same time, among the sampled moments."""


class WorkqueueCell(Message):
    """Busiest workqueues of one scenario and setting, in one repetition of each arm's first valid boot."""

    scenario: str
    setting: str
    phase: str
    """`traced` or `warmup`; timed repetitions are not observed."""
    source: str
    """`stats` (counters in the kernel) or `tracepoints`."""
    series: list[WorkqueueSeries]
    notes: list[str] = Field(default_factory=list)
    """Texts on values that were not measured."""
