"""REST resources of runs: boots, kernel findings and samples."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ..enums import Arm, BootState, FindingKind, JobState, Outcome, RunPurpose
from ..messages import Failure, MeasuredTopology, Message, StackFrame
from ..messages.looks import LookRecord


class FindingView(Message):
    """A kernel failure or report found on the console of a boot."""

    kind: FindingKind
    arm: Arm
    block: int
    attempt: int
    title: str
    excerpt: str
    console_offset: int
    fatal: bool
    stack: tuple[StackFrame, ...] = ()
    """Call trace, innermost function first, with the lines of the source if the debug information tells them."""
    defect: str = ""
    """Description that is equal for reports of one kernel about the same defect."""


class BootView(Message):
    """One boot of a run."""

    id: int
    run_id: int
    block: int
    position: int
    arm: Arm
    attempt: int
    device: str
    state: BootState
    outcome: Outcome | None
    failure: Failure | None
    valid: bool
    """True if the block finished; only valid boots are compared."""
    kernel_boot_id: str | None
    token: str | None
    build_id_gnu: str | None
    release: str | None
    cmdline: str | None
    topology: MeasuredTopology | None
    environment: dict[str, str]
    started_at: datetime
    finished_at: datetime | None
    golden_s: float | None
    kexec_s: float | None
    workload_s: float | None
    overhead_s: float | None
    console_bytes: int
    console_truncated: bool


class RunView(Message):
    """A run with its boots."""

    id: int
    submission_id: int | None
    purpose: RunPurpose
    plan: str
    device_type: str
    device: str | None
    state: JobState
    outcome: Outcome | None
    failure: Failure | None
    attempt: int
    """Number of times a device was assigned to the run."""
    blocks_planned: int
    blocks_completed: int
    looks: list[int] = Field(default_factory=list)
    """Numbers of blocks after which the run may stop; empty if its size is fixed."""
    looked: list[LookRecord] = Field(default_factory=list)
    """The looks that have taken place. The last one says why the run stopped, or that it goes on."""
    progress: str
    queue_position: int | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    files_deleted_at: datetime | None = None
    """When retention deleted the run's artifacts; their downloads then answer 410."""
    consoles_deleted_at: datetime | None = None
    """When retention deleted the consoles of the run's boots. Samples and findings stay."""
    boots: list[BootView] = Field(default_factory=list)
    findings: list[FindingView] = Field(default_factory=list)


class SampleRow(Message):
    """One sample of a run."""

    boot_id: int
    block: int
    position: int
    arm: Arm
    scenario: str
    setting: str
    repetition: int
    metric: str
    value: float
    warmup: bool
