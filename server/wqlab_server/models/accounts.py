"""Tables of users, browser sessions, sign-in throttles and tokens."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, String, func
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.enums import UserRole

from .base import Base


class User(Base):
    """A person who signs in. Rows are never deleted, because submissions name their owner."""

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    role: Mapped[UserRole]
    password_hash: Mapped[str]
    """Argon2id hash with its parameters and salt."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    last_sign_in_at: Mapped[datetime | None]
    disabled_at: Mapped[datetime | None]


class BrowserSession(Base):
    """A browser that is signed in. The row is deleted when the session ends."""

    __tablename__ = "browser_sessions"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    digest: Mapped[str] = mapped_column(unique=True)
    """SHA-256 of the cookie's secret, in hex."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    last_used_at: Mapped[datetime] = mapped_column(server_default=func.now())
    """Precise to the minute."""


class SignInThrottle(Base):
    """Number of recent failed sign-in attempts."""

    __tablename__ = "sign_in_throttles"

    key: Mapped[str] = mapped_column(primary_key=True)
    """An account, a network address, or both."""
    attempts: Mapped[int]
    since: Mapped[datetime] = mapped_column(server_default=func.now(), index=True)


class Token(Base):
    """A bearer token of a user or a worker."""

    __tablename__ = "tokens"
    __table_args__ = (CheckConstraint("(user_id IS NULL) = (scopes = '{worker}')", name="people_or_worker"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"), index=True)
    """The user that requests with this token act as and whose submissions they create; null for a worker token."""
    digest: Mapped[str] = mapped_column(unique=True)
    """SHA-256 of the secret, in hex."""
    scopes: Mapped[list[str]] = mapped_column(ARRAY(String))
    parent_id: Mapped[int | None] = mapped_column(ForeignKey("tokens.id"), index=True)
    """The token that this one was created with; revoking that one revokes this one too."""
    lab: Mapped[str | None]
    """The lab that a worker token is bound to; null for every lab."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
