"""Isolate errors of single items in a tick: log them with the item's id and count them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from sqlalchemy import func
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import SQLAlchemyError

from ..models import TickError
from ..storage.db import SessionFactory, transaction

log = structlog.get_logger(__name__)

_ERROR_LIMIT = 1000


@contextmanager
def isolate_errors(factory: SessionFactory, what: str, item: int | str) -> Iterator[None]:
    """Log and count any exception of one item, so that the tick continues with the other items.

    Use around the item's transaction, which is rolled back first. `what` is one of `TICK_ITEM_KINDS`.
    """
    try:
        yield
    except Exception as error:
        log.exception("tick_item_failed", what=what, item=item)
        try:
            _count_error(factory, what, str(item), f"{type(error).__name__}: {error}"[:_ERROR_LIMIT])
        except SQLAlchemyError as database_error:  # the database is unavailable; the log has both errors
            log.error("tick_error_not_counted", what=what, item=item, error=str(database_error))


def _count_error(factory: SessionFactory, what: str, item: str, error: str) -> None:
    error = error.replace("\0", "\N{REPLACEMENT CHARACTER}")
    with transaction(factory) as session:
        session.execute(
            insert(TickError)
            .values(what=what, item=item, count=1, error=error)
            .on_conflict_do_update(
                index_elements=[TickError.what, TickError.item],
                set_={"count": TickError.count + 1, "error": error, "last_at": func.now()},
            )
        )
