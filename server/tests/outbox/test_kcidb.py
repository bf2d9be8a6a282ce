"""Documents are sent to a receiver that answers as KCIDB's own (kcidb-restd-rs) does."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from wqlab_contracts.enums import AttemptOutcome
from wqlab_server.outbox.kcidb import send
from wqlab_server.settings import Settings

SECRET = b"secret of the receiver"
DOCUMENT = json.dumps({"version": {"major": 5, "minor": 3}, "checkouts": [{"id": "lab:1", "origin": "lab"}]}).encode()


def token(secret: bytes = SECRET, **claims: Any) -> str:
    """Return a JSON Web Token (HS256), as KernelCI issues them."""

    def encoded(content: bytes) -> str:
        return base64.urlsafe_b64encode(content).decode().rstrip("=")

    claims = {"origin": "lab", "exp": time.time() + 60} | claims
    signed = f"{encoded(json.dumps({'alg': 'HS256'}).encode())}.{encoded(json.dumps(claims).encode())}"
    return f"{signed}.{encoded(hmac.digest(secret, signed.encode(), hashlib.sha256))}"


class Receiver(ThreadingHTTPServer):
    """KCIDB's endpoint: 401 unless the token is signed, 400 unless the body is JSON, else 200 with an id.

    `answer` replaces its answer.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[bytes] = []
        self.requests = 0
        self.answer: Callable[[BaseHTTPRequestHandler], None] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        self.server.requests += 1
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.answer is not None:
            self.server.answer(self)
            return
        scheme, _, given = self.headers.get("Authorization", "").partition(" ")
        signed, _, signature = given.rpartition(".")
        expected = base64.urlsafe_b64encode(hmac.digest(SECRET, signed.encode(), hashlib.sha256)).decode().rstrip("=")
        if self.path != "/submit":
            self.reply(404, b"")
        elif scheme != "Bearer" or signature != expected:
            self.tell(401, "0", "error", "InvalidSignature")
        else:
            json.loads(body)
            self.server.received.append(body)
            self.tell(200, "aB3", "ok", f"Received submission aB3 with size {len(body)} bytes")

    def tell(self, status: int, name: str, state: str, message: str) -> None:
        self.reply(status, json.dumps({"id": name, "status": state, "message": message}).encode())

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def kcidb(receiver: Receiver, tmp_path: Path) -> Settings:
    (tmp_path / "kcidb.token").write_text(f"{token()}\n")
    return make_settings(tmp_path, kcidb_url=receiver.url, kcidb_token_file=tmp_path / "kcidb.token")


def make_settings(folder: Path, **more: Any) -> Settings:
    return Settings(
        database_url="postgresql+psycopg://", broker_url="memory://", data_dir=folder, artifact_dir=folder, **more
    )


def test_document_is_sent_as_it_is(receiver: Receiver, kcidb: Settings) -> None:
    answer = send(DOCUMENT, kcidb)
    assert (answer.outcome, answer.status, answer.problem) == (AttemptOutcome.ACCEPTED, 200, "")
    assert '"id": "aB3"' in answer.answer
    assert receiver.received == [DOCUMENT]
    again = send(DOCUMENT, kcidb.model_copy(update={"kcidb_url": f"{receiver.url}/submit"}))
    assert again.outcome is AttemptOutcome.ACCEPTED


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (b"{", "the document is not valid: the document: Invalid JSON"),
        (b'{"version": {"major": 5, "minor": 3}}', "the document is empty"),
        (DOCUMENT.replace(b"lab:1", b"other:1"), "id 'other:1' does not begin with the origin 'lab'"),
        (DOCUMENT.replace(b"lab", b"other"), "the token is for the origin 'lab', the document has 'other'"),
    ],
)
def test_document_that_kcidb_would_drop_is_not_sent(
    receiver: Receiver, kcidb: Settings, document: bytes, problem: str
) -> None:
    answer = send(document, kcidb)
    assert (answer.outcome, answer.status) == (AttemptOutcome.REFUSED, None)
    assert problem in answer.problem
    assert receiver.requests == 0


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "contains no token"),
        ("two words", "contains no token"),
        ("a" * 20_000, "contains no token"),
        ("a-token-of-another-kind", "is not a token of KCIDB"),
        (token(exp=946684800), "expired at 2000-01-01 00:00 UTC"),
    ],
)
def test_unusable_token_is_not_sent(receiver: Receiver, kcidb: Settings, content: str, problem: str) -> None:
    assert kcidb.kcidb_token_file is not None
    kcidb.kcidb_token_file.write_text(content)
    answer = send(DOCUMENT, kcidb)
    assert answer.outcome is AttemptOutcome.FAILED
    assert answer.problem.startswith("kcidb.token: ")
    assert problem in answer.problem
    assert receiver.requests == 0
    kcidb.kcidb_token_file.unlink()
    assert send(DOCUMENT, kcidb).problem == "kcidb.token: cannot be read: No such file or directory"


def test_token_with_a_wrong_signature_is_told_by_the_receiver(receiver: Receiver, kcidb: Settings) -> None:
    assert kcidb.kcidb_token_file is not None
    secret = token(b"another secret")
    kcidb.kcidb_token_file.write_text(secret)
    answer = send(DOCUMENT, kcidb)
    assert (answer.outcome, answer.status) == (AttemptOutcome.FAILED, 401)
    assert answer.problem == "the token was not accepted: InvalidSignature; ask KernelCI for another"
    assert secret not in repr(answer)


@pytest.mark.parametrize(
    ("status", "body", "outcome", "problem"),
    [
        (200, b"<html>sign in</html>", AttemptOutcome.FAILED, "not as KCIDB does"),
        (200, b'{"status": "error", "id": "0"}', AttemptOutcome.FAILED, "not as KCIDB does"),
        (302, b"", AttemptOutcome.FAILED, "redirects are not followed"),
        (400, b'{"message": "expected value"}', AttemptOutcome.REFUSED, "was not accepted: expected value"),
        (404, b"", AttemptOutcome.FAILED, "check WQLAB_KCIDB_URL"),
        (413, b"", AttemptOutcome.REFUSED, "was not accepted: 413"),
        (500, b'{"message": "Internal server error"}', AttemptOutcome.FAILED, "answered 500: Internal server error"),
        (503, b"[1]", AttemptOutcome.FAILED, "answered 503"),
    ],
)
def test_answers_are_errors_by_kind(
    receiver: Receiver, kcidb: Settings, status: int, body: bytes, outcome: AttemptOutcome, problem: str
) -> None:
    receiver.answer = lambda handler: handler.reply(status, body)
    answer = send(DOCUMENT, kcidb)
    assert (answer.outcome, answer.status, answer.answer) == (outcome, status, body.decode())
    assert problem in answer.problem


def test_answer_is_read_up_to_a_limit(receiver: Receiver, kcidb: Settings) -> None:
    receiver.answer = lambda handler: handler.reply(500, b"x" * (8 << 20))
    assert len(send(DOCUMENT, kcidb).answer) == 4096


def test_receiver_that_is_slow_or_silent_ends_with_the_time_limit(receiver: Receiver, kcidb: Settings) -> None:
    ended = threading.Event()

    def trickle(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "4000")
        handler.end_headers()
        while not ended.wait(0.05):
            handler.wfile.write(b" ")

    for answer in (trickle, lambda _: ended.wait()):
        receiver.answer = answer
        found = send(DOCUMENT, kcidb, limit_s=0.5)
        assert (found.outcome, found.problem) == (AttemptOutcome.UNKNOWN, "no answer within 0.5 s")
    ended.set()


def test_receiver_that_hangs_up_or_is_gone(receiver: Receiver, kcidb: Settings) -> None:
    receiver.answer = lambda handler: handler.connection.shutdown(socket.SHUT_RDWR)
    assert send(DOCUMENT, kcidb).outcome is AttemptOutcome.UNKNOWN
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        gone = kcidb.model_copy(update={"kcidb_url": f"http://127.0.0.1:{free.getsockname()[1]}"})
        answer = send(DOCUMENT, gone)
    assert answer.outcome is AttemptOutcome.FAILED
    assert answer.problem.startswith("no connection: ")


def test_settings(tmp_path: Path, kcidb: Settings) -> None:
    answer = send(DOCUMENT, kcidb.model_copy(update={"kcidb_url": ""}))
    assert answer.problem == "set WQLAB_KCIDB_URL and WQLAB_KCIDB_TOKEN_FILE"
    for url in ("http://db.kernelci.org", "https://token@db.kernelci.org", "db.kernelci.org"):
        with pytest.raises(ValidationError):
            make_settings(tmp_path, kcidb_url=url)
    assert make_settings(tmp_path, kcidb_url="https://db.kernelci.org/").kcidb_url == "https://db.kernelci.org"
    with pytest.raises(ValidationError):
        make_settings(tmp_path, kcidb_origin="My Lab")
