"""Serving the API: restart when code changes."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

PACKAGE = Path(__file__).parents[1] / "wqlab_server"
ENVIRONMENT = {"WQLAB_DATABASE_URL": "postgresql+psycopg:///nowhere", "WQLAB_BROKER_URL": "memory://"}


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A copy of the server's package, which the test may edit."""
    return Path(shutil.copytree(PACKAGE, tmp_path / "server" / "wqlab_server"))


@pytest.fixture
def server(tmp_path: Path, code: Path) -> Iterator[subprocess.Popen[bytes]]:
    """An API that serves from `code` on a unix socket and reloads."""
    environment = {**ENVIRONMENT, "PYTHONPATH": str(code.parent), "WQLAB_ARTIFACT_DIR": str(tmp_path / "artifacts")}
    options = ["--uds", str(tmp_path / "api.sock"), "--reload", str(code)]
    command = [sys.executable, "-m", "wqlab_server.cli", "api", *options]
    server = subprocess.Popen(command, env={**environment, "WQLAB_DATA_DIR": str(tmp_path)}, cwd=tmp_path)
    yield server
    server.terminate()
    server.wait()


@pytest.fixture
def health(tmp_path: Path, server: subprocess.Popen[bytes]) -> Iterator[httpx.Client]:
    transport = httpx.HTTPTransport(uds=str(tmp_path / "api.sock"))
    with httpx.Client(transport=transport, base_url="http://lab") as client:
        yield client


def await_status(health: httpx.Client, status: str | None) -> None:
    """Wait until /healthz answers `status`; None: until nothing answers."""
    while True:
        try:
            found = health.get("/healthz").json()["status"]
        except httpx.TransportError:
            found = None
        if found == status:
            return
        time.sleep(0.05)


def test_changed_code_is_served_also_after_an_error_in_it(health: httpx.Client, code: Path) -> None:
    endpoints = code / "http" / "health_endpoints.py"
    original = endpoints.read_text()
    await_status(health, "ok")
    endpoints.write_text("this is no Python")
    await_status(health, None)
    endpoints.write_text(original.replace('Health(status="ok")', 'Health(status="changed")'))
    await_status(health, "changed")


def test_signal_ends_the_reloading_server_and_its_child(health: httpx.Client, server: subprocess.Popen[bytes]) -> None:
    await_status(health, "ok")
    server.send_signal(signal.SIGTERM)
    assert server.wait() == 0
    await_status(health, None)
