"""A real Patchwork on loopback: its source by git, Django from the package registry, and a PostgreSQL of the tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

REPOSITORY = "https://github.com/getpatchwork/patchwork"
"""`WQLAB_PATCHWORK_GIT` names a copy, for a machine without access."""
COMMIT = "1455a92363500c0128eacc75785eb4aea5fd0015"
"""v3.2.1, whose newest REST API is 1.3."""
PACKAGES = """\
asgiref==3.13.0 --hash=sha256:f9596a2434512686473d50f96ff6207fbba49ae1a785dfac614df4aeb085674d
django==5.1.15 --hash=sha256:117871e58d6eda37f09870b7d73a3d66567b03aecd515b386b1751177c413432
django-filter==24.3 --hash=sha256:c4852822928ce17fb699bcfccd644b3574f1a2d80aeb2b4ff4f16b02dd49dc64
djangorestframework==3.15.2 --hash=sha256:2b8871b062ba1aefc2de01f773875441a961fefbf79f5eed1e32b2f096944b20
sqlparse==0.5.5 --hash=sha256:12a08b3bf3eec877c519589833aed092e2444e68240a3577e8e26148acc7b1ba
"""
LIST = "wq.lists.example.org"
SETTINGS = "from patchwork.settings.base import *\nSECRET_KEY = 'of the test'\nALLOWED_HOSTS = ['127.0.0.1']\n"
PEOPLE = """\
from django.contrib.auth.models import User
from patchwork.models import Project
from rest_framework.authtoken.models import Token
host = "lists.example.org"
project = Project.objects.create(linkname="wq", name="wq", listid="wq." + host, listemail="wq@" + host)
for name in ("bot", "stranger"):
    user = User.objects.create_user(name, name + "@example.org", "password")
    if name == "bot":
        user.profile.maintainer_projects.add(project)
    print(Token.objects.create(user=user).key)
"""


@dataclass
class Patchwork:
    """A running Patchwork with the project `wq`, which `bot` maintains; `stranger` has only an account."""

    source: Path
    environment: dict[str, str]
    port: int
    tokens: dict[str, str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def manage(self, *arguments: str, text: str = "") -> str:
        """Run a command of Patchwork with `text` as its input, and return what it prints."""
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            command, cwd=self.source, env=self.environment, input=text, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def receive(self, mail: str) -> None:
        """Take a mail, without an mbox's `From ` line, as the list's mail server delivers it."""
        self.manage("parsemail", text=f"List-Id: <{LIST}>\n{mail}")

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"{self.url}{path}", timeout=None)


@contextmanager
def patchwork(folder: Path, database: Path) -> Iterator[Patchwork]:
    """Start a Patchwork whose files are in `folder`. `database`: folder with the socket of a PostgreSQL server, which
    has an empty database `patchwork` of the account `wqlab`."""
    source, packages = folder / "source", folder / "packages"
    repository = os.environ.get("WQLAB_PATCHWORK_GIT", REPOSITORY)
    _run("git", "-c", "safe.directory=*", "clone", "--quiet", "--no-checkout", repository, str(source))
    _run("git", "-C", str(source), "checkout", "--quiet", COMMIT)
    (folder / "requirements.txt").write_text(PACKAGES)
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--require-hashes",
        "--only-binary=:all:",
    ]
    _run(*install, "--target", str(packages), "-r", str(folder / "requirements.txt"))
    (source / "test_settings.py").write_text(SETTINGS)
    environment = {
        **os.environ, "PYTHONPATH": str(packages), "DJANGO_SETTINGS_MODULE": "test_settings", "TZ": "UTC",
        "DATABASE_TYPE": "postgres", "DATABASE_HOST": str(database), "DATABASE_USER": "wqlab",
    }  # fmt: skip
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        running = Patchwork(source, environment, free.getsockname()[1], {})
    running.manage("migrate", "--verbosity=0")
    running.manage("loaddata", "--verbosity=0", "default_tags", "default_states")
    running.tokens = dict(zip(("bot", "stranger"), running.manage("shell", "-c", PEOPLE).split(), strict=True))
    command = [sys.executable, "manage.py", "runserver", "--noreload", f"127.0.0.1:{running.port}"]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=source, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        while not _answers(running):
            assert server.poll() is None, (folder / "server.log").read_text(errors="replace")[-4000:]
            time.sleep(0.2)
        yield running
    finally:
        server.terminate()
        server.wait()


def _answers(running: Patchwork) -> bool:
    try:
        return running.get("/api/1.3/").status_code == 200
    except httpx.TransportError:
        return False


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
