"""Write and read the instrument profile of a boot: exact counts of each measured window, by function and cache line.

The worker writes the file and the server reads it. The server does not trust a lab, so every field is bounded, and a
larger file is not parsed. Counts are of instructions and of cache line transfers; none is a time, but a modelled
device adds virtual time.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from .messages.base import Message, Sha256, cut
from .messages.events import BootKey

COUNT_LIMIT = 10**15
"""Largest count that is read, about 11 days of a billion instructions a second; sums in a report stay below 2**63."""
FUNCTION_LIMIT = 300
FILE_LIMIT = 200
SUBSYSTEM_LIMIT = 100
PAIR_LIMIT = 200
LINE_LIMIT = 200
SPIN_LIMIT = 100
CPU_LIMIT = 128
WINDOW_LIMIT = 200
PROFILE_BYTES = 8 << 20
"""Maximum size of a profile's file."""
SYMBOL_LIMIT = 160
PATH_LIMIT = 240
SOURCE_LIMIT = 160
OTHER = "(other)"
"""Name of an entry that holds the sum of functions without an entry of their own: of a file if it has one, else of
all others."""
USER_SPACE = "user space"
"""Subsystem of programs."""

Count = Annotated[int, Field(ge=0, le=COUNT_LIMIT)]
Symbol = Annotated[str, StringConstraints(max_length=SYMBOL_LIMIT)]
Path = Annotated[str, StringConstraints(max_length=PATH_LIMIT)]
SourceLine = Annotated[str, StringConstraints(max_length=SOURCE_LIMIT)]


class LevelCounts(Message):
    """Cache line transfers, by the smallest domain that the CPU that took the line and its last holder share."""

    smt: Count = 0
    """Between hardware threads of one core."""
    l3: Count = 0
    """Between cores of one last-level cache domain."""
    node: Count = 0
    """Between last-level cache domains of one NUMA node."""
    remote: Count = 0
    """Between NUMA nodes."""

    @property
    def across_l3(self) -> int:
        return self.node + self.remote

    @property
    def within_l3(self) -> int:
        return self.smt + self.l3

    @property
    def total(self) -> int:
        return self.within_l3 + self.across_l3


class FunctionCounts(Message):
    """Counts of one function."""

    name: Symbol
    subsystem: Symbol = ""
    """Folder of the source, two levels deep (`fs/xfs`), or the file if its folder is `kernel` or the top; `user space`
    for programs; empty if it is not known."""
    file: Path = ""
    """Path in the source tree; empty if it is not known."""
    touched: bool = False
    """True if the series changes this function."""
    instructions: Count = 0
    transfers: LevelCounts = LevelCounts()
    """Transfers that an instruction of this function caused: it took the line."""
    locked: Count = 0
    virtual_ns: Count = 0
    """Virtual time in the function on all CPUs; 0 without a model."""


class SubsystemCounts(Message):
    """Sums of all functions of a subsystem, which no limit leaves out."""

    name: Symbol
    """As in `FunctionCounts.subsystem`; empty for functions whose source is not known, `OTHER` for the rest."""
    instructions: Count = 0
    transfers: LevelCounts = LevelCounts()
    locked: Count = 0


class TransferPair(Message):
    """Transfers from one source line that wrote a cache line to another that took it."""

    taker: Symbol
    """Function that took the cache line."""
    taker_line: Path = ""
    """`kernel/workqueue.c:3987`; empty if the debug information does not tell it."""
    taker_source: SourceLine = ""
    """Text of that line, without indentation."""
    writer: Symbol = ""
    """Function that wrote the cache line before; empty if no write was seen."""
    writer_line: Path = ""
    writer_source: SourceLine = ""
    kind: Literal["load", "store"]
    """Access of the taker."""
    transfers: LevelCounts


class HotLine(Message):
    """One cache line (64 bytes) that moved between CPUs."""

    symbol: Symbol = ""
    """`jiffies_64 + 0x40`, `runqueues (per-CPU) + 0x40`, `pool_workqueue cache + 0x80`; empty if it cannot be told."""
    cpu: int | None = Field(default=None, ge=0, lt=CPU_LIMIT)
    """CPU whose per-CPU memory has the line; null for other memory."""
    address: Annotated[str, StringConstraints(pattern=r"^0x[0-9a-f]{1,16}$")]
    """Physical address."""
    transfers: LevelCounts


class SpinWaits(Message):
    """Waits for spinlocks of one kind by one function, in virtual time."""

    lock: Symbol = ""
    """Data whose cache line has the lock, named as in `HotLine.symbol`; empty if it is not known."""
    site: Symbol
    """Function that called the function of the lock."""
    site_line: Path = ""
    """Source line of the longest waits, `kernel/workqueue.c:2310`; empty if the debug information lacks it."""
    count: Count
    wait_ns: Count


class VirtualTime(Message):
    """Where the virtual time of a window went, in nanoseconds summed over all CPUs."""

    busy_ns: Count
    idle_ns: Count
    spins: list[SpinWaits] = Field(default_factory=list, max_length=SPIN_LIMIT)
    """Time spent waiting for contended spinlocks, longest first; part of `busy_ns`. Empty on arm64."""


class Window(Message):
    """Counts between the guest's `begin` and `end` of one repetition."""

    scenario: Annotated[str, StringConstraints(max_length=100)]
    setting: Annotated[str, StringConstraints(max_length=300)]
    repetition: int = Field(ge=0, le=1000)
    operations: int = Field(ge=1, le=COUNT_LIMIT)
    """Operations of the workload; counts per operation are divided by it."""
    unit: Annotated[str, StringConstraints(min_length=1, max_length=40)]
    """Singular name of an operation: `fsync`, `MiB`."""
    instructions: Count
    kernel_instructions: Count
    loads: Count
    stores: Count
    locked: Count
    """Atomic instructions: x86 with lock prefix or xchg on memory, arm64 exclusive and LSE atomic."""
    transfers: LevelCounts
    pool_locks: LevelCounts | None = None
    """Transfers of the lines that have a lock of a worker pool; null if the pools of the kernel could not be read."""
    time: VirtualTime | None = None
    """Virtual time of the window; null if the device is not modelled."""
    subsystems: list[SubsystemCounts] = Field(default_factory=list, max_length=SUBSYSTEM_LIMIT)
    """Sums by subsystem, user space first, then most instructions first."""
    functions: list[FunctionCounts] = Field(default_factory=list, max_length=FUNCTION_LIMIT + FILE_LIMIT)
    """Functions with the most instructions or transfers; the rest is summed by file in entries named `OTHER`."""
    pairs: list[TransferPair] = Field(default_factory=list, max_length=PAIR_LIMIT)
    lines: list[HotLine] = Field(default_factory=list, max_length=LINE_LIMIT)
    cpus: list[Annotated[list[Count], Field(max_length=CPU_LIMIT)]] = Field(default_factory=list, max_length=CPU_LIMIT)
    """cpus[from][to]: transfers of all levels from the CPU that held the line to the CPU that took it."""

    @model_validator(mode="after")
    def _check_square(self) -> Self:
        if any(len(row) != len(self.cpus) for row in self.cpus):
            raise ValueError(f"cpus is not a square matrix of {len(self.cpus)} CPUs")
        return self


class CpuPlace(Message):
    """Place of one emulated CPU in the topology."""

    core: int = Field(ge=0, lt=CPU_LIMIT)
    l3: int = Field(ge=0, lt=CPU_LIMIT)
    node: int = Field(ge=0, lt=CPU_LIMIT)


class InstrumentProfile(Message):
    """Exact counts of one boot on an instrumented device.

    The same seed, kernel, script, emulator and plugin give the same profile on any machine.
    """

    seed: int = Field(ge=0, le=2**31)
    """Seed of the boot: the number of its block. Baseline and candidate of a block have the same seed."""
    emulator: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    """`QEMU 7.2.22`"""
    plugin: Sha256
    """Hash of the plugin that counted."""
    topology: list[CpuPlace] = Field(min_length=1, max_length=CPU_LIMIT)
    """Place of each CPU, in CPU order."""
    windows: list[Window] = Field(default_factory=list, max_length=WINDOW_LIMIT)

    @model_validator(mode="after")
    def _check_matrices(self) -> Self:
        for window in self.windows:
            if window.cpus and len(window.cpus) != len(self.topology):
                raise ValueError(
                    f"the matrix of {window.scenario!r} has {len(window.cpus)} CPUs, the topology {len(self.topology)}"
                )
        return self


def file_name(boot: BootKey) -> str:
    """Return the artifact name of a boot's profile."""
    return f"instrument-block{boot.block}-{boot.position}-{boot.arm.value}-attempt{boot.attempt}.json"


def shorten_symbol(name: str) -> str:
    """Return a symbol or unit name that fits a profile: the end of a long one is replaced by a mark."""
    return cut(name, SYMBOL_LIMIT)


def write(profile: InstrumentProfile) -> bytes:
    """Format a profile as JSON; equal profiles give equal bytes."""
    return profile.model_dump_json(exclude_defaults=True).encode()


def read(data: bytes) -> InstrumentProfile:
    """Parse a profile. Raises ValueError, naming the reason, if the file is too large or no valid profile."""
    if len(data) > PROFILE_BYTES:
        raise ValueError(f"the profile has {len(data)} bytes, at most {PROFILE_BYTES} are read")
    try:
        return InstrumentProfile.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"not an instrument profile: {where or 'content'}: {first['msg']}") from error
