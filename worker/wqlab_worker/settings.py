"""The settings of a worker, from environment variables and secret files."""

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
    """Settings of a worker.

    Each field is read from the environment variable WQLAB_<FIELD>, except `coordinator`, which is read from labgrid's
    LG_COORDINATOR first. If the variable is not set, the field is read from the file wqlab_<field> in the folder that
    WQLAB_SECRETS_DIR names.
    """

    model_config = SettingsConfigDict(env_prefix="WQLAB_", frozen=True)

    server_url: str
    worker_token: SecretStr
    broker_url: str = "redis://127.0.0.1:6379/0"
    ca_file: Path | None = None
    """CA certificates (PEM) with which the server's and the broker's certificates are verified; None: the system's."""
    cache: Path
    state: Path
    lab: str = "local"
    coordinator: str = Field(
        default="127.0.0.1:20408",
        validation_alias=AliasChoices("LG_COORDINATOR", "coordinator"),
    )

    lava_url: str = ""
    """URL of the LAVA server whose devices this worker drives; empty if the devices are labgrid's."""
    lava_token: SecretStr = SecretStr("")
    lava_listen: str = "127.0.0.1"
    """Address on which this worker listens for LAVA's dispatcher and devices, with one port per run."""
    lava_worker_host: str = "127.0.0.1"
    """Name or address under which LAVA's dispatcher reaches `lava_listen`."""

    @property
    def scratch(self) -> Path:
        """Folder for files that are kept for the duration of a run."""
        return self.cache / "scratch"

    @property
    def has_lab_broker_user(self) -> bool:
        """True if the broker user may only take this lab's messages, as after `wqlab lab join`."""
        return urlsplit(self.broker_url).username == lab_user(self.lab)

    @property
    def fetched(self) -> Path:
        """Folder of artifacts downloaded from the server, named by their SHA-256."""
        return self.cache / "fetched"

    @property
    def ssh_key(self) -> Path:
        """Private SSH key of the lab; devices get the public key on their kernel command line."""
        return self.state / "keys" / "lab_ed25519"

    @property
    def session_logs(self) -> Path:
        return self.state / "log" / "sessions"


@cache
def settings() -> Settings:
    """Return the settings of this process.

    Raises pydantic.ValidationError, which names each missing or wrong variable.
    """
    return Settings(_secrets_dir=os.environ.get(SECRETS_DIR))
