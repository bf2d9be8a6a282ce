"""Where the counts of an instrumented device come from: functions, source lines, data lines and CPUs of a report.

Every figure is a count per operation of the workload: of each seed first, then the mean over the seeds. None is a time.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from ..enums import Arm
from ..instrument import CpuPlace
from ..messages import Message


class Moves(Message):
    """Cache line transfers per operation."""

    transfers: float = 0.0
    """Of all levels."""
    across_l3: float = 0.0
    """Those between last-level cache domains, NUMA nodes included."""


class PerOperation(Moves):
    """Counts per operation."""

    instructions: float = 0.0
    locked: float = 0.0
    """Atomic instructions."""


class FunctionChange(Message):
    """Counts of one function with each kernel."""

    name: str
    """`instrument.OTHER` for the sum of all functions without an entry."""
    subsystem: str
    file: str
    touched: bool
    """True if the series changes this function."""
    per_op: dict[Arm, PerOperation]
    instruction_seeds: int = 0
    """Seeds under which instructions changed in the direction of the mean change; 0 with one kernel."""
    transfer_seeds: int = 0


class PairChange(Message):
    """Transfers from a source line that wrote a cache line to one that took it, with each kernel."""

    taker: str
    taker_line: str
    """`kernel/workqueue.c:3987`, as in the candidate if it has the line."""
    taker_source: str
    writer: str
    writer_line: str
    writer_source: str
    kind: Literal["load", "store"]
    per_op: dict[Arm, Moves]
    seeds: int = 0
    """Seeds under which the transfers changed in the direction of the mean change; 0 with one kernel."""


class LineChange(Message):
    """Transfers of one cache line of data with each kernel."""

    symbol: str
    """`symbol+offset` of a static variable, else the physical address."""
    per_op: dict[Arm, Moves]
    seeds: int = 0


class InstrumentCell(Message):
    """Counts of one scenario and setting."""

    scenario: str
    setting: str
    operation: str
    """Singular name of an operation: `fsync`, `MiB`."""
    seeds: list[int]
    """Seeds of the means; with two kernels those that both have."""
    emulator: str
    plugin: str
    topology: list[CpuPlace]
    totals: dict[Arm, PerOperation]
    functions: list[FunctionChange]
    """Functions with the most instructions or transfers, largest first, with `instrument.OTHER` last."""
    changed: list[FunctionChange]
    """The ten functions that changed most; with one kernel the ten largest."""
    pairs: list[PairChange]
    """The ten pairs of source lines that changed most."""
    lines: list[LineChange]
    """The ten cache lines whose number of transfers changed most."""
    cpus: dict[Arm, list[list[float]]]
    """cpus[arm][from][to]: transfers per operation of all levels."""
    sentences: list[str] = Field(default_factory=list)
    """What changed most, as text."""
    notes: list[str] = Field(default_factory=list)
    """What is missing."""


class NoiseFloor(Message):
    """Effect of a control kernel, which differs from its baseline by nops only, on one metric."""

    scenario: str
    setting: str
    metric: str
    floor: float
    """Largest effect, in percent, that the 95 % interval of the control contains: effects below it can be caused by the
    layout of the kernel alone."""
    seeds: int
    """Seeds with which the floor was measured."""
    seeds_needed: int | None = None
    """Seeds that find an effect as large as the metric's threshold with a probability of 95 %, at the spread of the
    control; null if 100 are not enough or fewer than two were measured."""
    measured_at: datetime
