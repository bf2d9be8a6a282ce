"""An HTTP server on loopback that gives the answers which no real archive gives."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from wqlab_contracts.specs import Archive

Answer = Callable[["Handler"], None]


@dataclass
class HostileServer:
    answer: Answer = lambda handler: handler.send(404, b"")
    """Answers every request."""
    requests: list[str] = field(default_factory=list)
    """Method and path of each request."""
    port: int = 0
    closing: threading.Event = field(default_factory=threading.Event)
    """Set at the end of the test; answers that never end wait for it."""

    def archive(self, **changes: object) -> Archive:
        base = f"http://127.0.0.1:{self.port}"
        fields = {
            "name": "hostile",
            "summary": "",
            "url": f"{base}/{{message_id}}/",
            "search": f"{base}/?q={{query}}",
            "private": True,
        }
        return Archive.model_validate(fields | changes)

    @contextmanager
    def running(self) -> Iterator[HostileServer]:
        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """Ignore clients that disconnect, as these tests expect them to."""

        with Server(("127.0.0.1", 0), type("Bound", (Handler,), {"of": self})) as server:
            self.port = server.server_port
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield self
            finally:
                self.closing.set()
                server.shutdown()
                thread.join()


class Handler(BaseHTTPRequestHandler):
    of: HostileServer

    def do_GET(self) -> None:
        self.of.requests.append(f"{self.command} {urlsplit(self.path).path}")
        self.of.answer(self)

    do_POST = do_GET

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""

    def send(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in ({"Content-Length": str(len(content))} | named).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


def mails(text: str) -> Answer:
    return lambda handler: handler.send(200, gzip.compress(text.encode()), Content_Type="application/gzip")


def html(handler: Handler) -> None:
    handler.send(200, b"<html>Are you a robot?</html>", Content_Type="text/html")


def silent(handler: Handler) -> None:
    handler.of.closing.wait(60)


def drip_header(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not handler.of.closing.wait(0.1):
        handler.wfile.write(b"X-More: and more\r\n")


def drip_body(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    for byte in gzip.compress(b"From x\n" * 10_000):
        handler.wfile.write(bytes([byte]))
        if handler.of.closing.wait(0.1):
            return


def announce(size: int, content: bytes) -> Answer:
    """Announce another size than that of the content."""

    def answer(handler: Handler) -> None:
        handler.send(200, content, Content_Length=str(size))
        handler.close_connection = True

    return answer


def bomb(handler: Handler) -> None:
    """Send a gigabyte of mails as a megabyte."""
    zeros = gzip.compress(b"From x\n" + b"\0" * (64 << 20))
    handler.send_response(200)
    handler.end_headers()
    for _ in range(16):
        handler.wfile.write(zeros)


def endless(handler: Handler) -> None:
    """Send a stream that does not compress, without an end."""
    handler.send_response(200)
    handler.end_headers()
    block = gzip.compress(b"", compresslevel=0)
    while not handler.of.closing.is_set():
        handler.wfile.write(block * 4096)


def redirect(target: str) -> Answer:
    return lambda handler: handler.send(302, b"", Location=target)


def fail_first(times: int, status: int, then: Answer) -> Answer:
    left = [times]

    def answer(handler: Handler) -> None:
        if left[0] > 0:
            left[0] -= 1
            handler.send(status, b"busy")
        else:
            then(handler)

    return answer


def raw_mails(content: bytes) -> Answer:
    return lambda handler: handler.send(200, gzip.compress(content), Content_Type="application/gzip")
