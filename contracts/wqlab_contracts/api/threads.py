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
    watchable: bool
    """True if its list can be watched: it has `epochs`."""


class ThreadPreview(Message):
    """The mails that a submission of this Message-ID would take.

    A worker looks them up; until it is done, `state` is not `finished`: repeat the request then.
    """

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
