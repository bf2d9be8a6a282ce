"""Write deliveries, claim them for an attempt, record what came of it, and decide about them.

An attempt is written and committed before anything is sent. If the process then dies, its claim expires, and the
delivery is sent again under the same id: twice is better than never, and receivers recognise a repetition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import DELIVER, OUTBOX_QUEUE
from wqlab_contracts.enums import AttemptOutcome, DeliveryKind, DeliveryState

from ..http.problems import ApiProblem, not_found
from ..models import Delivery, DeliveryAttempt, fences
from ..storage.db import Message, post
from . import schedule
from .post_webhook import Result
from .state import check_transition

CLAIM = timedelta(minutes=5)
"""Longer than any attempt takes; after that the process that holds the claim is taken for dead."""
NUDGE_AGAIN = timedelta(minutes=1)
"""Time after which the message for a due delivery is sent again."""
LONGEST_WAIT = timedelta(hours=2)
"""Longest time for which a receiver can put off the next attempt."""
NUDGES_PER_DESTINATION = 4
"""Messages per pass for one destination, so that a receiver that is away does not hold up the others."""
NUDGES = 200
"""Messages per pass."""
MAILS = frozenset({DeliveryKind.MAIL, DeliveryKind.PERSONAL_MAIL})
"""Kinds that are given to the SMTP server."""
_LOST = "the process that was sending it ended; the receiver may have got it"


@dataclass(frozen=True)
class Claim:
    """A claimed delivery, as it has to be sent."""

    delivery: Delivery
    fence: int
    started_at: datetime


def key_of(*parts: object) -> str:
    """Return the key of a delivery from what it says and to whom."""
    return "/".join(str(part) for part in parts)


def id_of(key: str, lab_url: str) -> str:
    """Return the id of a key that is unique among labs and says nothing about the receiver."""
    return hashlib.sha256(f"{lab_url}\n{key}".encode()).hexdigest()[:32]


def write(session: Session, kind: DeliveryKind, key: str, **columns: Any) -> int | None:
    """Write a delivery and return its id; None if there is one of this key already, which stays as it is."""
    session.flush()
    number: int | None = session.scalar(
        insert(Delivery)
        .values(key=key, kind=kind, reason=columns.pop("reason", ""), tries=0, **columns)
        .on_conflict_do_nothing()
        .returning(Delivery.id)
    )
    if number is not None and columns["state"] is DeliveryState.WAITING:
        nudge(session, number)
    return number


# --- sending ----------------------------------------------------------------------------------------------------


def nudge_due(session: Session, now: datetime) -> int:
    """Send messages to the workers for the deliveries that are due, and return their number."""
    place = func.row_number().over(partition_by=Delivery.destination, order_by=(Delivery.next_at, Delivery.id))
    due = select(Delivery.id, Delivery.next_at, place.label("place")).where(_is_due(now)).subquery()
    chosen = (
        select(due.c.id).where(due.c.place <= NUDGES_PER_DESTINATION).order_by(due.c.next_at, due.c.id).limit(NUDGES)
    )
    numbers = session.scalars(
        update(Delivery)
        .where(Delivery.id.in_(chosen), or_(Delivery.nudged_at.is_(None), Delivery.nudged_at <= now - NUDGE_AGAIN))
        .values(nudged_at=now)
        .returning(Delivery.id)
        .execution_options(synchronize_session=False)
    ).all()
    for number in sorted(numbers):
        post(session, Message(DELIVER, number, OUTBOX_QUEUE))
    return len(numbers)


def _is_due(now: datetime) -> Any:
    return and_(
        Delivery.state == DeliveryState.WAITING,
        Delivery.next_at <= now,
        or_(Delivery.claimed_until.is_(None), Delivery.claimed_until <= now),
    )


def nudge(session: Session, delivery_id: int) -> None:
    """Send the message for a delivery after the commit."""
    post(session, Message(DELIVER, delivery_id, OUTBOX_QUEUE))


def claim(session: Session, delivery_id: int, now: datetime) -> Claim | None:
    """Claim a due delivery for one attempt; None if it is not due, or another process holds it.

    Commit before sending. An attempt of a process that has died is recorded as one that the receiver may have got.
    """
    delivery = session.scalar(
        select(Delivery).where(Delivery.id == delivery_id, _is_due(now)).with_for_update(skip_locked=True)
    )
    if delivery is None:
        return None
    if delivery.claimed_until is not None:
        _end_attempt(session, delivery, now, Result(AttemptOutcome.UNKNOWN, problem=_LOST))
        if delivery.state is not DeliveryState.WAITING or delivery.next_at is None or delivery.next_at > now:
            return None
    fence = session.scalar(select(fences.next_value()))
    assert fence is not None  # noqa: S101 - a sequence always has a next value
    delivery.fence, delivery.claimed_until = fence, now + CLAIM
    delivery.tries += 1
    last = session.scalar(select(func.max(DeliveryAttempt.number)).where(DeliveryAttempt.delivery_id == delivery.id))
    session.add(DeliveryAttempt(delivery_id=delivery.id, number=(last or 0) + 1, fence=fence, started_at=now))
    return Claim(delivery, fence, now)


def finish(session: Session, claimed: Claim, now: datetime, result: Result) -> bool:
    """Record the result of an attempt; return False if the claim is no longer this one, and change nothing then."""
    delivery = session.scalar(
        select(Delivery)
        .where(Delivery.id == claimed.delivery.id, Delivery.fence == claimed.fence, Delivery.claimed_until.is_not(None))
        .with_for_update()
    )
    if delivery is None:
        return False
    _end_attempt(session, delivery, now, result)
    return True


def _end_attempt(session: Session, delivery: Delivery, now: datetime, result: Result) -> None:
    """End the attempt of the delivery's current claim, and decide what follows."""
    attempt = session.scalars(
        select(DeliveryAttempt).where(
            DeliveryAttempt.delivery_id == delivery.id, DeliveryAttempt.fence == delivery.fence
        )
    ).one()
    attempt.finished_at, attempt.outcome, attempt.status = now, result.outcome, result.status
    attempt.answer, attempt.problem = result.answer, result.problem
    delivery.claimed_until = None
    delivery.nudged_at = None
    if delivery.state is not DeliveryState.WAITING:
        return  # dropped while it was being sent
    delivery.reason = result.problem
    if result.outcome is AttemptOutcome.ACCEPTED:
        _end(delivery, DeliveryState.DELIVERED, now)
    elif result.outcome is AttemptOutcome.REFUSED:
        _end(delivery, DeliveryState.GIVEN_UP, now)
    else:
        delivery.next_at = schedule.next_attempt(delivery.tries, now)
        if delivery.next_at is not None and result.wait_s is not None:
            delivery.next_at = max(delivery.next_at, now + min(timedelta(seconds=result.wait_s), LONGEST_WAIT))
        if delivery.next_at is None:
            delivery.reason = f"{delivery.tries} attempts have failed, the last one: {result.problem}"
            _end(delivery, DeliveryState.GIVEN_UP, now)


def _end(delivery: Delivery, state: DeliveryState, now: datetime) -> None:
    check_transition(delivery.state, state)
    delivery.state, delivery.finished_at, delivery.next_at = state, now, None


# --- decisions --------------------------------------------------------------------------------------------------


def lock(session: Session, delivery_id: int) -> Delivery:
    """Lock and return a delivery. Raises ApiProblem 404."""
    delivery = session.scalar(
        select(Delivery).where(Delivery.id == delivery_id).with_for_update().execution_options(populate_existing=True)
    )
    if delivery is None:
        raise not_found("delivery", delivery_id)
    return delivery


def replay(session: Session, delivery_id: int, by: str, now: datetime) -> Delivery:
    """Send a delivery again, with a new schedule and its old id.

    Raises ApiProblem 404, and 409 if it waits, is dropped, or is a mail that was delivered: it would be in the thread
    twice.
    """
    delivery = lock(session, delivery_id)
    if delivery.kind in MAILS and delivery.state is DeliveryState.DELIVERED:
        raise ApiProblem(409, f"mail {delivery.id} was delivered; sent again it would be in the thread twice")
    if delivery.state not in {DeliveryState.DELIVERED, DeliveryState.GIVEN_UP}:
        raise ApiProblem(409, f"delivery {delivery.id} is {delivery.state}; only one that has ended can be replayed")
    check_transition(delivery.state, DeliveryState.WAITING)
    delivery.state, delivery.decided_by = DeliveryState.WAITING, by
    delivery.reason, delivery.tries = f"replayed by {by}", 0
    delivery.next_at, delivery.finished_at, delivery.nudged_at = now, None, None
    nudge(session, delivery.id)
    return delivery


def drop(
    session: Session, delivery_id: int, by: str, now: datetime, why: str = "", *, only_mail: bool = False
) -> Delivery:
    """Decide that a delivery is not sent (again). Dropping it again changes nothing. Raises ApiProblem 404, and 409 if
    it has ended, is being sent, or with `only_mail` is no mail."""
    delivery = lock(session, delivery_id)
    if only_mail and delivery.kind is not DeliveryKind.MAIL:
        raise ApiProblem(409, f"delivery {delivery.id} is a {delivery.kind}, not a mail")
    if delivery.state is DeliveryState.DROPPED:
        return delivery
    if delivery.state not in {DeliveryState.WAITING_FOR_REVIEW, DeliveryState.WAITING}:
        raise ApiProblem(409, f"delivery {delivery.id} is {delivery.state}; only one that waits can be dropped")
    if delivery.claimed_until is not None and delivery.claimed_until > now:
        raise ApiProblem(409, f"delivery {delivery.id} is being sent; look at its state in a minute")
    delivery.decided_by, delivery.reason = by, f"dropped by {by}" + (f": {why}" if why else "")
    _end(delivery, DeliveryState.DROPPED, now)
    return delivery


def drop_waiting(session: Session, webhook_ids: Sequence[int], by: str, now: datetime, why: str) -> None:
    """Drop what waits to be posted to removed webhooks. An attempt that is under way ends as it ends."""
    session.execute(
        update(Delivery)
        .where(Delivery.webhook_id.in_(webhook_ids), Delivery.state == DeliveryState.WAITING)
        .values(state=DeliveryState.DROPPED, finished_at=now, next_at=None, decided_by=by, reason=why)
        .execution_options(synchronize_session=False)
    )
