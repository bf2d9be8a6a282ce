"""REST resources of one submission's page: its steps without the weight of its figures, its versions, its cells."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from ..enums import Arm, BootState, ErrorKind, JobState, Outcome, Question
from ..messages import Failure, Message
from ..specs import CpuArch
from .report import AttemptView, Comparison
from .submissions import Eta, FindingView, SubmissionSummary, TargetSummary


class FailureBrief(Message):
    """A failure without its excerpt; the boot, run or build itself has that."""

    kind: ErrorKind
    summary: str
    advice: str


class JobStep(Message):
    state: JobState
    outcome: Outcome | None
    failure: Failure | None
    attempts: int
    """How often it was given out."""
    holder: str | None
    """The worker that has it or had it last."""
    progress: str
    progress_done: int
    progress_total: int
    """0: not known."""
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class ApplyStep(JobStep):
    base_commit: str | None
    release: str | None
    patches: int
    checkpatch_errors: int
    checkpatch_warnings: int


class BuildStep(JobStep):
    id: int
    arm: Arm
    recipe: str
    arch: CpuArch
    emulated: bool
    reused: bool
    """Made earlier, for a submission with the same content."""
    release: str
    build_id_gnu: str
    new_warnings: int
    """That the baseline does not have."""
    has_log: bool


class BootStep(Message):
    id: int
    block: int
    position: int
    arm: Arm
    attempt: int
    """Of its block, from 0."""
    device: str
    state: BootState
    outcome: Outcome | None
    valid: bool
    failure: FailureBrief | None
    findings: int
    started_at: datetime
    verified_at: datetime | None
    """When the kernel under test was up and proven."""
    finished_at: datetime | None
    console_bytes: int
    console_truncated: bool


class BlockState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    LOST = "lost"
    """The run is over and the block never became whole."""


class BlockStep(Message):
    block: int
    arms: list[Arm]
    """In boot order."""
    state: BlockState
    attempt: int | None
    """The last one that was begun; null before the first."""
    discarded: int
    """Attempts thrown away."""


class RunAttemptStep(Message):
    """One time the run was given a device."""

    number: int
    device: str
    holder: str
    outcome: Outcome | None
    failure: Failure | None
    started_at: datetime
    finished_at: datetime | None


class RunStep(JobStep):
    id: int
    target: int
    """Index in the request's targets."""
    plan: str
    device_type: str
    emulated: bool
    device: str | None
    queue_position: int | None
    done_boots: int
    total_boots: int
    blocks: list[BlockStep]
    boots: list[BootStep]
    """In the order they happened, those of discarded blocks too."""
    findings: list[FindingView]
    devices: list[RunAttemptStep]


class SubmissionSteps(Message):
    """Everything that the page of a running submission draws, in one answer."""

    submission: SubmissionSummary
    at: datetime
    """The server's clock."""
    event_seq: int
    """Number of the last event that this answer includes: follow the events after it."""
    cancel_requested_at: datetime | None
    exit_code: int | None
    eta: Eta
    apply: ApplyStep
    builds: list[BuildStep]
    runs: list[RunStep]
    attempts: list[AttemptView]
    """Everything that went wrong on the way, in order of time; excerpts are cut to 2,000 characters."""


# --- versions ---------------------------------------------------------------------------------------------------


class SubmissionVersion(SubmissionSummary):
    base_commit: str | None
    """What its baseline kernel was built from; null before it was applied."""
    tree_oid: str | None
    """Content of the candidate's source: equal for two submissions of the same code."""


class FigureChange(StrEnum):
    """How one submission's own verdict differs from the other's. No test compares the two."""

    SAME = "same"
    BETTER = "better"
    WORSE = "worse"
    OTHER = "other"
    """The verdicts differ in another way, such as inconclusive against equivalent."""
    ONLY_FIRST = "only_first"
    ONLY_SECOND = "only_second"
    NONE = "none"
    """Neither has a verdict, or the figure is no evidence."""


class FigurePair(Message):
    """The same target, scenario, setting and metric in two submissions."""

    plan: str
    device_type: str
    scenario: str
    setting: str
    question: Question
    kernel: Arm | None
    metric: str
    first: Comparison | None
    second: Comparison | None
    change: FigureChange
    effect_change: float | None
    """Second effect less first: points of percent for scale ratio, units for difference. It has no interval."""
    intervals_overlap: bool | None
    """Null unless both have an interval."""


class TargetPair(Message):
    plan: str
    device_type: str
    first: TargetSummary | None
    second: TargetSummary | None


class SubmissionComparison(Message):
    first: SubmissionVersion
    second: SubmissionVersion
    notes: list[str]
    """What must be known to read it: that the two are not paired, and how else they differ."""
    targets: list[TargetPair]
    figures: list[FigurePair]


# --- a cell -----------------------------------------------------------------------------------------------------


class BootPoint(Message):
    """One boot's value of one metric, and the repetitions that it is the median of."""

    boot_id: int
    block: int
    position: int
    arm: Arm
    device: str
    setting: str
    value: float
    repetitions: list[float]
    """Without the warm-up, in order."""


class CellValues(Message):
    """What the figures of one scenario and metric are drawn from; only boots of whole blocks."""

    run_id: int
    scenario: str
    metric: str
    unit: str
    points: list[BootPoint]
    """By block and place in it."""
