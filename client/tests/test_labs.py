"""`wqlab lab` against the real server over HTTPS with a private CA, and a real Redis with a user for each lab."""

from __future__ import annotations

import json
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from commandline import CommandResult, Wqlab

sys.path.insert(0, str(Path(__file__).parents[2]))

from server.tests.conftest import (  # noqa: F401 - fixtures
    data_dir,
    database_url,
    engine,
    migrated,
    postgres,
    redis,
    signing_key,
    stores,
)
from server.tests.conftest import settings as plain_settings  # noqa: F401
from server.tests.support.lab import LabUnderTest
from wqlab_server.storage import broker

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with ca.crt, server.crt and server.key for 127.0.0.1."""
    folder = tmp_path_factory.mktemp("ca")
    subprocess.run([Path(__file__).parents[2] / "lab/certificates.sh", "127.0.0.1", folder], check=True)
    return folder


@pytest.fixture
def server(plain_settings, engine, redis: str, certificates: Path) -> Iterator[tuple[str, LabUnderTest]]:  # type: ignore[no-untyped-def]  # noqa: F811
    more = {"broker_url": redis, "lab_broker_url": "rediss://127.0.0.1:6380/0", "ca_file": certificates / "ca.crt"}
    up = threading.Event()

    class Serving(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            up.set()

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        lab = LabUnderTest(plain_settings.model_copy(update={**more, "lab_url": url}), engine)
        keys = {"ssl_certfile": certificates / "server.crt", "ssl_keyfile": certificates / "server.key"}
        serving = Serving(uvicorn.Config(lab.app, log_level="warning", timeout_graceful_shutdown=1, **keys))
        thread = threading.Thread(target=serving.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        up.wait()
        yield url, lab
        serving.should_exit = True
        thread.join()
    broker.sync_users(redis, {})


@pytest.fixture
def admin(wqlab: Wqlab, server: tuple[str, LabUnderTest], certificates: Path, monkeypatch: pytest.MonkeyPatch) -> Wqlab:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "ca.crt"))
    url, lab = server
    return lambda *arguments: wqlab("--url", url, "--token", lab.token, *arguments)


def invited(admin: Wqlab, *arguments: str) -> list[str]:
    """Return the arguments of the join command that `wqlab lab invite` prints."""
    ended = admin("lab", "invite", *arguments)
    assert ended.code == 0, ended.err
    assert "Run this once" in ended.err
    command, *rest = ended.out.split()
    assert command == "wqlab"
    return rest


@pytest.fixture
def host(wqlab: Wqlab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wqlab:
    """Run the command as on the lab host, which does not trust the server's CA."""

    def run(*arguments: str) -> CommandResult:
        with monkeypatch.context() as bare:
            bare.delenv("SSL_CERT_FILE", raising=False)
            return wqlab(*arguments, "--folder", str(tmp_path / "berlin"))

    return run


def test_join_writes_the_folder_and_prints_the_next_steps(
    admin: Wqlab, host: Wqlab, server: tuple[str, LabUnderTest], tmp_path: Path, certificates: Path
) -> None:
    ended = host(*invited(admin, "berlin"))
    assert ended.code == 0, ended.err
    folder = tmp_path / "berlin"
    assert f"This machine is the host of lab berlin; its files are in {folder}\n" in ended.out
    assert f"{folder}/labgrid/exporter.yaml" in ended.err
    assert (folder / "ca.crt").read_text() == (certificates / "ca.crt").read_text()
    for secret in ("lab.env", "supervisord.conf", "ca.crt", "keys/lab_ed25519"):
        assert stat.S_IMODE((folder / secret).stat().st_mode) == 0o600, secret
    given = dict(line.split("=", 1) for line in (folder / "lab.env").read_text().splitlines()[1:])
    assert given["WQLAB_SERVER_URL"] == server[0]
    assert given["WQLAB_BROKER_URL"].startswith("rediss://lab-berlin:")
    configuration = (folder / "supervisord.conf").read_text()
    programs = [line for line in configuration.splitlines() if line.startswith("[program:")]
    assert programs == ["[program:coordinator]", "[program:exporter]", "[program:worker]"]
    assert not any(given[name] in configuration for name in ("WQLAB_WORKER_TOKEN", "WQLAB_BROKER_URL"))

    (shown,) = [lab for lab in json.loads(admin("lab", "list", "--json").out) if lab["name"] == "berlin"]
    assert shown["joined_at"]
    assert "berlin" in admin("lab", "list").out
    assert "is removed" in admin("lab", "remove", "berlin").out
    assert "removed" in admin("lab", "list").out


def test_used_token_is_refused_and_the_folder_unchanged(admin: Wqlab, host: Wqlab, tmp_path: Path) -> None:
    command = invited(admin, "berlin")
    assert host(*command).code == 0
    before = (tmp_path / "berlin" / "lab.env").read_text()
    there = host(*command)
    assert (there.code, "has joined already" in there.err) == (2, True)
    used = host(*command, "--again")
    assert (used.code, "was used at" in used.err, "wqlab lab invite berlin" in used.err) == (2, True, True), used.err
    assert (tmp_path / "berlin" / "lab.env").read_text() == before
    taken = admin("lab", "invite", "berlin")
    assert (taken.code, "remove it first" in taken.err) == (2, True)
    assert host(*invited(admin, "berlin", "--again"), "--again").code == 0
    assert (tmp_path / "berlin" / "lab.env").read_text() != before


def test_server_with_another_ca_does_not_get_the_token(admin: Wqlab, host: Wqlab, tmp_path: Path) -> None:
    *command, token = invited(admin, "berlin")
    secret = token.partition(".")[0]
    forged = host(*command, f"{secret}.{'0' * 64}")
    assert (forged.code, "has another CA than the join token names" in forged.err) == (2, True), forged.err
    unchecked = host(*command, secret)
    assert (unchecked.code, "cannot reach" in unchecked.err) == (4, True), unchecked.err
    assert not (tmp_path / "berlin" / "lab.env").exists()
    assert host(*command, token).code == 0, "the token must still be valid"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("https://127.0.0.1:1", "--token", "wqj_x"), "cannot reach https://127.0.0.1:1"),
        (("https://127.0.0.1:1", "--token", f"wqj_x.{'0' * 64}"), "cannot reach https://127.0.0.1:1"),
        (("https://127.0.0.1:1", "--token", "wql_x"), "is not a join token"),
        (("https://127.0.0.1:1", "--token", "wqj_x.short"), "is not a join token"),
        (("http://lab.example.org", "--token", "wqj_x"), "use https"),
        (("lab.example.org", "--token", "wqj_x"), "is not an http(s) URL"),
    ],
)
def test_join_names_the_mistake(host: Wqlab, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    ended = host("lab", "join", *arguments)
    assert ended.code in {2, 4}
    assert message in ended.err.replace("\n", " "), ended.err
    assert not (tmp_path / "berlin" / "lab.env").exists()


def test_unknown_token_is_refused(admin: Wqlab, host: Wqlab) -> None:
    *command, token = invited(admin, "berlin")
    ended = host(*command, "wqj_made-up." + token.partition(".")[2])
    assert (ended.code, "unknown join token" in ended.err) == (2, True), ended.err


def test_invalid_duration_is_a_usage_error(admin: Wqlab) -> None:
    ended = admin("lab", "invite", "berlin", "--valid", "soon")
    assert (ended.code, "write 30m, 2h or 1d" in ended.err) == (2, True)


def test_written_configuration_starts_the_three_programs(admin: Wqlab, host: Wqlab, tmp_path: Path) -> None:
    """Run supervisord itself; the server's Redis is missing, which the worker has to tolerate."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{probe.getsockname()[1]}"
    assert host(*invited(admin, "berlin"), "--coordinator", coordinator).code == 0
    folder = tmp_path / "berlin"
    configuration = folder / "supervisord.conf"
    programs = Path(sys.executable).parent
    daemon = subprocess.Popen([programs / "supervisord", "-n", "-c", configuration], stdout=subprocess.DEVNULL)
    try:
        status = ""
        while status.count("RUNNING") < 3:
            time.sleep(0.2)
            status = subprocess.run(
                [programs / "supervisorctl", "-c", configuration, "status"], capture_output=True, text=True, check=False
            ).stdout
        assert [line.split()[:2] for line in status.splitlines()] == [
            ["coordinator", "RUNNING"], ["exporter", "RUNNING"], ["worker", "RUNNING"]
        ], status  # fmt: skip
    finally:
        daemon.terminate()
        daemon.wait()
        shutil.rmtree(folder)
