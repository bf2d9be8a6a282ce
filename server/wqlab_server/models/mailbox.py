"""Tables of the mails to the lab: commands, and bounces of its own mails."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.enums import CommandState

from .base import Base


class ReceivedCommand(Base):
    """A command in a reply to a mail of the lab."""

    __tablename__ = "received_commands"
    __table_args__ = (Index("ix_received_commands_thread", "thread"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    """Hash of what the signed mail says: the same mail that arrives again is not followed twice."""
    at: Mapped[datetime] = mapped_column(server_default=func.now())
    message_id: Mapped[str] = mapped_column(default="", index=True)
    """Of the mail with the command; empty if it was not kept."""
    sender: Mapped[str]
    text: Mapped[str]
    """What follows `wqlab:` in the mail."""
    state: Mapped[CommandState]
    reason: Mapped[str]
    """What was done, or why nothing was."""
    delivery_id: Mapped[int] = mapped_column(ForeignKey("deliveries.id"), index=True)
    """The mail of the lab that was replied to."""
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"))
    """The submission that was stopped."""
    thread: Mapped[str]
    """Thread of the delivery, so that a stopped one is found."""


class ListReply(Base):
    """A reply to a mail of the lab that a watched list's archive has; kept until it was handled."""

    __tablename__ = "list_replies"

    id: Mapped[int] = mapped_column(primary_key=True)
    archive: Mapped[str]
    raw: Mapped[bytes]
    """The mail (RFC 5322), as the archive has it."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    due_at: Mapped[datetime] = mapped_column(server_default=func.now(), index=True)
    nudged_at: Mapped[datetime | None]
    attempts: Mapped[int] = mapped_column(default=0)
    """Failed attempts to check its signature."""


class MailBounce(Base):
    """What another server has reported about one recipient of a mail after it had accepted it."""

    __tablename__ = "mail_bounces"
    __table_args__ = (UniqueConstraint("delivery_id", "recipient", "action"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    delivery_id: Mapped[int] = mapped_column(ForeignKey("deliveries.id"))
    at: Mapped[datetime] = mapped_column(server_default=func.now())
    recipient: Mapped[str]
    action: Mapped[str]
    """`failed` or `delayed`."""
    status: Mapped[str]
    text: Mapped[str]
