"""Messages of a thread lookup: a worker shows which mails a submission by Message-ID would take."""

from __future__ import annotations

from ..api.series import SeriesInspection
from ..enums import Outcome
from ..specs import Archive
from .base import Failure, Message
from .submission import ThreadSeries
from .threads import TakenThread


class ThreadLookupJob(Message):
    """Job that finds a series in the archives."""

    series: ThreadSeries
    archives: list[Archive]


class ThreadLookupResult(Message):
    """The mails that a submission would take, and what they hold."""

    outcome: Outcome
    failure: Failure | None = None
    thread: TakenThread | None = None
    inspection: SeriesInspection | None = None


class ThreadLookupClaim(Message):
    """Claim of a thread lookup."""

    job: ThreadLookupJob
    fence: int
    expires_in_s: float


class FinishThreadLookup(Message):
    """Final message of a thread lookup."""

    fence: int
    result: ThreadLookupResult
