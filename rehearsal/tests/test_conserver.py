"""A BMC's serial over LAN, held by conserver and read by labgrid's serial driver."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from labgrid import Target
from labgrid.driver import SerialDriver
from labgrid.resource import NetworkSerialPort
from pexpect import TIMEOUT

from wqlab_rehearsal import bmc, conserver

from .conftest import free_port, until


@pytest.mark.integration
def test_labgrid_reads_a_console_that_conserver_holds(
    run: Callable[[Sequence[str]], subprocess.Popen[bytes]], power_on: Path, tmp_path: Path
) -> None:
    uart = socket.create_server(("127.0.0.1", 0))
    ports = bmc.BmcPorts(free_port(), free_port(), uart.getsockname()[1])
    run(bmc.write(tmp_path / "bmc", "board-1", ports, power_on))
    machine, _ = uart.accept()

    password = tmp_path / "password"
    password.write_text(bmc.PASSWORD)
    main, port, folder = free_port(), free_port(), tmp_path / "conserver"
    run(conserver.write(folder, "board-1", (main, free_port()), conserver.serial_over_lan(ports.ipmi, password)))
    log = folder / "board-1.log"
    until(lambda: log.exists() and "SOL Session operational" in log.read_text())
    until(lambda: _listens(main))
    run(conserver.offer("board-1", port, main))
    until(lambda: _listens(port))

    target = Target("board-1")
    NetworkSerialPort(target, None, host="127.0.0.1", port=port, speed=115200, protocol="raw")
    console = SerialDriver(target, None)
    target.activate(console)
    try:
        seen, line = b"", b"wqlab-ready token=- boot_id=1\r\n"
        while line not in seen:  # what was printed before `console` was attached is in conserver's log only
            machine.sendall(line)
            with suppress(TIMEOUT):
                while line not in seen:
                    seen += console._read(size=1, timeout=1.0)
        console._write(b"uptime\r")
        written = b""
        while not written.endswith(b"\r"):
            written += machine.recv(100)
        assert written.endswith(b"uptime\r")
        until(lambda: "boot_id=1" in log.read_text())
    finally:
        target.deactivate(console)
        machine.close()
        uart.close()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
