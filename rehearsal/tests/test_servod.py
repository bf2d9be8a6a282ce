"""Tests of the stand-ins for `dut-control` and servod: they start and kill a process."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from wqlab_bench import ports
from wqlab_rehearsal import faults, links, servod
from wqlab_worker.backends.power import power_errors, run_power_command
from wqlab_worker.measure.device_interface import DeviceFailure

from .conftest import ENVIRONMENT, is_on, until

Answer = subprocess.CompletedProcess[str]
Run = Callable[[Sequence[str]], subprocess.Popen[bytes]]


def dut_control(port: int, *words: str) -> Answer:
    return subprocess.run(
        [sys.executable, "-m", "wqlab_rehearsal.dut_control", "--port", str(port), *words],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )


@pytest.fixture
def port(tmp_path: Path, power_on: Path, run: Run) -> Iterator[int]:
    """Start servod, which runs the script `power_on` as the machine; return its TCP port."""
    number = ports.free_port(set())
    line = tmp_path / "console"
    line.symlink_to("/dev/pts/99")
    run([sys.executable, "-m", "wqlab_rehearsal.servod", str(number), str(power_on), str(line)])

    def answers() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((servod.HOST, number)) == 0

    until(answers)
    yield number


@pytest.fixture
def command(port: int) -> Callable[..., Answer]:
    return lambda *words: dut_control(port, *words)


def test_power_is_switched(command: Callable[..., Answer], tmp_path: Path) -> None:
    def says(request: str, text: str = "") -> None:
        answer = command(request)
        assert (answer.returncode, answer.stdout, answer.stderr) == (0, text, "")

    says("power_state:off")  # the lab switches off before it switches on
    says("ec_system_powerstate", "ec_system_powerstate:G3\n")
    says("power_state:on")
    until(lambda: is_on(tmp_path))
    says("ec_system_powerstate", "ec_system_powerstate:S0\n")
    first = (tmp_path / "machine.pid").read_text()
    says("power_state:on")
    assert (tmp_path / "machine.pid").read_text() == first
    says("power_state:reset")
    until(lambda: (tmp_path / "machine.pid").read_text() not in {"", first})
    says("power_state:off")
    assert not is_on(tmp_path)


@pytest.mark.parametrize(
    ("request_", "text"),
    [("power:off", "No control named power"), ("lid_open", "No control named lid_open"),
     ("power_state:rec", "power_state:rec is not rehearsed")],
)  # fmt: skip
def test_mistakes_are_answered(command: Callable[..., Answer], request_: str, text: str) -> None:
    answer = command(request_)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert text in answer.stderr
    assert "Traceback" not in answer.stderr


def test_no_servod_is_a_power_controller_that_did_not_answer() -> None:
    """The lab tries again by itself, because servod may start again."""
    free = ports.free_port(set())
    answer = dut_control(free, "power_state:off")
    assert (answer.returncode, answer.stderr) == (1, "Connection refused\n")
    words = f"{sys.executable} -m wqlab_rehearsal.dut_control --port {free} power_state:off"
    with pytest.raises(DeviceFailure) as failed, power_errors("off"):
        run_power_command(words)
    assert "the power controller did not answer" in str(failed.value)
    assert failed.value.unreachable


def test_the_machine_ends_with_servod(tmp_path: Path, power_on: Path, run: Run) -> None:
    number = ports.free_port(set())
    process = run([sys.executable, "-m", "wqlab_rehearsal.servod", str(number), str(power_on), str(tmp_path)])
    until(lambda: dut_control(number, "power_state:on").returncode == 0)
    until(lambda: is_on(tmp_path))
    process.terminate()
    process.wait()
    assert not is_on(tmp_path)


def test_servod_can_be_gone_for_a_while(port: int, tmp_path: Path, run: Run) -> None:
    """With the fault of a BMC that restarts, nothing listens; then it answers again."""
    listen = ports.free_port({port})
    configuration = links.Configuration(
        faults=faults.file_of(tmp_path),
        power=links.Line(listen=listen, to=port),
        power_protocol="tcp",
        console=links.Line(listen=ports.free_port({port, listen}), to=port),
        monitor=tmp_path / "monitor",
    )
    (tmp_path / "links.json").write_text(configuration.model_dump_json())
    run([sys.executable, "-m", "wqlab_rehearsal.links", str(tmp_path / "links.json")])

    def says() -> str:
        answer = dut_control(listen, "ec_system_powerstate")
        return answer.stdout.strip() or answer.stderr.strip()

    until(lambda: says() == "ec_system_powerstate:G3")
    faults.write(tmp_path, ["bmc-reboots"])
    until(lambda: says() == "Connection refused")
    faults.write(tmp_path, [])
    until(lambda: says() == "ec_system_powerstate:G3")
    faults.write(tmp_path, ["bmc-silent"])

    def is_silent() -> bool:
        command = [sys.executable, "-m", "wqlab_rehearsal.dut_control", "-p", str(listen), "power_state:off"]
        try:
            subprocess.run(command, check=False, timeout=3, env=ENVIRONMENT)
        except subprocess.TimeoutExpired:
            return True
        return False

    until(is_silent)
