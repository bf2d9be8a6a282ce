"""Read KernelCI's events. The jobs for this lab become rows, in one transaction with the cursor."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from ...models import KernelCiCursor, KernelCiJob
from ...settings import Settings
from ...storage.db import SessionFactory, clock, transaction
from .api import EVENTS_PAGE, KernelCi, child, parse_time

OVERLAP = timedelta(seconds=30)
"""How far before the cursor each poll begins: an event can appear after one with a later timestamp. A job that is read
twice is one row."""
LOOK_BACK = timedelta(hours=6)
"""Where the first poll begins: KernelCI gives up a job that is older."""
PAGES = 20
"""Most pages of one poll."""
_TICK = timedelta(milliseconds=1)
"""Precision of the events' timestamps."""

log = structlog.get_logger(__name__)


def read_events(factory: SessionFactory, settings: Settings, api: KernelCi) -> int:
    """Read all new events and return how many jobs are new. Raises KernelCiError; the pages read so far are kept."""
    with transaction(factory) as session:
        read_until = _read_until(session, settings)
        after = (read_until or clock(session) - LOOK_BACK) - OVERLAP
    new = 0
    for _ in range(PAGES):
        events = api.events(after)
        newest = max(filter(None, (parse_time(event.get("timestamp")) for event in events)), default=None)
        with transaction(factory) as session:
            new += _insert(session, _jobs(events, settings.kernelci_runtime))
            if newest is not None:
                _move_cursor(session, settings, newest)
        if newest is None or len(events) < EVENTS_PAGE:
            break
        # More events may have the page's last timestamp; unless the whole page has it, begin with that one again.
        after = newest - _TICK if newest - _TICK > after else newest
    return new


def _jobs(events: Iterable[dict[str, Any]], runtime: str) -> list[dict[str, str]]:
    """Return the rows of jobs that are for this lab, and that nobody has claimed."""
    found = {}
    for event in events:
        node = event.get("node")
        node_id, url = child(node, "id"), child(node, "artifacts", "job_definition")
        if child(node, "data", "runtime") != runtime or not isinstance(node_id, str) or not isinstance(url, str):
            continue
        if child(node, "state") != "available" or child(node, "data", "job_id"):
            continue
        found[node_id] = {
            "node_id": node_id,
            "name": str(child(node, "name") or ""),
            "platform": str(child(node, "data", "platform") or ""),
            "job_id": f"{runtime}:{uuid.uuid4().hex}",
            "definition_url": url,
        }
    return list(found.values())


def _insert(session: Session, rows: list[dict[str, str]]) -> int:
    if not rows:
        return 0
    values = [row | {"state": "seen", "reason": "", "problem": "", "attempts": 0} for row in rows]
    inserted = insert(KernelCiJob).values(values).on_conflict_do_nothing().returning(KernelCiJob.node_id)
    new = session.scalars(inserted).all()
    for node_id in new:
        log.info("kernelci_job_seen", node=node_id)
    return len(new)


def _read_until(session: Session, settings: Settings) -> datetime | None:
    return session.scalar(
        select(KernelCiCursor.read_until).where(
            KernelCiCursor.url == settings.kernelci_url, KernelCiCursor.runtime == settings.kernelci_runtime
        )
    )


def _move_cursor(session: Session, settings: Settings, newest: datetime) -> None:
    row = insert(KernelCiCursor).values(url=settings.kernelci_url, runtime=settings.kernelci_runtime, read_until=newest)
    later = func.greatest(KernelCiCursor.read_until, row.excluded.read_until)
    session.execute(
        row.on_conflict_do_update(
            index_elements=[KernelCiCursor.url, KernelCiCursor.runtime], set_={"read_until": later}
        )
    )
