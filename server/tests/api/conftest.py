"""The API on a real database, asked over real HTTP."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from wqlab_contracts.enums import Scope
from wqlab_server.app import create_app
from wqlab_server.http.auth import SCOPE_OF_ROLE, create_token
from wqlab_server.http.sse import Notifications
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.people import add_user, browser, trust_nobody
from .scene import Scene, write_data_folder


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return write_data_folder(tmp_path / "data")


@pytest.fixture
def app(sessions: SessionFactory, settings: Settings) -> FastAPI:
    return create_app(settings, sessions)


@pytest.fixture
def scene(sessions: SessionFactory, app: FastAPI) -> Scene:
    return Scene(sessions, app.state.data, app.state.settings, app.state.store)


@pytest.fixture
def secrets(sessions: SessionFactory) -> dict[Scope, str]:
    """One token of each scope; its owner is called like the scope, and has the role of the same meaning."""
    with transaction(sessions) as session:
        users = {scope: add_user(session, scope.value, role) for role, scope in SCOPE_OF_ROLE.items()}
        return {scope: create_token(session, scope.value, [scope], user=users.get(scope))[1] for scope in Scope}


@dataclass
class Live:
    """The app behind a real server."""

    url: str
    secrets: dict[Scope, str]
    app: FastAPI

    def client(self, scope: Scope | None = Scope.ADMIN) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.secrets[scope]}"} if scope else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=20, verify=trust_nobody())

    def browser(self, name: str) -> httpx.Client:
        """Signed in as one of the users."""
        return browser(self.url, name)

    def allow_public_reading(self) -> None:
        self.app.state.settings = self.app.state.settings.model_copy(update={"public_reading": True})


@pytest.fixture
def live(app: FastAPI, secrets: dict[Scope, str]) -> Iterator[Live]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on", timeout_graceful_shutdown=1))
        started = threading.Event()
        announce(server, app.state.notifications, started.set)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        assert started.wait(20), "the server did not start"
        yield Live(f"http://127.0.0.1:{listener.getsockname()[1]}", secrets, app)
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()


def announce(server: uvicorn.Server, notifications: Notifications, tell: Callable[[], None]) -> None:
    """Calls `tell` once the server accepts connections and listens to its database."""
    startup = server.startup

    async def told(sockets: list[socket.socket] | None = None) -> None:
        await startup(sockets)
        await notifications.connected.wait()
        tell()

    server.startup = told  # type: ignore[method-assign]


@pytest.fixture
def client(live: Live) -> Iterator[httpx.Client]:
    """An admin's."""
    with live.client() as client:
        yield client
