"""Claim protocol between workers and the server."""

from __future__ import annotations

from pydantic import Field

from ..specs import Name
from .apply import ApplyJob, ApplyResult
from .base import Message
from .build import BuildJob, BuildResult
from .events import BootKey, Progress, RunEvent
from .run import RunJob, RunResult


class ClaimRequest(Message):
    """Request of a worker to claim a job."""

    worker: str
    """host/process; for display and as owner of the labgrid place."""
    lab: Name | None = None
    nonce: str | None = Field(default=None, min_length=8, max_length=64)
    """New for each claim. A repeated request has the same nonce and gets the same claim again if it is still valid."""


class ApplyClaim(Message):
    """Claim of an apply job."""

    job: ApplyJob
    fence: int
    expires_in_s: float


class BuildClaim(Message):
    """Claim of a build job."""

    job: BuildJob
    fence: int
    expires_in_s: float


class RunClaim(Message):
    """Claim of a run."""

    job: RunJob
    fence: int
    expires_in_s: float
    completed_blocks: list[int]


class Heartbeat(Message):
    """Heartbeat that extends a claim."""

    fence: int


class HeartbeatAnswer(Message):
    """Answer to a heartbeat: the extended claim, or a request to stop."""

    expires_in_s: float
    cancel: bool


class RunEvents(Message):
    """Events of a run."""

    fence: int
    events: list[RunEvent]


class ProgressEvents(Message):
    """Progress of an apply or a build."""

    fence: int
    events: list[Progress]


class ConsoleChunk(Message):
    """Console output of one boot; idempotent by (boot, offset). `data` is base64: a console can print any byte."""

    fence: int
    boot: BootKey
    offset: int = Field(ge=0)
    data: str


class ConsoleAnswer(Message):
    """Answer to a console chunk."""

    next_offset: int
    """Length of the server's copy in bytes."""
    truncated: bool
    """True if the boot's size limit is reached: further chunks are dropped, and the report mentions it."""


class FinishApply(Message):
    """Final message of an apply job."""

    fence: int
    result: ApplyResult


class FinishBuild(Message):
    """Final message of a build job."""

    fence: int
    result: BuildResult


class FinishRun(Message):
    """Final message of a run."""

    fence: int
    result: RunResult
