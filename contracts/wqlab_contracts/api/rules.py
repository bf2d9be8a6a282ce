"""REST resources of watched lists: rules, what they decided, and what a rule would have taken."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ..enums import DecisionReason, DecisionState, JobState, Outcome
from ..messages import Failure, Message
from ..specs.rules import ListRule

PREVIEW_DAYS = 7
PREVIEW_DAYS_MAX = 30
PREVIEW_SERIES = 200
"""Maximum number of series that a preview lists."""


class WatchedListView(Message):
    """A mailing list that is watched, and how far it has been read."""

    archive: str
    list: str | None
    """Address of the list."""
    read_at: datetime | None
    """When the list was last read without an error; null: never."""
    mails: int
    """Number of mails that have been read."""
    last_mail_at: datetime | None
    """When the archive received the last mail that was read."""
    undecided: int
    """Cover letters and patches of series whose other mails have not arrived yet."""
    failure: Failure | None
    """Why the last read failed; null after a success. Nothing is lost: reading goes on where it ended."""
    failing_since: datetime | None
    waiting_for_worker_since: datetime | None
    """Set while a read waits for a worker of the queue `lists`."""


class RuleView(Message):
    """A rule of a watched list."""

    rule: ListRule
    from_file: bool
    """True for a rule of the lab's data folder, which is changed by its file only."""
    enabled_at: datetime | None
    """The rule takes series that arrive after this time; null while it is switched off."""
    changed_at: datetime
    changed_by: str
    minutes_used: float
    """Device time (minutes) that the quotes of the rule's submissions of the last 24 hours predict."""
    problems: list[str]
    """What the lab does not have, such as the rule's tree or account; the rule takes nothing that needs it."""
    watched: WatchedListView | None
    """The list; null if no enabled rule watches it."""


class RuleDecision(Message):
    """What a rule decided on one revision of a series."""

    id: int
    rule: str
    state: DecisionState
    reason: DecisionReason | None
    detail: str
    """The reason in words."""
    subject: str
    author: str
    revision: int
    message_id: str
    """Message-ID of the cover letter, or of the first patch of a series without one."""
    url: str
    """URL of this mail in the archive; empty if the archive is no longer configured."""
    targets: list[str]
    """What is measured: `plan@device-type`."""
    minutes: float | None
    """Device time (minutes) that the quote of the submission predicts; null without a submission."""
    submission_id: int | None
    created_at: datetime
    decided_at: datetime | None
    """Time of the final decision; null while the series waits."""
    retry_at: datetime | None
    """Time at which the rule decides about the waiting series again."""


class PreviewedSeries(Message):
    """A series in the preview of a rule."""

    subject: str
    author: str
    revision: int
    patches: int
    message_id: str
    url: str
    archived_at: datetime
    taken: bool
    reason: DecisionReason | None
    detail: str
    targets: list[str]
    minutes: float | None
    """Device time by the quote of a submission today; null if it is not taken."""


class PreviewedSeriesList(Message):
    """What a rule would have taken."""

    mails: int
    """Cover letters and patches that were looked at."""
    is_complete: bool
    """False if the list had more mails than a preview looks at: the last ones are missing."""
    taken: int
    minutes: float
    """Device time of all series that would have been taken. Budget, quota and quiet hours are not considered."""
    not_taken: dict[DecisionReason, int]
    """Number of other series, by reason."""
    series: list[PreviewedSeries] = Field(max_length=PREVIEW_SERIES)
    """The series that would have been taken, then those that asked for more than the rule allows or were incomplete;
    newest first."""
    notes: list[str]


class RulePreview(Message):
    """What a rule would have taken in the last days, read from the archive by a worker.

    Until the worker is done, `state` is not `finished`: repeat the request then.
    """

    rule: ListRule
    days: int
    state: JobState
    outcome: Outcome | None
    failure: Failure | None
    progress: str
    found: PreviewedSeriesList | None
    read_at: datetime | None
