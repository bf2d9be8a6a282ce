"""The migration turns the beginning of a reason into its cause."""

from __future__ import annotations

import pytest
from alembic import command
from sqlalchemy import create_engine, text

from wqlab_server import migrations

from ..conftest import Stores

pytestmark = pytest.mark.integration

INSERT = """
INSERT INTO unsupported (run_id, boot_id, arm, scenario, setting, metric, reason)
VALUES (1, 1, 'baseline', 'high', '', :metric, :reason)
"""


def test_causes_are_taken_from_old_reasons(postgres: str, stores: Stores) -> None:
    admin = create_engine(postgres.format("postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text("CREATE DATABASE causes_migrated"))
    engine = create_engine(postgres.format("causes_migrated"))
    configuration = migrations.config()
    with engine.begin() as connection:
        configuration.attributes["connection"] = connection
        command.upgrade(configuration, "0006")
        connection.execute(text("SET LOCAL session_replication_role = replica"))  # rows without their run and boot
        for metric, reason in (
            ("a", "no such scope"),
            ("b", "not measured: fio moved no data"),
            ("c", "not measured: the trace buffer lost 12 events"),
        ):
            connection.execute(text(INSERT), {"metric": metric, "reason": reason})
        command.upgrade(configuration, "0007")
        rows = connection.execute(text("SELECT cause, reason FROM unsupported ORDER BY metric")).all()
    engine.dispose()
    with admin.connect() as connection:
        connection.execute(text("DROP DATABASE causes_migrated"))
    admin.dispose()
    assert [tuple(row) for row in rows] == [
        ("lacking", "no such scope"),
        ("no_samples", "fio moved no data"),
        ("events_lost", "the trace buffer lost 12 events"),
    ]
