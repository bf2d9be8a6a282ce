"""REST resources of forges."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ..enums import DeliveryState, ForgeHeadState
from ..messages import Message
from ..specs import ForgeKind


class ForgeEventAnswer(Message):
    """What the lab does with an event."""

    result: str
    """`taken: pull/7`, `ignored: ...` or `repeated: ...`."""


class ForgeStatusView(Message):
    """A commit status that the lab has sent, or is sending."""

    delivery_id: int
    at: datetime
    """When the delivery ended; before that, when it was written."""
    commit: str
    state: str
    """State of the commit: pending, success, failure, error or canceled."""
    description: str
    delivery: DeliveryState


class ForgeErrorView(Message):
    """Something that did not work between the lab and a forge."""

    at: datetime
    what: str
    """Where the error occurred: `event` (an event was refused), `poll`, a pull request or branch such as `pull/7` (the
    forge's API failed on it), or a delivery such as `delivery 12`."""
    problem: str


class ForgeView(Message):
    """A repository on a forge, and how the lab and the forge get on."""

    name: str
    kind: ForgeKind
    repository: str
    url: str
    """Address of the repository for people."""
    tree: str
    owner: str
    may_spend: str
    label: str | None
    last_event_at: datetime | None
    """When the last event was accepted; null if none was in the last 30 days."""
    last_event: str
    """Kind of that event, as the forge calls it."""
    last_event_answer: str
    """What the lab did with it."""
    polled_at: datetime | None
    """When the last poll succeeded."""
    next_poll_at: datetime | None
    """null if polls are switched off."""
    missed: int
    """Changes that polls have found before an event has told of them."""
    missed_at: datetime | None
    complete: bool
    """False if the repository has more pull requests or branches than a poll reads: only events tell of new ones."""
    last_status: ForgeStatusView | None
    last_error: ForgeErrorView | None
    heads: dict[ForgeHeadState, int] = Field(default_factory=dict)
    """Number of current heads in each state."""


class ForgeHeadView(Message):
    """Current head of a pull request or branch."""

    id: int
    change: str
    """`pull/7` or `branch/NAME`."""
    title: str
    """Title of the pull request; empty for a branch."""
    author: str
    commit: str
    from_fork: bool
    state: ForgeHeadState
    reason: str
    """Why it waits or is not measured."""
    seen_at: datetime
    submission_id: int | None


class ForgeDetail(ForgeView):
    """A forge with the heads that are not measured yet, and those that are not measured."""

    waiting: list[ForgeHeadView] = Field(default_factory=list)
    """Heads that are read, wait or are being measured; the newest first, at most 100."""
    not_measured: list[ForgeHeadView] = Field(default_factory=list)
    """The newest first, at most 100."""
