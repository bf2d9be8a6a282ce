"""Faults of BMC, PDU and console of a rehearsal machine: real daemons and labgrid's drivers, and what the lab says."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest
from labgrid import Target, target_factory
from labgrid.driver import NetworkPowerDriver, SerialDriver

from wqlab_contracts.addresses_file import read_device_type
from wqlab_contracts.enums import Arm, ArtifactKind, DeviceStep, ErrorKind
from wqlab_contracts.messages import BootKey, RunEvent
from wqlab_contracts.specs import BootMethod, DeviceType, ExternalPower
from wqlab_rehearsal import addresses, bmc, console_server, faults, links, noise, pdu
from wqlab_rehearsal.machines import XEON
from wqlab_worker.backends import device_access, kexec, power
from wqlab_worker.backends.cancellation import Stop
from wqlab_worker.backends.console_tap import ConsoleTap, Wakeup
from wqlab_worker.backends.diagnose_console import is_garbled
from wqlab_worker.backends.kexec import KexecStrategy, Status
from wqlab_worker.backends.power import CommandPowerDriver, power_errors
from wqlab_worker.measure.device_interface import DeviceFailure

from .conftest import free_port, is_on, until

ROOT = Path(__file__).parents[2]


class Sink:
    """An `EventSink` that counts the console's bytes."""

    def __init__(self) -> None:
        self.size = 0

    def event(self, event: RunEvent) -> None:
        raise AssertionError(f"a golden system has no findings: {event}")

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        assert offset == self.size
        self.size += len(data)

    def artifact(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        raise AssertionError(f"no boot was measured: {name}")


KEY = BootKey(block=0, position=0, arm=Arm.BASELINE, attempt=0)
Run = Callable[[Sequence[str]], subprocess.Popen[bytes]]
FIRMWARE = "BdsDxe: loading Boot0001 from PciRoot(0x0)\r\nWelcome to GRUB!\r\n"
MACHINE = """\
import socket, sys, time
port, lines, every = int(sys.argv[1]), sys.argv[2].encode().decode("unicode_escape").encode(), float(sys.argv[3])
with socket.create_server(("127.0.0.1", port), reuse_port=True) as server:
    connection, _ = server.accept()
    while True:
        connection.sendall(lines)
        time.sleep(every)
"""
"""A machine without SSH, in place of QEMU: its serial port prints the same lines again and again."""


@dataclass
class Equipment:
    """BMC, console server and the lines to them, and the device's drivers as a session makes them."""

    folder: Path
    ports: addresses.Ports
    power: ExternalPower
    run: Run
    programs: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    target: Any = None
    stop: Stop = field(default_factory=Stop)

    def fault(self, *names: str) -> None:
        faults.write(self.folder, names)
        time.sleep(2)  # the programs read the file every 0.2 s

    def strategy(self, boot: BootMethod) -> KexecStrategy:
        """Open the console and return the strategy of a device that answers nowhere by SSH."""
        self.target = target = Target("device")
        target_factory.make_resource(
            target, "NetworkSerialPort", "console", {"host": "127.0.0.1", "port": self.ports.console, "protocol": "raw"}
        )
        target_factory.make_resource(
            target, "NetworkService", "ssh", {"address": "127.0.0.1", "username": "root", "port": self.ports.ssh}
        )
        CommandPowerDriver(target, None, cmd_on=self.power.turn_on, cmd_off=self.power.turn_off)
        console = SerialDriver(target, None)
        target_factory.make_driver(target, "DeviceSSHDriver", None, {"keyfile": "/nowhere"})
        strategy: KexecStrategy = target_factory.make_driver(target, "KexecStrategy", None, {})
        target.activate(console)
        wakeup = Wakeup()
        strategy.device = type("Device", (), {"boot": boot, "name": "xeon", "own_system": None})()
        strategy.wakeup, strategy.cancel = wakeup, self.stop
        strategy.tap = ConsoleTap(console, Sink(), wakeup)
        strategy.tap.start()
        return strategy

    def close(self) -> None:
        if self.target is not None:
            self.target.get_driver("KexecStrategy", activate=False).tap.stop()
            self.target.cleanup()


@pytest.fixture
def equipment(run: Run, power_on: Path, tmp_path: Path) -> Iterator[Equipment]:
    ports = addresses.Ports(*(free_port() for _ in fields(addresses.Ports)))
    addresses.password_file(tmp_path).write_text(bmc.PASSWORD)
    known = addresses.values(XEON, ports, "local", tmp_path)
    file = ROOT / "docs/hardware/device-types" / f"{XEON.device_type}.yaml"
    power = DeviceType.model_validate(read_device_type(file, file.name, known).plain()).units[0].power
    assert power is not None
    made = Equipment(tmp_path, ports, power, run)
    wires = bmc.BmcPorts(ports.power_behind, ports.kcs, ports.serial)
    made.programs["bmc"] = run(bmc.write(tmp_path / "bmc", XEON.device, wires, power_on))
    connector = console_server.serial_over_lan(ports.power)
    made.programs["console"] = run(
        console_server.write(tmp_path / "ser2net", ports.console_behind, console_server.RAW, connector)
    )
    configuration = links.Configuration(
        faults=faults.file_of(tmp_path),
        power=links.Line(listen=ports.power, to=ports.power_behind),
        console=links.Line(listen=ports.console, to=ports.console_behind),
        monitor=tmp_path / "monitor",
    )
    (tmp_path / "links.json").write_text(configuration.model_dump_json())
    run([sys.executable, "-m", "wqlab_rehearsal.links", str(tmp_path / "links.json")])
    until(lambda: _listens(ports.console))
    yield made
    made.close()


def _listens(port: int) -> bool:
    return f":{port:04X} 00000000:0000 0A" in Path("/proc/net/tcp").read_text()


def machine_prints(equipment: Equipment, power_on: Path, lines: str, every_s: float = 0.3) -> None:
    """Let the machine print these lines while it is on."""
    program = equipment.folder / "machine.py"
    program.write_text(MACHINE)
    words = f"exec {sys.executable} {program} {equipment.ports.serial} '{lines}' {every_s}"
    power_on.write_text(f"#!/bin/sh\necho $$ > {equipment.folder}/machine.pid\n{words}\n")


def golden_failure(strategy: KexecStrategy) -> DeviceFailure:
    """Return why the golden system does not come up."""
    with pytest.raises(DeviceFailure) as caught:
        strategy.transition(Status.golden, key=KEY)
    caught.value.stage = caught.value.stage or strategy.stage
    assert caught.value.failure.kind is ErrorKind.INFRASTRUCTURE
    return caught.value


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_access, "QUIET_S", 1.0)
    monkeypatch.setattr(device_access, "CONSOLE_ACTIVE_S", 0.0)
    monkeypatch.setattr(kexec, "SETTLE_S", 1.0)


SHORT = BootMethod(power_off_s=2, golden_timeout_s=10)


# --- power ----------------------------------------------------------------------------------------------------------


@pytest.mark.integration
def test_a_bmc_that_answers_late_is_named(equipment: Equipment, monkeypatch: pytest.MonkeyPatch) -> None:
    """ipmitool asks again and again; the lab waits for it no longer than its limit."""
    monkeypatch.setattr(power, "POWER_TIMEOUT_S", 6.0)
    equipment.fault("bmc-late")
    failure = golden_failure(equipment.strategy(SHORT))
    assert failure.failure.summary == (
        "the power could not be switched off, because the power controller did not answer in 6 s"
    )
    assert "a BMC, PDU or console server that is busy or restarts answers later" in failure.failure.advice
    assert failure.stage is DeviceStep.POWER and failure.unreachable, "the check is repeated by itself"


@pytest.mark.integration
def test_a_console_whose_session_ended_is_opened_again(equipment: Equipment, power_on: Path) -> None:
    machine_prints(equipment, power_on, FIRMWARE)
    strategy = equipment.strategy(SHORT)
    equipment.fault("console-closed")
    until(lambda: strategy.tap.read_error is not None)
    assert "the connection to the console broke" in (strategy.tap.read_error or "")
    equipment.fault()
    failure = golden_failure(strategy)
    assert strategy.tap.read_error is None
    assert "bytes came on the console" in failure.failure.summary, "the console is read again"


@pytest.mark.integration
def test_power_that_is_acknowledged_and_not_switched_is_named(equipment: Equipment, power_on: Path) -> None:
    """The BMC accepts `off` and `on`; the machine goes on printing."""
    machine_prints(equipment, power_on, "task kworker is blocked\\r\\n")
    strategy = equipment.strategy(SHORT)
    strategy.target.activate(strategy.power)
    strategy.power.on()
    until(lambda: is_on(equipment.folder) and strategy.tap.bytes_while_off > 0)
    equipment.fault("bmc-ignores")
    failure = golden_failure(strategy)
    assert "bytes before, when the power was off" in failure.failure.summary
    assert "accepted the command, and the device did not go off" in failure.failure.advice
    assert failure.stage is DeviceStep.POWER and failure.suspect


@pytest.mark.integration
def test_a_pdu_that_does_not_answer_is_not_the_device(run: Run, power_on: Path, tmp_path: Path) -> None:
    port = free_port()
    process = run(pdu.write(tmp_path / "pdu", port, power_on))
    target = Target("device")
    arguments = {"model": "apc", "host": f"127.0.0.1:{port}", "index": str(pdu.OUTLET)}
    target_factory.make_resource(target, "NetworkPowerPort", "power", arguments)
    driver = NetworkPowerDriver(target, None)
    target.activate(driver)
    process.terminate()
    process.wait()
    with pytest.raises(DeviceFailure) as caught, power_errors("on"):
        driver.on()
    assert caught.value.unreachable
    assert caught.value.failure.summary.startswith(
        "the power could not be switched on, because the power controller did not answer: failed to set SNMP value: "
        "Timeout: No Response from"
    )


# --- console --------------------------------------------------------------------------------------------------------


@pytest.mark.integration
@pytest.mark.parametrize("fault", [pytest.param("console-speed", marks=pytest.mark.nightly), "console-garbled"])
def test_a_console_that_is_no_text_is_named(equipment: Equipment, power_on: Path, fault: str) -> None:
    machine_prints(equipment, power_on, FIRMWARE)
    equipment.fault(fault)
    failure = golden_failure(equipment.strategy(SHORT))
    assert "what came is not text" in failure.failure.summary
    assert failure.failure.advice.startswith("Check the speed of the console")


@pytest.mark.nightly
@pytest.mark.integration
def test_a_mute_console_is_named(equipment: Equipment, power_on: Path) -> None:
    machine_prints(equipment, power_on, FIRMWARE)
    equipment.fault("console-mute")
    failure = golden_failure(equipment.strategy(SHORT))
    assert "the console stayed silent" in failure.failure.summary
    assert "its console is mute" in failure.failure.advice
    assert failure.stage is DeviceStep.CONSOLE


@pytest.mark.integration
def test_a_console_server_that_refuses_is_named(equipment: Equipment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kexec, "REOPEN_S", 2.0)
    equipment.fault("console-closed")
    strategy = equipment.strategy(SHORT)
    until(lambda: strategy.tap.read_error is not None)
    failure = golden_failure(strategy)
    assert "the connection to the console broke" in failure.failure.summary
    assert "opens it again for the next boot" in failure.failure.advice
    assert failure.stage is DeviceStep.CONSOLE


TEXT = FIRMWARE * 20


def test_a_receiver_at_half_speed_reads_no_text() -> None:
    assert is_garbled(noise.read_at_half_speed(TEXT.encode()))
    assert not is_garbled(TEXT.encode())


def test_a_fault_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(faults.FaultError, match="no fault bmc-lazy; there are: bmc-late"):
        faults.write(tmp_path, ["bmc-lazy"])


def test_a_flooded_line_loses_bytes() -> None:
    assert len(noise.Damage().apply(b"x" * 10000, frozenset({"console-drops"}))) == noise.FLOOD_BYTES_S // 10
