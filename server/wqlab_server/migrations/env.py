"""Alembic environment: migrate the database of the given connection, or of the process's settings."""

from typing import Any, Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext

from wqlab_server.models import Base, Typed
from wqlab_server.settings import settings
from wqlab_server.storage.db import make_engine


def _render(kind: str, item: Any, autogenerate: AutogenContext) -> str | Literal[False]:
    """Render typed JSON columns as plain JSONB, so that migrations do not depend on the current contracts."""
    if kind == "type" and isinstance(item, Typed):
        autogenerate.imports.add("from sqlalchemy.dialects import postgresql")
        return "postgresql.JSONB()"
    return False


def run() -> None:
    connection = context.config.attributes.get("connection")
    if connection is not None:
        context.configure(connection=connection, target_metadata=Base.metadata, render_item=_render)
        with context.begin_transaction():
            context.run_migrations()
        return
    engine = make_engine(settings().database_url)
    with engine.connect() as own:
        context.configure(connection=own, target_metadata=Base.metadata, render_item=_render)
        with context.begin_transaction():
            context.run_migrations()
    engine.dispose()


run()
