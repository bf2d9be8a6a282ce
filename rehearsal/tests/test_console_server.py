"""The console server of a rehearsal machine, read by labgrid's serial driver."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from labgrid import Target
from labgrid.driver import SerialDriver
from labgrid.resource import NetworkSerialPort

from wqlab_rehearsal import console_server

from .conftest import free_port, until


@pytest.mark.integration
@pytest.mark.parametrize(
    ("accepter", "protocol"), [(console_server.RAW, "raw"), (console_server.RFC2217, "rfc2217")], ids=["raw", "rfc2217"]
)
def test_labgrid_reads_and_writes_the_machines_uart(
    run: Callable[[Sequence[str]], subprocess.Popen[bytes]], tmp_path: Path, accepter: str, protocol: str
) -> None:
    line, uart, port = tmp_path / "console", tmp_path / "uart", free_port()
    run([sys.executable, "-m", "wqlab_rehearsal.serial_line", str(line), str(uart)])
    until(uart.exists)
    run(console_server.write(tmp_path / "ser2net", port, accepter, console_server.serial_port(line)))
    until(lambda: _listens(port))
    target = Target("board-1")
    NetworkSerialPort(target, None, host="127.0.0.1", port=port, speed=115200, protocol=protocol)
    console = SerialDriver(target, None)
    target.activate(console)
    try:
        with socket.socket(socket.AF_UNIX) as machine:
            machine.connect(str(uart))
            # 0xff begins a command of telnet, and must arrive as a byte.
            machine.sendall(b"wqlab-ready \xff\r\n")
            seen = b""
            while not seen.endswith(b"\n"):
                seen += console._read(size=1, timeout=None)
            assert seen == b"wqlab-ready \xff\r\n"
            console._write(b"reboot \xff\r")
            written = b""
            while not written.endswith(b"\r"):
                written += machine.recv(100)
            assert written == b"reboot \xff\r"
    finally:
        target.deactivate(console)


def _listens(port: int) -> bool:
    """Return True if a program listens. A connection would take the line, which ser2net gives to one client only."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(local.endswith(f":{port:04X}") and state == "0A" for _, local, _, state, *_ in rows)
