"""The public REST resources under /api/v1: what `wqlab`, CI and the web read and write."""

from __future__ import annotations

from datetime import datetime
from typing import Generic, Literal, Self, TypeVar

from pydantic import Field, model_validator

from .api_curves import MetricCurve
from .api_workqueues import WorkqueueCell
from .enums import (
    Arm,
    BootState,
    DeviceHealth,
    Direction,
    Evidence,
    FindingKind,
    JobState,
    Outcome,
    Question,
    Role,
    RunPurpose,
    Scale,
    SubmissionState,
    Verdict,
)
from .layout import CpuLayout
from .messages import (
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
from .specs import CpuArch, DeviceType, Name, Reference, TestPlan, Topology, Tree

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
    """How many times a board was given to it."""
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


class UnitCounts(Message):
    """The boards of a type, each counted once."""

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
    """Text of the script that runs on the board."""
    files: dict[str, str] = Field(default_factory=dict)
    """What else goes to the board: name -> text."""
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


# --- comparisons and the report ---------------------------------------------------------------------------------


class ArmSummary(Message):
    """Over boots, never over repetitions: each boot counts once, with the median of its repetitions."""

    mean: float
    stddev: float | None
    """Null for a single boot."""
    n: int


class Comparison(Message):
    plan: str
    device_type: str
    scenario: str
    setting: str
    question: Question
    reference: str
    """What it is compared with: `baseline` (question kernel) or the reference setting (question setting)."""
    kernel: Arm | None = None
    """Question setting: the kernel both settings ran on."""
    metric: str
    unit: str
    scale: Scale
    direction: Direction
    role: Role
    evidence: Evidence
    baseline: ArmSummary | None
    candidate: ArmSummary | None
    effect: float | None = None
    """Percent for scale ratio, units for difference; null without evidence or enough data."""
    ci95: tuple[float, float] | None = None
    p: float | None = None
    p_adjusted: float | None = None
    p_signflip: float | None = None
    delta: float | None = None
    exact: bool = False
    """Every boot of each arm gave the same integer: the two integers are the result, there is no p."""
    verdict: Verdict | None = None
    """Null for explanatory metrics, which never make a verdict (without evidence they say `no_evidence` all the same),
    and for a change of a metric of which neither direction is better."""
    reason: str = ""
    """Why this verdict, in words."""
    blocks_needed: int | None = None
    """How many more blocks, beyond those measured, would probably decide; null when none would."""
    blocks_discarded: int = 0

    @model_validator(mode="after")
    def _no_evidence_is_a_value_only(self) -> Self:
        """Raises ValueError: here and nowhere else, so that no report can make more of such a figure."""
        if self.evidence is not Evidence.NONE:
            return self
        inferred = (self.effect, self.ci95, self.p, self.p_adjusted, self.p_signflip, self.delta, self.blocks_needed)
        spreads = [arm.stddev for arm in (self.baseline, self.candidate) if arm is not None]
        judged = self.verdict not in {None, Verdict.NO_EVIDENCE, Verdict.UNSUPPORTED, Verdict.FAILED}
        if self.exact or judged or any(figure is not None for figure in (*inferred, *spreads)):
            raise ValueError(
                f"{self.metric} is no evidence: it has a mean and no effect, interval, p, spread or verdict"
            )
        return self


class AttemptView(Message):
    """Everything that went wrong on the way, none left out."""

    what: Literal["apply", "build", "run"] = "run"
    run_id: int | None
    build_id: int | None = None
    plan: str | None
    """Null for an apply or a build: they serve every target of the submission."""
    device_type: str | None
    device: str
    """The board; for an apply or a build the worker that tried."""
    block: int | None
    arm: Arm | None
    attempt: int
    failure: Failure
    at: datetime | None = None


class UnsupportedView(Message):
    scenario: str
    setting: str
    metric: str | None
    arm: Arm
    reason: str


class Environment(Message):
    """What a run's boots reported of themselves."""

    device: str
    topology: MeasuredTopology | None
    cmdline: dict[Arm, str]
    release: dict[Arm, str]
    build_id_gnu: dict[Arm, str]
    facts: dict[str, str]
    commands: dict[str, str]
    """Scenario -> the exact workload command line."""


class BootValue(Message):
    """One boot's value of one metric: what the comparisons are made of and what figures draw."""

    arm: Arm
    block: int
    scenario: str
    setting: str
    metric: str
    value: float


class TargetReport(Message):
    """One plan on one device type: a run."""

    run_id: int
    plan: TestPlan
    device_type: str
    device_summary: str
    emulated: bool
    declared_topology: Topology
    outcome: Outcome | None
    failure: Failure | None
    verdict: Verdict
    """Of the primary metric over all scenarios: the worst that is certain."""
    headline: str
    """The verdict in one sentence, with the figures that carry it."""
    reasons: list[str] = Field(default_factory=list)
    """Why each comparison ended as it did, once per reason; first what speaks against a verdict."""
    comparisons: list[Comparison]
    environment: Environment | None
    values: list[BootValue]
    curves: list[MetricCurve] = Field(default_factory=list)
    """Of a plan whose scenarios are points of an ordered quantity."""
    workqueues: list[WorkqueueCell] = Field(default_factory=list)
    references: list[Reference]
    unsupported: list[UnsupportedView]
    findings: list[FindingView]
    blocks_planned: int
    blocks_completed: int
    discarded: dict[Arm, int]
    overhead_s: float | None


class Report(Message):
    submission: SubmissionView
    generated_at: datetime
    lab_url: str
    summary: str = ""
    """The verdicts of all targets in one sentence: `improves xeon-2s, no change on ryzen-3900x`."""
    targets: list[TargetReport]
    attempts: list[AttemptView]
    config_diff: list[str]
    """Lines of the kernel configuration that differ between baseline and candidate."""
    config_sha256: str
    method: str = ""
    """How the verdicts were reached, in words; kept with the report, so that it stays true when the method changes."""
