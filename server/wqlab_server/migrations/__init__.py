"""Database migrations with Alembic. Every change of `models/` needs a revision here; a test compares the two."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Engine


def config() -> Config:
    """Return Alembic's configuration for this package."""
    configuration = Config()
    configuration.set_main_option("script_location", str(Path(__file__).parent))
    return configuration


def upgrade(engine: Engine) -> None:
    """Upgrade the database to the newest revision; do nothing if it is up to date."""
    configuration = config()
    with engine.begin() as connection:
        configuration.attributes["connection"] = connection
        command.upgrade(configuration, "head")


def revisions() -> list[str]:
    """Return all revisions that this version knows, the newest first."""
    return [script.revision for script in ScriptDirectory.from_config(config()).walk_revisions()]
