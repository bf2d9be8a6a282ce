"""Changes of an operator on the server's host, in the audit log."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import AuditAction
from wqlab_server.models import AuditEntry
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory
from wqlab_server.storage.live_data import LiveData
from wqlab_server.tick.tick import tick

pytestmark = pytest.mark.integration


def details(sessions: SessionFactory, action: AuditAction) -> list[dict[str, Any]]:
    with sessions() as session:
        query = select(AuditEntry).where(AuditEntry.action == action).order_by(AuditEntry.id)
        rows = session.scalars(query).all()
    assert all((row.actor, row.address) == ("operator", None) for row in rows)
    return [row.detail for row in rows]


def test_edited_files_and_settings_are_recorded_once(sessions: SessionFactory, settings: Settings) -> None:
    for _ in range(2):
        tick(sessions, settings, LiveData(settings.data_dir))
    first_files, first_settings = (
        details(sessions, each) for each in (AuditAction.CHANGE_DATA, AuditAction.CHANGE_SETTINGS)
    )
    assert [each["first"] for each in (*first_files, *first_settings)] == [True, True]
    assert "database_url" not in first_settings[0]["settings"]

    plan = next(settings.data_dir.glob("testplans/*/plan.yaml"))
    plan.write_text(plan.read_text() + "\n# edited\n")
    tick(sessions, settings, LiveData(settings.data_dir))
    tick(sessions, settings.model_copy(update={"run_attempts": 9}), LiveData(settings.data_dir))
    assert details(sessions, AuditAction.CHANGE_DATA)[1:] == [{"files": [str(plan.relative_to(settings.data_dir))]}]
    assert details(sessions, AuditAction.CHANGE_SETTINGS)[1:] == [{"settings": {"run_attempts": 9}}]


def test_devices_of_an_edited_device_type_are_recorded(sessions: SessionFactory, settings: Settings) -> None:
    tick(sessions, settings, LiveData(settings.data_dir))
    added = details(sessions, AuditAction.CHANGE_DEVICE)
    assert added
    assert {each["change"] for each in added} == {"added"}
    for file in settings.data_dir.glob("device-types/*.yaml"):
        file.unlink()
    tick(sessions, settings, LiveData(settings.data_dir))
    changes = [each["change"] for each in details(sessions, AuditAction.CHANGE_DEVICE)]
    assert set(changes[len(added) :]) <= {"removed"}
