"""Faults of single items in a tick: kept apart, logged with the item's id, counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from sqlalchemy import func
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import SQLAlchemyError

from ..models import TickFault
from ..storage.db import SessionFactory, transaction

log = structlog.get_logger(__name__)

_ERROR_LIMIT = 1000


@contextmanager
def contained(factory: SessionFactory, what: str, item: int | str) -> Iterator[None]:
    """Whatever one item raises is logged with its id and counted, and the others go on.

    Put it around the item's transaction, which is rolled back before. `what` is one of `TICK_ITEM_KINDS`.
    """
    try:
        yield
    except Exception as error:
        log.exception("tick_item_failed", what=what, item=item)
        try:
            _count(factory, what, str(item), f"{type(error).__name__}: {error}"[:_ERROR_LIMIT])
        except SQLAlchemyError as trouble:  # the database itself is away; the log has both
            log.error("tick_fault_not_counted", what=what, item=item, error=str(trouble))


def _count(factory: SessionFactory, what: str, item: str, error: str) -> None:
    error = error.replace("\0", "\N{REPLACEMENT CHARACTER}")
    with transaction(factory) as session:
        session.execute(
            insert(TickFault)
            .values(what=what, item=item, count=1, error=error)
            .on_conflict_do_update(
                index_elements=[TickFault.what, TickFault.item],
                set_={"count": TickFault.count + 1, "error": error, "last_at": func.now()},
            )
        )
