"""Fixtures of the API on a real database behind a real HTTP server, and a lab with a small history."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from wqlab_contracts.enums import Scope
from wqlab_server.app import create_app
from wqlab_server.http.auth import SCOPE_OF_ROLE, create_token
from wqlab_server.http.sse import Notifications
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, transaction

from .people import add_user, browser, empty_ssl_context
from .scene import Scene, write_data_folder


def expect(response: httpx.Response, status: int = 200) -> httpx.Response:
    """Return the response after checking its status."""
    assert response.status_code == status, response.text
    return response


@pytest.fixture
def scene_data_dir(tmp_path: Path) -> Path:
    """The data folder of `scene`."""
    return write_data_folder(tmp_path / "scene-data")


@pytest.fixture
def app(sessions: SessionFactory, settings: Settings, scene_data_dir: Path) -> FastAPI:
    """The application with the data folder of `scene`."""
    return create_app(settings.model_copy(update={"data_dir": scene_data_dir}), sessions)


@pytest.fixture
def scene(sessions: SessionFactory, app: FastAPI) -> Scene:
    return Scene(sessions, app.state.data, app.state.settings, app.state.store)


@pytest.fixture
def secrets(sessions: SessionFactory) -> dict[Scope, str]:
    """A token of each scope. Its owner is named like the scope and has the corresponding role."""
    with transaction(sessions) as session:
        users = {scope: add_user(session, scope.value, role) for role, scope in SCOPE_OF_ROLE.items()}
        return {scope: create_token(session, scope.value, [scope], user=users.get(scope))[1] for scope in Scope}


@dataclass
class Live:
    """The application behind a real HTTP server."""

    url: str
    secrets: dict[Scope, str]
    app: FastAPI

    def client(self, scope: Scope | None = Scope.ADMIN) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.secrets[scope]}"} if scope else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=None, verify=empty_ssl_context())

    def browser(self, name: str) -> httpx.Client:
        """Return a client with the session cookie of a user."""
        return browser(self.url, name)

    def allow_public_reading(self) -> None:
        self.app.state.settings = self.app.state.settings.model_copy(update={"public_reading": True})


@pytest.fixture
def live(app: FastAPI, secrets: dict[Scope, str]) -> Iterator[Live]:
    with serving(app) as url:
        yield Live(url, secrets, app)


@contextmanager
def serving(app: FastAPI, served: ASGIApp | None = None) -> Iterator[str]:
    """Serve the application on loopback, or `served`, which passes requests on to it; yield the URL."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(
            uvicorn.Config(served or app, log_level="warning", lifespan="on", timeout_graceful_shutdown=1)
        )
        started = threading.Event()
        call_when_ready(server, app.state.notifications, started.set)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        started.wait()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def call_when_ready(server: uvicorn.Server, notifications: Notifications, callback: Callable[[], None]) -> None:
    """Call `callback` once the server accepts connections and listens to its database."""
    startup = server.startup

    async def startup_and_call(sockets: list[socket.socket] | None = None) -> None:
        await startup(sockets)
        await notifications.connected.wait()
        callback()

    server.startup = startup_and_call  # type: ignore[method-assign]


@pytest.fixture
def client(live: Live) -> Iterator[httpx.Client]:
    """An HTTP client with an administrator's token."""
    with live.client() as client:
        yield client
