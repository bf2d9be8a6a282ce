from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from wqlab_lab.lifecycle import PortTakenError, api_answers

TOKEN = "wql_of-the-lab-that-listens"


class ReadyLab(BaseHTTPRequestHandler):
    """API of another lab, which does not know this lab's token."""

    def do_GET(self) -> None:
        known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        self.send_response(200 if known or self.path == "/readyz" else 401)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), ReadyLab) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_api_of_another_lab_is_detected(url: str) -> None:
    """Two labs that start at the same time may choose the same port."""
    assert api_answers(url, TOKEN)
    with pytest.raises(PortTakenError, match=url):
        api_answers(url, "wql_of-this-lab")


def test_api_that_does_not_listen_is_not_ready() -> None:
    assert not api_answers("http://127.0.0.1:1", TOKEN)
