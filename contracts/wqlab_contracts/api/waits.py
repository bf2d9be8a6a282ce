"""How long work items waited from queueing to start, and where they started, in the traced repetitions of a run."""

from __future__ import annotations

from pydantic import Field

from ..enums import Arm
from ..messages import Message


class WaitedWork(Message):
    """Work items of one function on one arm."""

    function: str
    arm: Arm
    items: float
    """Work items of a traced repetition, the mean of all."""
    p50_us: int
    """Upper end of the histogram bucket with the median, a power of two in microseconds. Half of it is the lower."""
    p99_us: int
    """The same of the 99th percentile."""
    same_cpu: float | None = None
    """Percentage that started on the CPU that queued them; null if places were not counted."""
    same_l3: float | None = None
    """Percentage that started in the last-level cache domain of that CPU, that CPU included."""
    same_node: float | None = None
    """Percentage that started on the NUMA node of that CPU, that CPU included."""


class WaitCell(Message):
    """Waits of the busiest work functions in one scenario and setting."""

    scenario: str
    setting: str
    repetitions: dict[Arm, int]
    """Traced repetitions of all valid boots with counts, by arm."""
    works: list[WaitedWork]
    """The busiest functions first, each with both arms."""
    functions: int = Field(ge=0)
    """Number of functions with work items, those that are not shown included."""
    notes: list[str] = Field(default_factory=list)
    """What was not counted, and why."""
