"""Add the measured heads of watched trees to the history."""

from __future__ import annotations

import structlog
from sqlalchemy.orm import Session

from ..history import record
from ..models import Watch, WatchedHead
from ..storage.db import SessionFactory, transaction
from .tick_errors import isolate_errors

log = structlog.get_logger(__name__)


def record_heads(factory: SessionFactory) -> None:
    """Add a point for each measured head that has none, and open the shifts that it shows.

    Each head is one transaction that holds the row of the watched tree, so that a second server repeats none.
    """
    with transaction(factory) as session:
        measured = record.not_recorded(session)
    for tree, heads in measured.items():
        for head_id in heads:
            with isolate_errors(factory, "history", head_id), transaction(factory) as session:
                _record(session, tree, head_id)


def _record(session: Session, tree: str, head_id: int) -> None:
    session.get_one(Watch, tree, with_for_update=True)
    head = session.get_one(WatchedHead, head_id, populate_existing=True)
    if head.in_history_at is None:
        lines = record.record(session, head)
        log.info("history_recorded", tree=tree, head=head_id, lines=len(lines))
