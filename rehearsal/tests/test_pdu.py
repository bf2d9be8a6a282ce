"""The PDU of a rehearsal machine, switched by labgrid's driver for APC's."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from labgrid.driver.power import apc

from wqlab_rehearsal import faults, pdu
from wqlab_rehearsal.machine_power import MachinePower

from .conftest import free_port, is_on, until


@pytest.fixture
def host(run: Callable[[Sequence[str]], subprocess.Popen[bytes]], power_on: Path, tmp_path: Path) -> str:
    """Start a PDU whose outlet runs `power_on`; return its address for labgrid's driver."""
    port = free_port()
    run(pdu.write(tmp_path / "pdu", port, power_on))
    found = f"127.0.0.1:{port}"
    until(lambda: _answers(found))
    return found


@pytest.mark.integration
def test_labgrids_driver_switches_the_machine(host: str, tmp_path: Path) -> None:
    assert not apc.power_get(host, None, pdu.OUTLET)
    apc.power_set(host, None, pdu.OUTLET, True)
    assert apc.power_get(host, None, pdu.OUTLET)
    until(lambda: is_on(tmp_path))
    assert not apc.power_get(host, None, pdu.OUTLET + 1), "another outlet stays off"
    apc.power_set(host, None, pdu.OUTLET + 1, True)
    apc.power_set(host, None, pdu.OUTLET, False)
    until(lambda: not is_on(tmp_path))
    assert apc.power_get(host, None, pdu.OUTLET + 1)


@pytest.mark.integration
def test_a_pdu_whose_relay_does_not_move_shows_the_new_state(host: str, tmp_path: Path) -> None:
    apc.power_set(host, None, pdu.OUTLET, True)
    until(lambda: is_on(tmp_path))
    faults.write(tmp_path, ["pdu-ignores"])
    apc.power_set(host, None, pdu.OUTLET, False)
    assert not apc.power_get(host, None, pdu.OUTLET), "labgrid's driver has nothing to complain of"
    assert is_on(tmp_path)
    faults.write(tmp_path, [])
    apc.power_set(host, None, pdu.OUTLET, False)
    until(lambda: not is_on(tmp_path))


def _answers(host: str) -> bool:
    try:
        apc.power_get(host, None, pdu.OUTLET)
    except subprocess.CalledProcessError:
        return False
    return True


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("PING\n", "PONG\n"),
        (f"get\n{pdu.OUTLETS}.3\n", f"{pdu.OUTLETS}.3\ninteger\n2\n"),
        (f"getnext\n{pdu.OUTLETS}\n", f"{pdu.OUTLETS}.1\ninteger\n2\n"),
        (f"getnext\n{pdu.OUTLETS}.8\n", "NONE\n"),
        (f"get\n{pdu.OUTLETS}.9\n", "NONE\n"),
        (f"set\n{pdu.OUTLETS}.9\ninteger 1\n", "not-writable\n"),
        (f"set\n{pdu.OUTLETS}.4\ninteger 7\n", "wrong-value\n"),
    ],
)
def test_snmpd_is_answered(
    said: str, answer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(said))
    pdu.converse(pdu.Outlets(MachinePower(tmp_path / "power-on"), faults.file_of(tmp_path)))
    assert capsys.readouterr().out == answer
