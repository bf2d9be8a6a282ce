"""Sign a person in whom the OpenID provider has identified: the account, its role, and the session."""

from __future__ import annotations

import re
import secrets
import unicodedata

from sqlalchemy import func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from wqlab_contracts.enums import AuditAction, SignInMethod, UserRole

from ...http import browser_sessions
from ...http.problems import ApiProblem
from ...models import Token, User
from ...settings import Settings
from ...storage import audit
from ...storage.audit import OPERATOR, Actor
from ...storage.db import SessionFactory, transaction
from ..service import get_user
from .provider import Identity, is_subject

_NAME_LENGTH = 60
"""Longest name before a suffix; a user name has at most 64 characters."""
_SUFFIXES = 99
_ATTEMPTS = 3
"""Attempts at a sign-in: another one may have created the same user, or taken the name, at the same moment."""
_ORDER = list(UserRole)


def role_of(settings: Settings, groups: frozenset[str]) -> UserRole | None:
    """Return the highest role of the groups, else the default role; None if there is neither."""
    roles = [role for group, role in settings.oidc_role_of_group.items() if group in groups]
    return max(roles, key=_ORDER.index, default=settings.oidc_default_role)


def sign_in(factory: SessionFactory, settings: Settings, identity: Identity, address: str | None) -> str:
    """Create or update the user of an identity and return the secret of a new session.

    Raises ApiProblem 403 if the user is disabled or no group has a role. The latter ends the user's sessions.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with transaction(factory) as session:
                outcome = _sign_in(session, settings, identity, address)
            break
        except IntegrityError:
            if attempt == _ATTEMPTS:
                raise
    if isinstance(outcome, str):
        return outcome
    raise outcome


def link_user(session: Session, settings: Settings, name: str, subject: str) -> str:
    """Let a user with a password sign in as this subject of the settings' provider instead; return the issuer.

    Ends the user's sessions. Raises ApiProblem 404 if there is no such user, 409 if the user or the subject is linked
    already, and ValueError if there is no provider or the subject is not one.
    """
    if not settings.oidc_issuer:
        raise ValueError("WQLAB_OIDC_ISSUER is not set: this lab has no OpenID provider")
    if not is_subject(subject):
        raise ValueError(f"{subject!r} is not a subject: write the claim `sub` that the provider sends for the person")
    user = get_user(session, name, lock=True)
    if user.issuer is not None:
        raise ApiProblem(409, f"{name} already signs in with {user.issuer} as {user.subject}")
    other = session.scalar(select(User.name).where(User.issuer == settings.oidc_issuer, User.subject == subject))
    if other is not None:
        raise ApiProblem(409, f"{other} already signs in as {subject}; a person has one account")
    user.password_hash, user.issuer, user.subject = None, settings.oidc_issuer, subject
    browser_sessions.end_all(session, user)
    session.flush()
    return settings.oidc_issuer


def _sign_in(session: Session, settings: Settings, identity: Identity, address: str | None) -> str | ApiProblem:
    """Return the secret of a new session, or the refusal, whose changes must be committed."""
    of_identity = (User.issuer == identity.issuer, User.subject == identity.subject)
    user = session.scalar(select(User).where(*of_identity).with_for_update())
    role = role_of(settings, identity.groups)
    if user is not None and user.disabled_at is not None:
        _record_refusal(session, identity, user, address, "disabled")
        return ApiProblem(
            403, f"the account {user.name} is disabled; ask an administrator of the lab", slug="account-disabled"
        )
    if role is None:
        if user is not None:
            user.without_role_since = user.without_role_since or func.now()
            browser_sessions.end_all(session, user)
        _record_refusal(session, identity, user, address, "no group has a role")
        return ApiProblem(403, _no_role(settings, identity), slug="no-role")
    if user is None:
        user = User(
            name=_free_name(session, identity.name), role=role, issuer=identity.issuer, subject=identity.subject
        )
        session.add(user)
        session.flush()
        audit.record(
            session, Actor(user.name, address=address), AuditAction.CREATE_USER, f"user/{user.name}",
            role=role, issuer=identity.issuer, subject=identity.subject,
        )  # fmt: skip
    elif user.role is not role:
        if _ORDER.index(role) < _ORDER.index(user.role):
            browser_sessions.end_all(session, user)
        actor = Actor(user.name, address=address)
        audit.record(session, actor, AuditAction.CHANGE_USER, f"user/{user.name}", role=role, by="groups")
        user.role = role
    user.without_role_since = None
    user.last_sign_in_at = func.now()
    actor = Actor(user.name, address=address)
    audit.record(session, actor, AuditAction.SIGN_IN, f"user/{user.name}", method=SignInMethod.OIDC)
    return browser_sessions.begin(session, settings, user, life_s=settings.oidc_session_s)


def _no_role(settings: Settings, identity: Identity) -> str:
    if not identity.groups:
        return (
            f"the provider names no group of yours in its claim {settings.oidc_groups_claim}, and a role in this lab "
            "needs one; ask an administrator of the lab"
        )
    return "none of your groups has a role in this lab; ask an administrator of the lab for a group that has one"


def _record_refusal(session: Session, identity: Identity, user: User | None, address: str | None, why: str) -> None:
    audit.record_refusal_in(
        session,
        Actor(address=address),
        AuditAction.SIGN_IN,
        "user" if user is None else f"user/{user.name}",
        method=SignInMethod.OIDC,
        subject=identity.subject,
        reason=why,
    )


def _free_name(session: Session, wanted: str) -> str:
    """Return the wanted name in the form of a user name, with a suffix if it is taken.

    An identity never gets the account of a name. A worker's token and the operator are actors of the audit log as
    users are, so their names are taken too.
    """
    base = _user_name(wanted)
    for name in (base, *(f"{base}-{number}" for number in range(2, _SUFFIXES + 1))):
        users = select(User.id).where(User.name == name)
        workers = select(Token.id).where(Token.name == name, Token.user_id.is_(None))
        taken = session.scalar(select(or_(users.exists(), workers.exists())))
        if not taken and name != OPERATOR.name:
            return name
    return f"{base[:40]}-{secrets.token_hex(8)}"


def _user_name(wanted: str) -> str:
    """Return the text before an `@` in the characters of user names; `user` if none is left."""
    ascii_only = unicodedata.normalize("NFKD", wanted.partition("@")[0]).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9._-]+", "-", ascii_only).strip("._-")
    return name[:_NAME_LENGTH] or "user"
