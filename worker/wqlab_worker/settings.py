"""What a worker is told by its environment; nothing else in the worker reads environment variables."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from wqlab_contracts.celery_names import lab_user

SECRETS_DIR = "WQLAB_SECRETS_DIR"


class Settings(BaseSettings):
    """Every variable is named WQLAB_<FIELD>, except labgrid's own LG_COORDINATOR. One that is not set is read from the
    file wqlab_<field> in the folder that WQLAB_SECRETS_DIR names."""

    model_config = SettingsConfigDict(env_prefix="WQLAB_", frozen=True)

    server_url: str
    worker_token: SecretStr
    broker_url: str = "redis://127.0.0.1:6379/0"
    ca_file: Path | None = None
    """Certificates (PEM) that the server's and the broker's are checked with; empty: those of the system."""
    cache: Path
    state: Path
    lab: str = "local"
    coordinator: str = Field(
        default="127.0.0.1:20408",
        validation_alias=AliasChoices("LG_COORDINATOR", "WQLAB_COORDINATOR", "coordinator"),
    )

    lava_url: str = ""
    """Of the LAVA server whose devices this worker drives; empty: its devices are labgrid's."""
    lava_token: SecretStr = SecretStr("")
    lava_listen: str = "127.0.0.1"
    """Address on which LAVA's dispatcher and its devices reach this worker, each run at a port of its own."""
    lava_worker_host: str = "127.0.0.1"
    """As what LAVA's dispatcher knows that address."""

    @property
    def scratch(self) -> Path:
        """Files that live as long as a run."""
        return self.cache / "scratch"

    @property
    def own_broker_user(self) -> bool:
        """Whether the broker lets this worker do nothing but take its lab's messages, as after `wqlab lab join`."""
        return urlsplit(self.broker_url).username == lab_user(self.lab)

    @property
    def fetched(self) -> Path:
        """Artifacts downloaded from the server, named by their SHA-256."""
        return self.cache / "fetched"

    @property
    def ssh_key(self) -> Path:
        """Private key of the lab; the devices are given its public half on their command line."""
        return self.state / "keys" / "lab_ed25519"

    @property
    def session_logs(self) -> Path:
        return self.state / "log" / "sessions"


@cache
def settings() -> Settings:
    """The process's settings. Raises pydantic.ValidationError naming each variable that is missing or wrong."""
    return Settings(_secrets_dir=os.environ.get(SECRETS_DIR))
