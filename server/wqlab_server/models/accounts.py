"""Tables of users, browser sessions, sign-in throttles and tokens."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, String, UniqueConstraint, func
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.enums import UserRole

from .base import Base


class User(Base):
    """A person who signs in. Rows are never deleted, because submissions name their owner."""

    __tablename__ = "users"
    __table_args__ = (
        CheckConstraint(
            "(password_hash IS NULL) = (issuer IS NOT NULL) AND (issuer IS NULL) = (subject IS NULL)",
            name="password_or_provider",
        ),
        UniqueConstraint("issuer", "subject"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    role: Mapped[UserRole]
    password_hash: Mapped[str | None]
    """Argon2id hash with its parameters and salt; null for a user of the OpenID provider."""
    issuer: Mapped[str | None]
    """Issuer that identifies the user; null for a user with a password."""
    subject: Mapped[str | None]
    """The issuer's identifier of the user (claim `sub`), which never changes and is never given to another person."""
    without_role_since: Mapped[datetime | None]
    """Time of the first sign-in at which no group of the user had a role any more; null again after a sign-in with
    one. Until then the user's tokens are refused."""
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
    ends_at: Mapped[datetime | None]
    """Time at which the OpenID provider must be asked again; null for a sign-in with a password."""


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
