"""REST resources of a submission's page: steps (without figures), versions and cell values."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from ..enums import Arm, BootState, ErrorKind, JobState, Outcome
from ..messages import Failure, Message, TakenThread
from ..messages.looks import LookRecord
from ..specs import CpuArch
from .report import AttemptView
from .runs import FindingView
from .submissions import Eta, SubmissionSummary


class FailureBrief(Message):
    """A failure without its excerpt, which the resource of the boot, run or build contains."""

    kind: ErrorKind
    summary: str
    advice: str


class JobStep(Message):
    """State of an apply, build or run."""

    state: JobState
    outcome: Outcome | None
    failure: Failure | None
    attempts: int
    """Number of times the job was claimed."""
    holder: str | None
    """The worker that holds the job or held it last."""
    progress: str
    progress_done: int
    progress_total: int
    """0 if unknown."""
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class ApplyStep(JobStep):
    """State of applying the series."""

    base_commit: str | None
    release: str | None
    patches: int
    checkpatch_errors: int
    checkpatch_warnings: int
    checkpatch_skipped: str = ""
    """Why checkpatch did not check every patch; empty if it did."""
    thread: TakenThread | None = None
    """The mails that were taken, for a series that is given by a Message-ID; null until they are found."""


class BuildStep(JobStep):
    """State of one build."""

    id: int
    arm: Arm
    recipe: str
    arch: CpuArch
    emulated: bool
    reused: bool
    """True if built earlier for a submission with the same content."""
    release: str
    build_id_gnu: str
    new_warnings: int
    """Number of warnings that the baseline lacks."""
    has_log: bool


class BootStep(Message):
    """State of one boot."""

    id: int
    block: int
    position: int
    arm: Arm
    attempt: int
    """Attempt of the block, from 0."""
    device: str
    state: BootState
    outcome: Outcome | None
    valid: bool
    failure: FailureBrief | None
    findings: int
    started_at: datetime
    verified_at: datetime | None
    """Time at which the kernel under test was running and verified."""
    finished_at: datetime | None
    console_bytes: int
    console_truncated: bool


class BlockState(StrEnum):
    """State of a block."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    LOST = "lost"
    """The run ended before the block was complete."""
    NOT_NEEDED = "not_needed"
    """A look found that the run needs no further blocks."""


class BlockStep(Message):
    """State of one block."""

    block: int
    arms: list[Arm]
    """Boots in order."""
    state: BlockState
    attempt: int | None
    """Number of the last started attempt; null before the first."""
    discarded: int
    """Number of discarded attempts."""


class RunAttemptStep(Message):
    """One assignment of a device to the run."""

    number: int
    device: str
    holder: str
    outcome: Outcome | None
    failure: Failure | None
    started_at: datetime
    finished_at: datetime | None


class RunStep(JobStep):
    """State of one run with its blocks."""

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
    looks: list[int] = Field(default_factory=list)
    """Numbers of blocks after which the run may stop; empty if its size is fixed."""
    looked: list[LookRecord] = Field(default_factory=list)
    """The looks that have taken place."""
    boots: list[BootStep]
    """In order of time, including those of discarded blocks."""
    findings: list[FindingView]
    devices: list[RunAttemptStep]


class SubmissionSteps(Message):
    """All data for the page of a running submission, in one response."""

    submission: SubmissionSummary
    at: datetime
    """Server time."""
    event_seq: int
    """Number of the last event included; follow the event stream from there."""
    cancel_requested_at: datetime | None
    exit_code: int | None
    eta: Eta
    apply: ApplyStep
    builds: list[BuildStep]
    runs: list[RunStep]
    traced_runs: list[RunStep] = Field(default_factory=list)
    """Runs that trace both kernels because a primary metric differs between them. They have no verdict."""
    attempts: list[AttemptView]
    """All failed attempts in order of time; excerpts are cut to 2,000 characters."""


# --- versions ---------------------------------------------------------------------------------------------------


class SubmissionVersion(SubmissionSummary):
    """One version of a series."""

    base_commit: str | None
    """Base commit; null until the series is applied."""
    tree_oid: str | None
    """Hash of the candidate's source tree; equal for two submissions of the same code."""


class PatchPair(Message):
    """A patch in two versions of a series, or in one of them, as git-range-diff(1) shows it."""

    first: int | None
    """Number of the patch in the first version, from 1."""
    second: int | None
    change: Literal["=", "!", "<", ">"]
    """Equal, changed, removed or added."""
    subject: str
    """Subject in the first version if that has the patch, else in the second."""
    difference: list[str]
    """Lines of the diff between the two diffs; empty for an equal, removed or added patch."""


# --- a cell -----------------------------------------------------------------------------------------------------


class BootPoint(Message):
    """Value of one metric in one boot, with the repetitions whose median it is."""

    boot_id: int
    block: int
    position: int
    arm: Arm
    device: str
    setting: str
    value: float
    repetitions: list[float]
    """Values in order, without warm-up repetitions."""


class CellValues(Message):
    """Values behind the figures of one scenario and metric; only boots of complete blocks."""

    run_id: int
    scenario: str
    metric: str
    unit: str
    points: list[BootPoint]
    """Ordered by block and position."""
