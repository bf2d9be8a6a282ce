"""Settings of every server process, from environment variables WQLAB_<NAME>, or from files of these names, in lower
case, in the folder that WQLAB_SECRETS_DIR names. A variable goes before a file."""

import os
from functools import lru_cache
from pathlib import Path

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

SECRETS_DIR = "WQLAB_SECRETS_DIR"


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="WQLAB_", extra="ignore", frozen=True)

    database_url: str
    """SQLAlchemy URL with the psycopg driver: postgresql+psycopg://..."""
    broker_url: str
    """Celery broker: redis://host or redis+socket:///path."""
    lab_broker_url: str = ""
    """The same broker as labs elsewhere reach it, without a user: rediss://host:6380/0. Empty: no lab can join."""
    lab_url: str = ""
    """Where labs elsewhere reach the API, by https; empty: `public_url`."""
    ca_file: Path | None = None
    """Certificate (PEM) of a private CA by which labs elsewhere check the API and the broker; empty: a public one."""
    data_dir: Path
    """Folder with device-types/, kernels/ and testplans/."""
    artifact_dir: Path
    """Where artifacts are kept; with `artifact_url`, where uploads wait until their hash is known."""
    artifact_url: str = ""
    """`s3://BUCKET/PREFIX` of anything that speaks S3; empty: artifacts stay in `artifact_dir`."""
    artifact_options: Path | None = None
    """File of NAME=value lines for it, in obstore's names; what it leaves out comes from AWS_... variables."""
    web_dir: Path | None = None
    """The build of web/; without it there is the API alone."""
    public_url: str = "http://127.0.0.1:8750"
    default_tree: str = ""
    """Tree whose base commit gives the golden kernel; empty: the default of kernels/trees.yaml."""
    public_reading: bool = False
    """Whether everything but users and tokens may be read without signing in."""
    session_idle_s: float = Field(default=7 * 86400.0, gt=0)
    """How long a browser stays signed in without asking for anything."""
    session_life_s: float = Field(default=30 * 86400.0, gt=0)
    """How long it stays signed in at most."""
    local_git_paths: str = ""
    """Absolute local paths, separated by colons, that a series' git URL may name."""

    claim_s: float = Field(default=60.0, gt=0)
    """How long a claim of an apply or a build lives without a heartbeat."""
    lease_s: float = Field(default=60.0, gt=0)
    """How long a device lease lives without a heartbeat of its run."""
    offer_s: float = Field(default=120.0, gt=0)
    """How long an allocated device waits for a worker to claim the run."""
    tick_s: float = Field(default=3.0, gt=0)
    nudge_first_s: float = Field(default=10.0, gt=0)
    """Wait before a second message for the same job; doubled each time up to `nudge_longest_s`."""
    nudge_longest_s: float = Field(default=300.0, gt=0)
    job_attempts: int = Field(default=3, ge=1)
    """How often an apply or build is given out before its failures by infrastructure are final."""
    run_attempts: int = Field(default=4, ge=1)
    """How often a run is given a device before its failures by infrastructure are final."""
    lab_capacity: int = Field(default=0, ge=0)
    """Devices that a lab runs at once unless its worker has published a number; 0: no bound."""
    idle_check_after_s: float = Field(default=900.0, ge=0)
    """How long the lab must have had no submission before it checks devices of its own accord."""
    health_retry_s: float = Field(default=300.0, ge=0)
    """Wait after a health check that the lab itself could not finish, before the next one of that device."""
    health_checks: int = Field(default=3, ge=1)
    """How many such checks in a row quarantine the device."""

    artifact_limit: int = Field(default=4 << 30, gt=0)
    """Bytes of one uploaded artifact."""
    console_limit: int = Field(default=8 << 20, gt=0)
    """Bytes kept of one boot's console."""
    console_rate: int = Field(default=1 << 20, gt=0)
    """Bytes a second kept of one boot's console, averaged since the boot began, above a burst of as many."""

    @field_validator("lab_broker_url")
    @classmethod
    def _is_tls(cls, url: str) -> str:
        if url and not url.startswith("rediss://"):
            raise ValueError(
                f"{url.partition('://')[0]}:// is not encrypted, and passwords travel on it: write rediss://"
            )
        return url

    @property
    def https(self) -> bool:
        """Whether users reach the lab by https: their cookies then go no other way."""
        return self.public_url.startswith("https://")

    @property
    def local_git_path_list(self) -> list[str]:
        return [path for path in self.local_git_paths.split(":") if path]


@lru_cache(maxsize=1)
def settings() -> Settings:
    """The process's settings. Raises pydantic.ValidationError naming each missing or wrong variable."""
    return Settings(_secrets_dir=os.environ.get(SECRETS_DIR))
