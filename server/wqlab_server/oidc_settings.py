"""Settings of sign-in by OpenID Connect. They are checked at start; the provider itself is asked at a sign-in."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings

from wqlab_contracts.enums import UserRole

LABEL_LENGTH = 60


class UnusableFile(ValueError):
    """A file that a setting names is unusable; the text names setting, file and fix."""


class OidcSettings(BaseSettings):
    oidc_issuer: str = ""
    """URL (https) of the OpenID provider, exactly as its discovery document has it in `issuer`; empty: users sign in
    with passwords only."""
    oidc_client_id: str = ""
    """Client id that the provider gave to this lab."""
    oidc_client_secret_file: Path | None = None
    """File with the client secret."""
    oidc_scopes: str = "openid profile"
    """Scopes to ask for, separated by spaces."""
    oidc_groups_claim: str = "groups"
    """Claim with the person's groups; a dotted path such as `realm_access.roles` names a claim in a claim."""
    oidc_roles: str = ""
    """Role of each group, as GROUP=ROLE separated by semicolons; a person has the highest role of the own groups."""
    oidc_default_role: UserRole | None = None
    """Role of people without such a group; empty: they may not sign in."""
    oidc_label: str = "Sign in with single sign-on"
    """Text of the button on the sign-in page."""
    oidc_session_s: float = Field(default=86400.0, gt=0)
    """Time after which a session begun with the provider ends although it is used, so that the provider is asked
    again; at most `session_life_s`."""

    @field_validator("oidc_default_role", "oidc_client_secret_file", mode="before")
    @classmethod
    def _empty_is_unset(cls, value: Any) -> Any:
        return None if value == "" else value

    @field_validator("oidc_issuer")
    @classmethod
    def _is_issuer(cls, url: str) -> str:
        if not url:
            return url
        parts = urlsplit(url)
        if not parts.hostname or parts.query or parts.fragment or parts.username is not None:
            raise ValueError(f"{url!r} is not an issuer: write the URL that the provider names, https://HOST/PATH")
        if not is_protected(url):
            raise ValueError(f"{url} is not encrypted: write an https:// URL (http:// is allowed on loopback only)")
        return url

    @field_validator("oidc_scopes")
    @classmethod
    def _has_openid(cls, scopes: str) -> str:
        if "openid" not in scopes.split():
            raise ValueError(f"{scopes!r} lacks the scope openid, without which a provider sends no identity: add it")
        return " ".join(scopes.split())

    @field_validator("oidc_groups_claim")
    @classmethod
    def _is_named(cls, claim: str) -> str:
        if not claim.strip():
            raise ValueError("the name of the claim is empty: write the one that the provider sends, such as groups")
        return claim.strip()

    @field_validator("oidc_label")
    @classmethod
    def _fits_a_button(cls, label: str) -> str:
        if not label.strip() or len(label) > LABEL_LENGTH or not label.isprintable():
            raise ValueError(f"write a text of 1 to {LABEL_LENGTH} characters in one line")
        return label.strip()

    @field_validator("oidc_roles")
    @classmethod
    def _are_roles(cls, text: str) -> str:
        _roles_of(text)
        return text

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if not self.oidc_issuer:
            for name in ("client_id", "client_secret_file", "roles"):
                if getattr(self, f"oidc_{name}"):
                    raise ValueError(
                        f"WQLAB_OIDC_{name.upper()} is set but WQLAB_OIDC_ISSUER is not: set the URL of the provider, "
                        "or remove the variable"
                    )
            return self
        if not self.oidc_client_id:
            raise ValueError("WQLAB_OIDC_CLIENT_ID is not set: write the client id that the provider gave to this lab")
        if self.oidc_client_secret_file is None:
            raise ValueError("WQLAB_OIDC_CLIENT_SECRET_FILE is not set: name a file with the client secret")
        if not self.oidc_roles and self.oidc_default_role is None:
            raise ValueError(
                "nobody could sign in with the provider: set WQLAB_OIDC_ROLES (GROUP=ROLE;...) or "
                "WQLAB_OIDC_DEFAULT_ROLE"
            )
        return self

    @property
    def oidc_role_of_group(self) -> dict[str, UserRole]:
        return _roles_of(self.oidc_roles)


def is_protected(url: str, *, loopback: bool = True) -> bool:
    """Return True for an https URL, and with `loopback` for an http URL of this machine's loopback."""
    parts = urlsplit(url)
    if parts.scheme == "https":
        return True
    return loopback and parts.scheme == "http" and _is_loopback(parts.hostname or "")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _roles_of(text: str) -> dict[str, UserRole]:
    """Return group -> role. Raises ValueError that names the entry with a mistake.

    Entries are separated by semicolons and divided at their last `=`, because names of LDAP groups contain the rest.
    """
    found: dict[str, UserRole] = {}
    for entry in filter(None, (each.strip() for each in text.split(";"))):
        group, _, role = (part.strip() for part in entry.rpartition("="))
        if not group:
            raise ValueError(
                f"{entry!r} is not GROUP=ROLE; separate several by semicolons: lab-admins=admin;lab=viewer"
            )
        if role not in set(UserRole):
            raise ValueError(f"{entry!r}: no role {role!r}; the roles are {', '.join(UserRole)}")
        if found.get(group, role) != role:
            raise ValueError(f"group {group!r} has two roles, {found[group]} and {role}: keep one")
        found[group] = UserRole(role)
    return found


def read_secret(file: Path) -> str:
    """Return the client secret in a file. Raises UnusableFile."""
    name = "WQLAB_OIDC_CLIENT_SECRET_FILE"
    try:
        secret = file.read_text().strip()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UnusableFile(
            f"{name}: cannot read {file}: {reason}; write the client secret into a file that the server can read"
        ) from error
    if not secret or not secret.isprintable():
        what = "is empty" if not secret else "has more than one line"
        raise UnusableFile(f"{name}: {file} {what}; write only the client secret into it")
    return secret
