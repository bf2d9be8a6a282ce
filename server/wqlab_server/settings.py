"""Settings of the server processes.

Each is read from the environment variable WQLAB_<NAME>, else from the file wqlab_<name> in the folder that
WQLAB_SECRETS_DIR names.
"""

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from wqlab_contracts.kcidb import ORIGIN_PATTERN
from wqlab_contracts.mail import ReplyTo, address_of, is_address

from .oidc_settings import OidcSettings, UnusableFile

__all__ = ["SECRETS_DIR", "Settings", "UnusableFile", "settings"]

SECRETS_DIR = "WQLAB_SECRETS_DIR"
_HOST = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_.-]{0,252}[a-z0-9_])?|\[[0-9a-f:.]+\])(?::[1-9][0-9]{0,4})?")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Settings(OidcSettings):
    model_config = SettingsConfigDict(env_prefix="WQLAB_", extra="ignore", frozen=True)

    database_url: str
    """SQLAlchemy URL with the psycopg driver: postgresql+psycopg://..."""
    broker_url: str
    """Celery broker: redis://host or redis+socket:///path."""
    lab_broker_url: str = ""
    """URL of the broker for remote labs, without a user: rediss://host:6380/0. Empty: no remote lab can join."""
    lab_url: str = ""
    """URL (https) of the API for remote labs; empty: `public_url`."""
    ca_file: Path | None = None
    """Certificate (PEM) of the private CA that remote labs verify API and broker with; empty: a public CA."""
    data_dir: Path
    """Folder with device-types/, kernels/, testplans/ and intake/."""
    artifact_dir: Path
    """Folder of the artifacts; with `artifact_url`, folder of uploads whose hash is not yet known."""
    artifact_url: str = ""
    """`s3://BUCKET/PREFIX` of an S3-compatible store; empty: artifacts stay in `artifact_dir`."""
    artifact_options: Path | None = None
    """File of NAME=value options of the store, with obstore's names; other options come from AWS_... variables."""
    signing_key_file: Path | None = None
    """Private Ed25519 key (OpenSSH format) that signs bundles, with its public key in NAME.pub beside it. Empty: no
    bundles are served."""
    web_dir: Path | None = None
    """Folder with the build of web/; without it only the API is served."""
    docs_dir: Path | None = None
    """Folder with the built documentation; without it /docs/ answers 503."""
    public_url: str = "http://127.0.0.1:8750"
    kcidb_origin: str = Field(default="wqlab", pattern=ORIGIN_PATTERN)
    """Name of the lab in KernelCI's database KCIDB: lower-case letters, digits and _. KernelCI assigns it."""
    kcidb_url: str = ""
    """URL of KCIDB, such as https://staging.db.kernelci.org; empty: nothing is sent there."""
    kcidb_token_file: Path | None = None
    """File with the JSON Web Token that KernelCI issued for `kcidb_origin`."""
    list_read_s: float = Field(default=60.0, ge=1)
    """Time between two reads of a watched mailing list that has no more mails."""
    forge_poll_s: float = Field(default=900.0, ge=0)
    """Time between two polls of a forge's repository for changes whose event was lost; 0: no polls."""
    public_reading: bool = False
    """True if everything except users and tokens may be read without signing in."""
    notice: str = Field(default="", max_length=300)
    """Shown at the top of every page, such as that the lab has examples or is down for maintenance."""
    session_idle_s: float = Field(default=7 * 86400.0, gt=0)
    """Time after which a browser session without requests expires."""
    session_life_s: float = Field(default=30 * 86400.0, gt=0)
    """Time after which a browser session expires although it is used."""
    local_git_paths: str = ""
    """Absolute local paths, separated by colons, that are allowed as a series' git URL."""

    claim_s: float = Field(default=60.0, gt=0)
    """Time after which a claim of an apply or a build expires without a heartbeat."""
    lease_s: float = Field(default=60.0, gt=0)
    """Time after which a device lease expires without a heartbeat of its run."""
    offer_s: float = Field(default=120.0, gt=0)
    """Time for which an assigned device waits for a worker to claim the run."""
    tick_s: float = Field(default=3.0, gt=0)
    """Time between two ticks of the pipeline."""
    nudge_first_s: float = Field(default=10.0, gt=0)
    """Time before the second message for the same job; doubled each time up to `nudge_longest_s`."""
    nudge_longest_s: float = Field(default=300.0, gt=0)
    job_attempts: int = Field(default=3, ge=1)
    """Attempts at an apply or a build before an infrastructure failure is final."""
    run_attempts: int = Field(default=12, ge=1)
    """Attempts at a run since its last finished block before an infrastructure failure is final."""
    lab_capacity: int = Field(default=0, ge=0)
    """Devices that a lab runs at once if its worker has published no number; 0: no limit."""
    idle_check_after_s: float = Field(default=900.0, ge=0)
    """Time without submissions after which the lab starts health checks of its devices."""
    canaries: int = Field(default=0, ge=0, le=1440)
    """Minutes a day that A/A comparisons may use each device while it is idle, if its type does not say; 0: none."""
    health_retry_s: float = Field(default=300.0, ge=0)
    """Time between a health check that failed because of the lab itself and the next check of that device."""
    health_checks: int = Field(default=3, ge=1)
    """Number of such health checks in a row after which the device is quarantined."""

    private_webhook_hosts: str = ""
    """Hosts, separated by commas, that webhooks may be posted to although their addresses are private or their URLs are
    plain http; each with its port unless that is the scheme's default."""
    smtp_host: str = ""
    """Host that mails are given to; empty: no mails are written."""
    smtp_port: int = Field(default=587, ge=1, le=65535)
    smtp_tls: Literal["starttls", "tls", "none"] = "starttls"
    """How the connection is encrypted: by STARTTLS, from the beginning, or not at all (only on this machine)."""
    smtp_user: str = ""
    smtp_password_file: Path | None = None
    """Path of the file that contains the password of `smtp_user`."""
    mail_from: str = ""
    """Sender of the lab's mails, `wqlab <wqlab@lab.example>`."""
    mail_reply_to: ReplyTo = ReplyTo.ALL
    """Who gets the answer to a series that came by mail."""
    mail_review: Literal["all", "lists", "none"] = "lists"
    """Which mails wait for a maintainer: all; those to anybody but the author of a mail that the lab has read; none."""
    mail_to_authors: bool = False
    """True if the author of a series that did not come by mail gets one too."""
    mail_regressions_to: str = ""
    """Addresses, beside the commit's author, that get the letter about a bisected regression; commas between them."""
    mail_operator: str = ""
    """Who runs the lab and answers for its mails, `Ada <ada@lab.example>`; empty: no letter about a bisected regression
    is written."""
    mail_regzbot: bool = False
    """True if such a letter asks the kernel's regression tracker to track the regression."""
    mail_commanders: str = ""
    """Addresses whose replies to the lab's mails are followed, beside those of the authors; commas between them."""
    lab_lost_s: float = Field(default=300.0, gt=0)
    """Time without a report of a lab's worker after which the lab counts as lost."""

    quota_waiting: int = Field(default=20, ge=0)
    """Most unfinished submissions of a submitter; 0: no limit. Maintainers and administrators have no quotas."""
    quota_device_minutes: float = Field(default=1440.0, ge=0)
    """Most device time of a submitter in 24 hours, in minutes; 0: no limit."""
    quota_build_minutes: float = Field(default=240.0, ge=0)
    """Most time of kernel builds for a submitter in 24 hours, in minutes; 0: no limit."""
    quota_bytes: int = Field(default=20 << 30, ge=0)
    """Most bytes that a submitter's submissions of 24 hours may store: series, kernels, raw output; 0: no limit."""

    artifact_limit: int = Field(default=4 << 30, gt=0)
    """Maximum size of an uploaded artifact, in bytes."""
    artifact_total_bytes: int = Field(default=50 << 30, gt=0)
    """Size of all artifacts beyond which retention deletes those that were needed longest ago."""
    artifact_keep_days: float = Field(default=90, gt=0)
    """Days after which retention deletes artifacts that no unfinished or pinned submission needs."""
    console_total_bytes: int = Field(default=5 << 30, gt=0)
    """Size of all stored consoles beyond which retention deletes those that were needed longest ago."""
    console_keep_days: float = Field(default=365, gt=0)
    """Days after which retention deletes consoles."""
    keep_at_least_s: float = Field(default=3600.0, ge=0)
    """Time for which retention keeps the files of a finished submission although there is no space."""
    reserve_bytes: int = Field(default=2 << 30, ge=0)
    """Free bytes of the artifacts' volume below which retention deletes artifacts before their time."""
    retention_s: float = Field(default=600.0, gt=0)
    """Time between two passes of retention."""
    console_limit: int = Field(default=8 << 20, gt=0)
    """Maximum bytes stored of one boot's console."""
    console_rate: int = Field(default=1 << 20, gt=0)
    """Maximum bytes per second stored of one boot's console, averaged since the boot began, plus one burst of the same
    size."""

    @field_validator("lab_broker_url")
    @classmethod
    def _is_tls(cls, url: str) -> str:
        if url and not url.startswith("rediss://"):
            raise ValueError(
                f"{url.partition('://')[0]}:// is not encrypted and would expose passwords: write rediss://"
            )
        return url

    @field_validator("private_webhook_hosts")
    @classmethod
    def _lists_hosts(cls, hosts: str) -> str:
        _hosts(hosts)
        return hosts

    @model_validator(mode="after")
    def _can_send_mail(self) -> Self:
        if not self.smtp_host:
            return self
        if not address_of(self.mail_from):
            raise ValueError("mail_from must be a mail address, such as wqlab <wqlab@lab.example>, if smtp_host is set")
        if self.smtp_tls == "none" and self.smtp_host not in {"localhost", "127.0.0.1", "::1"}:
            raise ValueError("smtp_tls=none is for a server on this machine: write starttls or tls")
        if bool(self.smtp_user) != (self.smtp_password_file is not None):
            raise ValueError("smtp_user and smtp_password_file belong together: set both, or neither")
        return self

    @property
    def private_webhook_host_set(self) -> frozenset[str]:
        """Return the hosts in lower case."""
        return _hosts(self.private_webhook_hosts)

    @field_validator("mail_operator")
    @classmethod
    def _names_a_person(cls, text: str) -> str:
        if text and not address_of(text):
            raise ValueError(f"{text[:100]!r} has no mail address: write Ada <ada@lab.example>")
        return text

    @field_validator("mail_commanders", "mail_regressions_to")
    @classmethod
    def _names_addresses(cls, text: str) -> str:
        for each in filter(None, (part.strip() for part in text.split(","))):
            if not is_address(each):
                raise ValueError(f"{each[:100]!r} is not a mail address: write user@host, with commas between several")
        return text

    @property
    def mail_commander_set(self) -> frozenset[str]:
        """Return the addresses in lower case."""
        return frozenset(part.strip().lower() for part in self.mail_commanders.split(",") if part.strip())

    @field_validator("kcidb_url")
    @classmethod
    def _hides_tokens(cls, url: str) -> str:
        if not url:
            return url
        parts = urlsplit(url)
        if parts.username is not None or parts.password is not None:
            raise ValueError("leave out user name and password: the token is read from a file")
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            raise ValueError(f"{parts.scheme or 'no scheme'}: the token would travel unencrypted; write https://")
        return url.rstrip("/")

    @property
    def https(self) -> bool:
        """True if users reach the lab by https; cookies are then sent only by https."""
        return self.public_url.startswith("https://")

    @property
    def local_git_path_list(self) -> list[str]:
        return [path for path in self.local_git_paths.split(":") if path]


def _hosts(text: str) -> frozenset[str]:
    """Return the hosts in a list separated by commas. Raises ValueError that names an entry which is no host."""
    hosts = frozenset(filter(None, (entry.strip().lower() for entry in text.split(","))))
    for host in sorted(hosts):
        if not _HOST.fullmatch(host):
            raise ValueError(f"{host!r} is not a host: write names or addresses, with a port unless it is the default")
    return hosts


@lru_cache(maxsize=1)
def settings() -> Settings:
    """Return the process's settings. Raises pydantic.ValidationError that names each missing or invalid variable."""
    return Settings(_secrets_dir=os.environ.get(SECRETS_DIR))
