"""Requests of a worker that holds a claim, whatever the kind of the job."""

from __future__ import annotations

from pydantic import Field

from ..specs import Name
from .base import Message
from .events import BootKey, RunEvent


class ClaimRequest(Message):
    """Request of a worker to claim a job."""

    worker: str
    """host/process; for display and as owner of the labgrid place."""
    lab: Name | None = None
    nonce: str | None = Field(default=None, min_length=8, max_length=64)
    """New for each claim. A repeated request has the same nonce and gets the same claim again if it is still valid."""


class Heartbeat(Message):
    """Heartbeat that extends a claim."""

    fence: int


class HeartbeatAnswer(Message):
    """Answer to a heartbeat: the extended claim, or a request to stop."""

    expires_in_s: float
    cancel: bool


class JobEvents(Message):
    """Events of a job. Only a run has others than its progress."""

    fence: int
    events: list[RunEvent]


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
