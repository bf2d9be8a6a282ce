"""Errors in the lines of real logs, and certificates of real TLS servers."""

from __future__ import annotations

import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from wqlab_lab.doctor.checks import State, Subject, collect
from wqlab_lab.doctor.programs import certificate, mail, recent_error
from wqlab_lab.lifecycle import Lab
from wqlab_lab.paths import LabPaths

SINCE = datetime(2026, 11, 25, 15, 0, tzinfo=UTC)
JSON = '{"what": "run", "item": 7, "event": "tick_item_failed", "level": "error", "timestamp": "2026-11-25T15:52:09Z"}'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (JSON, "tick_item_failed run 7"),
        (f"[2026-11-25 15:52:09,731: WARNING/ForkPoolWorker-1] {JSON}", "tick_item_failed run 7"),
        ("2026-11-25 15:52:09.731 UTC [12] FATAL:  could not write: No space left on device", None),
        ("[2026-11-25 15:52:09,731: ERROR/MainProcess] consumer: Cannot connect to redis+socket", None),
        ("2026-11-25 15:52:09,731 WARN exited: api (exit status 1; not expected)", None),
    ],
)
def test_errors_are_found(line: str, message: str | None) -> None:
    assert recent_error(line, SINCE) == (message or line)


@pytest.mark.parametrize(
    "line",
    [
        JSON.replace("15:52", "14:59"),
        JSON.replace('"error"', '"info"'),
        "[2026-11-25 14:59:59,731: ERROR/MainProcess] consumer: Cannot connect",
        "[2026-11-25 15:52:09,731: INFO/MainProcess] Task wqlab.tick succeeded",
        "2026-11-25 15:52:09,731 WARN exited: api (exit status 0; expected)",
        "2026-11-25 15:52:09.489 UTC [12998] FATAL:  the database system is starting up",
        "  File error.py, line 3: ERROR",
        "",
    ],
)
def test_other_lines_are_no_errors(line: str) -> None:
    assert recent_error(line, SINCE) is None


@contextmanager
def tls_server(folder: Path) -> Iterator[int]:
    """Serve TLS with the certificate in `folder`; the value is the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_certificate_of_a_lab_that_others_reach(
    paths: LabPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = tmp_path / "tls"
    script = Path(__file__).parents[2] / "certificates.sh"
    subprocess.run([script, "lab.test", tls], check=True, capture_output=True)
    served = {"WQLAB_LAB_URL": "https://lab.test:8443", "WQLAB_CA_FILE": str(tls / "ca.crt")}
    subject = Subject(Lab(paths, print))
    assert collect("certificate", certificate, subject) == [], "it serves no other machines"
    with tls_server(tls) as port:
        (paths.run / "api-tls.port").write_text(str(port))
        [check] = collect("certificate", certificate, subject)
        assert check.state is State.UNKNOWN, "the lab does not run"
        monkeypatch.setattr(Subject, "environment_of", lambda self, program: served)
        [check] = collect("certificate", certificate, subject)
        assert check.state is State.OK
        assert check.seen.startswith("valid for lab.test until ")
        served["WQLAB_LAB_URL"] = "https://other.test:8443"
        [check] = collect("certificate", certificate, subject)
        assert check.state is State.FAILED
        assert "lab/certificates.sh other.test" in check.action
    [check] = collect("certificate", certificate, subject)
    assert check.state is State.UNKNOWN, "nothing listens"


@pytest.mark.parametrize(
    ("environment", "state", "seen"),
    [
        ({"WQLAB_PUBLIC_URL": "http://127.0.0.1:8750"}, State.OK, "the lab sends none"),
        ({"WQLAB_SMTP_HOST": "mx", "WQLAB_PUBLIC_URL": "http://127.0.0.1:8750"}, State.FAILED, "http://127.0.0.1 is"),
        ({"WQLAB_SMTP_HOST": "mx", "WQLAB_PUBLIC_URL": "http://localhost"}, State.FAILED, "http://localhost is"),
        ({"WQLAB_SMTP_HOST": "mx"}, State.FAILED, "WQLAB_PUBLIC_URL is not set"),
        ({"WQLAB_SMTP_HOST": "mx", "WQLAB_PUBLIC_URL": "https://lab.test"}, State.OK, "links to https://lab.test"),
        ({}, State.UNKNOWN, "the API does not run"),
    ],
)
def test_mail_needs_an_address_that_readers_can_open(
    environment: dict[str, str], state: State, seen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Subject, "environment_of", lambda *_: environment)
    subject = Subject(Lab(LabPaths(tmp_path, tmp_path, tmp_path), print))
    (found,) = collect("mail", mail, subject)
    assert (found.state, seen in found.seen) == (state, True), found
    assert bool(found.action) is (state is not State.OK)
