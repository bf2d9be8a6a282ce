"""Tables of remote labs: invitations, and the credentials of labs that have joined."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, func
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base


class LabInvite(Base):
    """An issued join token. It works once."""

    __tablename__ = "lab_invites"

    id: Mapped[int] = mapped_column(primary_key=True)
    lab: Mapped[str] = mapped_column(index=True)
    digest: Mapped[str] = mapped_column(unique=True)
    """SHA-256 of the secret, in hex."""
    invited_by: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
    withdrawn_at: Mapped[datetime | None]
    """When the lab was removed or invited again."""


class LabHost(Base):
    """A remote lab that has joined. The row is kept after a removal, so that the tick removes the lab's broker user."""

    __tablename__ = "lab_hosts"

    lab: Mapped[str] = mapped_column(primary_key=True)
    invited_by: Mapped[str]
    token_id: Mapped[int] = mapped_column(ForeignKey("tokens.id"))
    broker_digest: Mapped[str]
    """SHA-256 of the lab's broker password, in hex, as Redis stores it."""
    joined_at: Mapped[datetime] = mapped_column(server_default=func.now())
    removed_at: Mapped[datetime | None]
