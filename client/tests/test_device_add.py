"""`wqlab device import` and `wqlab device add` on a lab's host; no server is asked."""

from __future__ import annotations

import csv
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
HEADER = (
    "name,device_type,sockets,l3_per_socket,cores_per_l3,threads_per_core,power,pdu_model,pdu,pdu_outlet,console_host,"
    "console_port,ssh_host\n"
)
BOX = "box-{0},box,1,4,3,2,pdu,apc,pdu-1,{0},console-1,700{0},box-{0}\n"


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


def inventory(host: Path, *rows: str) -> str:
    path = host / "machines.csv"
    path.write_text(HEADER + "".join(rows))
    return str(path)


def test_a_dry_run_prints_what_would_be_written(wqlab: Wqlab, host: Path) -> None:
    file = inventory(host, BOX.format(1), BOX.format(2))
    before = files_of(host)
    result = wqlab("device", "import", file, "--dry-run", *folders(host))
    assert result.code == 0
    assert f"new      {host}/data/device-types/box.yaml" in result.out
    assert "      - name: box-2\n" in result.out
    assert "    BOX_1_PDU_OUTLET=1\n" in result.out
    assert result.out.endswith("2 machines: 4 files would be written\n")
    assert files_of(host) == before


def test_an_inventory_is_written_once(wqlab: Wqlab, host: Path) -> None:
    file = inventory(host, BOX.format(1), BOX.format(2))
    assert wqlab("device", "import", file, *folders(host)).out.endswith("2 machines: 4 files written\n")
    assert (host / "state/labgrid/exporter.yaml.d/box-2.yaml").exists()
    assert wqlab("device", "import", file, *folders(host)).out == "2 machines: every file is up to date\n"


def test_each_mistake_is_printed_and_nothing_written(wqlab: Wqlab, host: Path) -> None:
    file = inventory(host, BOX.format(1), BOX.format(2).replace("7002", "7001"), BOX.format(3).replace("apc", "apx"))
    before = files_of(host)
    result = wqlab("device", "import", file, *folders(host))
    assert result.code == 2
    assert f"{file}:4: pdu_model: 'apx': input should be" in result.err
    inventory(host, BOX.format(1), BOX.format(2).replace("7002", "7001"))
    result = wqlab("device", "import", file, *folders(host))
    assert f"{file}:3: console_host: box-2 has the console of box-1" in result.err
    assert result.err.endswith("1 mistake; nothing was written\n")
    assert files_of(host) == before


def test_a_folder_that_is_no_labs_is_refused(wqlab: Wqlab, host: Path, tmp_path: Path) -> None:
    file = inventory(host, BOX.format(1))
    result = wqlab("device", "import", file, "--data", str(tmp_path), "--state", str(tmp_path))
    assert result.code == 2
    assert "has no folder device-types" in result.err


def test_a_failed_step_is_explained_and_nothing_written(wqlab: Wqlab, host: Path) -> None:
    """The trial is the worker's own, against a port at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    file = inventory(host, BOX.format(1).replace("console-1,7001", f"127.0.0.1,{port}"))
    before = files_of(host)
    result = wqlab("device", "add", "box-1", "--from", file, *folders(host))
    assert result.code == 4, result.err
    lines = result.out.split("\n")
    assert lines[0].startswith(f"failed  console         127.0.0.1:{port} cannot be opened")
    assert lines[1].startswith(f"        fix             No console server listens at 127.0.0.1:{port}")
    assert "skipped reset           needs console" in lines
    assert "box-1 was not added: console; nothing was written" in lines
    assert files_of(host) == before


def test_a_machine_that_cannot_be_added_is_not_switched(wqlab: Wqlab, host: Path) -> None:
    file = inventory(host, BOX.format(1).replace(",box,", ",tiny,"))
    result = wqlab("device", "add", "box-1", "--from", file, *folders(host))
    assert result.code == 2
    assert "device-types/tiny.yaml was written or edited by a person" in result.err
    assert result.out == ""


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


@pytest.fixture
def closed() -> str:
    """Return a TCP port on which nothing listens, so that connecting to the console, the trial's first step, fails."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def test_typed_answers_are_checked_at_once(host: Path, closed: str) -> None:
    """A person at a terminal corrects an answer, and an outlet that only model and number together exclude."""
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
    assert "9" not in (host / "state/new-devices/box-1.csv").read_text().splitlines()[1].split(",")


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
    (kept,) = csv.DictReader((host / "state/new-devices/box-1.csv").open())
    assert (kept["power"], kept["servo_port"], kept["console_device"]) == ("debug_cable", "9997", "ttyMSM0")
