"""Whom it is blamed on that a script does not end, or a variant does not come up, with a scripted device: no power, no
labgrid, a real console tap."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from pexpect import TIMEOUT

from wqlab_contracts.enums import Arm, ErrorKind, FindingKind
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import BootKey, DeviceFacts, Finding, RunJob
from wqlab_worker.backends import kexec
from wqlab_worker.backends import labgrid_device as devices
from wqlab_worker.backends.console import ConsoleTap, Watch
from wqlab_worker.backends.kexec import KexecStrategy
from wqlab_worker.backends.labgrid_device import LabgridDevice
from wqlab_worker.backends.ssh import Answer
from wqlab_worker.claims.heartbeats import Stop
from wqlab_worker.measure.device import DeviceFailure

from .conftest import ROOT, Told, trivial_plan

TOKEN = "0123456789abcdef"
OURS = f"console=ttyS0,115200 panic=0 wqlab.token={TOKEN} quiet\n"
GOLDEN = "console=ttyS0,115200 panic=5\n"
GOLDEN_READY = b"wqlab-ready token=- boot_id=11111111-2222-3333-4444-555555555555\r\n"
LOST = Answer(255, b"", b"connection reset by peer")


class Serial:
    """labgrid's console driver: what is said comes out of `_read`; what is written is answered by `echo`."""

    def __init__(self) -> None:
        self.bytes: queue.Queue[int] = queue.Queue()
        self.echo = b""

    def say(self, data: bytes) -> None:
        for byte in data:
            self.bytes.put(byte)

    def _read(self, size: int, timeout: float) -> bytes:
        try:
            data = [self.bytes.get(timeout=timeout) if timeout else self.bytes.get_nowait()]
        except queue.Empty:
            raise TIMEOUT("nothing") from None
        while len(data) < size and not self.bytes.empty():
            data.append(self.bytes.get_nowait())
        return bytes(data)

    def write(self, data: bytes) -> None:
        self.say(self.echo)


@dataclass
class Ended:
    answer: Answer | None
    done: bool = True

    def kill(self) -> None:
        self.done = True


@dataclass
class ScriptedSsh:
    """The script's connection is lost; `systems` answer the connections after it, one each (None: nobody)."""

    systems: list[str | None]
    script: Answer | None = LOST
    meanwhile: Callable[[], None] = lambda: None
    """Happens while a command of the diagnosis other than the question for the system runs."""
    asked: list[str] = field(default_factory=list)
    running: str | None = None

    def connect(self, watch: Watch, stopped: Callable[[], bool], timeout_s: float) -> str | None:
        self.running = self.systems.pop(0)
        return None if self.running else "connection refused"

    def close(self) -> None:
        self.running = None

    def start(self, command: str, watch: Watch, stdin: bytes | None = None) -> Ended:
        self.asked.append(command)
        if len(self.asked) == 1:
            return Ended(self.script, self.script is not None)
        if command == "cat /proc/cmdline":
            return Ended(Answer(0, (self.running or "").encode(), b""))
        self.meanwhile()
        return Ended(Answer(0, b"sysrq: Show Blocked State\n", b""))


class ScriptedStrategy:
    """What LabgridDevice uses of KexecStrategy, with the real watch and console tap."""

    token = TOKEN

    def __init__(self, told: Told, ssh: ScriptedSsh) -> None:
        self.watch = Watch()
        self.console = Serial()
        self.ssh = ssh
        self.tap = ConsoleTap(self.console, told, self.watch)
        self.waited: list[float] = []
        self.on_wait: dict[float, Callable[[], None]] = {}
        """By timeout: what happens when that wait begins."""

    def wait(self, met: Callable[[], bool], timeout_s: float) -> bool:
        self.waited.append(timeout_s)
        self.on_wait.pop(timeout_s, lambda: None)()
        return self.watch.wait_for(met, timeout_s)

    def command(self, command: str, timeout_s: float, stdin: bytes | None = None) -> Answer:
        answer = self.ssh.start(command, self.watch, stdin).answer
        assert answer
        return answer


@dataclass
class Scene:
    """A variant that runs, and a script on it."""

    golden_timeout_s: float = 0.25
    told: Told = field(default_factory=Told)
    ssh: ScriptedSsh = field(default_factory=lambda: ScriptedSsh([]))

    def __post_init__(self) -> None:
        self.strategy = ScriptedStrategy(self.told, self.ssh)
        self.strategy.tap.begin(BootKey(block=0, position=0, arm=Arm.CANDIDATE, attempt=0))
        self.strategy.tap.expect_variant()
        self.strategy.tap.start()
        kind = load_data(ROOT).device_types["tiny"]
        boot = kind.boot.model_copy(update={"golden_timeout_s": self.golden_timeout_s})
        device = DeviceFacts(
            name="tiny-1",
            device_type=kind.name,
            lab="local",
            arch=kind.arch,
            topology=kind.topology,
            boot=boot,
            emulated=True,
        )
        job = RunJob.model_construct(device=device, plan=trivial_plan(0))
        strategy: Any = self.strategy
        self.device = LabgridDevice(strategy, job, {}, {}, {})

    def blame(self, *systems: str | None, timeout_s: float = 0.05) -> tuple[ErrorKind, str]:
        self.ssh.systems = list(systems)
        with pytest.raises(DeviceFailure) as caught:
            self.device.script("measure", {}, timeout_s)
        return caught.value.failure.kind, caught.value.failure.summary

    def restarted(self) -> bool:
        findings = self.told.of(Finding)
        return [finding.kind for finding in findings] == [FindingKind.HANG] and "restarted by itself" in findings[
            0
        ].title


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setattr(devices, "POKE_S", 0.75)
    scene = Scene()
    yield scene
    scene.strategy.tap.stop()


def test_a_golden_system_that_answers_before_its_ready_line_is_a_restart(scene: Scene) -> None:
    kind, summary = scene.blame(GOLDEN)
    assert kind is ErrorKind.KERNEL
    assert "the kernel under test is gone: the device restarted by itself during `measure`" in summary
    assert scene.restarted()


def test_firmware_on_the_console_is_no_proof_of_life(scene: Scene) -> None:
    strategy = scene.strategy
    strategy.console.echo = b"BIOS: memory test\r\n"
    strategy.on_wait[scene.golden_timeout_s] = lambda: strategy.console.say(GOLDEN_READY)
    kind, _ = scene.blame(None)
    assert kind is ErrorKind.KERNEL
    assert scene.restarted()


def test_a_restart_whose_ready_line_was_garbled_is_found_by_ssh(scene: Scene) -> None:
    scene.strategy.console.echo = b"BIOS: memory test\r\n"
    assert scene.blame(None, GOLDEN)[0] is ErrorKind.KERNEL
    assert scene.restarted()


def test_a_live_console_of_our_kernel_means_the_network(scene: Scene) -> None:
    scene.strategy.console.echo = b"\r\n"
    kind, summary = scene.blame(None, None)
    assert (kind, summary) == (
        ErrorKind.INFRASTRUCTURE,
        "the network connection to tiny-1 broke during `measure`; its console still answers",
    )
    assert scene.golden_timeout_s in scene.strategy.waited
    assert not scene.told.of(Finding)


@pytest.mark.parametrize("systems", [(OURS,), (None, OURS)])
def test_a_connection_that_broke_under_our_kernel_is_the_networks(
    scene: Scene, systems: tuple[str | None, ...]
) -> None:
    scene.strategy.console.echo = b"\r\n"
    kind, summary = scene.blame(*systems)
    assert kind is ErrorKind.INFRASTRUCTURE
    assert "though the device answers again" in summary


def test_a_script_that_runs_too_long_under_our_kernel_is_no_kernel_failure(scene: Scene) -> None:
    scene.ssh.script = None
    kind, summary = scene.blame(OURS)
    assert kind is ErrorKind.INFRASTRUCTURE
    assert "did not end" in summary


def test_a_restart_while_the_blocked_tasks_are_listed_is_seen(scene: Scene) -> None:
    scene.ssh.script = None
    tap = scene.strategy.tap

    def restart() -> None:
        scene.strategy.console.say(GOLDEN_READY)
        assert scene.strategy.watch.wait_for(lambda: tap.ready is not None, 5)

    scene.ssh.meanwhile = restart
    assert scene.blame(OURS)[0] is ErrorKind.KERNEL
    assert scene.restarted()


def test_a_silent_device_is_a_hang(scene: Scene) -> None:
    kind, summary = scene.blame(None)
    assert kind is ErrorKind.KERNEL
    assert "no answer by SSH and no console output" in summary
    assert scene.golden_timeout_s not in scene.strategy.waited


# --- a variant that does not come up --------------------------------------------------------------------------------


@pytest.fixture
def jumped(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> KexecStrategy:
    """Right after the jump, without labgrid's drivers."""
    monkeypatch.setattr(kexec, "QUIET_S", 0.02)
    scene.ssh.asked = ["the jump"]
    strategy = object.__new__(KexecStrategy)
    strategy.tap, strategy.watch, strategy.ssh = scene.strategy.tap, scene.strategy.watch, scene.ssh
    strategy.token, strategy.cancel, strategy.lost = TOKEN, Stop(), lambda: None
    return strategy


def failure_of(strategy: KexecStrategy, timeout_s: float = 0.05) -> tuple[ErrorKind, str]:
    with pytest.raises(DeviceFailure) as caught:
        strategy._await_variant(timeout_s)
    return caught.value.failure.kind, caught.value.failure.summary


@pytest.mark.parametrize("golden", [None, GOLDEN])
def test_a_variant_that_does_not_come_up_hangs(scene: Scene, jumped: KexecStrategy, golden: str | None) -> None:
    """A golden system that still answers is not it."""
    scene.ssh.systems = [golden] * 100
    said = "hang: the variant did not come up in 0.05 s; not one byte came on the console after the jump"
    assert failure_of(jumped) == (ErrorKind.KERNEL, said)
    [finding] = scene.told.of(Finding)
    assert (finding.kind, finding.fatal, finding.boot.arm) == (FindingKind.HANG, True, Arm.CANDIDATE)


def test_a_variant_that_said_something_before_it_hung(scene: Scene, jumped: KexecStrategy) -> None:
    scene.strategy.console.say(b"[    0.000000] Linux version 6.12.1\r\n")
    scene.ssh.systems = [None] * 100
    assert failure_of(jumped) == (ErrorKind.KERNEL, "hang: the variant did not come up in 0.05 s")


def test_a_golden_system_that_came_up_in_the_variants_place_is_a_restart(scene: Scene, jumped: KexecStrategy) -> None:
    scene.strategy.console.say(GOLDEN_READY)
    kind, summary = failure_of(jumped, 5)
    assert kind is ErrorKind.KERNEL
    assert "the variant rebooted by itself before its userland was ready" in summary


def test_a_variant_whose_ready_line_was_garbled_is_found_by_ssh(scene: Scene, jumped: KexecStrategy) -> None:
    scene.ssh.systems = [OURS]
    jumped._await_variant(5)
    assert not scene.told.of(Finding)
