"""Events that a worker sends during a run: boots, samples, findings, blocks and progress."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ..enums import Arm, DeviceStep, FindingKind, NotMeasuredCause, Outcome, StepOutcome
from ..specs import LastLevel
from .base import STACK_LIMIT, Commands, Excerpt, Facts, Failure, Message, ShortText, StackFrame, Title, cut
from .changed_lines import RAN_LIMIT, RanLines

COMMAND_LINE_LIMIT = 8192
"""Characters of a kernel command line; Linux accepts at most 4096 bytes."""


class BootKey(Message):
    """Key of a boot, unique within a run."""

    block: int
    position: int
    arm: Arm
    attempt: int


class BootStarted(Message):
    """A boot has started."""

    type: Literal["boot_started"] = "boot_started"
    at: datetime
    boot: BootKey


class MeasuredTopology(Message):
    """CPU topology reported by the booted kernel. Each list has one entry per online CPU, in CPU order."""

    cpus: int
    online: list[int] | None = None
    """Numbers of the online CPUs; None if they are 0 to cpus - 1. With `nosmt` they can be 0, 2, 4, ..."""
    core: list[int]
    l3: list[int]
    """Last-level cache domain; `last_level` is its level."""
    last_level: LastLevel = "L3"
    node: list[int]
    package: list[int]
    cluster: list[int] | None = None
    """Cluster; None if the kernel reports no clusters between cores and L3 domains."""
    capacity: list[int] | None = None
    """CPU capacity, 1024 for the strongest; None if the kernel does not report it."""

    @property
    def numbers(self) -> Sequence[int]:
        """Return the CPU number of each list entry; it differs from the index if CPUs are offline."""
        return range(self.cpus) if self.online is None else self.online


class BootVerified(Message):
    """The variant is running; all values were read in this boot."""

    type: Literal["boot_verified"] = "boot_verified"
    at: datetime
    boot: BootKey
    kernel_boot_id: ShortText
    token: str
    build_id_gnu: str
    release: ShortText
    cmdline: Annotated[str, AfterValidator(partial(cut, limit=COMMAND_LINE_LIMIT))]
    topology: MeasuredTopology
    environment: Facts = Field(default_factory=dict)
    """Mitigations, preemption model, clock source, crypto driver, governor ..., as read on the device."""
    golden_s: float
    kexec_s: float
    ran: list[RanLines] = Field(default_factory=list, max_length=RAN_LIMIT)
    """Which changed lines of this kernel ran; empty if the device does not report it, or the series changes none."""


class Sample(Message):
    """One value of one metric in one repetition."""

    scenario: str
    setting: str
    repetition: int = Field(ge=0)
    metric: str
    value: float = Field(allow_inf_nan=False)
    warmup: bool = False


class Samples(Message):
    """Samples of one boot."""

    type: Literal["samples"] = "samples"
    at: datetime
    boot: BootKey
    samples: list[Sample]
    commands: Commands = Field(default_factory=dict)
    """Scenario -> workload command line that the device ran."""
    facts: Facts = Field(default_factory=dict)
    """Facts that the device reported while measuring (crypto driver, workqueue attributes ...)."""


class Unsupported(Message):
    """A setting or metric that a boot did not measure, with the cause. Not a failure."""

    type: Literal["unsupported"] = "unsupported"
    at: datetime
    boot: BootKey
    scenario: str
    setting: str
    metric: str | None = None
    """None: the whole setting."""
    cause: NotMeasuredCause
    reason: ShortText
    """Description of the cause."""


class Finding(Message):
    """A kernel failure or report found on the console of a boot."""

    type: Literal["finding"] = "finding"
    at: datetime
    boot: BootKey
    kind: FindingKind
    title: Title
    excerpt: Excerpt
    console_offset: int
    """Byte offset of the excerpt in the boot's console log."""
    fatal: bool
    stack: tuple[StackFrame, ...] = Field(default=(), max_length=STACK_LIMIT)
    """Call trace, innermost function first."""
    defect: str = ""
    """Description that is equal for reports of one kernel about the same defect (`keys.describe_defect`)."""


class BootFinished(Message):
    """A boot has ended."""

    type: Literal["boot_finished"] = "boot_finished"
    at: datetime
    boot: BootKey
    outcome: Outcome
    failure: Failure | None = None
    workload_s: float = 0.0
    overhead_s: float = 0.0
    """Seconds of this boot spent neither on booting nor on the workload."""


class BlockFinished(Message):
    """A block is complete."""

    type: Literal["block_finished"] = "block_finished"
    at: datetime
    block: int
    attempt: int


class BlockDiscarded(Message):
    """A block is discarded because one of its boots failed or the run was stopped."""

    type: Literal["block_discarded"] = "block_discarded"
    at: datetime
    block: int
    attempt: int
    arm: Arm | None
    """Arm that the discard counts against: a boot of it failed, and the failure was seen through the device. None if
    the lab is at fault or the run was stopped."""
    failure: Failure


class CheckStep(Message):
    """Result of one step of a device check. Sent again if the step is repeated; the last one counts."""

    type: Literal["check_step"] = "check_step"
    at: datetime
    step: DeviceStep
    outcome: StepOutcome
    text: ShortText
    """Observation, reason for skipping, or summary of the failure."""
    failure: Failure | None = None
    """Failure of a failed step; `advice` tells how to fix it."""


class Progress(Message):
    """Current activity, for display."""

    type: Literal["progress"] = "progress"
    at: datetime
    text: ShortText
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
