"""Diagnosis of a script that does not end and of a variant that does not come up.

The device is scripted, without power switch and labgrid; the console tap is real.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pexpect import TIMEOUT

from wqlab_contracts.enums import Arm, ErrorKind, FindingKind, RunPurpose
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import Artifact, BootKey, DeviceFacts, Finding, Kernel, RunJob
from wqlab_contracts.specs import OwnSystem
from wqlab_worker.backends import crash_kernel, kexec, own_system
from wqlab_worker.backends import labgrid_device as devices
from wqlab_worker.backends.console_tap import ConsoleTap, Wakeup
from wqlab_worker.backends.kexec import KexecStrategy
from wqlab_worker.backends.labgrid_device import LabgridDevice
from wqlab_worker.backends.send_image import VariantImage
from wqlab_worker.backends.ssh import CommandResult
from wqlab_worker.backends.verify_boot import infrastructure_failure, kernel_failure
from wqlab_worker.claims.heartbeats import Stop
from wqlab_worker.measure.device_interface import DeviceFailure

from .conftest import ROOT, RecordingSink, trivial_plan

TOKEN = "0123456789abcdef"
OURS = f"console=ttyS0,115200 panic=0 wqlab.token={TOKEN} quiet\n"
GOLDEN = "console=ttyS0,115200 panic=5\n"
GOLDEN_READY = b"wqlab-ready token=- boot_id=11111111-2222-3333-4444-555555555555\r\n"
LOST = CommandResult(255, b"", b"connection reset by peer")


class Serial:
    """Console driver: `_read` returns the text given to `say`; a write is answered by `echo`."""

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
    answer: CommandResult | None
    done: bool = True

    def kill(self) -> None:
        self.done = True


@dataclass
class ScriptedSsh:
    """The script's connection is lost. Each later connection is answered by the next of `systems` (None: no answer)."""

    systems: list[str | None]
    script: CommandResult | None = LOST
    meanwhile: Callable[[], None] = lambda: None
    """Called during each command of the diagnosis other than `cat /proc/cmdline`."""
    asked: list[str] = field(default_factory=list)
    running: str | None = None

    def connect(self, wakeup: Wakeup, stopped: Callable[[], bool], timeout_s: float) -> str | None:
        self.running = self.systems.pop(0)
        return None if self.running else "connection refused"

    def close(self) -> None:
        self.running = None

    def start(self, command: str, wakeup: Wakeup, stdin: bytes | None = None) -> Ended:
        self.asked.append(command)
        if len(self.asked) == 1:
            return Ended(self.script, self.script is not None)
        if command == "cat /proc/cmdline":
            return Ended(CommandResult(0, (self.running or "").encode(), b""))
        self.meanwhile()
        return Ended(CommandResult(0, b"sysrq: Show Blocked State\n", b""))


class ScriptedStrategy:
    """Scripted KexecStrategy for LabgridDevice, with a real Wakeup and ConsoleTap."""

    token = TOKEN

    def __init__(self, sink: RecordingSink, ssh: ScriptedSsh) -> None:
        self.wakeup = Wakeup()
        self.console = Serial()
        self.ssh = ssh
        self.tap = ConsoleTap(self.console, sink, self.wakeup)
        self.waited: list[float] = []
        self.on_wait: dict[float, Callable[[], None]] = {}
        """Actions at the start of a wait, by its timeout."""

    def wait(self, met: Callable[[], bool], timeout_s: float) -> bool:
        self.waited.append(timeout_s)
        self.on_wait.pop(timeout_s, lambda: None)()
        return self.wakeup.wait_for(met, timeout_s)

    def raise_if_crashed(self) -> None:
        if self.tap.fatal:
            raise kernel_failure(self.tap.fatal)

    def command(self, command: str, timeout_s: float, stdin: bytes | None = None) -> CommandResult:
        answer = self.ssh.start(command, self.wakeup, stdin).answer
        assert answer
        return answer


@dataclass
class Scene:
    """A running variant with a script on it."""

    golden_timeout_s: float = 0.25
    netconsole: str | None = None
    own_system: OwnSystem | None = None
    variant_timeout_s: float = 120
    crash_kernel_mib: int | None = None
    purpose: RunPurpose = RunPurpose.MEASURE
    sink: RecordingSink = field(default_factory=RecordingSink)
    ssh: ScriptedSsh = field(default_factory=lambda: ScriptedSsh([]))

    def __post_init__(self) -> None:
        self.strategy = ScriptedStrategy(self.sink, self.ssh)
        self.strategy.tap.begin_boot(BootKey(block=0, position=0, arm=Arm.CANDIDATE, attempt=0))
        self.strategy.tap.begin_variant()
        self.strategy.tap.start()
        kind = load_data(ROOT).device_types["tiny"]
        changed = ("golden_timeout_s", "variant_timeout_s", "crash_kernel_mib")
        boot = kind.boot.model_copy(update={name: getattr(self, name) for name in changed})
        device = DeviceFacts(
            name="tiny-1",
            device_type=kind.name,
            lab="local",
            arch=kind.arch,
            topology=kind.topology,
            boot=boot,
            emulated=True,
            netconsole=self.netconsole,
            own_system=self.own_system,
        )
        kernels = {arm: Kernel.model_construct(image=Artifact.model_construct(sha256=arm.value)) for arm in Arm}
        job = RunJob.model_construct(device=device, plan=trivial_plan(0), purpose=self.purpose, kernels=kernels)
        strategy: Any = self.strategy
        images = {each.image.sha256: VariantImage(Path(arm.value), each.image.sha256) for arm, each in kernels.items()}
        self.baseline = images[kernels[Arm.BASELINE].image.sha256]
        self.device = LabgridDevice(strategy, job, images, {}, {})

    def diagnose_boot(self, *systems: str | None, timeout_s: float = 0.05) -> tuple[ErrorKind, str]:
        self.ssh.systems = list(systems)
        with pytest.raises(DeviceFailure) as caught:
            self.device.script("measure", {}, timeout_s)
        return caught.value.failure.kind, caught.value.failure.summary

    def restarted(self) -> bool:
        findings = self.sink.of(Finding)
        return [finding.kind for finding in findings] == [FindingKind.HANG] and "restarted by itself" in findings[
            0
        ].title


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setattr(devices, "ECHO_TIMEOUT_S", 0.75)
    scene = Scene()
    yield scene
    scene.strategy.tap.stop()


def test_golden_system_answering_before_ready_line_is_a_restart(scene: Scene) -> None:
    kind, summary = scene.diagnose_boot(GOLDEN)
    assert kind is ErrorKind.KERNEL
    assert "the kernel under test is gone: the device restarted by itself during `measure`" in summary
    assert scene.restarted()


def test_firmware_output_does_not_hide_a_restart(scene: Scene) -> None:
    strategy = scene.strategy
    strategy.console.echo = b"BIOS: memory test\r\n"
    strategy.on_wait[scene.golden_timeout_s] = lambda: strategy.console.say(GOLDEN_READY)
    kind, _ = scene.diagnose_boot(None)
    assert kind is ErrorKind.KERNEL
    assert scene.restarted()


def test_a_restart_whose_ready_line_was_garbled_is_found_by_ssh(scene: Scene) -> None:
    scene.strategy.console.echo = b"BIOS: memory test\r\n"
    assert scene.diagnose_boot(None, GOLDEN)[0] is ErrorKind.KERNEL
    assert scene.restarted()


def test_live_console_of_the_variant_is_a_network_failure(scene: Scene) -> None:
    scene.strategy.console.echo = b"\r\n"
    kind, summary = scene.diagnose_boot(None, None)
    assert (kind, summary) == (
        ErrorKind.INFRASTRUCTURE,
        "the network connection to tiny-1 broke during `measure`; its console still answers",
    )
    assert scene.golden_timeout_s in scene.strategy.waited
    assert not scene.sink.of(Finding)


@pytest.mark.parametrize("systems", [(OURS,), (None, OURS)])
def test_broken_connection_to_the_variant_is_infrastructure(scene: Scene, systems: tuple[str | None, ...]) -> None:
    scene.strategy.console.echo = b"\r\n"
    kind, summary = scene.diagnose_boot(*systems)
    assert kind is ErrorKind.INFRASTRUCTURE
    assert "though the device answers again" in summary


def test_script_timeout_with_live_variant_is_infrastructure(scene: Scene) -> None:
    scene.ssh.script = None
    kind, summary = scene.diagnose_boot(OURS)
    assert kind is ErrorKind.INFRASTRUCTURE
    assert "did not end" in summary


def test_restart_while_listing_blocked_tasks_is_detected(scene: Scene) -> None:
    scene.ssh.script = None
    tap = scene.strategy.tap

    def restart() -> None:
        scene.strategy.console.say(GOLDEN_READY)
        assert scene.strategy.wakeup.wait_for(lambda: tap.ready is not None, 5)

    scene.ssh.meanwhile = restart
    assert scene.diagnose_boot(OURS)[0] is ErrorKind.KERNEL
    assert scene.restarted()


def test_a_silent_device_is_a_hang(scene: Scene) -> None:
    kind, summary = scene.diagnose_boot(None)
    assert kind is ErrorKind.KERNEL
    assert "no answer by SSH and no console output" in summary
    assert scene.golden_timeout_s not in scene.strategy.waited


def test_silence_on_a_console_without_input_is_not_blamed_on_the_kernel_alone() -> None:
    """Its console and SSH need the same network."""
    scene = Scene(netconsole="+6665@192.0.2.11/eth0,6666@192.0.2.1/")
    scene.strategy.console.echo = b"\r\n"
    scene.ssh.systems = [None]
    try:
        with pytest.raises(DeviceFailure) as caught:
            scene.device.script("measure", {}, 0.05)
    finally:
        scene.strategy.tap.stop()
    failure = caught.value.failure
    assert (failure.kind, failure.counts_against_arm) == (ErrorKind.INFRASTRUCTURE, True)
    assert "the network of tiny-1 is down" in failure.summary
    assert scene.strategy.console.bytes.empty(), "nothing was typed"


CRASH_KERNEL_STARTS = b"""\
[    0.000000] Linux version 6.12.117 (wqlab@wqlab)\r
[    0.000000] Command line: console=ttynull nr_cpus=1 wqlab.crash_kernel\r
"""
CRASH_LOG = b"""\
[    7.000000] wqlab-crash-log begins\r
[    7.000100] [  120.000000] Kernel panic - not syncing: a crash that netconsole cannot send\r
[    7.000200] [  120.000100] Call Trace:\r
[    7.000300] [  120.000200]  flush_workqueue_prep_pwqs+0x1d6/0x200\r
[    7.000400] wqlab-crash-log ends\r
"""


CRASH_S = 0.5
NETCONSOLE = "+6665@192.0.2.11/eth0,6666@192.0.2.1/"


@pytest.fixture(params=[None, OwnSystem(timeout_s=5)], ids=["golden-by-default", "own-system"])
def crashing(request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A variant with a crash kernel, on netconsole."""
    scene = Scene(netconsole=NETCONSOLE, variant_timeout_s=CRASH_S, own_system=request.param)
    scene.device._has_crash_kernel = True
    yield scene
    scene.strategy.tap.stop()


def test_a_crash_that_only_the_crash_kernel_reports_is_the_kernels_failure(crashing: Scene) -> None:
    strategy = crashing.strategy
    strategy.on_wait[CRASH_S] = lambda: strategy.console.say(CRASH_KERNEL_STARTS + CRASH_LOG)
    kind, summary = crashing.diagnose_boot(None)
    assert kind is ErrorKind.KERNEL
    assert summary == "panic: Kernel panic - not syncing: a crash that netconsole cannot send"


def test_a_crash_kernel_that_prints_no_log_shows_that_the_kernel_crashed(crashing: Scene) -> None:
    strategy = crashing.strategy
    strategy.on_wait[CRASH_S] = lambda: strategy.console.say(CRASH_KERNEL_STARTS)
    kind, summary = crashing.diagnose_boot(None)
    assert kind is ErrorKind.KERNEL
    assert summary == (
        "panic: the kernel crashed during `measure`; its crash kernel started, but printed no report of the crash"
    )


def test_a_report_that_was_cut_off_is_read_whole_from_the_crash_log(crashing: Scene) -> None:
    strategy = crashing.strategy
    strategy.console.say(b"[  120.000000] Kernel panic - not syncing: a crash that netconsole cannot send\r\n")
    strategy.on_wait[CRASH_S] = lambda: strategy.console.say(CRASH_KERNEL_STARTS + CRASH_LOG)
    assert strategy.wakeup.wait_for(lambda: strategy.tap.fatal is not None, 10)
    with pytest.raises(DeviceFailure) as caught:
        crashing.device.script("measure", {}, 0.05)
    assert [frame.function for frame in caught.value.failure.stack] == ["flush_workqueue_prep_pwqs"]


def test_a_variant_that_crashes_while_its_crash_kernel_is_sent_is_the_kernels_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(crash_kernel_mib=256)
    scene.strategy.console.say(MACHINE_CHECK.replace(b"Fatal machine check", b"a crash"))

    def load(*_: object) -> str | None:
        assert scene.strategy.wakeup.wait_for(lambda: scene.strategy.tap.fatal is not None, 10)
        raise infrastructure_failure("the kernel image did not arrive whole on the device", of_variant=True)

    monkeypatch.setattr(crash_kernel, "load", load)
    with pytest.raises(DeviceFailure) as caught:
        scene.device._load_crash_kernel()
    scene.strategy.tap.stop()
    assert caught.value.failure.kind is ErrorKind.KERNEL


def load_crash_kernel(monkeypatch: pytest.MonkeyPatch, reason: str | None, purpose: RunPurpose) -> dict[str, str]:
    """Return the facts of a boot whose crash kernel is not loaded for `reason`; None: it is."""
    scene = Scene(crash_kernel_mib=256, purpose=purpose)
    scene.strategy.tap.stop()
    loaded: list[VariantImage] = []

    def load(_: object, image: VariantImage) -> str | None:
        loaded.append(image)
        return reason

    monkeypatch.setattr(crash_kernel, "load", load)
    facts = scene.device._load_crash_kernel()
    assert loaded == [scene.baseline]
    return facts


def test_the_crash_kernel_is_the_baselines_and_a_fact_of_the_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_crash_kernel(monkeypatch, None, RunPurpose.MEASURE) == {"crash kernel": "the baseline's, in 256 MiB"}


def test_a_boot_without_its_crash_kernel_is_measured_but_fails_a_health_check(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "the running kernel reserved no memory for a crash kernel"
    facts = load_crash_kernel(monkeypatch, reason, RunPurpose.MEASURE)
    assert facts == {"crash kernel": f"not loaded: {reason}"}
    with pytest.raises(DeviceFailure) as caught:
        load_crash_kernel(monkeypatch, reason, RunPurpose.HEALTH_CHECK)
    assert caught.value.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "CONFIG_CRASH_DUMP" in caught.value.failure.advice


OWN_SYSTEM = "BOOT_IMAGE=/vmlinuz root=/dev/sda2 ro quiet\n"


@pytest.mark.parametrize("netconsole", [None, "+6665@192.0.2.11/eth0,6666@192.0.2.1/"])
def test_a_restart_into_the_own_system_is_the_kernels_though_it_starts_slowly(
    netconsole: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither firmware nor own system say anything on netconsole; on a serial port the firmware does."""
    monkeypatch.setattr(own_system, "PAUSE_S", 0.01)
    scene = Scene(netconsole=netconsole, own_system=OwnSystem(timeout_s=5))
    scene.strategy.console.echo = b"BIOS: memory test\r\n"
    try:
        kind, _ = scene.diagnose_boot(None, None, None, OWN_SYSTEM)
        assert kind is ErrorKind.KERNEL
        assert scene.restarted()
    finally:
        scene.strategy.tap.stop()


# --- a variant that does not come up --------------------------------------------------------------------------------


@pytest.fixture
def jumped(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> KexecStrategy:
    """A strategy right after the jump, without labgrid's drivers."""
    monkeypatch.setattr(kexec, "QUIET_S", 0.02)
    scene.ssh.asked = ["the jump"]
    strategy = object.__new__(KexecStrategy)
    strategy.tap, strategy.wakeup, strategy.ssh = scene.strategy.tap, scene.strategy.wakeup, scene.ssh
    strategy.token, strategy.cancel, strategy.place_lost = TOKEN, Stop(), lambda: None
    strategy.device, strategy.jumped = scene.device._job.device, True
    return strategy


def failure_of(strategy: KexecStrategy, timeout_s: float = 0.05) -> tuple[ErrorKind, str]:
    with pytest.raises(DeviceFailure) as caught:
        strategy._await_variant(timeout_s)
    return caught.value.failure.kind, caught.value.failure.summary


@pytest.mark.parametrize("golden", [None, GOLDEN])
def test_variant_that_does_not_come_up_is_a_hang(scene: Scene, jumped: KexecStrategy, golden: str | None) -> None:
    """A golden system that still answers is not the variant."""
    scene.ssh.systems = [golden] * 100
    said = "hang: the variant did not come up in 0.05 s; not one byte came on the console after the jump"
    assert failure_of(jumped) == (ErrorKind.KERNEL, said)
    [finding] = scene.sink.of(Finding)
    assert (finding.kind, finding.fatal, finding.boot.arm) == (FindingKind.HANG, True, Arm.CANDIDATE)


def test_variant_with_console_output_but_no_ssh_is_a_hang(
    scene: Scene, jumped: KexecStrategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        scene.strategy.tap.feed(b"[    0.000000] Linux version 6.12.1\r\n")
        return "connection refused"

    monkeypatch.setattr(scene.ssh, "connect", refuse)
    assert failure_of(jumped) == (ErrorKind.KERNEL, "hang: the variant did not come up in 0.05 s")


def test_golden_ready_line_instead_of_variant_is_a_restart(scene: Scene, jumped: KexecStrategy) -> None:
    scene.strategy.console.say(GOLDEN_READY)
    assert scene.strategy.wakeup.wait_for(lambda: scene.strategy.tap.ready is not None, 10)
    kind, summary = failure_of(jumped, 5)
    assert kind is ErrorKind.KERNEL
    assert "the variant rebooted by itself before its userland was ready" in summary


def test_a_variant_whose_ready_line_was_garbled_is_found_by_ssh(scene: Scene, jumped: KexecStrategy) -> None:
    scene.ssh.systems = [OURS]
    jumped._await_variant(5)
    assert not scene.sink.of(Finding)


MACHINE_CHECK = b"""\
[   61.000100] mce: [Hardware Error]: CPU 0: Machine Check Exception: 5 Bank 9: be00000000000090\r
[   61.000200] mce: [Hardware Error]: Machine check: Processor context corrupt\r
[   61.000300] Kernel panic - not syncing: Fatal machine check\r
[   61.000400] ---[ end Kernel panic - not syncing: Fatal machine check ]---\r
"""


def test_a_machine_check_is_the_devices_failure_and_no_finding_against_the_kernel(scene: Scene) -> None:
    scene.ssh.script = LOST
    scene.strategy.console.say(MACHINE_CHECK)
    assert scene.strategy.wakeup.wait_for(lambda: scene.strategy.tap.fatal is not None, 10)
    with pytest.raises(DeviceFailure) as caught:
        scene.device.script("measure", {}, 0.05)
    failure = caught.value.failure
    assert failure.kind is ErrorKind.INFRASTRUCTURE and caught.value.suspect
    assert failure.summary == (
        "the device's hardware reported an uncorrected error: Kernel panic - not syncing: Fatal machine check"
    )
    assert scene.sink.of(Finding) == []
