"""The BMC of a rehearsal machine, switched by the commands of its device type in docs/hardware."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from wqlab_contracts.addresses_file import read_device_type
from wqlab_contracts.specs import DeviceType, ExternalPower
from wqlab_rehearsal import addresses, bmc, faults
from wqlab_rehearsal.machines import XEON
from wqlab_worker.backends.power import power_errors, run_power_command
from wqlab_worker.measure.device_interface import DeviceFailure

from .conftest import free_port, is_on, until

ROOT = Path(__file__).parents[2]


Run = Callable[[Sequence[str]], subprocess.Popen[bytes]]


@pytest.fixture
def power(run: Run, power_on: Path, tmp_path: Path) -> ExternalPower:
    """Start the Xeon's BMC; return the commands of its device type."""
    ports = addresses.Ports(*(free_port() for _ in fields(addresses.Ports)))
    addresses.password_file(tmp_path).write_text(bmc.PASSWORD)
    known = addresses.values(XEON, ports, "local", tmp_path)
    file = ROOT / "docs/hardware/device-types" / f"{XEON.device_type}.yaml"
    power = DeviceType.model_validate(read_device_type(file, file.name, known).plain()).units[0].power
    assert power is not None
    run(bmc.write(tmp_path / "bmc", XEON.device, bmc.BmcPorts(ports.power, ports.kcs, ports.serial), power_on))
    return power


@pytest.mark.integration
def test_the_commands_of_the_device_type_switch_the_machine(power: ExternalPower, tmp_path: Path) -> None:
    run_power_command(power.turn_off)  # off already, which many BMCs refuse
    run_power_command(power.turn_on)
    until(lambda: is_on(tmp_path))
    run_power_command(power.turn_on)  # on already
    assert is_on(tmp_path)
    run_power_command(power.turn_off)
    until(lambda: not is_on(tmp_path))


@pytest.mark.integration
def test_a_bmc_that_refuses_to_switch_off_what_is_off(power: ExternalPower, tmp_path: Path) -> None:
    """The device type asks for the status first, and a command that does not is told to."""
    faults.write(tmp_path, ["bmc-refuses-off"])
    without_asking = power.turn_on.removesuffix(" on") + " off"
    with pytest.raises(DeviceFailure) as caught, power_errors("off"):
        run_power_command(without_asking)
    assert caught.value.failure.summary.startswith(
        "the power could not be switched off: the command ended with status 1 and said: Set Chassis Power Control to "
        "Down/Off failed: "
    )
    assert "ask for `chassis power status` first" in caught.value.failure.advice
    run_power_command(power.turn_off)
    run_power_command(power.turn_on)
    until(lambda: is_on(tmp_path))
    run_power_command(without_asking)
    until(lambda: not is_on(tmp_path))


@pytest.mark.integration
def test_a_bmc_acknowledges_and_does_nothing(power: ExternalPower, tmp_path: Path) -> None:
    faults.write(tmp_path, ["bmc-ignores"])
    run_power_command(power.turn_on)
    assert not is_on(tmp_path)
    faults.write(tmp_path, [])
    run_power_command(power.turn_on)
    until(lambda: is_on(tmp_path))
    faults.write(tmp_path, ["bmc-ignores"])
    run_power_command(power.turn_off)
    assert is_on(tmp_path)


@pytest.mark.integration
def test_a_machine_is_reset_and_dies_with_its_bmc(run: Run, power_on: Path, tmp_path: Path) -> None:
    port = free_port()
    process = run(bmc.write(tmp_path / "bmc", XEON.device, bmc.BmcPorts(port, free_port(), free_port()), power_on))
    switch = f"ipmitool -I lanplus -H 127.0.0.1 -p {port} -C 3 -U lab -P {bmc.PASSWORD} chassis power"
    run_power_command(f"{switch} on")
    until(lambda: is_on(tmp_path))
    first = (tmp_path / "machine.pid").read_text()
    run_power_command(f"{switch} reset")
    until(lambda: (tmp_path / "machine.pid").read_text() not in {first, ""})
    assert is_on(tmp_path)
    process.terminate()
    process.wait()
    assert not is_on(tmp_path)


@pytest.mark.integration
def test_a_wrong_password_is_refused(run: Run, power_on: Path, tmp_path: Path) -> None:
    port = free_port()
    run(bmc.write(tmp_path / "bmc", XEON.device, bmc.BmcPorts(port, free_port(), free_port()), power_on))
    command = f"ipmitool -I lanplus -H 127.0.0.1 -p {port} -C 3 -U lab -P wrong chassis power on"
    with pytest.raises(subprocess.CalledProcessError) as refused:
        run_power_command(command)
    assert b"Unable to establish IPMI v2 / RMCP+ session" in refused.value.output
    assert not is_on(tmp_path)
