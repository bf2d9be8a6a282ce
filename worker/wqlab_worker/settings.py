"""What a worker is told by its environment; nothing else in the worker reads environment variables."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Every variable is named WQLAB_<FIELD>, except labgrid's own LG_COORDINATOR."""

    model_config = SettingsConfigDict(env_prefix="WQLAB_", frozen=True)

    server_url: str
    worker_token: SecretStr
    broker_url: str = "redis://127.0.0.1:6379/0"
    cache: Path
    state: Path
    lab: str = "local"
    coordinator: str = Field(
        default="127.0.0.1:20408",
        validation_alias=AliasChoices("LG_COORDINATOR", "WQLAB_COORDINATOR", "coordinator"),
    )

    @property
    def fetched(self) -> Path:
        """Artifacts downloaded from the server, named by their SHA-256."""
        return self.cache / "fetched"

    @property
    def ssh_key(self) -> Path:
        """Private key of the lab; the boards are given its public half on their command line."""
        return self.state / "keys" / "lab_ed25519"

    @property
    def session_logs(self) -> Path:
        return self.state / "log" / "sessions"


@cache
def settings() -> Settings:
    """The process's settings. Raises pydantic.ValidationError naming each variable that is missing or wrong."""
    return Settings()
