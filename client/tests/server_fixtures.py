"""Fixtures of the server's tests for tests of the client: the real application, and its address."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from commandline import Wqlab

sys.path.insert(0, str(Path(__file__).parents[2]))

from server.tests.conftest import data_dir, database_url, engine, migrated, postgres, settings, signing_key, stores
from server.tests.conftest import lab as real_lab
from server.tests.support.lab import LabUnderTest

__all__ = [
    "ask", "data_dir", "database_url", "engine", "migrated", "postgres", "real_lab", "settings",
    "signing_key", "stores", "url",
]  # fmt: skip


class Serving(uvicorn.Server):
    """Server that sets `up` when it accepts connections."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


@pytest.fixture
def url(real_lab: LabUnderTest) -> Iterator[str]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = Serving(uvicorn.Config(real_lab.app, log_level="warning", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        server.up.wait()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture
def ask(wqlab: Wqlab, url: str, real_lab: LabUnderTest) -> Wqlab:
    """Run the command on the real server as the administrator dev."""
    return lambda *arguments: wqlab("--url", url, "--token", real_lab.token, *arguments)
