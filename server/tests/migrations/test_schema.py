"""`upgrade` creates the schema of a new database, and refuses a database that it does not know."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, create_engine, text

from wqlab_server import migrations
from wqlab_server.models import Base

pytestmark = pytest.mark.integration


@pytest.fixture
def database(postgres: str) -> Iterator[Engine]:
    """Yield an empty database."""
    admin = create_engine(postgres.format("postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text("CREATE DATABASE schema"))
    engine = create_engine(postgres.format("schema"))
    yield engine
    engine.dispose()
    with admin.connect() as connection:
        connection.execute(text("DROP DATABASE schema"))
    admin.dispose()


def test_a_new_database_has_the_schema_of_the_models_and_the_newest_revision(database: Engine) -> None:
    migrations.upgrade(database)
    migrations.upgrade(database)  # the second run changes nothing
    with database.connect() as connection:
        context = MigrationContext.configure(connection)
        assert context.get_current_revision() == migrations.revisions()[0]
        assert compare_metadata(context, Base.metadata) == []
        statistics = """SELECT attstattarget FROM pg_attribute
                        WHERE attrelid = 'submissions'::regclass AND attname = 'facets'"""
        assert connection.scalar(text(statistics)) == 1000


def test_a_database_of_an_unknown_revision_is_refused_and_not_changed(database: Engine) -> None:
    migrations.upgrade(database)
    with database.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0040'"))
    with pytest.raises(migrations.UnknownRevision, match="at revision 0040, which this version does not know"):
        migrations.upgrade(database)
    with database.connect() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == "0040"
