"""Tables of what leaves the lab: events to tell, webhooks, deliveries with their attempts, and source mails."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, Text, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column, relationship

from wqlab_contracts.api.webhooks import WebhookFilter
from wqlab_contracts.enums import AttemptOutcome, DeliveryKind, DeliveryState, OutboxEvent
from wqlab_contracts.mail import OutgoingMail
from wqlab_contracts.messages.source_mail import SourceMail

from .base import Base


class PendingEvent(Base):
    """An event for webhooks and mail. It is written in the transaction of the change, and a tick handles it."""

    __tablename__ = "outbox_events"
    __table_args__ = (Index("ix_outbox_events_unhandled", "id", postgresql_where=text("handled_at IS NULL")),)

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    """What happened, such as `submission.finished/12`; the same event is recorded once."""
    event: Mapped[OutboxEvent]
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"))
    device_name: Mapped[str | None] = mapped_column(ForeignKey("devices.name"))
    lab: Mapped[str | None]
    detail: Mapped[dict[str, Any]]
    at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    handled_at: Mapped[datetime | None]
    """When its deliveries were written."""


class Webhook(Base):
    """An address that events are posted to. The row is kept after its removal, because deliveries refer to it."""

    __tablename__ = "webhooks"

    id: Mapped[int] = mapped_column(primary_key=True)
    owner: Mapped[str] = mapped_column(index=True)
    url: Mapped[str]
    events: Mapped[list[str]] = mapped_column(ARRAY(Text))
    filter: Mapped[WebhookFilter]
    secret: Mapped[str]
    """Key of the signatures. It cannot be hashed, because each delivery is signed with it."""
    previous_secret: Mapped[str | None]
    previous_until: Mapped[datetime | None]
    """Time until which deliveries are also signed with the previous secret."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    paused_at: Mapped[datetime | None]
    """Time at which the webhook was paused; it gets no events from then on. Null if it is not paused."""
    removed_at: Mapped[datetime | None]


class Delivery(Base):
    """A message to one receiver, sent until it is accepted or given up."""

    __tablename__ = "deliveries"
    __table_args__ = (
        Index("ix_deliveries_due", "next_at", postgresql_where=text("state = 'waiting'")),
        Index("ix_deliveries_state", "state", "id"),
        Index("ix_deliveries_webhook_id", "webhook_id", "id"),
        Index("ix_deliveries_submission_id", "submission_id", "id"),
        Index("ix_deliveries_thread", "thread", "id"),
        Index(
            "ix_deliveries_forge",
            "destination",
            "id",
            postgresql_where=text("kind IN ('forge_status', 'forge_comment')"),
        ),
        Index("ix_deliveries_user_id", "user_id", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    """What it says to whom. A second delivery of the same key is not created."""
    kind: Mapped[DeliveryKind]
    event: Mapped[str]
    destination: Mapped[str]
    message_id: Mapped[str] = mapped_column(unique=True)
    """The same in all attempts, so that a receiver recognises a repetition."""
    webhook_id: Mapped[int | None] = mapped_column(ForeignKey("webhooks.id"))
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"))
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    """Of a personal mail: the account that it is for."""
    body: Mapped[str | None]
    """JSON text of a webhook, which is signed as it is stored; null for a mail."""
    mail: Mapped[OutgoingMail | None]
    thread: Mapped[str | None]
    """Of a mail: Message-ID of the source mail that it answers."""
    says: Mapped[dict[str, str] | None]
    """Of a mail: target -> verdict, to notice when a verdict changes."""
    state: Mapped[DeliveryState]
    reason: Mapped[str] = mapped_column(default="")
    tries: Mapped[int] = mapped_column(default=0)
    """Attempts since it was created or replayed."""
    next_at: Mapped[datetime | None]
    """When it is due; null unless it waits to be sent."""
    nudged_at: Mapped[datetime | None]
    """When a message for it was last sent to the workers."""
    fence: Mapped[int | None] = mapped_column(BigInteger)
    """Number of the claim of the process that sends it; the result of any other claim is refused."""
    claimed_until: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    finished_at: Mapped[datetime | None]
    decided_by: Mapped[str | None]
    """Who approved or dropped the mail, or replayed the delivery."""

    attempts: Mapped[list[DeliveryAttempt]] = relationship(lazy="raise", order_by="DeliveryAttempt.number")


class DeliveryAttempt(Base):
    """One attempt at a delivery. It is written before anything is sent."""

    __tablename__ = "delivery_attempts"
    __table_args__ = (UniqueConstraint("delivery_id", "number"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    delivery_id: Mapped[int] = mapped_column(ForeignKey("deliveries.id"))
    number: Mapped[int]
    fence: Mapped[int] = mapped_column(BigInteger)
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    outcome: Mapped[AttemptOutcome | None]
    status: Mapped[int | None]
    answer: Mapped[str] = mapped_column(default="")
    problem: Mapped[str] = mapped_column(default="")


class SubmissionMail(Base):
    """The mail that a submission's series came in."""

    __tablename__ = "source_mails"

    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id"), primary_key=True)
    message_id: Mapped[str] = mapped_column(index=True)
    source: Mapped[SourceMail]
