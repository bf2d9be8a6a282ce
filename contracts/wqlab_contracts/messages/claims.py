"""The claim protocol between a worker and the server."""

from __future__ import annotations

from pydantic import Field

from ..specs import Name
from .apply import ApplyJob, ApplyResult
from .base import Message
from .build import BuildJob, BuildResult
from .events import BootKey, Progress, RunEvent
from .run import RunJob, RunResult


class ClaimRequest(Message):
    worker: str
    """host/process, for people and for labgrid's place owner."""
    lab: Name | None = None
    nonce: str | None = Field(default=None, min_length=8, max_length=64)
    """New for each claim, the same when its request is repeated: a live claim that it made is answered again."""


class ApplyClaim(Message):
    job: ApplyJob
    fence: int
    expires_in_s: float


class BuildClaim(Message):
    job: BuildJob
    fence: int
    expires_in_s: float


class RunClaim(Message):
    job: RunJob
    fence: int
    expires_in_s: float
    completed_blocks: list[int]


class Heartbeat(Message):
    fence: int


class HeartbeatAnswer(Message):
    expires_in_s: float
    cancel: bool


class RunEvents(Message):
    fence: int
    events: list[RunEvent]


class ProgressEvents(Message):
    """Progress of an apply or a build."""

    fence: int
    events: list[Progress]


class ConsoleChunk(Message):
    """Console text of one boot; idempotent by (boot, offset). `data` is base64: a console can hold any byte."""

    fence: int
    boot: BootKey
    offset: int = Field(ge=0)
    data: str


class ConsoleAnswer(Message):
    next_offset: int
    """Where the server's copy ends."""
    truncated: bool
    """The boot's byte cap is reached; further chunks are dropped, and the report says so."""


class FinishApply(Message):
    fence: int
    result: ApplyResult


class FinishBuild(Message):
    fence: int
    result: BuildResult


class FinishRun(Message):
    fence: int
    result: RunResult
