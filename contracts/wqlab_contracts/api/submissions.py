"""The public REST resources under /api/v1: what `wqlab`, CI and the web read and write."""

from __future__ import annotations

from datetime import datetime
from typing import Generic, TypeVar

from pydantic import Field

from ..cpu_layout import CpuLayout
from ..enums import Arm, BootState, DeviceHealth, FindingKind, JobState, Outcome, RunPurpose, SubmissionState, Verdict
from ..messages import (
    Artifact,
    CheckpatchFinding,
    CompilerWarning,
    Failure,
    MeasuredTopology,
    Message,
    PatchSummary,
    Series,
    Target,
)
from ..specs import Backend, CpuArch, DeviceType, Name, TestPlan, Topology, Tree

T = TypeVar("T")


class Page(Message, Generic[T]):
    items: list[T]
    total: int
    """Without paging."""
    at_least: bool = False
    """There are more than `total`, and nobody counted how many."""
    next: str | None = None
    """Opaque cursor for the next page; pass it as `cursor`."""


class Problem(Message):
    """RFC 9457 problem details; `errors` names each bad field as a JSON pointer."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] = Field(default_factory=list)


# --- submissions ------------------------------------------------------------------------------------------------


class SubmissionRequest(Message):
    series: Series | None
    """null: a settings study of the tree's own kernel."""
    tree: Name
    targets: list[Target] = Field(min_length=1, max_length=32)
    blocks: int | None = Field(default=None, ge=1, le=100)
    priority: int = Field(default=50, ge=0, le=100)
    recipe: Name | None = None
    """How the kernels are built, instead of as the device types say: `debug` looks for broken locking and memory."""
    backend: Backend | None = None
    """Only devices that are reached so; null: whichever pool of the type has the shortest queue."""

    def recipe_for(self, device_type: DeviceType) -> Name:
        return self.recipe or device_type.recipe


class Eta(Message):
    finish_at: datetime | None
    what: str
    """What is happening now and what is left, in words."""
    done_boots: int
    total_boots: int


class ApplyView(Message):
    state: JobState
    outcome: Outcome | None
    failure: Failure | None = None
    base_commit: str | None = None
    release: str | None = None
    patches: list[PatchSummary] = Field(default_factory=list)
    checkpatch: list[CheckpatchFinding] = Field(default_factory=list)
    series_mbox: Artifact | None = None


class BuildView(Message):
    id: int
    key: str
    arm: Arm | None = None
    """The part it plays in the submission it was listed for."""
    tree: str
    origin: str = ""
    """Where that tree comes from: its URL, or the name of the Debian source package."""
    base_commit: str
    tree_oid: str
    recipe: str
    arch: CpuArch
    state: JobState
    outcome: Outcome | None
    failure: Failure | None
    reused: bool
    build_id_gnu: str
    release: str
    compiler: str
    reproducer: str
    duration_s: float | None
    new_warnings: list[CompilerWarning] = Field(default_factory=list)
    """Those the baseline build does not have (candidate builds in a submission's view)."""
    artifacts: list[Artifact] = Field(default_factory=list)
    progress: str = ""


class FindingView(Message):
    kind: FindingKind
    arm: Arm
    block: int
    attempt: int
    title: str
    excerpt: str
    console_offset: int
    fatal: bool


class BootView(Message):
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
    """True when its block finished; only valid boots are compared."""
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
    """How many times a device was given to it."""
    blocks_planned: int
    blocks_completed: int
    progress: str
    queue_position: int | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    boots: list[BootView] = Field(default_factory=list)
    findings: list[FindingView] = Field(default_factory=list)


class SampleRow(Message):
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


class TargetSummary(Message):
    """One target of a submission, as a list shows it."""

    run_id: int
    plan: str
    device_type: str
    emulated: bool
    device: str | None
    state: JobState
    outcome: Outcome | None
    verdict: Verdict | None
    """Null until its figures were compared."""
    headline: str
    """The verdict in one sentence."""
    done_boots: int
    total_boots: int


class SubmissionSummary(Message):
    id: int
    title: str
    author: str = ""
    """Of the series: `Name <address>` of the first patch; empty for a settings study and while it is not known."""
    version: int | None = None
    """2 for `[PATCH v2 ...]`; null for a branch and for a settings study."""
    series_key: str
    tree: str
    owner: str
    priority: int
    state: SubmissionState
    outcome: Outcome | None
    failure: Failure | None
    verdicts: dict[Verdict, int]
    """How many primary comparisons ended in each verdict."""
    retry_of: int | None = None
    """The finished submission that this one repeats; that one never changes."""
    targets: list[TargetSummary] = Field(default_factory=list)
    done_boots: int = 0
    total_boots: int = 0
    created_at: datetime
    finished_at: datetime | None


class SubmissionView(SubmissionSummary):
    request: SubmissionRequest
    apply: ApplyView
    builds: list[BuildView]
    runs: list[RunView]
    eta: Eta
    exit_code: int | None
    """The exit code `wqlab submit --wait` ends with; null while it runs."""


# --- devices, plans, trees --------------------------------------------------------------------------------------


class LeaseView(Message):
    run_id: int
    holder: str
    fence: int
    expires_at: datetime


class DeviceView(Message):
    name: str
    device_type: str
    lab: str
    health: DeviceHealth
    health_reason: str
    health_checked_at: datetime | None
    lease: LeaseView | None
    measured_topology: MeasuredTopology | None
    layout: CpuLayout | None = None
    """The same, to be drawn; null before its first health check."""
    health_check: int | None = None
    """The run that is checking it or waits to."""
    check_requested_at: datetime | None = None
    """A maintainer asked for a check that has not been ordered yet."""
    backend: Backend = "labgrid"
    away: str = ""
    """Why its lab cannot give it now, whatever its health; empty when it can."""
    elsewhere: str = ""
    """What the lab's own server says that the device is doing for others; empty when it is idle or ours."""


class UnitCounts(Message):
    """The devices of a type, each counted once."""

    good: int
    """Healthy and free."""
    busy: int
    """Leased."""
    unchecked: int
    """Free, of unknown or doubtful health: a health check comes before a run."""
    quarantined: int
    """The run that one of them still has goes on to its end."""


class DeviceTypeView(Message):
    name: str
    summary: str
    tested: bool = True
    """False: the lab has never run on such a machine."""
    arch: CpuArch
    emulated: bool
    topology: Topology
    layout: CpuLayout
    """The same, to be drawn."""
    devices: list[str]
    units: UnitCounts
    free: int
    queued_runs: int
    problems: list[str] = Field(default_factory=list)
    """Mistakes in the data folder's files as they are now (`file:line: key: message`): until they are mended the last
    good content stays in use, so an edit may not have taken effect."""


class QuarantineRequest(Message):
    reason: str = Field(min_length=1, max_length=500)


class PlanView(Message):
    plan: TestPlan
    script: str
    """Text of the script that runs on the device."""
    files: dict[str, str] = Field(default_factory=dict)
    """What else goes to the device: name -> text."""
    readme: str = ""
    """The plan's README.md; empty when it has none."""


class TreeView(Message):
    tree: Tree
    base_commit: str | None
    """Where the tree's branch was when it was last resolved."""
    release: str | None = None
    """The kernel release of that commit."""
    resolved_at: datetime | None = None
    failure: Failure | None = None
    """Why a later attempt to resolve it failed."""
    default: bool = False
    """The tree meant by whoever names none."""
