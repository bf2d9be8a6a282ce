"""Settings of a lab with rehearsal machines; tests/scenarios/test_rehearsal.py starts one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from wqlab_lab.errors import LabError
from wqlab_lab.paths import ADMIN, LabPaths
from wqlab_lab.rehearse import architectures, await_devices, rehearsal_lab
from wqlab_lab.services import services


def test_the_lab_has_its_own_state_and_data(paths: LabPaths) -> None:
    own = rehearsal_lab(paths, print).paths
    assert own.state.parent == paths.state.parent
    assert own.state != paths.state
    assert own.data.is_relative_to(own.state), "`down` removes the data folder with the state"


def test_daemons_of_machines_start_before_the_server(paths: LabPaths) -> None:
    assert services(paths, 1)[0].name == "api"
    paths.rehearsal.mkdir()
    program = {"name": "xeon-bmc", "command": ["ipmi_sim", "-n"], "summary": "BMC"}
    paths.rehearsal_programs.write_text(json.dumps({"devices": ["xeon-8380-1"], "programs": [program]}))
    first, second, *_ = services(paths, 1)
    assert (first.name, first.command, second.name) == ("xeon-bmc", ["ipmi_sim", "-n"], "api")


def test_daemons_of_machines_have_no_secrets(served: LabPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WQLAB_SMTP_USER", "mailer")
    served.rehearsal.mkdir()
    program = {"name": "xeon-bmc", "command": ["ipmi_sim", "-n"], "summary": "BMC"}
    served.rehearsal_programs.write_text(json.dumps({"devices": ["xeon-8380-1"], "programs": [program]}))
    daemon = services(served, 1)[0]
    assert not daemon.environment.keys() & {"WQLAB_WORKER_TOKEN", "WQLAB_BROKER_URL", "WQLAB_SMTP_USER"}
    secrets = (served.token("worker"), served.broker_password())
    assert not [value for value in daemon.environment.values() if any(secret in value for secret in secrets)]
    assert daemon.environment["WQLAB_STATE"] == str(served.state), "`stop` finds its processes"


def test_the_exporter_has_the_addresses_of_hardware(paths: LabPaths, tmp_path: Path) -> None:
    paths = replace(paths, data=tmp_path / "data")

    def environment() -> dict[str, str]:
        exporter = next(service for service in services(paths, 1) if service.name == "exporter")
        return dict(exporter.environment)

    before = environment()
    paths.addresses.parent.mkdir(parents=True)
    paths.addresses.write_text("# rack 1\nBOARD_BMC=192.0.2.4\nBOARD_NAME='two words'\nBOARD_LIST=\n")
    assert environment() == before | {"BOARD_BMC": "192.0.2.4", "BOARD_NAME": "two words", "BOARD_LIST": ""}


def test_mistakes_in_addresses_are_named_with_file_and_line(paths: LabPaths, tmp_path: Path) -> None:
    paths = replace(paths, data=tmp_path / "data")
    paths.addresses.parent.mkdir(parents=True)
    paths.addresses.write_text("# rack 1\nBOARD_NAME='two\nBOARD_BMC=$(id)\n")
    with pytest.raises(LabError) as raised:
        services(paths, 1)
    places = [line.split(": ")[0] for line in str(raised.value).splitlines()]
    assert places == ["device-types/addresses.env:2", "device-types/addresses.env:3"]


def test_commands_that_stand_in_come_first(paths: LabPaths) -> None:
    """`dut-control` of a rehearsal, but only in the rehearsal's own lab."""
    before = paths.daemon_environment()["PATH"]
    (paths.rehearsal / "bin").mkdir(parents=True)
    assert paths.daemon_environment()["PATH"] == f"{paths.rehearsal}/bin:{before}"
    assert paths.worker_environment()["PATH"] == f"{paths.rehearsal}/bin:{before}"


def test_a_chromebook_needs_a_second_golden_system() -> None:
    assert architectures(["xeon", "ryzen"]) == ["x86_64"]
    assert architectures(["xeon", "chromebook"]) == ["x86_64", "arm64"]


@contextmanager
def server_that_knows(paths: LabPaths, *, after: int) -> Iterator[list[str]]:
    """Serve devices that are unknown for the first requests; yield the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200 if len(asked) > after else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        (paths.run / "api.port").write_text(str(server.server_port))
        (paths.keys / f"{ADMIN}.token").write_text("wql_x")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield asked
        server.shutdown()


def machines(paths: LabPaths, *names: str) -> None:
    paths.rehearsal.mkdir()
    paths.rehearsal_programs.write_text(json.dumps({"devices": names, "programs": []}))


def test_the_start_ends_when_the_server_knows_the_machines(paths: LabPaths) -> None:
    machines(paths, "xeon-8380-1")
    with server_that_knows(paths, after=2) as asked:
        await_devices(paths)
    assert asked == ["/api/v1/devices/xeon-8380-1"] * 3


def test_a_machine_that_is_never_announced_is_named(paths: LabPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wqlab_lab.rehearse.KNOWN_TIMEOUT_S", 0.1)
    machines(paths, "xeon-8380-1")
    with server_that_knows(paths, after=100), pytest.raises(LabError, match="did not announce xeon-8380-1"):
        await_devices(paths)
