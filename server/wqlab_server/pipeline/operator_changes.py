"""Record in the audit log what an operator changed on the server's host: data files and settings."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from wqlab_contracts.enums import AuditAction

from ..settings import Settings
from ..storage import audit
from ..storage.live_data import LiveData

_WITH_PASSWORD = {"database_url", "broker_url", "lab_broker_url"}
"""Settings that may contain a password; they are not recorded."""


def record_changes(session: Session, settings: Settings, data: LiveData) -> None:
    """Compare data files and settings with those of the last entry, and record what differs.

    Changes while no server ran are recorded too, with the time at which they were noticed.
    """
    files = data.digests()
    before = audit.last_state(session, AuditAction.CHANGE_DATA)
    if files != before:
        changed = _differences(before or {}, files)
        audit.record(
            session, audit.OPERATOR, AuditAction.CHANGE_DATA, state=files, first=before is None or None, files=changed
        )
    values = settings.model_dump(mode="json", exclude=_WITH_PASSWORD)
    before = audit.last_state(session, AuditAction.CHANGE_SETTINGS)
    if values != before:
        named = {name: values.get(name) for name in _differences(before or {}, values)}
        audit.record(
            session,
            audit.OPERATOR,
            AuditAction.CHANGE_SETTINGS,
            state=values,
            first=before is None or None,
            settings=named,
        )


def _differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the keys that were added, removed or have another value."""
    missing = object()
    return sorted(key for key in before.keys() | after.keys() if before.get(key, missing) != after.get(key, missing))
