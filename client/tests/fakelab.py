"""HTTP server that stands in for a lab, with faults on demand."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from example_views import at
from pydantic import BaseModel, TypeAdapter

from wqlab_contracts.api.submissions import SubmissionView
from wqlab_contracts.enums import EventKind, SubmissionState
from wqlab_contracts.messages import Event


@dataclass(frozen=True)
class Reply:
    """HTTP response of the fake lab."""

    status: int = 200
    body: Any = None
    """A model, a value for JSON, or bytes."""
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    stop_after: int | None = None
    """Send the whole body's Content-Length, but close the connection after this many bytes."""


DROP = Reply(status=0)
"""Close the connection without a response."""


def problem(
    status: int, detail: str, errors: Sequence[dict[str, str]] = (), title: str = "Problem", **headers: str
) -> Reply:
    body = {"type": "urn:x", "title": title, "status": status, "detail": detail, "errors": list(errors)}
    return Reply(status, body, {k.replace("_", "-"): v for k, v in headers.items()}, "application/problem+json")


@dataclass(frozen=True)
class Request:
    """Request that the fake lab received."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


Answer = Reply | Callable[[Request], Reply]


class FakeLab:
    """Server that answers with `answers[(method, path)]`, after the replies of `faults[path]`, one for each request."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], Answer] = {}
        self.faults: dict[str, list[Reply]] = defaultdict(list)
        self.requests: list[Request] = []
        self.events: list[Event] = []
        self.cuts: list[int] = []
        """For each following event stream, the number of events after which it is cut, within the next event."""
        self.ended = False
        self.streams: list[str] = []
        """Last-Event-ID of each event stream that was requested."""
        self.changed = threading.Condition()
        self._server: _Server | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server, on its previous port if it ran before."""
        handler = type("Handler", (_Handler,), {"lab": self})
        self._server = _Server(("127.0.0.1", self.port), handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            server, self._server = self._server, None
            with self.changed:
                self.changed.notify_all()
            server.shutdown()
            server.server_close()
            server.close_connections()

    @property
    def running(self) -> bool:
        return self._server is not None

    def serve(self, path: str, body: Any, method: str = "GET", **reply: Any) -> None:
        self.answers[(method, "/api/v1" + path)] = Reply(body=body, **reply)

    def emit(self, kind: EventKind, **data: Any) -> None:
        with self.changed:
            seq = len(self.events) + 1
            self.events.append(Event(seq=seq, at=at(seq), kind=kind, data=data))
            self.changed.notify_all()

    def show(self, view: SubmissionView) -> None:
        """Serve `view` from now on, and send an event that the submission changed."""
        self.serve(f"/submissions/{view.id}", view)
        self.emit(EventKind.SUBMISSION_STATE, state=view.state)
        if view.state is SubmissionState.FINISHED:
            with self.changed:
                self.ended = True
                self.changed.notify_all()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            self.changed.wait_for(condition)

    def paths(self, method: str) -> list[str]:
        return [request.path for request in self.requests if request.method == method]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    block_on_close = False

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        with self._lock:
            self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        """Close the connections that clients keep open, as the exit of a real server does."""
        with self._lock:
            for connection in self._open:
                with suppress(OSError):  # already closed by the client
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    lab: FakeLab
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {key.lower(): value for key, value in self.headers.items()}
        request = Request(self.command, url.path, dict(parse_qsl(url.query)), headers, body)
        with self.lab.changed:
            self.lab.requests.append(request)
            faults = self.lab.faults[url.path]
            fault = faults.pop(0) if faults else None
            self.lab.changed.notify_all()
        if fault is not None:
            self._send(fault)
        elif url.path.endswith("/events"):
            self._stream(request)
        else:
            answer = self.lab.answers.get((self.command, url.path), problem(404, f"no resource {url.path}"))
            self._send(answer(request) if callable(answer) else answer)

    def _send(self, reply: Reply) -> None:
        if reply is DROP:
            self.close_connection = True
            return
        data = reply.body if isinstance(reply.body, bytes) else _dumped(reply.body)
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(data)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[: reply.stop_after])
        if reply.stop_after is not None:
            self.close_connection = True

    def _stream(self, request: Request) -> None:
        lab = self.lab
        sent = int(request.headers.get("last-event-id", "0"))
        with lab.changed:
            lab.streams.append(request.headers.get("last-event-id", ""))
            left = lab.cuts.pop(0) if lab.cuts else None
            lab.changed.notify_all()
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")  # else the client may send its next request on it
        self.end_headers()
        while True:
            with lab.changed:
                while len(lab.events) <= sent and not lab.ended and lab.running:
                    lab.changed.wait(10)
                if not lab.running:
                    return
                fresh, ended = lab.events[sent:], lab.ended
            for event in fresh:
                message = f"id: {event.seq}\nevent: {event.kind}\ndata: {event.model_dump_json()}\n\n".encode()
                if left == 0:
                    self._chunk(message[: len(message) // 2])
                    return
                left = None if left is None else left - 1
                self._chunk(b": still here\n" + message)
                sent = event.seq
            if ended:
                self._chunk(b"")
                return

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        pass


def _dumped(value: Any) -> bytes:
    if isinstance(value, BaseModel):
        return value.model_dump_json(by_alias=True).encode()
    if isinstance(value, list) and value and isinstance(value[0], BaseModel):
        return TypeAdapter(list[Any]).dump_json(value, by_alias=True)
    return json.dumps(value).encode()
