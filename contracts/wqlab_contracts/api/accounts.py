"""Who uses the lab: users, sign-in sessions and API tokens, as the REST resources under /api/v1 show them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, Field, StringConstraints

from ..enums import Scope, UserRole
from ..messages import Message

UserName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
"""Lower case only: no two users may look alike in a report."""
PASSWORD_MIN = 12
PASSWORD_MAX = 200
"""Characters."""

# --- sessions ---------------------------------------------------------------------------------------------------


class SignIn(Message):
    """Any texts at all: what no user could be called fails in the same words as a wrong password."""

    name: str = Field(max_length=200)
    password: str = Field(max_length=PASSWORD_MAX)


class SessionUser(Message):
    name: str
    """The owner of what this user submits."""
    role: UserRole
    scopes: list[Scope]
    """Everything that this request's credentials may do, in rising order. An API token may do less than its owner."""


class SessionView(Message):
    user: SessionUser | None
    """null: not signed in."""
    csrf_token: str | None
    """To be sent as `X-CSRF-Token` with everything but GET and HEAD; null without a session cookie."""
    expires_at: datetime | None
    """When the session ends if nothing is asked before; null without one."""
    public_reading: bool
    """Whether this lab may be read without signing in."""


class PasswordChange(Message):
    old_password: str = Field(max_length=PASSWORD_MAX)
    new_password: str = Field(max_length=PASSWORD_MAX, description=f"At least {PASSWORD_MIN} characters")


# --- users ------------------------------------------------------------------------------------------------------


class UserRequest(Message):
    name: UserName
    role: UserRole


class UserChange(Message):
    """What is left out, or null, stays."""

    role: UserRole | None = None
    disabled: bool | None = None
    """true ends the user's sessions and revokes the user's tokens, for good."""


class UserView(Message):
    name: str
    role: UserRole
    created_at: datetime
    last_sign_in_at: datetime | None
    disabled_at: datetime | None


class UserPassword(UserView):
    password: str
    """Made by the server and shown once; only its hash is kept."""


# --- tokens -----------------------------------------------------------------------------------------------------


class TokenRequest(Message):
    name: str = Field(min_length=1, max_length=100)
    scopes: list[str]
    """At most the maker's own; `worker` (alone) for an administrator."""
    expires_at: AwareDatetime | None = None
    """null: until it is revoked."""


class TokenView(Message):
    id: int
    name: str
    owner: str | None
    """The user it acts for; null for a worker's."""
    scopes: list[str]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


class TokenCreated(TokenView):
    token: str
    """Shown once; only its hash is kept."""
