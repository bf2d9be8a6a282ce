"""Record events for webhooks and mail, in the transaction of the change.

A tick turns each event into deliveries; see the domain `outbox`.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.enums import OutboxEvent

from ..models import PendingEvent


def announce(
    session: Session,
    event: OutboxEvent,
    subject: int | str,
    *,
    submission_id: int | None = None,
    device: str | None = None,
    lab: str | None = None,
    **detail: Any,
) -> None:
    """Record an event. `subject` tells events of one kind apart; the same event is recorded once."""
    session.flush()
    session.execute(
        insert(PendingEvent)
        .values(
            key=f"{event}/{subject}",
            event=event,
            submission_id=submission_id,
            device_name=device,
            lab=lab,
            detail=detail,
        )
        .on_conflict_do_nothing(index_elements=[PendingEvent.key])
    )
