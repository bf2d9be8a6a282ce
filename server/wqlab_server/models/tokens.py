"""Who may call the API."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String, func
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base


class Token(Base):
    __tablename__ = "tokens"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    owner: Mapped[str]
    """Who acts: a submission made with this token belongs to this name."""
    digest: Mapped[str] = mapped_column(unique=True)
    """SHA-256 of the secret, in hex."""
    scopes: Mapped[list[str]] = mapped_column(ARRAY(String))
    lab: Mapped[str | None]
    """A worker token may be bound to one lab's runs."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
