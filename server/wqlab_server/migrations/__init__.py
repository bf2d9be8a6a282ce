"""The database's schema history. A change of models.py comes with a revision here; a test compares the two."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine


def config() -> Config:
    configuration = Config()
    configuration.set_main_option("script_location", str(Path(__file__).parent))
    return configuration


def upgrade(engine: Engine) -> None:
    """Brings the database to the newest revision; does nothing when it is there."""
    configuration = config()
    with engine.begin() as connection:
        configuration.attributes["connection"] = connection
        command.upgrade(configuration, "head")
