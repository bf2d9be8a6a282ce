"""Return the id sequences to the highest id after a crash of PostgreSQL.

PostgreSQL writes a sequence to its log for 32 values ahead, so a server that was killed skips up to 33 numbers (comment
at SEQ_LOG_VALS in its commands/sequence.c). The ids of submissions and runs are for people, who would take a gap for
lost rows.
"""

from __future__ import annotations

from collections.abc import Iterable

import structlog
from sqlalchemy import Table, func, select, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

log = structlog.get_logger(__name__)

_LEAST_GAP = 2
"""Smaller gaps are left: they come from transactions that have not ended."""
_LOCK_TIMEOUT_MS = 500


def close_gaps(session: Session, tables: Iterable[Table]) -> list[str]:
    """Let the ids of each table continue after its highest id; return the names of the tables that had a gap.

    A table is locked against inserts for a moment, and left alone if an insert holds it for longer.
    """
    closed = []
    for table in tables:
        if _gap(session, table) < _LEAST_GAP:
            continue
        try:
            with session.begin_nested():
                session.execute(text(f"SET LOCAL lock_timeout = {_LOCK_TIMEOUT_MS}"))
                session.execute(text(f'LOCK TABLE "{table.name}" IN SHARE ROW EXCLUSIVE MODE'))
                if (gap := _gap(session, table)) < _LEAST_GAP:
                    continue
                highest = session.scalar(select(func.max(table.c.id)))
                session.execute(select(func.setval(_sequence(session, table), highest or 1, highest is not None)))
        except OperationalError as error:
            log.info("ids_not_closed", table=table.name, error=str(error.orig))
            continue
        log.info("ids_closed", table=table.name, gap=gap)
        closed.append(table.name)
    return closed


def _gap(session: Session, table: Table) -> int:
    """Return the number of ids between the highest one in the table and the next one of its sequence."""
    last_value, is_called = session.execute(
        text(f"SELECT last_value, is_called FROM {_sequence(session, table)}")  # noqa: S608 - a name of the catalogue
    ).one()
    highest = session.scalar(select(func.coalesce(func.max(table.c.id), 0))) or 0
    return int(last_value) - (0 if is_called else 1) - int(highest)


def _sequence(session: Session, table: Table) -> str:
    found = session.scalar(select(func.pg_get_serial_sequence(table.name, "id")))
    if found is None:
        raise LookupError(f"table {table.name} has no sequence for its id")
    return str(found)
