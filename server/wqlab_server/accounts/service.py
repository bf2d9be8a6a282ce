"""Users: made, changed, disabled; and signing in."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from wqlab_contracts.enums import UserRole

from ..http import browser_sessions
from ..http.problems import ApiProblem, invalid, not_found
from ..models import Token, User
from ..settings import Settings
from ..storage.db import SessionFactory, transaction
from . import passwords, throttle

# --- users ------------------------------------------------------------------------------------------------------


def create_user(session: Session, name: str, role: UserRole) -> tuple[User, str]:
    """The user and the password that was made, which is shown once. Raises ApiProblem 409 for a name that is taken."""
    if is_there(session, name):
        raise ApiProblem(409, f"there is a user {name} already")
    password = passwords.made()
    user = User(name=name, role=role, password_hash=passwords.hashed(password))
    session.add(user)
    session.flush()
    return user, password


def is_there(session: Session, name: str) -> bool:
    return session.scalar(select(User.id).where(User.name == name)) is not None


def get_user(session: Session, name: str, *, lock: bool = False) -> User:
    """Raises ApiProblem 404."""
    query = select(User).where(User.name == name)
    user = session.scalar(query.with_for_update() if lock else query)
    if user is None:
        raise not_found("user", name)
    return user


def change_user(session: Session, name: str, *, role: UserRole | None, disabled: bool | None) -> User:
    """Raises ApiProblem 404, or 409 for what would leave the lab without an administrator."""
    # All administrators, in one order: two who take each other's role away at once must not both succeed.
    admins = session.scalars(
        select(User).where(User.role == UserRole.ADMIN, User.disabled_at.is_(None)).order_by(User.id).with_for_update()
    ).all()
    user = get_user(session, name, lock=True)
    stays = (role or user.role) is UserRole.ADMIN and not disabled
    if [admin.id for admin in admins] == [user.id] and not stays:
        raise ApiProblem(409, f"{name} is the lab's only administrator; make another one first")
    if role is not None:
        user.role = role
    if disabled and user.disabled_at is None:
        user.disabled_at = func.now()
        browser_sessions.end_all(session, user)
        session.execute(
            update(Token).where(Token.user_id == user.id, Token.revoked_at.is_(None)).values(revoked_at=func.now())
        )
    elif disabled is False:
        user.disabled_at = None
    session.flush()
    session.refresh(user)
    return user


def reset_password(session: Session, name: str) -> tuple[User, str]:
    """A new password, shown once; the user's browsers are signed out. Raises ApiProblem 404."""
    password = passwords.made()
    password_hash = passwords.hashed(password)
    user = get_user(session, name, lock=True)
    user.password_hash = password_hash
    browser_sessions.end_all(session, user)
    session.flush()
    return user, password


# --- signing in -------------------------------------------------------------------------------------------------


def sign_in(factory: SessionFactory, settings: Settings, name: str, password: str, address: str | None) -> str:
    """A new session's secret. Raises ApiProblem 401, the same for a wrong password, a user that there is not and one
    who is disabled; 429 after too many tries."""
    counted = _count(factory, name, address)
    with transaction(factory) as session:
        known = session.scalar(select(User.password_hash).where(User.name == name, User.disabled_at.is_(None)))
    if not passwords.matches(password, known):
        raise _refused()
    with transaction(factory) as session:
        user = _unchanged(session, name, known)
        user.last_sign_in_at = func.now()
        throttle.give_back(session, counted)
        return browser_sessions.begin(session, settings, user)


def change_password(
    factory: SessionFactory, settings: Settings, name: str, *, old: str, new: str, address: str | None
) -> str:
    """Ends all sessions of the user and returns the secret of a new one. Raises ApiProblem 422 for a new password that
    will not do and for a wrong old one, 429 after too many tries."""
    wrong = passwords.mistake(new, name)
    if wrong is not None:
        raise invalid([{"pointer": "/new_password", "detail": wrong}])
    counted = _count(factory, name, address)
    with transaction(factory) as session:
        known = session.scalar(select(User.password_hash).where(User.name == name))
    if not passwords.matches(old, known):
        raise invalid([{"pointer": "/old_password", "detail": "this is not your password"}])
    password_hash = passwords.hashed(new)
    with transaction(factory) as session:
        user = _unchanged(session, name, known)
        user.password_hash = password_hash
        throttle.give_back(session, counted)
        browser_sessions.end_all(session, user)
        return browser_sessions.begin(session, settings, user)


def _count(factory: SessionFactory, name: str, address: str | None) -> throttle.Try:
    """In a transaction of its own: a try counts although it fails."""
    wanted = throttle.the_try(name, address)
    with transaction(factory) as session:
        wait = throttle.take(session, wanted)
    if wait is None:
        return wanted
    minutes = -(-wait // timedelta(minutes=1))
    raise ApiProblem(
        429,
        f"too many tries to sign in; wait {minutes} {'minute' if minutes == 1 else 'minutes'}",
        slug="too-many-sign-ins",
        headers={"Retry-After": str(-(-wait // timedelta(seconds=1)))},
    )


def _unchanged(session: Session, name: str, password_hash: str | None) -> User:
    """The user, locked. Hashing took a while: who was disabled or got another password meanwhile is refused."""
    user = session.scalar(select(User).where(User.name == name).with_for_update())
    if user is None or user.disabled_at is not None or user.password_hash != password_hash:
        raise _refused()
    return user


def _refused() -> ApiProblem:
    return ApiProblem(401, "no user has this name and password", slug="wrong-credentials")
