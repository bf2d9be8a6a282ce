"""Table of the audit log. Triggers make it append-only."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Index, MetaData, Table, event, func, text
from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.enums import AuditAction, AuditOutcome

from .base import Base

RETENTION_DAYS = 365
"""Age before which the database refuses to delete an entry."""


class AuditEntry(Base):
    """One action: who did what, when, from where and with which outcome."""

    __tablename__ = "audit_log"
    __table_args__ = (
        Index("ix_audit_log_actor", "actor", "id"),
        Index("ix_audit_log_action", "action", "id"),
        Index("ix_audit_log_resource", "resource", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime] = mapped_column(server_default=func.now(), index=True)
    actor: Mapped[str]
    token_id: Mapped[int | None]
    token_name: Mapped[str | None]
    address: Mapped[str | None]
    action: Mapped[AuditAction]
    resource: Mapped[str]
    outcome: Mapped[AuditOutcome]
    detail: Mapped[dict[str, Any]]
    state: Mapped[dict[str, Any] | None]
    """Files or settings after a change, which the next tick compares with its own; not part of the API."""


APPEND_ONLY = (
    f"""
CREATE FUNCTION keep_audit_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND OLD.at < now() - interval '{RETENTION_DAYS} days' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit log is append-only; entries can be deleted after {RETENTION_DAYS} days';
END $$
""",
    """
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_log
    FOR EACH ROW EXECUTE FUNCTION keep_audit_log()
""",
    """
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION keep_audit_log()
""",
)
"""Statements that create the triggers; the migration has a copy."""


@event.listens_for(AuditEntry.__table__, "after_create")
def _create_triggers(_: Table | MetaData, connection: Connection, **__: Any) -> None:
    for statement in APPEND_ONLY:
        connection.execute(text(statement))
