"""A page that stops answering ends a test in time, and does not end it if the page answers when it is opened again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error

from .. import browser
from ..browser import Person

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]
HANGS = "<script>addEventListener('resize', () => { for (;;) {} })</script>"


class Server(ThreadingHTTPServer):
    """Server of a page that hangs for its first visits."""

    hung_visits = 1
    visits = 0


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.visits += self.path == "/"
        hangs = self.path == "/" and self.server.visits <= self.server.hung_visits
        page = f'<html lang="en"><title>A page</title><main><h1>A page</h1></main>{HANGS if hangs else ""}</html>'
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


@pytest.fixture
def visitor(chromium: Browser, server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    monkeypatch.setattr(browser, "VIEWS_TIMEOUT_S", 15.0)
    person = Person(chromium, f"http://127.0.0.1:{server.server_port}")
    yield person
    person.close()


def test_a_page_that_hangs_once_is_opened_again(server: Server, visitor: Person, tmp_path: Path) -> None:
    visitor.open("/")
    assert visitor.faults_in_views("page", tmp_path) == []
    assert server.visits == 2


def test_a_page_that_hangs_twice_fails(server: Server, visitor: Person, tmp_path: Path) -> None:
    server.hung_visits = 2
    visitor.open("/")
    with pytest.raises(Error, match="crashed"):
        visitor.faults_in_views("page", tmp_path)
