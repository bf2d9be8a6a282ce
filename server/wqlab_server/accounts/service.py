"""User management (create, change, disable) and sign-in."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import AuditAction, UserRole

from ..http import browser_sessions
from ..http.auth import revoke_tokens
from ..http.problems import ApiProblem, invalid, not_found
from ..models import Token, User
from ..settings import Settings
from ..storage import audit
from ..storage.audit import Actor
from ..storage.db import SessionFactory, transaction
from . import passwords, throttle

# --- users ------------------------------------------------------------------------------------------------------


def create_user(session: Session, name: str, role: UserRole) -> tuple[User, str]:
    """Create a user and return it with its generated password, which is shown only once.

    Raises ApiProblem 409 if the name is taken.
    """
    if user_exists(session, name):
        raise ApiProblem(409, f"user {name} already exists")
    password = passwords.generate()
    user = User(name=name, role=role, password_hash=passwords.hash_password(password))
    session.add(user)
    session.flush()
    return user, password


def user_exists(session: Session, name: str) -> bool:
    return session.scalar(select(User.id).where(User.name == name)) is not None


def get_user(session: Session, name: str, *, lock: bool = False) -> User:
    """Return a user, with `lock` for update. Raises ApiProblem 404 if there is none of this name."""
    query = select(User).where(User.name == name)
    user = session.scalar(query.with_for_update() if lock else query)
    if user is None:
        raise not_found("user", name)
    return user


def change_user(session: Session, name: str, *, role: UserRole | None, disabled: bool | None) -> User:
    """Change a user's role, or disable (True) or enable (False) the user; None leaves the value unchanged.

    Disabling ends the user's sessions, and revokes the user's tokens and every token created with them. Raises
    ApiProblem 404 if there is no such user, and 409 if the change would leave the lab without an administrator or
    change the role of a user of the OpenID provider.
    """
    # Lock all administrators in a fixed order: of two who demote each other at once, only one may succeed.
    is_admin = (User.role == UserRole.ADMIN, User.disabled_at.is_(None), User.without_role_since.is_(None))
    admins = session.scalars(select(User).where(*is_admin).order_by(User.id).with_for_update()).all()
    user = get_user(session, name, lock=True)
    if user.issuer is not None and role not in {None, user.role}:
        raise ApiProblem(
            409, f"the role of {name} follows the groups of {user.issuer}; change the groups there, or disable {name}"
        )
    remains_admin = (role or user.role) is UserRole.ADMIN and not disabled
    if [admin.id for admin in admins] == [user.id] and not remains_admin:
        raise ApiProblem(409, f"{name} is the lab's only administrator; make another user an administrator first")
    if role is not None:
        user.role = role
    if disabled and user.disabled_at is None:
        user.disabled_at = func.now()
        browser_sessions.end_all(session, user)
        revoke_tokens(session, Token.user_id == user.id)
    elif disabled is False:
        user.disabled_at = None
    session.flush()
    session.refresh(user)
    return user


def reset_password(session: Session, name: str) -> tuple[User, str]:
    """Set a new generated password and end the user's sessions. Return the user and the password, shown only once.

    Raises ApiProblem 404 if there is no such user, and 409 if the user signs in with the OpenID provider.
    """
    password = passwords.generate()
    password_hash = passwords.hash_password(password)
    user = get_user(session, name, lock=True)
    if user.issuer is not None:
        raise ApiProblem(409, f"{name} signs in with {user.issuer} and has no password here")
    user.password_hash = password_hash
    browser_sessions.end_all(session, user)
    session.flush()
    return user, password


# --- signing in -------------------------------------------------------------------------------------------------


def sign_in(factory: SessionFactory, settings: Settings, name: str, password: str, address: str | None) -> str:
    """Check name and password and return the secret of a new session.

    Raises ApiProblem 401, identical for a wrong password, an unknown and a disabled user, and 429 after too many
    attempts.
    """
    attempt = throttle.count_or_refuse(factory, throttle.attempt_of(name, address))
    with transaction(factory) as session:
        known = session.scalar(select(User.password_hash).where(User.name == name, User.disabled_at.is_(None)))
        is_user = user_exists(session, name)
    if not passwords.matches(password, known):
        # A name that is no user's may be a password in the wrong field.
        account = f"user/{name}" if is_user else "user"
        audit.record_refusal(factory, Actor(address=address), AuditAction.SIGN_IN, account, every=True)
        raise _wrong_credentials()
    with transaction(factory) as session:
        user = _lock_unchanged(session, name, known)
        audit.record(session, Actor(name, address=address), AuditAction.SIGN_IN, f"user/{name}")
        user.last_sign_in_at = func.now()
        throttle.uncount(session, attempt)
        return browser_sessions.begin(session, settings, user)


def change_password(
    factory: SessionFactory, settings: Settings, name: str, *, old: str, new: str, address: str | None
) -> str:
    """Change a password, end all sessions of the user and return the secret of a new session.

    Raises ApiProblem 422 if the new password is too weak or the old one wrong, and 429 after too many attempts.
    """
    weakness = passwords.weakness(new, name)
    if weakness is not None:
        raise invalid([{"pointer": "/new_password", "detail": weakness}])
    attempt = throttle.count_or_refuse(factory, throttle.attempt_of(name, address))
    with transaction(factory) as session:
        known = session.scalar(select(User.password_hash).where(User.name == name))
    if not passwords.matches(old, known):
        actor = Actor(name, address=address)
        audit.record_refusal(factory, actor, AuditAction.CHANGE_PASSWORD, f"user/{name}", every=True)
        raise invalid([{"pointer": "/old_password", "detail": "this is not your password"}])
    password_hash = passwords.hash_password(new)
    with transaction(factory) as session:
        user = _lock_unchanged(session, name, known)
        user.password_hash = password_hash
        audit.record(session, Actor(name, address=address), AuditAction.CHANGE_PASSWORD, f"user/{name}")
        throttle.uncount(session, attempt)
        browser_sessions.end_all(session, user)
        return browser_sessions.begin(session, settings, user)


def _lock_unchanged(session: Session, name: str, password_hash: str | None) -> User:
    """Lock and return the user. Raises ApiProblem 401 if the user was disabled or got another password while the
    password was being hashed."""
    user = session.scalar(select(User).where(User.name == name).with_for_update())
    if user is None or user.disabled_at is not None or user.password_hash != password_hash:
        raise _wrong_credentials()
    return user


def _wrong_credentials() -> ApiProblem:
    return ApiProblem(401, "no user has this name and password", slug="wrong-credentials")
