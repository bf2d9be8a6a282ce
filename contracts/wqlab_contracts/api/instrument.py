"""Where the counts of an instrumented device come from: subsystems, functions, source lines, data lines and CPUs.

Every figure is a count per operation of the workload: of each seed first, then the mean over the seeds. None is a time,
except the virtual time of modelled devices.
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
    virtual_ns: float = 0.0
    """Virtual time, summed over all busy CPUs; 0 if the device is not modelled."""


class SpinTimes(Message):
    """Number and length of waits for spinlocks per operation, in the virtual time of a modelled device."""

    count: float = 0.0
    wait_ns: float = 0.0


class SpinChange(Message):
    """Waits of one function for spinlocks of one kind, with each kernel."""

    lock: str
    """Data whose cache line has the lock; empty if it is not known."""
    site: str
    """Function that called the function of the lock."""
    site_line: str
    """Source line of the longest waits, in the candidate if it has any; empty if it is not known."""
    per_op: dict[Arm, SpinTimes]
    seeds: int = 0
    """Seeds under which the waiting changed in the direction of the mean change; 0 with one kernel."""


class SubsystemChange(Message):
    """Counts of a subsystem with each kernel: the sums of all its functions."""

    name: str
    """Folder of the source, two levels deep (`fs/xfs`), or the file if its folder is `kernel` or the top; `user space`
    for programs; empty for functions whose source is not known; `instrument.OTHER` for the sum of the rest."""
    per_op: dict[Arm, PerOperation]
    instruction_seeds: int = 0
    """Seeds under which instructions changed in the direction of the mean change; 0 with one kernel."""
    transfer_seeds: int = 0


class FunctionChange(Message):
    """Counts of one function with each kernel."""

    name: str
    """`instrument.OTHER` for the sum of the functions without an entry: of a file if it has one, else of a subsystem if
    it has one, else of all others."""
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
    """Transfers of the cache lines of data that have one name, with each kernel."""

    symbol: str
    """`tk_core + 0x40`, `pool_workqueue cache + 0x80`, `runqueues (per-CPU) + 0x40`; the physical address if the name
    cannot be told."""
    addresses: int = 1
    """Cache lines with this name, of those that moved most: the number of the boot that has the most. A slab cache has
    many objects, and a per-CPU variable a line for each CPU."""
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
    kernel: SubsystemChange | None = None
    """Sum of all subsystems except user space; null if nothing was counted."""
    subsystems: list[SubsystemChange] = Field(default_factory=list)
    """Subsystems that changed most and those with the most instructions or transfers, the largest change first, with
    `instrument.OTHER` last. User space is always among them, so that `OTHER` is of the kernel. Together they are the
    totals."""
    functions: list[FunctionChange]
    """Functions with the most instructions or transfers, largest first, then the sums of the others by file, named
    `instrument.OTHER`. Together they are the totals."""
    changed: list[FunctionChange]
    """The ten functions that changed most; with one kernel the ten largest."""
    pairs: list[PairChange]
    """The ten pairs of source lines that changed most."""
    lines: list[LineChange]
    """The ten names of cache lines whose number of transfers changed most."""
    spins: list[SpinChange] = Field(default_factory=list)
    """The ten pairs of lock and function whose waiting changed most; empty without a model."""
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
    """Largest effect, in the unit of effects, that the 95 % interval of the control contains: effects below it can be
    caused by the layout of the kernel alone."""
    seeds: int
    """Seeds with which the floor was measured."""
    seeds_needed: int | None = None
    """Seeds that find an effect as large as the metric's threshold with a probability of 95 %, at the spread of the
    control; null if 100 are not enough or fewer than two were measured."""
    measured_at: datetime
