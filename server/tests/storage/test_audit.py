"""The database keeps the audit log append-only."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from wqlab_contracts.enums import AuditAction
from wqlab_server.storage import audit
from wqlab_server.storage.db import SessionFactory, transaction

pytestmark = pytest.mark.integration


def add(sessions: SessionFactory, age: str) -> None:
    with transaction(sessions) as session:
        audit.record(session, audit.OPERATOR, AuditAction.RESET_PASSWORD, "user/a", reason=None)
        session.flush()
        session.execute(text("SET LOCAL session_replication_role = replica"))  # disables the triggers
        session.execute(text(f"UPDATE audit_log SET at = now() - interval '{age}' WHERE at = now()"))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_log SET actor = 'somebody else'",
        "DELETE FROM audit_log",
        "TRUNCATE audit_log",
    ],
)
def test_entries_cannot_be_changed(sessions: SessionFactory, statement: str) -> None:
    add(sessions, "364 days")
    with pytest.raises(DBAPIError, match="append-only"), transaction(sessions) as session:
        session.execute(text(statement))
    with sessions() as session:
        assert session.scalars(text("SELECT detail FROM audit_log")).all() == [{}]


def test_entries_older_than_a_year_can_be_deleted(sessions: SessionFactory) -> None:
    add(sessions, "366 days")
    add(sessions, "1 day")
    with transaction(sessions) as session:
        session.execute(text("DELETE FROM audit_log WHERE at < now() - interval '365 days'"))
    with sessions() as session:
        assert session.scalar(text("SELECT count(*) FROM audit_log")) == 1
