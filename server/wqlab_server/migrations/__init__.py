"""Database migrations with Alembic. A change of `models/` needs a revision here, which changes existing databases."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine

from wqlab_server.models import Base


class UnknownRevision(Exception):
    """The database is at a revision that this version cannot upgrade."""

    def __init__(self, revision: str) -> None:
        super().__init__(
            f"the database is at revision {revision}, which this version does not know: use the version that made it, "
            "or give this one an empty database (`make down` removes the data of a lab)"
        )


def config() -> Config:
    """Return Alembic's configuration for this package."""
    configuration = Config()
    configuration.set_main_option("script_location", str(Path(__file__).parent))
    return configuration


def upgrade(engine: Engine) -> None:
    """Create the schema of a new database, or upgrade an older one to the newest revision.

    Raises:
        UnknownRevision: the database was made by a version whose revisions this one does not know.
    """
    configuration = config()
    with engine.begin() as connection:
        configuration.attributes["connection"] = connection
        found = MigrationContext.configure(connection).get_current_revision()
        if found is None:
            Base.metadata.create_all(connection)
            command.stamp(configuration, "head")
        elif found in revisions():
            command.upgrade(configuration, "head")
        else:
            raise UnknownRevision(found)


def revisions() -> list[str]:
    """Return all revisions that this version knows, the newest first."""
    return [script.revision for script in ScriptDirectory.from_config(config()).walk_revisions()]
