"""Device trials through a real BMC, a PDU and a console server; the machine behind them is a serial port that talks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from wqlab_contracts.enums import Outcome, StepOutcome
from wqlab_contracts.new_devices.description import NewDevice
from wqlab_contracts.new_devices.trial import (
    TRIAL_MESSAGES,
    TrialEnded,
    TrialRequest,
    TrialResult,
    TrialStep,
    TrialStepEnded,
)
from wqlab_rehearsal import bmc, console_server, pdu

from .conftest import ENVIRONMENT, free_port, until

pytestmark = pytest.mark.integration
Run = Callable[[Sequence[str]], subprocess.Popen[bytes]]


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "lab_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path


@pytest.fixture
def password(tmp_path: Path) -> Path:
    path = tmp_path / "ipmi-password"
    path.touch(mode=0o600)
    path.write_text(f"{bmc.PASSWORD}\n")
    return path


def machine(tmp_path: Path, serial: int, mode: str) -> Path:
    """Return a script that starts the machine, for BMC or PDU."""
    script = tmp_path / "power-on"
    program = Path(__file__).with_name("machine_script.py")
    script.write_text(f"#!/bin/sh\nexec {sys.executable} {program} {serial} {mode}\n")
    script.chmod(0o755)
    return script


def start_bmc(run: Run, tmp_path: Path, mode: str = "") -> dict[str, Any]:
    """Start a BMC and a console server for its serial over LAN; return the machine's description."""
    ports = bmc.BmcPorts(free_port(), free_port(), free_port())
    console = free_port()
    run(bmc.write(tmp_path / "bmc", "server-1", ports, machine(tmp_path, ports.serial, mode)))
    process = run(
        console_server.write(
            tmp_path / "ser2net", console, console_server.RAW, console_server.serial_over_lan(ports.ipmi)
        )
    )
    until(lambda: listens(console) or process.poll() is not None)
    return {
        "name": "server-1",
        "device_type": "server",
        "power": {"kind": "ipmi", "host": "127.0.0.1", "port": ports.ipmi, "user": bmc.USER, "cipher": bmc.CIPHER_SUITE,
                  "password_file": str(tmp_path / "ipmi-password")},
        "console": {"host": "127.0.0.1", "port": console},
        "ssh": {"host": "127.0.0.1", "port": free_port()},
        "boot": {"golden_timeout_s": 20 if mode else 900, "power_off_s": 1.0},
    }  # fmt: skip


def listens(port: int) -> bool:
    table = subprocess.run(["ss", "-Hltn", f"sport = :{port}"], check=True, capture_output=True).stdout
    return bool(table.strip())


def trial(described: dict[str, Any], key: Path) -> TrialResult:
    """Run a trial in its own process, as the command does, and return its result."""
    request = TrialRequest(device=NewDevice.model_validate(described), ssh_key=key)
    process = subprocess.Popen(
        [sys.executable, "-m", "wqlab_worker.backends.device_trial"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert process.stdin
    assert process.stdout
    process.stdin.write(request.model_dump_json().encode() + b"\n")
    process.stdin.flush()
    messages = [TRIAL_MESSAGES.validate_json(line) for line in process.stdout]
    process.stdin.close()
    assert process.wait() == 0
    ended = messages[-1]
    assert isinstance(ended, TrialEnded)
    assert [each.result for each in messages if isinstance(each, TrialStepEnded)] == ended.result.steps
    return ended.result


def outcomes(result: TrialResult) -> dict[TrialStep, StepOutcome]:
    return {step.step: step.outcome for step in result.steps}


def failed(result: TrialResult) -> tuple[TrialStep, str, str]:
    """Return the step that failed, its text and its fix; all later steps are skipped."""
    first = next(step for step in result.steps if step.outcome is StepOutcome.FAILED)
    later = result.steps[result.steps.index(first) + 1 :]
    assert {step.outcome for step in later} <= {StepOutcome.SKIPPED}
    assert first.fix
    return first.step, first.text, first.fix


@pytest.mark.usefixtures("password")
def test_a_machine_is_tried_up_to_the_step_that_fails(run: Run, tmp_path: Path, key: Path) -> None:
    """The machine has no network: power, console and golden system are ok, and SSH fails with its fix."""
    result = trial(start_bmc(run, tmp_path), key)
    assert result.outcome is Outcome.FAILED
    reached = outcomes(result)
    before_ssh = list(TrialStep)[: list(TrialStep).index(TrialStep.SSH)]
    assert [reached[step] for step in before_ssh] == [StepOutcome.OK] * 5
    step, text, fix = failed(result)
    assert step is TrialStep.SSH
    assert "refused" in text
    assert "`network:` lines" in fix
    assert "wqlab-ready" in next(each.console for each in result.steps if each.step is step)
    until(lambda: not listens(int((tmp_path / "power-on").read_text().split()[-1])))  # the machine is off again


@pytest.mark.usefixtures("password")
@pytest.mark.parametrize(
    ("mode", "step", "advice"),
    [
        pytest.param("silent", TrialStep.POWER_ON, "serial redirection", marks=pytest.mark.nightly),
        pytest.param("login", TrialStep.GOLDEN, "Another system asks for a login", marks=pytest.mark.nightly),
        ("garbled", TrialStep.GOLDEN, "Check the speed of the console"),
    ],
)
def test_what_the_console_shows_decides_the_advice(
    run: Run, tmp_path: Path, key: Path, mode: str, step: TrialStep, advice: str
) -> None:
    found, _, fix = failed(trial(start_bmc(run, tmp_path, mode), key))
    assert found is step
    assert advice in fix


def test_a_wrong_password_and_an_open_file_are_told_apart(run: Run, tmp_path: Path, key: Path, password: Path) -> None:
    described = start_bmc(run, tmp_path)
    password.chmod(0o644)
    assert failed(trial(described, key))[1:] == (
        f"other users can read the password file {password}", f"Run `chmod 600 {password}` on the lab's host."
    )  # fmt: skip
    password.chmod(0o600)
    password.write_text("wrong")
    step, text, fix = failed(trial(described, key))
    assert step is TrialStep.POWER_OFF
    assert "Unable to establish IPMI" in text
    assert "password" in fix
    assert "wrong" not in json.dumps([text, fix])


def test_a_console_server_that_does_not_run_is_named(key: Path) -> None:
    port = free_port()
    described = {
        "name": "box-1",
        "device_type": "box",
        "power": {"kind": "pdu", "model": "apc", "host": "127.0.0.1", "outlet": 3},
        "console": {"host": "127.0.0.1", "port": port},
        "ssh": {"host": "127.0.0.1"},
    }
    step, _, fix = failed(trial(described, key))
    assert step is TrialStep.CONSOLE
    assert fix.startswith(f"No console server listens at 127.0.0.1:{port}")


def test_an_outlet_of_a_pdu_is_switched_by_labgrids_driver(run: Run, tmp_path: Path, key: Path) -> None:
    """The console server holds a port that does not exist while the machine is off, so it is another machine's."""
    port, serial = free_port(), free_port()
    run(pdu.write(tmp_path / "pdu", port, machine(tmp_path, free_port(), "")))
    run([sys.executable, str(Path(__file__).with_name("machine_script.py")), str(serial), "silent"])
    until(lambda: listens(serial))
    described = {
        "name": "box-1",
        "device_type": "box",
        "power": {"kind": "pdu", "model": "apc", "host": "127.0.0.1", "port": port, "outlet": 3},
        "console": {"host": "127.0.0.1", "port": serial},
        "ssh": {"host": "127.0.0.1"},
        "boot": {"golden_timeout_s": 5, "power_off_s": 0.5},
    }
    result = trial(described, key)
    assert outcomes(result)[TrialStep.POWER_OFF] is StepOutcome.OK
    step, _, fix = failed(result)
    assert step is TrialStep.POWER_ON
    assert "outlet number" in fix
    unreachable = trial({**described, "power": {**described["power"], "port": free_port()}}, key)
    assert failed(unreachable)[0] is TrialStep.CONSOLE or "SNMPv1" in failed(unreachable)[2]
