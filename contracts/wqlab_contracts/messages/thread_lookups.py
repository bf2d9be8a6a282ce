"""Messages of a thread lookup: a worker shows which mails a submission by Message-ID would take."""

from __future__ import annotations

from typing import Literal

from ..api.series import SeriesInspection
from ..enums import JobKind, Outcome
from ..specs import Archive
from .base import Failure, Message
from .submission import ThreadSeries
from .threads import TakenThread


class ThreadLookupJob(Message):
    """Job that finds a series in the archives."""

    kind: Literal[JobKind.FIND_THREAD] = JobKind.FIND_THREAD
    series: ThreadSeries
    archives: list[Archive]


class ThreadLookupResult(Message):
    """The mails that a submission would take, and what they hold."""

    kind: Literal[JobKind.FIND_THREAD] = JobKind.FIND_THREAD
    outcome: Outcome
    failure: Failure | None = None
    thread: TakenThread | None = None
    inspection: SeriesInspection | None = None
