"""REST resources of series in mail archives: the archives of the lab, and what a submission would take."""

from __future__ import annotations

from datetime import datetime

from ..enums import JobState, Outcome
from ..messages import Failure, Message, TakenThread
from .series import SeriesInspection


class ArchiveView(Message):
    """A mail archive in which this lab finds series."""

    name: str
    summary: str
    url: str
    """Page of a message, with `{message_id}` in the place of its id."""
    list: str | None
    """Address of the list that is archived; null for several lists."""
    searched: bool
    """True if revisions in other threads are found."""


class ThreadPreview(Message):
    """What a submission by Message-ID would take, found by a worker; repeat the request until `state` is `finished`."""

    message_id: str
    revision: int | None
    """The revision that was asked for; null: the latest."""
    state: JobState
    outcome: Outcome | None
    failure: Failure | None
    thread: TakenThread | None
    inspection: SeriesInspection | None
    looked_at: datetime | None
    """Time of the worker's answer; it is reused for one minute."""
