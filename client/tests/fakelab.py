"""HTTP server that stands in for a lab, with faults on demand, and builders of the resources that it serves."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, TypeAdapter

from wqlab_contracts.api.builds import BuildView
from wqlab_contracts.api.runs import BootView, FindingView, RunView
from wqlab_contracts.api.submissions import ApplyView, Eta, SubmissionView, SubmittedRequest, SubmittedSeries
from wqlab_contracts.enums import (
    Arm,
    BootState,
    ErrorKind,
    EventKind,
    FindingKind,
    JobState,
    Outcome,
    RunPurpose,
    SubmissionState,
    Verdict,
)
from wqlab_contracts.messages import CheckpatchFinding, Event, Failure, GitSeries, PatchSummary, Target

START = datetime(2026, 1, 2, 10, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """Return the time `seconds` after the submission was created."""
    return START + timedelta(seconds=seconds)


# --- the server ---------------------------------------------------------------------------------------------


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

    def wait_for(self, condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, timeout_s), "the client did not reach the expected state"

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


# --- builders ---------------------------------------------------------------------------------------------------

SERIES_REQUEST = SubmittedRequest(
    series=SubmittedSeries(git=GitSeries(url="https://git.example.org/linux.git", ref="wq-flush")),
    tree="linux-6.12",
    targets=[Target(plan="xfs-fsync", device_type="xeon-2s")],
)
PATCH = PatchSummary(
    subject="[PATCH] workqueue: Take each pool lock once per flush",
    author="A. Developer <dev@example.org>",
    insertions=12,
    deletions=4,
    files=["kernel/workqueue.c"],
)
APPLIED = ApplyView(
    state=JobState.FINISHED,
    outcome=Outcome.PASSED,
    base_commit="0123456789abcdef0123456789abcdef01234567",
    release="6.12.48",
    patches=[PATCH],
    checkpatch=[CheckpatchFinding(severity="warning", text="line length of 104 exceeds 100 columns", where="#42")],
)


def build(number: int, arm: Arm, state: JobState = JobState.FINISHED, **changes: Any) -> BuildView:
    finished = state is JobState.FINISHED
    return BuildView(
        **{
            "id": number,
            "key": f"{number:064x}",
            "arm": arm,
            "tree": "linux-6.12",
            "base_commit": "0123456789abcdef0123456789abcdef01234567",
            "tree_oid": f"{number:040x}",
            "recipe": "measure",
            "arch": "x86_64",
            "state": state,
            "outcome": Outcome.PASSED if finished else None,
            "failure": None,
            "reused": False,
            "build_id_gnu": f"{number:040x}" if finished else "",
            "release": "6.12.48" if finished else "",
            "compiler": "gcc 12.2.0" if finished else "",
            "reproducer": "tuxmake --target-arch x86_64" if finished else "",
            "duration_s": 95.0 if finished else None,
            **changes,
        }
    )


def boot(
    number: int, block: int, position: int, arm: Arm, state: BootState = BootState.FINISHED, **changes: Any
) -> BootView:
    finished = state is BootState.FINISHED
    begin = 120 + 60 * (2 * block + position)
    return BootView(
        **{
            "id": number,
            "run_id": 7,
            "block": block,
            "position": position,
            "arm": arm,
            "attempt": 0,
            "device": "xeon-2s-1",
            "state": state,
            "outcome": Outcome.PASSED if finished else None,
            "failure": None,
            "valid": finished,
            "kernel_boot_id": None,
            "token": None,
            "build_id_gnu": None,
            "release": None,
            "cmdline": None,
            "topology": None,
            "environment": {},
            "started_at": at(begin),
            "finished_at": at(begin + 58) if finished else None,
            "golden_s": 20.5 if finished else None,
            "kexec_s": 7.6 if finished else None,
            "workload_s": 29.0 if finished else None,
            "overhead_s": 0.9 if finished else None,
            "console_bytes": 4096,
            "console_truncated": False,
            **changes,
        }
    )


def run(state: JobState, boots: Sequence[BootView] = (), **changes: Any) -> RunView:
    started = state in {JobState.RUNNING, JobState.FINISHED}
    return RunView(
        **{
            "id": 7,
            "submission_id": 12,
            "purpose": RunPurpose.MEASURE,
            "plan": "xfs-fsync",
            "device_type": "xeon-2s",
            "device": "xeon-2s-1" if started else None,
            "state": state,
            "outcome": Outcome.PASSED if state is JobState.FINISHED else None,
            "failure": None,
            "attempt": 1 if started else 0,
            "blocks_planned": 3,
            "blocks_completed": 0,
            "progress": "",
            "queue_position": None,
            "created_at": at(1),
            "started_at": at(118) if started else None,
            "finished_at": at(480) if state is JobState.FINISHED else None,
            "boots": list(boots),
            **changes,
        }
    )


def submission(state: SubmissionState, **changes: Any) -> SubmissionView:
    finished = state is SubmissionState.FINISHED
    return SubmissionView(
        **{
            "id": 12,
            "title": "workqueue: Take each pool lock once per flush",
            "series_key": "workqueue: take each pool lock once per flush",
            "tree": "linux-6.12",
            "owner": "dev",
            "priority": 50,
            "state": state,
            "outcome": Outcome.PASSED if finished else None,
            "failure": None,
            "verdicts": {},
            "created_at": START,
            "finished_at": at(485) if finished else None,
            "request": SERIES_REQUEST,
            "apply": ApplyView(state=JobState.QUEUED, outcome=None) if state is SubmissionState.APPLYING else APPLIED,
            "builds": [],
            "runs": [],
            "eta": Eta(finish_at=None, what=f"{state}", done_boots=0, total_boots=6),
            "exit_code": 0 if finished else None,
            **changes,
        }
    )


# --- a submission from start to end -------------------------------------------------------------------------------

A, B = Arm.BASELINE, Arm.CANDIDATE
PANIC = Failure(kind=ErrorKind.KERNEL, summary="panic: workqueue: pool lock held")
VIEWS = [
    submission(SubmissionState.APPLYING),
    submission(SubmissionState.BUILDING, builds=[build(3, A, reused=True), build(4, B, JobState.RUNNING)]),
    submission(
        SubmissionState.RUNNING,
        builds=[build(3, A, reused=True), build(4, B)],
        runs=[run(JobState.QUEUED, queue_position=2)],
    ),
    submission(
        SubmissionState.RUNNING,
        builds=[build(3, A, reused=True), build(4, B)],
        runs=[
            run(
                JobState.RUNNING,
                [
                    boot(1, 0, 0, A),
                    boot(2, 0, 1, B),
                    boot(3, 1, 0, B, outcome=Outcome.FAILED, failure=PANIC, valid=False),
                    boot(4, 1, 0, B, attempt=1, started_at=at(260), finished_at=at(318)),
                    boot(5, 1, 1, A, BootState.MEASURING, attempt=1),
                ],
                blocks_completed=1,
                progress="block 2 of 3, attempt 2: measuring\x1b[2J repetition 2 of 3",
                findings=[
                    FindingView(
                        kind=FindingKind.PANIC,
                        arm=B,
                        block=1,
                        attempt=0,
                        title="Kernel panic - not syncing: pool lock held",
                        excerpt="[   12.3] Kernel panic",
                        console_offset=4000,
                        fatal=True,
                    )
                ],
            )
        ],
        eta=Eta(finish_at=at(700), what="measuring", done_boots=4, total_boots=6),
    ),
    submission(
        SubmissionState.FINISHED,
        builds=[build(3, A, reused=True), build(4, B)],
        runs=[
            run(
                JobState.FINISHED,
                [
                    boot(1, 0, 0, A),
                    boot(2, 0, 1, B),
                    boot(3, 1, 0, B, outcome=Outcome.FAILED, failure=PANIC, valid=False),
                    boot(4, 1, 0, B, attempt=1, started_at=at(260), finished_at=at(318)),
                    boot(5, 1, 1, A, attempt=1, started_at=at(320), finished_at=at(378)),
                    boot(6, 2, 0, A, started_at=at(380), finished_at=at(428)),
                    boot(7, 2, 1, B, started_at=at(430), finished_at=at(478)),
                ],
                blocks_completed=3,
            )
        ],
        verdicts={Verdict.IMPROVEMENT: 1, Verdict.EQUIVALENT: 2},
    ),
]
