"""REST resources of accounts: users, sign-in sessions and API tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints
from pydantic.config import JsonDict

from ..enums import Scope, SignInMethod, UserRole
from ..jsontypes import JsonAwareTime, JsonBool
from ..messages import Message

UserName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
"""Lower case only, so that no two user names look alike in a report."""
PASSWORD_MIN = 12
PASSWORD_MAX = 200
"""Limits of the length in characters."""

# --- permissions ------------------------------------------------------------------------------------------------


class RolePermissions(Message):
    """A role with the scopes that it includes."""

    role: UserRole
    scopes: list[Scope]
    """In rising order."""


class OperationPermission(Message):
    """An operation of the REST API, and who may use it."""

    operation: str
    """Its `operationId` in the OpenAPI document."""
    method: str
    path: str
    group: str
    """Its tag in the OpenAPI document."""
    description: str
    """Description of the operation in the OpenAPI document; it says if the effect depends on the role."""
    scope: Scope | None
    """Scope that it needs; null if it needs none."""
    roles: list[UserRole]
    """Roles that may use it, lowest first."""
    visitors: bool
    """True if this lab lets it be used without signing in."""


class Permissions(Message):
    """Who may do what."""

    roles: list[RolePermissions]
    """Lowest first."""
    operations: list[OperationPermission]
    """In the order of the OpenAPI document."""


# --- sessions ---------------------------------------------------------------------------------------------------


class SignIn(Message):
    """Credentials. Any name is accepted here, so that an invalid name fails like a wrong password."""

    name: str = Field(max_length=200)
    password: str = Field(max_length=PASSWORD_MAX)


class SessionUser(Message):
    """The signed-in user."""

    name: str
    """User name; owner of the user's submissions."""
    role: UserRole
    scopes: list[Scope]
    """Scopes of this request's credentials, in rising order. An API token can have fewer scopes than its owner."""
    sign_in: SignInMethod = SignInMethod.PASSWORD
    """`oidc`: the user has no password here, and the role follows the provider's groups."""


class SessionView(Message):
    """Current session."""

    user: SessionUser | None
    """null if not signed in."""
    csrf_token: str | None
    """Value of the header `X-CSRF-Token` for all methods except GET and HEAD; null without a session cookie."""
    expires_at: datetime | None
    """Time at which the session ends without further requests; null without a session."""
    public_reading: bool
    """True if the lab can be read without signing in."""
    provider: str | None = None
    """Text of the button that signs in with the lab's OpenID provider; null if it has none."""
    notice: str = ""
    """What the operator says at the top of every page; empty if nothing."""


class ProviderView(Message):
    """The OpenID provider that people can sign in with."""

    label: str
    """Text of the button on the sign-in page."""
    issuer: str
    """Issuer of the identities, a URL."""
    problem: str | None
    """Why nobody can sign in with the provider now, in words; null if it has answered."""


class PasswordChange(Message):
    """Body of a request to change the own password."""

    old_password: str = Field(max_length=PASSWORD_MAX)
    new_password: str = Field(max_length=PASSWORD_MAX, description=f"At least {PASSWORD_MIN} characters")


# --- users ------------------------------------------------------------------------------------------------------


class UserRequest(Message):
    """Body of a request to create a user."""

    name: UserName
    role: UserRole


class UserChange(Message):
    """Body of a request to change a user. Fields that are missing or null stay unchanged."""

    role: UserRole | None = None
    disabled: JsonBool | None = None
    """true ends the user's sessions and revokes the user's tokens permanently."""


class UserView(Message):
    """A user."""

    name: str
    role: UserRole
    sign_in: SignInMethod = SignInMethod.PASSWORD
    issuer: str | None = None
    """Issuer of the user's identity at the OpenID provider; null for a user with a password."""
    subject: str | None = None
    """The issuer's identifier of the user."""
    without_role_since: datetime | None = None
    """Time at which a sign-in was refused because no group of the user has a role; until the next one that succeeds,
    the user's tokens are refused."""
    created_at: datetime
    last_sign_in_at: datetime | None
    disabled_at: datetime | None


class UserPassword(UserView):
    """A user with a new password."""

    password: str
    """Generated by the server and shown once; only its hash is stored."""


# --- tokens -----------------------------------------------------------------------------------------------------


_SCOPES_SCHEMA: JsonDict = {
    "items": {"type": "string", "enum": [scope.value for scope in Scope]},
    "minItems": 1,
    # `worker` cannot be combined with another scope.
    "if": {"contains": {"const": Scope.WORKER.value}},
    "then": {"items": {"const": Scope.WORKER.value}},
}
"""Schema of a token's scopes. The server checks them itself, so that one response lists all mistakes."""


class TokenRequest(Message):
    """Body of a request to create an API token."""

    name: str = Field(min_length=1, max_length=100)
    scopes: list[str] = Field(json_schema_extra=_SCOPES_SCHEMA)
    """Scopes, limited to those of the creator. An administrator can create a token with the single scope `worker`."""
    expires_at: JsonAwareTime | None = None
    """null: valid until revoked."""


class TokenView(Message):
    """An API token, without its secret."""

    id: int
    name: str
    owner: str | None
    """Owner of the token; null for a worker's token."""
    scopes: list[str]
    parent_id: int | None = None
    """Id of the token that this one was created with, and is revoked with; null if its owner created it."""
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


class TokenCreated(TokenView):
    """A new API token with its secret."""

    token: str
    """The secret, shown once; only its hash is stored."""
