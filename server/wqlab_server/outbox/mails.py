"""Write mails as deliveries, and decide about those that wait for review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import DeliveryKind, DeliveryState
from wqlab_contracts.mail import MailEdit, OutgoingMail, problems, recipients, unreachable

from ..http.problems import ApiProblem, invalid
from ..models import Delivery
from . import deliveries
from .state import check_transition

REPLY, CORRECTION, CULPRIT = "reply", "correction", "culprit"


def of_thread(session: Session, thread: str) -> Sequence[Delivery]:
    """Return the mails about one source mail, oldest first, without dropped ones."""
    return session.scalars(
        select(Delivery)
        .where(Delivery.thread == thread, Delivery.state != DeliveryState.DROPPED)
        .order_by(Delivery.id)
        .with_for_update()
    ).all()


def said(earlier: Sequence[Delivery]) -> dict[str, str]:
    """Return target -> verdict, as in the last mail that has the target."""
    return {target: verdict for each in earlier for target, verdict in (each.says or {}).items()}


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return target -> (verdict before, verdict now) for each verdict that has changed since it was mailed."""
    known = {target: (verdict, now[target]) for target, verdict in before.items() if target in now}
    return {target: verdicts for target, verdicts in known.items() if verdicts[0] != verdicts[1]}


def supersede(session: Session, earlier: Sequence[Delivery], submission_id: int, now: datetime) -> list[Delivery]:
    """Drop the mails that still wait for review, because a newer result replaces them; return the others."""
    kept = []
    for each in earlier:
        if each.state is DeliveryState.WAITING_FOR_REVIEW:
            why = f"the result of submission {submission_id} replaces it"
            deliveries.drop(session, each.id, "the lab", now, why)
        else:
            kept.append(each)
    return kept


def write(
    session: Session,
    mail: OutgoingMail,
    *,
    key: str,
    event: str,
    submission_id: int,
    thread: str,
    says: dict[str, str],
    review: bool,
    now: datetime,
) -> int | None:
    """Write a mail as a delivery and return its id; None if there is one of this key already."""
    return deliveries.write(
        session,
        DeliveryKind.MAIL,
        key,
        event=event,
        destination=", ".join(recipients(mail)),
        message_id=mail.message_id,
        submission_id=submission_id,
        mail=mail,
        thread=thread,
        says=says,
        state=DeliveryState.WAITING_FOR_REVIEW if review else DeliveryState.WAITING,
        next_at=None if review else now,
    )


# --- review -----------------------------------------------------------------------------------------------------


def approve(session: Session, delivery_id: int, by: str, now: datetime) -> Delivery:
    """Release a mail. Approving it again changes nothing.

    Raises ApiProblem 404, and 409 if it was dropped or has an address that no reader can open.
    """
    row = _lock(session, delivery_id)
    if row.state is DeliveryState.DROPPED:
        raise ApiProblem(409, f"mail {delivery_id} was dropped: {row.reason}")
    if row.state is not DeliveryState.WAITING_FOR_REVIEW:
        return row
    if reason := unreachable(row.mail.body if row.mail is not None else ""):
        raise ApiProblem(409, f"mail {delivery_id}: {reason}, then edit this mail or drop it")
    check_transition(row.state, DeliveryState.WAITING)
    row.state, row.decided_by, row.reason, row.next_at = DeliveryState.WAITING, by, f"approved by {by}", now
    deliveries.nudge(session, row.id)
    return row


def edit(session: Session, delivery_id: int, change: MailEdit) -> Delivery:
    """Change a mail that waits for review. Raises ApiProblem 404, 409 if it does not wait, 422 with every mistake."""
    row = _lock(session, delivery_id)
    if row.state is not DeliveryState.WAITING_FOR_REVIEW or row.mail is None:
        raise ApiProblem(409, f"mail {delivery_id} is {row.state}; only one that waits for review can be changed")
    changed = row.mail.model_copy(update=change.model_dump(exclude_none=True))
    mistakes = problems(changed)
    if mistakes:
        raise invalid([{"pointer": f"/{field}", "detail": reason} for field, reason in mistakes])
    row.mail, row.destination = changed, ", ".join(recipients(changed))
    return row


def _lock(session: Session, delivery_id: int) -> Delivery:
    row = deliveries.lock(session, delivery_id)
    if row.kind is not DeliveryKind.MAIL:
        raise ApiProblem(409, f"delivery {delivery_id} is a {row.kind}, not a mail")
    return row
