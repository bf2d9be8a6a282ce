"""Labs elsewhere: who may join, and the credentials of those that have."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, func
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base


class LabInvite(Base):
    """A join token that was given out; it works once."""

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
    """Its lab was removed, or invited once more."""


class LabHost(Base):
    """A lab that has joined. The row stays when it is removed: Redis is told by it whom not to let in."""

    __tablename__ = "lab_hosts"

    lab: Mapped[str] = mapped_column(primary_key=True)
    invited_by: Mapped[str]
    token_id: Mapped[int] = mapped_column(ForeignKey("tokens.id"))
    broker_digest: Mapped[str]
    """SHA-256 of its password at the broker, in hex: what Redis itself keeps."""
    joined_at: Mapped[datetime] = mapped_column(server_default=func.now())
    removed_at: Mapped[datetime | None]
