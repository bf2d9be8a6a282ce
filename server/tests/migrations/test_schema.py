"""The migrations create the same schema as the models."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, text

from wqlab_server import migrations
from wqlab_server.models import Base

from ..conftest import Stores

pytestmark = pytest.mark.integration

# All catalog entries that a model can define, in a form that does not depend on the order of creation.
CATALOG = """
SELECT 'column ' || table_name || '.' || column_name || ' ' || udt_name || ' ' || is_nullable || ' '
       || coalesce(column_default, '-') || ' ' || coalesce(character_maximum_length::text, '-')
  FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'
UNION ALL
SELECT 'constraint ' || conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid)
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND conrelid <> 0
   AND conrelid::regclass::text <> 'alembic_version'
UNION ALL
SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version'
UNION ALL
SELECT 'trigger ' || pg_get_triggerdef(t.oid) || ' ' || pg_get_functiondef(t.tgfoid)
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
 WHERE NOT t.tgisinternal AND c.relnamespace = 'public'::regnamespace
UNION ALL
SELECT 'sequence ' || sequencename || ' ' || data_type FROM pg_sequences WHERE schemaname = 'public'
"""


def test_migrations_and_models_define_the_same_schema(postgres: str, stores: Stores) -> None:
    admin = create_engine(postgres.format("postgres"), isolation_level="AUTOCOMMIT")
    schemas = []
    for name in ("schema_migrated", "schema_modelled"):
        with admin.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        engine = create_engine(postgres.format(name))
        if name == "schema_migrated":
            migrations.upgrade(engine)
            migrations.upgrade(engine)  # the second run changes nothing
        else:
            Base.metadata.create_all(engine)
        with engine.connect() as connection:
            schemas.append(sorted(connection.scalars(text(CATALOG))))
        engine.dispose()
        with admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name}"))
    admin.dispose()
    migrated, modelled = schemas
    assert len(modelled) > 250
    assert set(migrated) ^ set(modelled) == set()
