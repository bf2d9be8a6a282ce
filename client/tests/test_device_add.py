"""`wqlab device add` on a lab's host; no server is asked."""

from __future__ import annotations

import json
import os
import pty
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from commandline import Wqlab

ROOT = Path(__file__).parents[2]
BOX = {
    "device_type": "box",
    "power": "pdu",
    "pdu_model": "apc",
    "pdu": "pdu-1",
    "pdu_outlet": "1",
    "console_host": "127.0.0.1",
    "ssh_host": "box-1",
}


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A lab's host: a data folder, and a state folder with the lab's key."""
    data = tmp_path / "data"
    data.mkdir()
    for name in ("kernels", "testplans", "intake"):
        (data / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "device-types", data / "device-types")
    keys = tmp_path / "state" / "keys"
    keys.mkdir(parents=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / "lab_ed25519"], check=True)
    return tmp_path


def folders(host: Path) -> tuple[str, ...]:
    return ("--data", str(host / "data"), "--state", str(host / "state"))


def files_of(host: Path) -> list[Path]:
    return sorted(path for path in host.rglob("*") if path.is_file() and not path.is_relative_to(host / "state/keys"))


@pytest.fixture
def closed() -> str:
    """Return a TCP port on which nothing listens, so that connecting to the console, the trial's first step, fails."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def add_again(host: Path, answers: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `wqlab device add box-1` with kept answers, and confirm each with Enter."""
    kept = host / "state/new-devices/box-1.json"
    kept.parent.mkdir()
    kept.write_text(json.dumps({"name": "box-1"} | answers))
    command = [Path(sys.executable).with_name("wqlab"), "device", "add", "box-1", *folders(host)]
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "200"}
    return subprocess.run(command, input="\n" * 40, capture_output=True, text=True, check=False, env=environment)


def test_a_folder_that_is_no_labs_is_refused(wqlab: Wqlab, tmp_path: Path) -> None:
    result = wqlab("device", "add", "--data", str(tmp_path), "--state", str(tmp_path))
    assert result.code == 2
    assert "has no folder device-types" in result.err


def test_a_failed_step_is_explained_and_nothing_written(host: Path, closed: str) -> None:
    """The trial is the worker's own, against a port at which nothing listens."""
    before = files_of(host)
    result = add_again(host, BOX | {"console_port": closed})
    assert result.returncode == 4, result.stderr
    lines = result.stdout.split("\n")
    (failed,) = [number for number, line in enumerate(lines) if "failed  console" in line]
    assert f"failed  console         127.0.0.1:{closed} cannot be opened" in lines[failed]
    assert lines[failed + 1].startswith(f"        fix             No console server listens at 127.0.0.1:{closed}")
    assert "skipped reset           needs console" in lines
    assert "box-1 was not added: console; nothing was written" in lines
    assert files_of(host) == [*before, host / "state/new-devices/box-1.json"]


def test_a_machine_that_cannot_be_added_is_not_switched(host: Path, closed: str) -> None:
    result = add_again(host, BOX | {"console_port": closed, "device_type": "tiny"})
    assert result.returncode == 2
    assert "device-types/tiny.yaml was written or edited by a person" in result.stderr
    assert "console server listens" not in result.stdout + result.stderr


def test_kept_answers_that_cannot_be_read_are_named(wqlab: Wqlab, host: Path) -> None:
    kept = host / "state/new-devices/box-1.json"
    kept.parent.mkdir()
    kept.write_text("[]")
    result = wqlab("device", "add", "box-1", *folders(host))
    assert result.code == 2
    assert f"{kept} cannot be read" in result.err


class Wizard:
    """`wqlab device add` at a pseudo terminal; `answer` waits for its question."""

    def __init__(self, host: Path, *arguments: str) -> None:
        command = [str(Path(sys.executable).with_name("wqlab")), "device", "add", *arguments, *folders(host)]
        self._terminal, theirs = pty.openpty()
        environment = os.environ | {"TERM": "dumb", "COLUMNS": "200", "NO_COLOR": "1"}
        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
        os.close(theirs)
        self.said = ""
        self._seen = 0

    def answer(self, question: str, text: str) -> None:
        while (at := self.said.find(question, self._seen)) < 0 or not self.said.endswith(": "):
            assert self._read(), f"the command ended before it asked {question!r}: {self.said}"
        self._seen = at + len(question)
        os.write(self._terminal, f"{text}\n".encode())
        while not self.said[self._seen :].count("\n"):  # the echo of the answer
            assert self._read()

    def end(self) -> int:
        while self._read():
            pass
        os.close(self._terminal)
        return self.process.wait()

    def _read(self) -> bool:
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # Linux: the other end of the terminal is closed
            return False
        self.said += data.decode(errors="replace").replace("\r", "")
        return bool(data)


def test_typed_answers_are_checked_at_once(host: Path, closed: str) -> None:
    """A person corrects an answer, and the number of an outlet that the chosen model of PDU does not have."""
    wizard = Wizard(host, "box-1", "--only-try")
    typed = [
        ("Device type", "new-type"), ("Lab", ""), ("Architecture", ""), ("Power", "usb"), ("Power", "pdu"),
        ("Model", ""), ("PDU's address", "pdu-1"), ("PDU's port", ""), ("Outlet", "9"), ("netconsole", ""),
        ("console server", "127.0.0.1"), ("TCP port", "x"), ("TCP port", closed), ("protocol", "telnet"),
        ("protocol", "raw"), ("Console in", ""), ("speed", ""),
        ("golden system", "127.0.0.1"), ("SSH port", ""),
        ("own starts by default", ""), ("Longest", ""), ("Disks", ""),
        ("Power", ""), ("Model", ""), ("PDU's address", ""), ("PDU's port", ""), ("Outlet", "3"),
        ("try again", "n"),
    ]  # fmt: skip
    for question, text in typed:
        wizard.answer(question, text)
    assert wizard.end() == 4
    assert "power: 'usb' is not known: write ipmi, redfish, pdu or debug_cable" in wizard.said
    assert "console_port: 'x'" in wizard.said and "console_protocol: 'telnet'" in wizard.said
    assert "labgrid's driver apc switches outlets 1 to 8" in wizard.said
    assert f"127.0.0.1:{closed} cannot be opened" in wizard.said
    assert "box-1 was not added: console; nothing was written" in wizard.said
    assert json.loads((host / "state/new-devices/box-1.json").read_text())["pdu_outlet"] == "3"


def test_a_machine_with_redfish_and_netconsole_is_asked_about_no_serial_port(host: Path, closed: str) -> None:
    wizard = Wizard(host, "box-1", "--only-try")
    typed = [
        ("Device type", "new-type"), ("Lab", ""), ("Architecture", ""), ("Power", "redfish"),
        ("BMC's address", "bmc-1"), ("HTTPS port", ""), ("user", ""), ("password", ""),
        ("certificate", "/etc/wqlab/bmc.pem"), ("System", ""), ("netconsole", "+6665@192.0.2.11/eth0"),
        ("netconsole", "+6665@192.0.2.11/eth0,6666@192.0.2.1/"), ("wqlab-netconsole", "127.0.0.1"),
        ("TCP port", closed), ("golden system", "192.0.2.11"), ("SSH port", ""),
        ("own starts by default", ""), ("Longest", "900"), ("Disks", ""),
        ("try again", "y"), ("Device type", ""), ("Lab", ""), ("Architecture", ""), ("Power", "debug_cable"),
        ("servod", "9997"), ("netconsole", "-"), ("console server", ""), ("TCP port", ""), ("protocol", ""),
        ("Console in", "ttyMSM0"), ("speed", ""), ("golden system", ""), ("SSH port", ""),
        ("own starts by default", ""), ("Longest", ""),
        ("Disks", ""), ("try again", "n"),
    ]  # fmt: skip
    for question, text in typed:
        wizard.answer(question, text)
    assert wizard.end() == 4
    first, second = wizard.said.split("try again", 1)
    assert "Console in the kernel" not in first
    assert f"wqlab-netconsole does not listen at 127.0.0.1:{closed}" in first
    assert f"No console server listens at 127.0.0.1:{closed}" in second
    kept = json.loads((host / "state/new-devices/box-1.json").read_text())
    assert (kept["power"], kept["servo_port"], kept["console_device"]) == ("debug_cable", "9997", "ttyMSM0")
