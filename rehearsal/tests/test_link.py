"""The link of a rehearsal machine's card, with a program in place of QEMU that speaks its control protocol."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from wqlab_rehearsal import link

from .conftest import until

NEGOTIATION_S = 3.0


class Machine:
    """A machine that is on: it logs resets to the FIFO and obeys the control protocol."""

    def __init__(self, folder: Path) -> None:
        self._resets = link.resets(folder).open("w")
        self._socket = socket.socket(socket.AF_UNIX)
        while self._socket.connect_ex(str(link.control(folder))):
            time.sleep(0.05)  # the program tells no one when it listens
        self._socket.sendall(b'{"QMP": {"version": {}, "capabilities": []}}\n')
        self._commands = self._socket.makefile("rb")
        assert self.told() == {"execute": "qmp_capabilities"}

    def reset_card(self) -> None:
        self._resets.write(f"7@1700000000.000000:{link.RESET} Doing SW reset\n")
        self._resets.flush()

    def told(self) -> dict[str, Any]:
        """Wait for the next command and accept it."""
        command: dict[str, Any] = json.loads(self._commands.readline())
        self._socket.sendall(b'{"return": {}}\n')
        return command

    def cut(self) -> None:
        self._commands.close()
        self._socket.close()
        self._resets.close()


@pytest.fixture
def folder(run: Callable[[Sequence[str]], subprocess.Popen[bytes]], tmp_path: Path) -> Iterator[Path]:
    run([sys.executable, "-m", "wqlab_rehearsal.link", str(tmp_path), str(NEGOTIATION_S)])
    until(link.control(tmp_path).exists)
    yield tmp_path


def set_link(*, up: bool) -> dict[str, Any]:
    return {"execute": "set_link", "arguments": {"name": link.CARD, "up": up}}


@pytest.mark.integration
def test_the_link_comes_back_some_time_after_the_last_reset(folder: Path) -> None:
    machine = Machine(folder)
    machine.reset_card()
    assert machine.told() == set_link(up=False)
    time.sleep(NEGOTIATION_S / 3)
    machine.reset_card()
    again = time.monotonic()
    assert machine.told() == set_link(up=True)
    assert time.monotonic() - again > NEGOTIATION_S * 0.9
    machine.cut()


@pytest.mark.integration
def test_a_machine_that_is_switched_on_again_has_its_link_set(folder: Path) -> None:
    first = Machine(folder)
    first.reset_card()
    assert first.told() == set_link(up=False)
    first.cut()
    second = Machine(folder)
    time.sleep(NEGOTIATION_S)
    second.reset_card()
    assert second.told() == set_link(up=False), "nothing was left of the first machine's negotiation"
    assert second.told() == set_link(up=True)
    second.cut()


@pytest.mark.device
@pytest.mark.nightly
def test_qemu_reports_resets_and_sets_the_link(folder: Path, tmp_path: Path) -> None:
    """The network ROM of the card resets it. A machine that prints what the program said, for comparison, is above."""
    command = [
        "qemu-system-x86_64", "-nodefaults", "-display", "none", "-machine", "q35", "-accel", "tcg", "-m", "64",
        "-netdev", f"user,id={link.CARD},restrict=on", "-device", f"e1000e,netdev={link.CARD},bootindex=0",
        *link.qemu_arguments(folder),
    ]  # fmt: skip
    log = next(tmp_path.glob("python*.log"))
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as qemu:
        try:
            until(lambda: "the link is down" in log.read_text())
            until(lambda: "the link is up" in log.read_text())
        finally:
            qemu.kill()
    assert "refuses" not in log.read_text()
