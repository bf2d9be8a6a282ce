"""A database of the previous release is upgraded with its data, and its report is still readable.

`release-0.2.0.sql` is what pg_dump wrote of a lab of that release: a finished submission with its report, and a
submission whose run had been claimed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, create_engine, select, text

from wqlab_contracts.enums import SubmissionState
from wqlab_server import migrations
from wqlab_server.app import create_app
from wqlab_server.models import Build, KeptReport, Submission
from wqlab_server.pipeline.tick import tick
from wqlab_server.settings import Settings
from wqlab_server.storage.db import make_engine, make_factory, transaction

from ..conftest import POSTGRES_BIN, Stores
from .test_schema import CATALOG

pytestmark = pytest.mark.integration

RELEASE = Path(__file__).with_name("release-0.2.0.sql")


@pytest.fixture
def upgraded(postgres: str, stores: Stores) -> Iterator[Engine]:
    admin = create_engine(postgres.format("postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text("CREATE DATABASE previous_release"))
    stores.run(
        POSTGRES_BIN / "psql", "-h", stores.folder, "-U", "wqlab", "-d", "previous_release",
        "-Xq", "-v", "ON_ERROR_STOP=1", "-f", RELEASE,
    )  # fmt: skip
    engine = make_engine(postgres.format("previous_release"))
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == "0003"
    migrations.upgrade(engine)
    yield engine
    engine.dispose()
    with admin.connect() as connection:
        connection.execute(text("DROP DATABASE previous_release"))
    admin.dispose()


def test_report_of_the_previous_release_is_readable(upgraded: Engine, settings: Settings) -> None:
    factory = make_factory(upgraded)
    app = create_app(settings.model_copy(update={"public_reading": True}), factory)
    with transaction(factory) as session:
        document = session.scalars(select(KeptReport.document)).one()
    client = TestClient(app)
    report = client.get("/r/1.txt").text
    for words in (
        "locks on single (emulated): IMPROVEMENT",
        "locks_per_flush falls from 33 to 5, the same in every boot (n=2)",
    ):
        assert words in " ".join(report.split()) or words in report
    for suffix in ("", ".md", ".json", ".xml"):
        assert client.get(f"/r/1{suffix}").status_code == 200
    shown = client.get("/api/v1/submissions/1").json()
    assert (shown["state"], shown["outcome"], shown["pinned_at"]) == ("finished", "passed", None)
    with transaction(factory) as session:
        assert session.scalars(select(KeptReport.document)).one() == document, "a stored report is only read"


def test_unfinished_work_of_the_previous_release_goes_on(upgraded: Engine, settings: Settings) -> None:
    factory = make_factory(upgraded)
    app = create_app(settings, factory)
    assert tick(factory, settings, app.state.data)
    with transaction(factory) as session:
        unfinished = session.get_one(Submission, 2)
        assert unfinished.state is SubmissionState.RUNNING
        assert all(build.files_deleted_at is None for build in session.scalars(select(Build)))


def test_upgraded_schema_is_that_of_a_new_database(upgraded: Engine, migrated: Engine) -> None:
    catalogs = []
    for engine in (upgraded, migrated):
        with engine.connect() as connection:
            # pg_dump writes the casts of check constraints and partial indexes in another form.
            entries = set(connection.scalars(text(CATALOG)))
            catalogs.append({entry.partition(" CHECK ")[0].partition(" WHERE ")[0] for entry in entries})
    assert catalogs[0] == catalogs[1]
