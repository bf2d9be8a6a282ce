"""Write the folder of a lab host for `wqlab lab join`: private credentials and the supervisord configuration.

A lab host runs three programs: labgrid's coordinator and exporter, and the worker that drives the devices.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import ssl
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
from pydantic import TypeAdapter, ValidationError

from wqlab_contracts.api.labs import JOIN_PREFIX, LabJoin, LabJoined
from wqlab_contracts.celery_names import lab_queue

from .errors import RequestRefused, UsageError
from .transport import refusal, unreachable

_PRIVATE = 0o600
_ACTION = "join the lab"


@dataclass(frozen=True)
class JoinToken:
    """Token with which one host joins a lab, once."""

    secret: str
    ca_sha256: str
    """SHA-256 of the server's private CA; empty if the system's certificates verify the server."""

    @classmethod
    def parse(cls, text: str) -> JoinToken:
        """Parse a join token. Raises UsageError if `text` is not one."""
        secret, _, ca_sha256 = text.strip().partition(".")
        if not secret.startswith(JOIN_PREFIX) or not secret.isascii() or (ca_sha256 and len(ca_sha256) != 64):
            raise UsageError(
                "--token is not a join token", f"copy all of it: {JOIN_PREFIX}... as `wqlab lab invite` printed it"
            )
        return cls(secret, ca_sha256)


@dataclass(frozen=True)
class LabHost:
    """Folder of a lab host."""

    folder: Path
    coordinator: str
    """Address of labgrid's coordinator, `host:port`."""
    devices: int
    """Maximum number of devices in use at once."""
    bin: Path = Path(sys.executable).parent
    """Folder of the programs that supervisord starts."""

    @property
    def environment_file(self) -> Path:
        return self.folder / "lab.env"

    @property
    def configuration(self) -> Path:
        return self.folder / "supervisord.conf"

    def check(self, *, again: bool) -> None:
        """Check that joining can succeed, before the join token is used.

        Raises UsageError if the folder has joined (unless `again`), a program is missing or the folder is not writable.
        """
        if self.environment_file.exists() and not again:
            raise UsageError(
                f"{self.folder} contains a lab that has joined already",
                "choose another --folder, or pass --again to put new credentials there",
            )
        for program in ("celery", "labgrid-coordinator", "labgrid-exporter"):
            if not (self.bin / program).exists():
                raise UsageError(
                    f"{self.bin} has no {program}", "install wqlab-worker where this `wqlab` is: see docs/labs.md"
                )
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            probe = self.folder / ".probe"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise UsageError(f"cannot write to {self.folder}: {error.strerror}", "choose another --folder") from None

    def write(self, url: str, joined: LabJoined, ca: str | None) -> None:
        """Write credentials, the supervisord configuration and, unless they exist, exporter.yaml and the SSH key."""
        for name in ("cache", "keys", "labgrid", "log/sessions"):
            (self.folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        ca_file = self.folder / "ca.crt"
        if ca is not None:
            _write(ca_file, ca)
        environment = {
            "WQLAB_SERVER_URL": url,
            "WQLAB_WORKER_TOKEN": joined.worker_token,
            "WQLAB_BROKER_URL": joined.broker_url,
            "WQLAB_LAB": joined.lab,
            "WQLAB_CACHE": str(self.folder / "cache"),
            "WQLAB_STATE": str(self.folder),
            "LG_COORDINATOR": self.coordinator,
            **({"WQLAB_CA_FILE": str(ca_file)} if ca is not None else {}),
        }
        text = "".join(f"{name}={shlex.quote(value)}\n" for name, value in environment.items())
        _write(self.environment_file, f"# Credentials of lab {joined.lab}. Keep them secret.\n{text}")
        _write(self.configuration, self._supervisord(joined.lab))
        exporter = self.folder / "labgrid" / "exporter.yaml"
        if not exporter.exists():
            exporter.write_text("{}\n")  # a comment would be read as a Jinja2 statement
        key = self.folder / "keys" / "lab_ed25519"
        if not key.exists():
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"wqlab {joined.lab}", "-f", key], check=True
            )

    def _supervisord(self, lab: str) -> str:
        programs: Mapping[str, tuple[str, list[str]]] = {
            "coordinator": ("labgrid", ["labgrid-coordinator", "-l", self.coordinator]),
            "exporter": (
                "labgrid",
                ["labgrid-exporter", "-c", self.coordinator, "-n", lab, "--hostname", "127.0.0.1", "exporter.yaml"],
            ),
            "worker": (
                ".",
                [
                    "celery", "-A", "wqlab_worker.tasks", "worker", "-Q", lab_queue(lab), "-n", f"{lab_queue(lab)}@%h",
                    "-c", str(self.devices), "-l", "INFO",
                    "--without-mingle", "--without-gossip", "--without-heartbeat",
                ],
            ),
        }  # fmt: skip
        sections = [
            f"""[supervisord]
logfile={self.folder}/log/supervisord.log
pidfile={self.folder}/supervisord.pid
childlogdir={self.folder}/log

[unix_http_server]
file={self.folder}/supervisor.sock
chmod=0700

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface

[supervisorctl]
serverurl=unix://{self.folder}/supervisor.sock
"""
        ]
        for name, (folder, (program, *arguments)) in programs.items():
            command = shlex.join([str(self.bin / program), *arguments])
            # A shell reads the secrets from one file, so no process list and no other file contains them.
            script = f"set -a; . {shlex.quote(str(self.environment_file))}; exec {command}"
            sections.append(
                f"""[program:{name}]
command=/bin/sh -c {shlex.quote(script).replace("%", "%%")}
directory={self.folder}/{folder}
environment=PATH="{self.bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
autorestart=true
startretries=1000
stopwaitsecs=20
stopasgroup=true
killasgroup=true
redirect_stderr=true
stdout_logfile={self.folder}/log/{name}.log
stdout_logfile_maxbytes=20MB
stdout_logfile_backups=1
"""
            )
        return "\n".join(sections)


def join(url: str, token: JoinToken) -> tuple[LabJoined, str | None]:
    """Use the token to get the lab's credentials, and the CA that verifies the server (None: the system's).

    Raises RequestRefused and LabUnavailable, and UsageError for a server whose CA is not the one in the token.
    """
    ca = _download_ca(url, token.ca_sha256) if token.ca_sha256 else None
    try:
        # Not retried: a token can be used once, even if the answer was lost.
        with httpx.Client(verify=_tls_verification(ca), timeout=30) as http:
            body = LabJoin(token=token.secret).model_dump_json()
            answer = http.post(f"{url}/api/v1/labs/join", content=body, headers={"Content-Type": "application/json"})
    except httpx.TransportError as error:
        raise unreachable(url, _ACTION, error) from None
    if not answer.is_success:
        problem = refusal(url, _ACTION, answer, answer.content)
        if isinstance(problem, RequestRefused):
            problem.fix = ""  # the server's message already names the fix; another API token would not help
        raise problem
    try:
        return TypeAdapter(LabJoined).validate_json(answer.content, extra="ignore"), ca
    except ValidationError:
        raise UsageError(f"{url} does not answer as a wqlab server", "check the URL") from None


def _tls_verification(ca: str | None) -> ssl.SSLContext | bool:
    return True if ca is None else ssl.create_default_context(cadata=ca)


def _download_ca(url: str, sha256: str) -> str:
    """Download the CA's certificate without TLS verification, and check it against the hash in the join token."""
    try:
        answer = httpx.get(f"{url}/api/v1/labs/ca", verify=False, timeout=30)  # noqa: S501
    except httpx.TransportError as error:
        raise unreachable(url, _ACTION, error) from None
    if not answer.is_success:
        raise refusal(url, _ACTION, answer, answer.content)
    if hashlib.sha256(answer.content).hexdigest() != sha256:
        raise UsageError(
            f"{url} has another CA than the join token names: it is not the server that issued the token",
            "check the URL, and that no proxy intercepts TLS",
        )
    return answer.text


def _write(path: Path, text: str) -> None:
    """Replace the file atomically; it is never readable by other users."""
    staged = path.with_name(f".{path.name}.new")
    staged.unlink(missing_ok=True)
    with os.fdopen(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "w") as file:
        file.write(text)
    staged.replace(path)
