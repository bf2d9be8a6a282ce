"""REST resources of watches: the watches, what those of lists decided and would have taken, and the heads of trees."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ..enums import DecisionReason, DecisionState, JobState, Outcome, Verdict, WatchedHeadState
from ..messages import CommitRange, Failure, Message
from ..specs.watches import ListWatch, WatchSpec

PREVIEW_DAYS = 7
PREVIEW_DAYS_MAX = 30
PREVIEW_SERIES = 200
"""Maximum number of series that a preview lists."""


class WatchedListView(Message):
    """State of reading a watched mailing list."""

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


class WatchedTreeView(Message):
    """A repository that is watched, and the heads that were seen in it."""

    url: str
    """Repository that is looked at; empty if the lab has no such tree any more."""
    looked_at: datetime | None
    """When its heads were last read."""
    next_look_at: datetime | None
    """null while the watch is disabled."""
    problem: str
    """Why the last look failed; empty if it did not."""
    heads: dict[WatchedHeadState, int]
    """Number of heads in each state."""


class WatchView(Message):
    """A watch."""

    spec: WatchSpec
    enabled_at: datetime | None
    """When it was enabled; null while it is disabled. A watch of a list takes series that arrive after this time."""
    from_file: bool
    """True for a watch of the lab's data folder, which is changed and removed by its file only."""
    created_at: datetime
    created_by: str
    changed_at: datetime
    changed_by: str
    minutes_used: float
    """Device time (minutes) that the quotes of its submissions of the last 24 hours predict."""
    waiting_for: str
    """Why no submission is made although series or heads wait; empty otherwise."""
    problems: list[str]
    """What the lab does not have, such as its tree or account; nothing that needs it is measured."""
    mailing_list: WatchedListView | None
    """The list; null for a watch of a tree, and while no enabled watch reads the list."""
    repository: WatchedTreeView | None
    """The repository; null for a watch of a list."""


# --- lists ------------------------------------------------------------------------------------------------------


class WatchDecision(Message):
    """What a watch of a list decided on one revision of a series."""

    id: int
    watch: str
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
    """Time at which the watch decides about the waiting series again."""


class PreviewedSeries(Message):
    """A series in the preview of a watch."""

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
    """What a watch would have taken."""

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
    """The series that would have been taken, then those that did not ask or are incomplete; each newest first."""
    notes: list[str]


class WatchPreview(Message):
    """What a watch of a list would have taken in the last days, read from the archive by a worker.

    Until the worker is done, `state` is not `finished`: repeat the request then.
    """

    spec: ListWatch
    days: int
    state: JobState
    outcome: Outcome | None
    failure: Failure | None
    progress: str
    found: PreviewedSeriesList | None
    read_at: datetime | None


# --- trees ------------------------------------------------------------------------------------------------------


class HeadRange(Message):
    """Range of commits to bisect: at least one of them changed the result."""

    good: str
    """Commit of the last head that was measured before."""
    bad: str
    """Commit of the head that differs from it."""
    commits: int | None
    """Number of commits that `bad` has on top of `good`."""
    skipped: list[str]
    """Heads between the two that were not measured, oldest first."""
    descends: bool
    """False if the branch was rewritten, so that `bad` does not descend from `good`."""


class HeadRef(Message):
    """A head that another one refers to."""

    id: int
    name: str
    commit: str


class WatchedHead(Message):
    """A commit that a branch or tag of a watched tree pointed to."""

    id: int
    ref: str
    """Branch, or pattern of tags, that is watched."""
    name: str
    """Name of the branch, or of the tag that matches the pattern."""
    commit: str
    state: WatchedHeadState
    reason: str
    """Why it is in this state; empty if there is nothing to say."""
    seen_at: datetime
    """When it was first seen."""
    returned_at: datetime | None
    """When the branch was last set back to it."""
    compared_with: HeadRef | None
    """Last head measured before, which is the baseline."""
    skipped_by: HeadRef | None
    """Head that was measured instead of this one; null if this one was not skipped."""
    submission_id: int | None
    submitted_at: datetime | None
    ended_at: datetime | None
    verdicts: list[Verdict] = Field(default_factory=list)
    """Verdicts of its targets."""
    related: CommitRange | None
    """Number of commits between it and its baseline."""
    devices: dict[str, str]
    """Target -> device that measured it."""
    cut: str
    """Why the figures are not comparable with those of the previous head: another device; empty if they are."""
    range: HeadRange | None
