"""Power commands, run by the real driver; time limits and errors."""

from __future__ import annotations

import os
import shlex
import signal
import socket
from pathlib import Path

import pytest
import requests
import serial  # type: ignore[import-untyped]
from labgrid import Target

from wqlab_contracts.addresses_file import read_device_type
from wqlab_contracts.enums import DeviceStep
from wqlab_contracts.specs import DeviceType
from wqlab_worker.backends.power import CommandPowerDriver, is_unreachable, power_errors, time_limit
from wqlab_worker.measure.device_interface import DeviceFailure

from .conftest import ROOT


def driver(turn_off: str, turn_on: str = "true") -> CommandPowerDriver:
    target = Target("device")
    made = CommandPowerDriver(target, None, cmd_on=turn_on, cmd_off=turn_off)
    target.activate(made)
    return made


def test_commands_are_split_as_a_shell_would(tmp_path: Path) -> None:
    power = driver(shlex.join(["rm", str(tmp_path / "is on")]), shlex.join(["touch", str(tmp_path / "is on")]))
    power.on()
    assert (tmp_path / "is on").exists()
    power.off()
    assert not (tmp_path / "is on").exists()


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (
            "sh -c 'echo Unable to establish; echo \"IPMI v2 session\" >&2; exit 3'",
            "Unable to establish IPMI v2 session",
        ),
        ("sh -c 'exit 3'", "nothing"),
        ("sh -c 'seq 100000; exit 3'", "99999 100000"),
        ("no-such-tool -P secret", "No such file or directory"),
    ],
)
def test_output_of_a_failed_power_command_is_quoted(command: str, says: str) -> None:
    with pytest.raises(DeviceFailure) as caught, power_errors("off"):
        driver(command).off()
    summary = caught.value.failure.summary
    assert summary.startswith("the power could not be switched off")
    assert ": the command ended with status" in summary
    assert summary.endswith(says)
    assert len(summary) < 500
    assert "secret" not in summary
    assert caught.value.suspect


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_power_controller_that_does_not_answer_says_nothing_about_the_device(closed_port: int) -> None:
    with pytest.raises(DeviceFailure) as caught, power_errors("off"):
        requests.get(f"http://127.0.0.1:{closed_port}/power/3", timeout=None)
    assert caught.value.suspect and caught.value.unreachable
    with pytest.raises(DeviceFailure) as caught, power_errors("off"):
        driver("sh -c 'exit 3'").off()
    assert caught.value.suspect and not caught.value.unreachable


def test_console_server_that_does_not_answer_is_recognised(closed_port: int) -> None:
    with pytest.raises(serial.SerialException) as caught:
        serial.serial_for_url(f"socket://127.0.0.1:{closed_port}/")
    assert is_unreachable(caught.value)
    with pytest.raises(serial.SerialException) as caught:
        serial.serial_for_url("/dev/no-such-port")
    assert not is_unreachable(caught.value)


def test_slow_power_command_is_killed_with_its_children(tmp_path: Path) -> None:
    """The shell's child keeps the FIFO open for writing until it exits."""
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    reader = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
    power = driver(shlex.join(["sh", "-c", f"(echo started; exec sleep infinity) > {alive} & wait"]))
    limited = time_limit(1.0, "it did not end", DeviceStep.POWER)
    with pytest.raises(DeviceFailure, match="it did not end in 1 s") as caught, limited, power_errors("off"):
        power.off()
    assert caught.value.suspect and caught.value.unreachable, "nothing was seen of the device"
    os.set_blocking(reader, True)
    assert os.read(reader, 100) == b"started\n"
    assert os.read(reader, 100) == b"", "no process is left"


@pytest.mark.parametrize(("state", "asked"), [("on", ["status", "off"]), ("off", ["status"])])
def test_example_power_command_checks_the_state_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, asked: list[str]
) -> None:
    """Many BMCs refuse to switch off what is off: `Command not supported in present state`."""
    tool = tmp_path / "ipmitool"
    tool.write_text(
        f"#!/bin/sh\nfor last; do :; done\necho $last >>{tmp_path}/asked\n"
        f'[ $last = status ] && echo "Chassis Power is {state}" || [ {state} = on ]\n'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    file = ROOT / "docs/hardware/device-types/xeon-8380-2s.yaml"
    power = DeviceType.model_validate(read_device_type(file, file.name, {}).plain()).units[0].power
    assert power is not None
    driver(power.turn_off).off()
    assert (tmp_path / "asked").read_text().split() == asked


def test_background_child_of_power_command_is_not_awaited(tmp_path: Path) -> None:
    driver(f"sh -c 'sleep 600 & echo $! > {tmp_path}/child'").off()
    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)  # raises if it has ended


@pytest.mark.parametrize(
    "said",
    [
        "Error: Unable to establish IPMI v2 / RMCP+ session",
        "Timeout: No Response from 192.0.2.20.",
        "ssh: connect to host 192.0.2.20 port 22: No route to host",
    ],
)
def test_a_tool_whose_other_side_does_not_answer_says_nothing_about_the_device(said: str) -> None:
    with pytest.raises(DeviceFailure) as caught, power_errors("off"):
        driver(shlex.join(["sh", "-c", f"echo {shlex.quote(said)} >&2; exit 1"])).off()
    failure = caught.value.failure
    assert failure.summary.startswith(
        "the power could not be switched off, because the power controller did not answer"
    )
    assert said in failure.summary and "The lab tries again by itself" in failure.advice
    assert caught.value.unreachable


def test_a_bmc_that_refuses_to_switch_off_what_is_off_gets_advice() -> None:
    said = "Set Chassis Power Control to Down/Off failed: Command not supported in present state"
    with pytest.raises(DeviceFailure) as caught, power_errors("off"):
        driver(shlex.join(["sh", "-c", f"echo {shlex.quote(said)} >&2; exit 1"])).off()
    assert "ask for `chassis power status` first" in caught.value.failure.advice
    assert not caught.value.unreachable
