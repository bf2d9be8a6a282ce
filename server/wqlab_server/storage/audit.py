"""Append to the audit log, in the transaction of the change. Callers pass no secrets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import AuditAction, AuditOutcome

from ..models import AuditEntry
from .db import SessionFactory, transaction

_REFUSAL_WINDOW = timedelta(minutes=1)
"""Equal refusals within this time are recorded once, so that a loop of them does not fill the database."""


@dataclass(frozen=True)
class Actor:
    """Who acts, and from where."""

    name: str = ""
    token_id: int | None = None
    token_name: str | None = None
    address: str | None = None


OPERATOR = Actor(name="operator")
"""Whoever runs commands, edits files or changes settings on the server's host."""


def record(
    session: Session,
    actor: Actor,
    action: AuditAction,
    resource: str = "",
    *,
    outcome: AuditOutcome = AuditOutcome.DONE,
    state: dict[str, Any] | None = None,
    **detail: Any,
) -> None:
    """Append an entry. `resource` is TYPE/ID, such as `device/tiny-1`; `detail` leaves out values that are None."""
    session.add(
        AuditEntry(
            actor=actor.name,
            token_id=actor.token_id,
            token_name=actor.token_name,
            address=actor.address,
            action=action,
            resource=resource,
            outcome=outcome,
            detail={name: value for name, value in detail.items() if value is not None},
            state=state,
        )
    )


def record_refusal(
    factory: SessionFactory,
    actor: Actor,
    action: AuditAction,
    resource: str = "",
    *,
    every: bool = False,
    **detail: Any,
) -> None:
    """Append an entry for a refused action, in a transaction of its own, because the action's is rolled back.

    Equal refusals within a minute are recorded once, or each one with `every`.
    """
    with transaction(factory) as session:
        record_refusal_in(session, actor, action, resource, every=every, **detail)


def record_refusal_in(
    session: Session, actor: Actor, action: AuditAction, resource: str = "", *, every: bool = False, **detail: Any
) -> None:
    """Append an entry for a refused action in a transaction that is committed all the same.

    Equal refusals within a minute are recorded once, or each one with `every`.
    """
    known = select(AuditEntry.id).where(
        AuditEntry.actor == actor.name,
        AuditEntry.action == action,
        AuditEntry.resource == resource,
        AuditEntry.outcome == AuditOutcome.REFUSED,
        AuditEntry.at > func.now() - _REFUSAL_WINDOW,
    )
    if every or session.scalar(known.limit(1)) is None:
        record(session, actor, action, resource, outcome=AuditOutcome.REFUSED, **detail)


def last_state(session: Session, action: AuditAction) -> dict[str, Any] | None:
    """Return the `state` of the newest entry of an action; None if there is none."""
    query = select(AuditEntry.state).where(AuditEntry.action == action).order_by(AuditEntry.id.desc())
    return session.scalar(query.limit(1))
