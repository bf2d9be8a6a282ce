"""KexecStrategy on a scripted device: the states off, golden and variant, and the check for a cold boot."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wqlab_contracts.enums import Arm, DeviceStep, ErrorKind
from wqlab_contracts.messages import BootKey
from wqlab_contracts.specs import BootMethod
from wqlab_worker.backends import device_access
from wqlab_worker.backends.cancellation import Stop, canceled
from wqlab_worker.backends.console_tap import ConsoleTap, Wakeup
from wqlab_worker.backends.device_access import BootTimes
from wqlab_worker.backends.kexec import KexecStrategy, Status
from wqlab_worker.backends.send_image import VariantImage
from wqlab_worker.backends.ssh import CommandResult
from wqlab_worker.measure.device_interface import DeviceFailure

from .conftest import RecordingSink

GOLDEN = "console=ttyS0,115200 panic=-1\n"


@dataclass
class AnsweringSsh:
    """SSH driver: every connection succeeds and every command prints `output`."""

    output: str

    def close(self) -> None:
        pass

    def connect(self, *_: object) -> None:
        pass

    def start(self, *_: object) -> Any:
        return SimpleNamespace(done=True, answer=CommandResult(0, self.output.encode(), b""))


@pytest.fixture(autouse=True)
def short_quiet_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_access, "QUIET_S", 0.05)


def boot_golden(output: str) -> KexecStrategy:
    """Return the strategy after a golden boot with a silent console, on which SSH commands print `output`."""
    wakeup, stop = Wakeup(), Stop()
    strategy: Any = KexecStrategy.__new__(KexecStrategy)  # without labgrid's drivers
    strategy.status, strategy.stage, strategy.times, strategy.token = Status.unknown, None, BootTimes(), ""
    strategy.device = SimpleNamespace(boot=BootMethod(power_off_s=0, golden_timeout_s=3600), own_system=None)
    strategy.wakeup, strategy.cancel, strategy.place_lost = wakeup, stop, lambda: None
    strategy.tap = ConsoleTap(SimpleNamespace(), RecordingSink(), wakeup)
    strategy.ssh, strategy.target = AnsweringSsh(output), SimpleNamespace(activate=lambda driver: None)
    strategy.power = SimpleNamespace(on=lambda: None, off=lambda: None)
    try:
        strategy.transition(Status.golden, key=BootKey(block=0, position=0, arm=Arm.BASELINE, attempt=0))
    except DeviceFailure as failure:
        failure.stage = failure.stage or strategy.stage
        raise
    assert isinstance(strategy, KexecStrategy)
    return strategy


def test_golden_system_with_garbled_console_is_found_by_ssh() -> None:
    assert boot_golden(f"new-boot\n3.20 5.00\n{GOLDEN}").golden_boot_id == "new-boot"


@pytest.mark.parametrize(
    "output",
    [f"old-boot\n86400.00 1.00\n{GOLDEN}", "old-boot\n3.20 5.00\nconsole=ttyS0,115200 wqlab.token=feed panic=0\n"],
)
def test_system_older_than_the_power_cycle_is_refused(output: str) -> None:
    """The wrong outlet was switched: a system of an earlier boot answers, golden or variant."""
    with pytest.raises(DeviceFailure) as caught:
        boot_golden(output)
    failure = caught.value.failure
    assert (failure.kind, caught.value.stage) == (ErrorKind.INFRASTRUCTURE, DeviceStep.POWER)
    assert "never off" in failure.summary and "outlet" in (failure.advice or "")
    assert caught.value.suspect


def test_unreadable_uptime_is_an_infrastructure_failure() -> None:
    with pytest.raises(DeviceFailure, match="uptime is unreadable"):
        boot_golden("sh: cat: not found\n")


# --- states -----------------------------------------------------------------------------------------------------------

KEY = BootKey(block=0, position=0, arm=Arm.CANDIDATE, attempt=0)
GOLDEN_BOOT_ID, VARIANT_BOOT_ID = (f"{digit * 8}-2222-3333-4444-555555555555" for digit in "ab")
POWER_CYCLE = ["off", "on"]
KEXEC = ["upload", "load", "jump"]


@dataclass
class ScriptedMachine:
    """A device with power switch, console and SSH; `actions` records what the strategy does to it."""

    actions: list[str] = field(default_factory=list)
    load_status: int = 0
    emulated: bool = True
    arrived: Callable[[bytes], bytes] = bytes
    """What the device has of an uploaded file."""
    reboots: bool = False
    """After the jump, the golden system comes up in place of the variant."""

    def __post_init__(self) -> None:
        self.stop = Stop()
        strategy: Any = KexecStrategy.__new__(KexecStrategy)  # without labgrid's drivers
        strategy.status, strategy.stage, strategy.times = Status.unknown, None, BootTimes()
        strategy.token, strategy.golden_boot_id, strategy.public_key = "", "", "key"
        boot = BootMethod(power_off_s=0, golden_timeout_s=3600)
        strategy.device = SimpleNamespace(boot=boot, emulated=self.emulated, netconsole=None, own_system=None)
        strategy.wakeup, strategy.cancel, strategy.place_lost = Wakeup(), self.stop, lambda: None
        strategy.tap = ConsoleTap(SimpleNamespace(), RecordingSink(), strategy.wakeup)
        strategy.ssh, strategy.power = self, self
        strategy.target = SimpleNamespace(activate=lambda driver: None)
        self.strategy: KexecStrategy = strategy

    def print_ready(self, token: str, boot_id: str) -> None:
        self.strategy.tap.feed(f"wqlab-ready token={token} boot_id={boot_id}\r\n".encode())

    def off(self) -> None:
        self.actions.append("off")

    def on(self) -> None:
        self.actions.append("on")
        self.print_ready("-", GOLDEN_BOOT_ID)

    def close(self) -> None:
        pass

    def connect(self, *_: object) -> None:
        pass

    def start(self, command: str, wakeup: Wakeup, stdin: bytes | None = None) -> Any:
        status, output = 0, ""
        if stdin is not None:
            self.actions.append("upload")
            content = self.arrived(stdin)
            output = {
                "stat -c %s": f"{len(content)}\n",
                "sha256sum": f"{hashlib.sha256(content).hexdigest()}  /lab/variant\n",
            }[command.removeprefix("cat > /lab/variant && ").removesuffix(" /lab/variant")]
        elif command.startswith("kexec -l"):
            self.actions.append("load")
            status = self.load_status
            match = re.search(r"wqlab\.token=(\w+)", command)
            assert match and match[1] == self.strategy.token
        else:
            assert "kexec -e" in command
            self.actions.append("jump")
            if self.reboots:
                self.print_ready("-", GOLDEN_BOOT_ID)
            else:
                self.print_ready(self.strategy.token, VARIANT_BOOT_ID)
        return SimpleNamespace(done=True, answer=CommandResult(status, output.encode(), b""))


@pytest.fixture
def image(tmp_path: Path) -> VariantImage:
    (tmp_path / "kernel").write_bytes(b"a kernel")
    return VariantImage(tmp_path / "kernel", hashlib.sha256(b"a kernel").hexdigest())


@pytest.mark.parametrize("emulated", [True, False])
def test_variant_is_reached_through_off_and_golden(image: VariantImage, emulated: bool) -> None:
    machine = ScriptedMachine(emulated=emulated)
    strategy = machine.strategy
    strategy.transition(Status.variant, key=KEY, image=image)
    assert machine.actions == POWER_CYCLE + KEXEC
    assert strategy.status is Status.variant
    assert strategy.golden_boot_id == GOLDEN_BOOT_ID
    assert strategy.stage is DeviceStep.KEXEC


def test_golden_system_is_not_booted_again_for_its_variant(image: VariantImage) -> None:
    machine = ScriptedMachine()
    machine.strategy.transition(Status.golden, key=KEY)
    assert machine.actions == POWER_CYCLE
    assert machine.strategy.status is Status.golden
    machine.strategy.transition(Status.variant, key=KEY, image=image)
    assert machine.actions == POWER_CYCLE + KEXEC


def test_golden_system_from_off_switches_the_power_off_once() -> None:
    machine = ScriptedMachine()
    machine.strategy.transition(Status.off)
    machine.strategy.transition(Status.golden, key=KEY)
    assert machine.actions == POWER_CYCLE


def test_each_boot_of_a_variant_begins_with_a_power_cycle(image: VariantImage) -> None:
    machine = ScriptedMachine()
    tokens = []
    for attempt in range(2):
        key = KEY.model_copy(update={"attempt": attempt})
        machine.strategy.transition(Status.variant, key=key, image=image)
        tokens.append(machine.strategy.token)
    assert machine.actions == 2 * (POWER_CYCLE + KEXEC)
    assert tokens[0] != tokens[1]


def test_transition_without_its_arguments_touches_nothing(image: VariantImage) -> None:
    machine = ScriptedMachine()
    for to, arguments in (
        (Status.golden, {}),
        (Status.variant, {"key": KEY}),
        (Status.variant, {"image": image}),
        (Status.unknown, {}),
    ):
        with pytest.raises(ValueError, match=r"needs its|cannot go to"):
            machine.strategy.transition(to, **arguments)  # type: ignore[arg-type]
    assert machine.actions == []


@pytest.mark.parametrize(
    ("emulated", "arrived"), [(True, lambda data: data[:-1]), (False, lambda data: data[:-1] + b"?")]
)
def test_damaged_upload_is_an_infrastructure_failure(
    image: VariantImage, emulated: bool, arrived: Callable[[bytes], bytes]
) -> None:
    machine = ScriptedMachine(emulated=emulated, arrived=arrived)
    with pytest.raises(DeviceFailure, match="did not arrive whole") as caught:
        machine.strategy.transition(Status.variant, key=KEY, image=image)
    assert caught.value.failure.kind is ErrorKind.INFRASTRUCTURE
    assert machine.actions == [*POWER_CYCLE, "upload"]
    assert (machine.strategy.status, machine.strategy.stage) == (Status.golden, DeviceStep.KEXEC)


def test_failed_kexec_load_does_not_jump(image: VariantImage) -> None:
    machine = ScriptedMachine(load_status=1)
    with pytest.raises(DeviceFailure, match="kexec did not load the image"):
        machine.strategy.transition(Status.variant, key=KEY, image=image)
    assert machine.actions == [*POWER_CYCLE, "upload", "load"]


def test_golden_ready_line_after_the_jump_is_a_kernel_failure(image: VariantImage) -> None:
    machine = ScriptedMachine(reboots=True)
    with pytest.raises(DeviceFailure, match="the variant rebooted by itself") as caught:
        machine.strategy.transition(Status.variant, key=KEY, image=image)
    assert caught.value.failure.kind is ErrorKind.KERNEL


def test_cancel_interrupts_a_transition(image: VariantImage) -> None:
    machine = ScriptedMachine()
    machine.stop.request(canceled("not needed any more"))
    with pytest.raises(DeviceFailure) as caught:
        machine.strategy.transition(Status.variant, key=KEY, image=image)
    assert caught.value.failure.kind is ErrorKind.CANCELED
    assert machine.actions == ["off"]


# --- faults of the device ---------------------------------------------------------------------------------------------


@dataclass
class HangingMachine(ScriptedMachine):
    """After `kexec -e` the console shows only `printed`, and SSH does not answer."""

    printed: str = ""
    jumped: bool = False

    def connect(self, *_: object) -> Any:
        return "no SSH answer in 5 s" if self.jumped else None

    def start(self, command: str, wakeup: Wakeup, stdin: bytes | None = None) -> Any:
        if "kexec -e" not in command:
            return super().start(command, wakeup, stdin)
        self.jumped = True
        self.strategy.tap.feed(self.printed.encode())
        return SimpleNamespace(done=True, answer=CommandResult(0, b"", b""))


MARKER = "[   20.000000] wqlab: kexec -e\r\n"


@pytest.mark.parametrize(
    ("printed", "kind", "says"),
    [
        (f"{MARKER}[   20.1] e1000e: hw hang\r\n", ErrorKind.INFRASTRUCTURE, "hung while it shut down its devices"),
        (f"{MARKER}[   20.1] kexec_core: Starting new kernel\r\n", ErrorKind.KERNEL, "did not come up in 1 s"),
        (f"{MARKER}[    0.0] Linux version 7.1.0\r\n", ErrorKind.KERNEL, "did not come up in 1 s"),
        ("", ErrorKind.KERNEL, "not one byte came on the console after the jump"),
    ],
)
def test_a_golden_system_that_hangs_before_the_jump_is_not_the_variants_failure(
    image: VariantImage, monkeypatch: pytest.MonkeyPatch, printed: str, kind: ErrorKind, says: str
) -> None:
    monkeypatch.setattr(device_access, "CONSOLE_ACTIVE_S", 0.0)
    machine = HangingMachine(printed=printed)
    boot = machine.strategy.device.boot.model_copy(update={"variant_timeout_s": 1})
    machine.strategy.device.boot = boot
    with pytest.raises(DeviceFailure) as caught:
        machine.strategy.transition(Status.variant, key=KEY, image=image)
    assert caught.value.failure.kind is kind
    assert says in caught.value.failure.summary
    assert caught.value.suspect is (kind is ErrorKind.INFRASTRUCTURE)


def test_on_netconsole_silence_after_the_jump_is_the_variants(
    image: VariantImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network is down before the jump, and a kernel that hangs early never brings it up."""
    monkeypatch.setattr(device_access, "CONSOLE_ACTIVE_S", 0.0)
    machine = HangingMachine(printed=MARKER)
    device = machine.strategy.device
    device.boot = device.boot.model_copy(update={"variant_timeout_s": 1})
    device.netconsole = "+6665@192.0.2.11/eth0,6666@192.0.2.1/"
    with pytest.raises(DeviceFailure, match="the variant did not come up in 1 s") as caught:
        machine.strategy.transition(Status.variant, key=KEY, image=image)
    assert caught.value.failure.kind is ErrorKind.KERNEL


@dataclass
class DyingMachine(ScriptedMachine):
    """The variant prints its ready line and then panics, before SSH answers."""

    panic: str = ""

    def connect(self, *_: object) -> Any:
        if "jump" not in self.actions:
            return None
        self.strategy.tap.feed(
            "mce: [Hardware Error]: CPU 0: Machine Check Exception: 5 Bank 9: be00000000000090\r\n"
            f"Kernel panic - not syncing: {self.panic}\r\n"
            f"---[ end Kernel panic - not syncing: {self.panic} ]---\r\n".encode()
        )
        return "connection timed out"


@pytest.mark.parametrize(
    ("panic", "kind"), [("Fatal exception", ErrorKind.KERNEL), ("Fatal machine check", ErrorKind.INFRASTRUCTURE)]
)
def test_a_panic_between_the_ready_line_and_ssh_is_named(image: VariantImage, panic: str, kind: ErrorKind) -> None:
    with pytest.raises(DeviceFailure) as caught:
        DyingMachine(panic=panic).strategy.transition(Status.variant, key=KEY, image=image)
    assert caught.value.failure.kind is kind and caught.value.failure.counts_against_arm
    assert f"Kernel panic - not syncing: {panic}" in caught.value.failure.summary
