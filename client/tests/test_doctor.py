"""`wqlab doctor`: the real server with real faults, and TLS."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from commandline import TOKEN, CommandResult, Wqlab
from fakelab import FakeLab, Reply
from server_fixtures import *  # noqa: F403 - fixtures

from server.tests.support.lab import LabUnderTest
from wqlab_client import config, doctor
from wqlab_client.doctor import State
from wqlab_contracts.enums import ExitCode

CERTIFICATES = Path(__file__).parents[2] / "lab/certificates.sh"


def checks(ended: CommandResult) -> dict[str, dict[str, Any]]:
    document = json.loads(ended.out)
    assert document["client"] == version("wqlab-client")
    return {check["name"]: check for check in document["checks"]}


# --- the real server --------------------------------------------------------------------------------------------


@pytest.mark.integration
def test_server_with_broken_parts_and_devices(
    wqlab: Wqlab,
    url: str,
    real_lab: LabUnderTest,
) -> None:
    real_lab.sql("UPDATE devices SET health = 'good'")
    real_lab.sql("UPDATE devices SET health = 'quarantined', health_reason = 'no power' WHERE name = 'device-1'")
    ended = wqlab("--url", url, "--token", real_lab.token, "doctor", "--json")
    found = checks(ended)
    assert ended.code == ExitCode.INFRASTRUCTURE, "the tests' server has no broker"
    assert found["server"]["state"] == found["clock"]["state"] == found["tls"]["state"] == "ok"
    assert found["token"] == {"name": "token", "state": "ok", "seen": found["token"]["seen"], "action": ""}
    assert "user dev, admin, scopes: read, submit, maintain, admin" in found["token"]["seen"]
    assert found["versions"]["seen"] == f"client and server {version('wqlab-client')}"
    assert found["server: broker"]["state"] == "failed"
    assert found["devices"]["seen"] == "2 of 3 good and available"
    assert found["device device-1"]["seen"] == "quarantined: no power"
    assert "wqlab devices release device-1" in found["device device-1"]["action"]
    text = wqlab("--url", url, "--token", real_lab.token, "doctor").out
    assert "failed   server: broker" in text
    assert "  -> repair it, then `wqlab devices release device-1`" in text


@pytest.mark.integration
@pytest.mark.parametrize("column", ["revoked_at", "expires_at"])
def test_revoked_and_expired_token(
    wqlab: Wqlab,
    url: str,
    real_lab: LabUnderTest,
    column: str,
) -> None:
    real_lab.sql(f"UPDATE tokens SET {column} = now() - interval '1 s'")
    ended = wqlab("--url", url, "--token", real_lab.token, "doctor", "--json")
    found = checks(ended)
    assert ended.code == ExitCode.INFRASTRUCTURE
    assert found["server"]["state"] == "ok"
    assert found["token"]["state"] == "failed"
    assert "unknown, revoked or expired" in found["token"]["seen"]
    assert f"wqlab login {url}" in found["token"]["action"]
    assert {found[name]["state"] for name in ("versions", "labs", "devices")} == {"unknown"}


@pytest.mark.integration
def test_token_that_expires_soon_and_token_of_a_worker(
    wqlab: Wqlab,
    url: str,
    real_lab: LabUnderTest,
) -> None:
    real_lab.sql("UPDATE tokens SET expires_at = now() + interval '2 days' WHERE name = 'dev'")
    found = checks(wqlab("--url", url, "--token", real_lab.token, "doctor", "--json"))
    assert found["token"]["state"] == "warning"
    found = checks(wqlab("--url", url, "--token", real_lab.worker_token, "doctor", "--json"))
    assert found["token"]["state"] == "failed"
    assert "worker's token" in found["token"]["seen"]


@pytest.mark.integration
def test_database_that_does_not_answer(url: str, real_lab: LabUnderTest, tmp_path: Path) -> None:
    settings_ = {"WQLAB_URL": url, "WQLAB_TOKEN": real_lab.token, "HOME": str(tmp_path)}
    real_lab.sql("ALTER TABLE tokens RENAME TO lost")
    try:
        found = {check.name: check for check in doctor.examine_server(config.resolve(settings_))}
    finally:
        real_lab.sql("ALTER TABLE lost RENAME TO tokens")
    assert found["server"].state is State.OK
    assert {found[name].state for name in ("token", "labs", "devices")} == {State.UNKNOWN}
    assert "500" in found["token"].seen


# --- the connection ---------------------------------------------------------------------------------------------


def test_server_that_is_down(wqlab: Wqlab) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        ended = wqlab("--url", address, "doctor", "--json")
    found = checks(ended)
    assert ended.code == ExitCode.INFRASTRUCTURE
    assert found["server"]["state"] == "failed"
    assert "cannot reach" in found["server"]["seen"]
    assert {found[name]["state"] for name in ("token", "versions", "server parts", "labs", "devices")} == {"unknown"}


def test_no_configuration(wqlab: Wqlab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WQLAB_URL")
    ended = wqlab("doctor", "--json")
    assert ended.code == ExitCode.INFRASTRUCTURE
    assert checks(ended)["configuration"]["state"] == "failed"
    assert "wqlab login" in checks(ended)["configuration"]["action"]


def test_configuration_that_others_can_read(wqlab: Wqlab, lab: FakeLab, home: Path) -> None:
    file = home / ".config/wqlab/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'url = "{lab.url}"\ntoken = "{TOKEN}"\n')
    file.chmod(0o644)
    check = checks(wqlab("doctor", "--json"))["configuration"]
    assert check["state"] == "warning"
    assert f"chmod 600 {file}" in check["seen"]


def test_clock_and_version_that_differ(wqlab: Wqlab, lab: FakeLab) -> None:
    late = datetime.now(UTC) - timedelta(minutes=20)
    health = Reply(200, {"status": "ok"}, {"Date": format_datetime(late, usegmt=True)})
    lab.answers["GET", "/healthz"] = health
    lab.answers["GET", "/readyz"] = Reply(200, {"ready": True, "release": "0.1.0", "checks": {}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fakelab._Handler.date_time_string", lambda *_: format_datetime(late, usegmt=True))
        found = checks(wqlab("doctor", "--json"))
    assert found["clock"]["state"] == "warning"
    assert "differs from the server's by 20 min" in found["clock"]["seen"]
    assert found["versions"]["state"] == "warning"
    assert found["versions"]["seen"] == f"client {version('wqlab-client')}, server 0.1.0"


class Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 404)
        self.end_headers()
        self.wfile.write(b'{"status": "ok"}')

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""


@contextmanager
def https_server(folder: Path) -> Iterator[str]:
    """Run an HTTPS server that answers /healthz, with the certificate in `folder`; yield its URL."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    with ThreadingHTTPServer(("127.0.0.1", 0), Healthy) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_certificates(wqlab: Wqlab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate of an unknown CA, a valid one, and one that ends soon."""
    subprocess.run([CERTIFICATES, "127.0.0.1", tmp_path], check=True, capture_output=True)
    with https_server(tmp_path) as address:
        found = checks(wqlab("--url", address, "doctor", "--json"))
        assert found["tls"]["state"] == found["server"]["state"] == "failed"
        assert "SSL_CERT_FILE" in found["tls"]["action"]
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.crt"))
        found = checks(wqlab("--url", address, "doctor", "--json"))
        assert found["tls"]["state"] == "ok"
        assert "certificate valid until" in found["tls"]["seen"]
    (tmp_path / "names").write_text("subjectAltName=IP:127.0.0.1")
    subprocess.run(
        "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -new -subj /CN=x -keyout server.key |"
        " openssl x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial -days 5 -extfile names -out server.crt",
        shell=True, cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    with https_server(tmp_path) as address:
        assert checks(wqlab("--url", address, "doctor", "--json"))["tls"]["state"] == "warning"
