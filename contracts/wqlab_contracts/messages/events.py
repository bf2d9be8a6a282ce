"""What a worker tells while it runs: boots, what they measured and showed, blocks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from ..enums import Arm, DeviceStep, FindingKind, Outcome, StepOutcome
from ..specs import LastLevel
from .base import Failure, Message


class BootKey(Message):
    """Unique within a run."""

    block: int
    position: int
    arm: Arm
    attempt: int


class BootStarted(Message):
    type: Literal["boot_started"] = "boot_started"
    at: datetime
    boot: BootKey


class MeasuredTopology(Message):
    """What the booted kernel reports. Each list has one entry per CPU that is online, in CPU order."""

    cpus: int
    online: list[int] | None = None
    """The CPUs' own numbers; None when they are 0 to cpus - 1. Others are offline: `nosmt` leaves 0, 2, 4, ..."""
    core: list[int]
    l3: list[int]
    """Last-level cache domain, whichever level that is."""
    last_level: LastLevel = "L3"
    node: list[int]
    package: list[int]
    cluster: list[int] | None = None
    """None when the kernel tells of no clusters between cores and L3 domains."""
    capacity: list[int] | None = None
    """How much each CPU gets done, the strongest 1024; None when the kernel does not tell."""

    @property
    def numbers(self) -> Sequence[int]:
        """The CPUs' own numbers: an entry's place in the other lists is no CPU number where CPUs are offline."""
        return range(self.cpus) if self.online is None else self.online


class BootVerified(Message):
    """The variant runs: read in this boot, not assumed."""

    type: Literal["boot_verified"] = "boot_verified"
    at: datetime
    boot: BootKey
    kernel_boot_id: str
    token: str
    build_id_gnu: str
    release: str
    cmdline: str
    topology: MeasuredTopology
    environment: dict[str, str] = Field(default_factory=dict)
    """Mitigations, preemption model, clock source, crypto driver, governor ... as read."""
    golden_s: float
    kexec_s: float


class Sample(Message):
    scenario: str
    setting: str
    repetition: int = Field(ge=0)
    metric: str
    value: float = Field(allow_inf_nan=False)
    warmup: bool = False


class Samples(Message):
    type: Literal["samples"] = "samples"
    at: datetime
    boot: BootKey
    samples: list[Sample]
    commands: dict[str, str] = Field(default_factory=dict)
    """Scenario -> the exact workload command line that the device ran."""
    facts: dict[str, str] = Field(default_factory=dict)
    """What the device told of its environment while measuring (crypto driver, workqueue attributes ...)."""


NOT_MEASURED = "not measured: "
"""Start of an `Unsupported.reason` that tells what a boot did not give, not what its kernel or device lacks."""


class Unsupported(Message):
    """A setting or metric that this kernel or device lacks, or of which a workload gave no samples; never a failure."""

    type: Literal["unsupported"] = "unsupported"
    at: datetime
    boot: BootKey
    scenario: str
    setting: str
    metric: str | None = None
    """None: the whole setting."""
    reason: str


class Finding(Message):
    type: Literal["finding"] = "finding"
    at: datetime
    boot: BootKey
    kind: FindingKind
    title: str
    excerpt: str
    console_offset: int
    """Byte offset of the excerpt in the boot's console."""
    fatal: bool


class BootFinished(Message):
    type: Literal["boot_finished"] = "boot_finished"
    at: datetime
    boot: BootKey
    outcome: Outcome
    failure: Failure | None = None
    workload_s: float = 0.0
    overhead_s: float = 0.0
    """Seconds of this boot that were neither boot nor workload."""


class BlockFinished(Message):
    type: Literal["block_finished"] = "block_finished"
    at: datetime
    block: int
    attempt: int


class BlockDiscarded(Message):
    type: Literal["block_discarded"] = "block_discarded"
    at: datetime
    block: int
    attempt: int
    arm: Arm | None
    """The arm whose boot failed, for whatever reason; None when no boot did: the run was stopped."""
    failure: Failure


class CheckStep(Message):
    """How one step of a device's check ended. Told again when the step was tried again: the last one counts."""

    type: Literal["check_step"] = "check_step"
    at: datetime
    step: DeviceStep
    outcome: StepOutcome
    text: str
    """What was seen, or why it was skipped; of a failed step its failure's summary."""
    failure: Failure | None = None
    """Of a failed step; its advice is how to mend it."""


class Progress(Message):
    """What is happening now, for people."""

    type: Literal["progress"] = "progress"
    at: datetime
    text: str
    done: int = 0
    total: int = 0


RunEvent = Annotated[
    BootStarted
    | BootVerified
    | Samples
    | Unsupported
    | Finding
    | BootFinished
    | BlockFinished
    | BlockDiscarded
    | CheckStep
    | Progress,
    Field(discriminator="type"),
]
