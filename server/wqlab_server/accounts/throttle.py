"""How often one may try to sign in: counted before the password is looked at, and taken back when it was right.

Three counters, so that nobody guesses at leisure and nobody locks out another: tries at one account from one address
are few, tries from one address at all are some more, and tries at one account from anywhere are bounded. Names that no
user has are counted like any other, so that a refusal says nothing.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import case, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from ..models import SignInThrottle

WINDOW = timedelta(minutes=15)
PER_ACCOUNT_AND_ADDRESS = 10
PER_ADDRESS = 50
PER_ACCOUNT = 100


@dataclass(frozen=True)
class Try:
    """One try, by the counters it is counted in (key -> most in a window), always in the same order: two that come at
    once wait for each other and never in a circle."""

    limits: dict[str, int]


def the_try(account: str, address: str | None) -> Try:
    """`address`: None where a proxy tells none; then only the account counts."""
    limits = {f"account {account}": PER_ACCOUNT}
    if address is not None:
        network = _network(address)
        limits = {
            f"address {network}": PER_ADDRESS,
            f"account {account} from {network}": PER_ACCOUNT_AND_ADDRESS,
            **limits,
        }
    return Try(limits)


def take(session: Session, wanted: Try) -> timedelta | None:
    """Counts the try: None when it may be made, else how long there is to wait. One that is refused by a counter is not
    counted in those after it."""
    for key, most in wanted.limits.items():
        over = SignInThrottle.since <= func.now() - WINDOW
        counted = (
            insert(SignInThrottle)
            .values(key=key, attempts=1)
            .on_conflict_do_update(
                index_elements=[SignInThrottle.key],
                set_={
                    "attempts": case((over, 1), else_=SignInThrottle.attempts + 1),
                    "since": case((over, func.now()), else_=SignInThrottle.since),
                },
            )
            .returning(SignInThrottle.attempts, SignInThrottle.since, func.now())
        )
        attempts, since, now = session.execute(counted).one()
        if attempts > most:
            return _left(since, now)
    _forget(session)
    return None


def give_back(session: Session, succeeded: Try) -> None:
    """A try that succeeded counts as none."""
    for key in succeeded.limits:
        session.execute(
            update(SignInThrottle)
            .where(SignInThrottle.key == key, SignInThrottle.attempts > 0)
            .values(attempts=SignInThrottle.attempts - 1)
            .execution_options(synchronize_session=False)
        )


def _left(since: datetime, now: datetime) -> timedelta:
    return max(since + WINDOW - now, timedelta(seconds=1))


def _forget(session: Session) -> None:
    """What is over, and nobody counts in just now."""
    old = select(SignInThrottle.key).where(SignInThrottle.since <= func.now() - WINDOW)
    session.execute(
        delete(SignInThrottle)
        .where(SignInThrottle.key.in_(old.with_for_update(skip_locked=True)))
        .execution_options(synchronize_session=False)
    )


def _network(address: str) -> str:
    """An IPv6 host has a whole /64 to itself, and would come from another address each time."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 6:
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
