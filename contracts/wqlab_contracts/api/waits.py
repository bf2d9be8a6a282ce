"""How long work items waited from queueing to start, and where they started, in the traced repetitions of a run."""

from __future__ import annotations

from pydantic import Field

from ..enums import Arm
from ..messages import Message


class WaitedWork(Message):
    """How long the work items of one work function waited with one of the two kernels."""

    function: str
    arm: Arm
    items: float
    """Mean number of work items in a traced repetition."""
    p50_us: int
    """Median time from queueing to start, in microseconds: the upper end of its histogram bucket, a power of two."""
    p99_us: int
    """99th percentile of that time, also as the upper end of its bucket."""
    same_cpu: float | None = None
    """Percentage that started on the CPU that queued them; null if places were not counted."""
    same_l3: float | None = None
    """Percentage that started on a CPU that shares the last-level cache with the queueing CPU, itself included."""
    same_node: float | None = None
    """Percentage that started on a CPU of the NUMA node of the queueing CPU, itself included."""


class WaitCell(Message):
    """Waits of the work functions that differ between both kernels, in one scenario and setting."""

    scenario: str
    setting: str
    repetitions: dict[Arm, int]
    """Traced repetitions of all valid boots with counts, by arm."""
    works: list[WaitedWork]
    """The busiest functions first, each with both arms. Empty if none differs."""
    functions: int = Field(ge=0)
    """Number of work functions that had work items, whether they differ or not."""
    notes: list[str] = Field(default_factory=list)
    """Sentences that name events which could not be counted, each with its reason."""
