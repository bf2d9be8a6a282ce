"""`wqlab-redfish` switches a process through a real Redfish service, sushy-emulator, with a driver of ours."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from wqlab_bench import ports
from wqlab_rehearsal import redfish

from .conftest import ENVIRONMENT, is_on, until

pytestmark = pytest.mark.integration

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def port(tmp_path: Path, power_on: Path, run: Callable[[Sequence[str]], subprocess.Popen[bytes]]) -> Iterator[int]:
    """The port of a service whose machine is `power_on`."""
    number = ports.free_port(set())
    service = run(redfish.write(tmp_path / "bmc", "ssh-only-1", number, power_on))

    def answers() -> bool:
        assert service.poll() is None, (tmp_path / "python.log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex((redfish.HOST, number)) == 0

    until(answers)
    yield number


@pytest.fixture
def command(tmp_path: Path, port: int) -> Command:
    (tmp_path / "password").write_text(f"{redfish.PASSWORD}\n")

    def call(*words: str, **options: str) -> subprocess.CompletedProcess[str]:
        given = {
            "url": f"https://{redfish.HOST}:{port}",
            "user": redfish.USER,
            "password-file": str(tmp_path / "password"),
            "certificate": str(redfish.certificate(tmp_path / "bmc")),
            **options,
        }
        arguments = [word for name, value in given.items() if value for word in (f"--{name}", value)]
        return subprocess.run(
            [sys.executable, "-m", "wqlab_host.redfish", *arguments, *words],
            capture_output=True,
            text=True,
            check=False,
            env=ENVIRONMENT,
        )

    return call


def test_power_is_switched_and_read(command: Command, tmp_path: Path) -> None:
    def says(action: str, state: str) -> None:
        answer = command(action)
        assert (answer.returncode, answer.stdout, answer.stderr) == (0, f"{state}\n", "")

    says("status", "Off")
    says("off", "Off")  # the lab switches off before it switches on
    says("on", "On")
    until(lambda: is_on(tmp_path))
    first = (tmp_path / "machine.pid").read_text()
    says("on", "On")
    assert (tmp_path / "machine.pid").read_text() == first
    says("restart", "On")
    until(lambda: (tmp_path / "machine.pid").read_text() not in {"", first})
    says("off", "Off")
    assert not is_on(tmp_path)


def test_errors_name_the_cause(command: Command, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("guess")
    for options, text in (
        ({"password-file": str(wrong)}, "user or password is wrong"),
        ({"password-file": str(tmp_path / "missing")}, "the password file cannot be read"),
        ({"certificate": ""}, "give the BMC's own certificate with --certificate"),
        ({"certificate": str(wrong)}, "is no readable certificate"),
        ({"system": "board9"}, "no system 'board9'; the service has: "),
        ({"url": f"https://{redfish.HOST}:{ports.free_port(set())}"}, "cannot be reached"),
    ):
        answer = command("status", **options)
        assert answer.returncode == 1
        assert text in answer.stderr, answer.stderr
        assert "Traceback" not in answer.stderr


def test_another_certificate_is_not_accepted(command: Command, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    redfish.make_certificate(other, "ssh-only-1")
    answer = command("on", certificate=str(redfish.certificate(other)))
    assert answer.returncode == 1
    assert not is_on(tmp_path)


def test_a_machine_that_ends_by_itself_is_off(command: Command, power_on: Path) -> None:
    power_on.write_text("#!/bin/sh\nexit 1\n")
    answer = command("on", wait="1")
    # On a busy host the state is read before the machine has ended.
    assert answer.returncode == 0 or "1 s after On the power is Off" in answer.stderr
    until(lambda: command("status").stdout == "Off\n")
