"""REST resources of deliveries: what the lab sends to others, with each attempt."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ..enums import AttemptOutcome, CommandState, DeliveryKind, DeliveryState
from ..mail import OutgoingMail
from ..messages import Message


class DeliveryView(Message):
    """A delivery, without what it says."""

    id: int
    kind: DeliveryKind
    event: str
    """Event of a webhook; of a mail `reply` or `correction`; of a personal mail `result`, `correction`, `collected`
    (results above the daily limit) or `confirm`."""
    destination: str
    """URL, or the mail's recipients."""
    subject: str | None
    """Subject of a mail; null for a webhook."""
    message_id: str
    """Id that all attempts have in common: `webhook-id` or `Message-ID`. Receivers recognise a repetition by it."""
    webhook_id: int | None
    submission_id: int | None
    state: DeliveryState
    reason: str
    """Why it is in this state: the last answer, or who decided; empty if there is nothing to say."""
    decided_by: str | None
    """Who approved or dropped the mail, or replayed the delivery; `the lab` if a newer mail replaced it."""
    tries: int
    """Attempts since it was created or replayed."""
    next_at: datetime | None
    """When it is sent, or sent again; null unless it waits to be sent."""
    created_at: datetime
    finished_at: datetime | None


class DeliveryAttemptView(Message):
    """One attempt at a delivery."""

    number: int
    started_at: datetime
    finished_at: datetime | None
    """null while it is being sent."""
    outcome: AttemptOutcome | None
    status: int | None
    """Status of the HTTP or SMTP answer; null without one."""
    answer: str
    """Begin of the answer."""
    problem: str
    """What went wrong; empty if it was accepted."""


class MailBounceView(Message):
    """What another server has reported about one recipient, after the mail was accepted. Anybody can write a report."""

    recipient: str
    action: str
    """`failed` for good, or `delayed`."""
    status: str
    """Code of RFC 3463, such as `5.1.1`; empty without one."""
    text: str
    """Answer of the recipient's server; empty without one."""
    at: datetime | None = None
    """When the report was received."""


class DropRequest(Message):
    """Body of a request not to send a mail."""

    reason: str = Field(default="", max_length=500)


class DeliveryDetail(DeliveryView):
    """A delivery with what it says and its attempts."""

    body: str
    """The JSON that is posted, or the mail's text."""
    mail: OutgoingMail | None
    """null for a webhook. A personal mail is shown without its link and its unsubscribe header, which are put in when
    it is sent."""
    attempts: list[DeliveryAttemptView] = Field(default_factory=list)
    """Oldest first."""
    bounces: list[MailBounceView] = Field(default_factory=list)
    """Oldest first."""


class ReceivedCommandView(Message):
    """A command in a reply to a mail of the lab."""

    id: int
    at: datetime
    sender: str
    text: str
    """What follows `wqlab:` in the mail; the lab knows only `stop`."""
    state: CommandState
    reason: str
    """What was done, or why nothing was."""
    delivery_id: int
    """The mail of the lab that was replied to."""
    submission_id: int | None
    """The submission that was stopped; null if the command was refused."""
