"""A real HTTP server that receives webhooks, and answers as the test tells it."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from pathlib import Path


@dataclass(frozen=True)
class Answer:
    """What the receiver answers."""

    status: int = 200
    body: bytes = b"thanks"
    headers: dict[str, str] = field(default_factory=dict)
    after_s: float = 0
    """Time before the first byte."""
    drip_s: float = 0
    """Time between two bytes of the body."""


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    body: str


@dataclass
class Receiver:
    """A running receiver; `requests` has what it received."""

    port: int
    requests: list[Request] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def host(self) -> str:
        """Its entry in the operator's list."""
        return f"127.0.0.1:{self.port}"


@contextmanager
def receiver(*answers: Answer, tls: tuple[Path, Path] | None = None) -> Iterator[Receiver]:
    """Run a receiver that gives the answers in turn, and repeats the last one. `tls`: its certificate and key."""
    given: Sequence[Answer] = answers or (Answer(),)
    remaining = chain(given, repeat(given[-1]))
    stopped = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            found.requests.append(Request(self.path, {name.lower(): text for name, text in self.headers.items()}, body))
            answer = next(remaining)
            stopped.wait(answer.after_s)
            try:
                self.send_response(answer.status)
                for name, text in answer.headers.items():
                    self.send_header(name, text)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                for byte in answer.body if answer.drip_s else ():
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                    time.sleep(0 if stopped.is_set() else answer.drip_s)
                if not answer.drip_s:
                    self.wfile.write(answer.body)
            except OSError:
                pass  # the sender has given up

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    found = Receiver(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        stopped.set()
        server.shutdown()
        server.server_close()
