"""Sign-in throttle: attempts are counted before the password is checked, and uncounted if it was right.

There are three counters, so that a client can neither guess many passwords nor lock out another user: few attempts at
one account from one address, more from one address at all accounts, and a limit for one account from all addresses.
Unknown user names are counted as well, so that a refusal does not reveal whether a user exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import case, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from ..http.limits import client_network
from ..http.problems import ApiProblem
from ..models import SignInThrottle
from ..storage.db import SessionFactory, transaction

WINDOW = timedelta(minutes=15)
PER_ACCOUNT_AND_ADDRESS = 10
PER_ADDRESS = 50
PER_ACCOUNT = 100


@dataclass(frozen=True)
class Attempt:
    """A sign-in attempt."""

    limits: dict[str, int]
    """Key of each counter -> most attempts in a window. The order is always the same, so that concurrent attempts
    cannot deadlock."""


def attempt_of(account: str, address: str | None) -> Attempt:
    """Return an attempt at `account`. `address` is None where a proxy passes none on; then only the account counts."""
    limits = {f"account {account}": PER_ACCOUNT}
    if address is not None:
        network = client_network(address)
        limits = {
            f"address {network}": PER_ADDRESS,
            f"account {account} from {network}": PER_ACCOUNT_AND_ADDRESS,
            **limits,
        }
    return Attempt(limits)


def attempt_from(address: str | None) -> Attempt:
    """Return an attempt of a user whose name only the provider knows. It counts for the address alone, so that no
    attempt can lock another user out."""
    return Attempt({} if address is None else {f"address {client_network(address)}": PER_ADDRESS})


def count_or_refuse(factory: SessionFactory, attempt: Attempt) -> Attempt:
    """Count an attempt and return it, in a transaction of its own so that a failed attempt stays counted.

    Raises ApiProblem 429 after too many attempts.
    """
    with transaction(factory) as session:
        wait = count(session, attempt)
    if wait is None:
        return attempt
    minutes = -(-wait // timedelta(minutes=1))
    raise ApiProblem(
        429,
        f"too many attempts to sign in; wait {minutes} {'minute' if minutes == 1 else 'minutes'}",
        slug="too-many-sign-ins",
        headers={"Retry-After": str(-(-wait // timedelta(seconds=1)))},
    )


def count(session: Session, attempt: Attempt) -> timedelta | None:
    """Count the attempt. Return None if it is allowed, else the time to wait.

    An attempt that one counter refuses is not counted in the later ones.
    """
    for key, most in attempt.limits.items():
        is_over = SignInThrottle.since <= func.now() - WINDOW
        counted = (
            insert(SignInThrottle)
            .values(key=key, attempts=1)
            .on_conflict_do_update(
                index_elements=[SignInThrottle.key],
                set_={
                    "attempts": case((is_over, 1), else_=SignInThrottle.attempts + 1),
                    "since": case((is_over, func.now()), else_=SignInThrottle.since),
                },
            )
            .returning(SignInThrottle.attempts, SignInThrottle.since, func.now())
        )
        attempts, since, now = session.execute(counted).one()
        if attempts > most:
            return _time_left(since, now)
    _delete_expired(session)
    return None


def uncount(session: Session, attempt: Attempt) -> None:
    """Take an attempt that succeeded off its counters."""
    for key in attempt.limits:
        session.execute(
            update(SignInThrottle)
            .where(SignInThrottle.key == key, SignInThrottle.attempts > 0)
            .values(attempts=SignInThrottle.attempts - 1)
            .execution_options(synchronize_session=False)
        )


def _time_left(since: datetime, now: datetime) -> timedelta:
    return max(since + WINDOW - now, timedelta(seconds=1))


def _delete_expired(session: Session) -> None:
    """Delete counters whose window is over, except those locked by a concurrent attempt."""
    old = select(SignInThrottle.key).where(SignInThrottle.since <= func.now() - WINDOW)
    session.execute(
        delete(SignInThrottle)
        .where(SignInThrottle.key.in_(old.with_for_update(skip_locked=True)))
        .execution_options(synchronize_session=False)
    )
