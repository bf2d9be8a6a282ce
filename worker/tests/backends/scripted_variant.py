"""A running variant whose device is scripted, without power switch and labgrid; the console tap is real."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pexpect import TIMEOUT  # type: ignore[import-untyped]

from wqlab_contracts.enums import Arm, ErrorKind, FindingKind, RunPurpose
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import Artifact, BootKey, DeviceFacts, Finding, Kernel, RunJob
from wqlab_contracts.specs import OwnSystem
from wqlab_worker.backends.console_tap import ConsoleTap, Wakeup
from wqlab_worker.backends.device_access import DeviceAccess
from wqlab_worker.backends.send_image import VariantImage
from wqlab_worker.backends.ssh import CommandResult, SshConnection
from wqlab_worker.backends.ssh_device import SshDevice
from wqlab_worker.backends.verify_boot import kernel_failure
from wqlab_worker.measure.device_interface import DeviceFailure

from .conftest import ROOT, RecordingSink, trivial_plan

TOKEN = "0123456789abcdef"
OURS = f"console=ttyS0,115200 panic=0 wqlab.token={TOKEN} quiet\n"
GOLDEN = "console=ttyS0,115200 panic=5\n"
GOLDEN_READY = b"wqlab-ready token=- boot_id=11111111-2222-3333-4444-555555555555\r\n"
LOST = CommandResult(255, b"", b"connection reset by peer")


class Serial:
    """Console driver: `_read` returns the text given to `say`; a write is answered by `echo`."""

    def __init__(self, wakeup: Wakeup) -> None:
        self.bytes: queue.Queue[int] = queue.Queue()
        self.echo = b""
        self.is_read = False
        """True once the tap has processed everything and waits for more."""
        self._lock = threading.Lock()
        self._wakeup = wakeup

    def say(self, data: bytes) -> None:
        with self._lock:
            self.is_read = False
            for byte in data:
                self.bytes.put(byte)

    def _read(self, size: int, timeout: float) -> bytes:
        if timeout:
            with self._lock:
                self.is_read = self.bytes.empty()
            self._wakeup.notify()
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
class ScriptedSsh(SshConnection):
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

    def start(self, command: str, wakeup: Wakeup, stdin: bytes | None = None) -> Ended:  # type: ignore[override]
        self.asked.append(command)
        if len(self.asked) == 1:
            return Ended(self.script, self.script is not None)
        if command == "cat /proc/cmdline":
            return Ended(CommandResult(0, (self.running or "").encode(), b""))
        self.meanwhile()
        return Ended(CommandResult(0, b"sysrq: Show Blocked State\n", b""))


class ScriptedStrategy(DeviceAccess):
    """Scripted access for SshDevice, with a real Wakeup and ConsoleTap."""

    token = TOKEN

    def __init__(self, sink: RecordingSink, ssh: ScriptedSsh) -> None:
        self.wakeup = Wakeup()
        self.console = Serial(self.wakeup)
        self.ssh = ssh
        self.tap = ConsoleTap(self.console, sink, self.wakeup)
        self.waited: list[float] = []
        self.on_wait: dict[float, Callable[[], None]] = {}
        """Actions at the start of a wait, by its timeout."""

    def wait(self, met: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until `met` or until the console has nothing more to say: then the time is over."""
        self.waited.append(timeout_s)
        self.on_wait.pop(timeout_s, lambda: None)()
        self.wakeup.wait_for(lambda: met() or (self.console.is_read and not self.tap.reporting), 3600)
        return met()

    def type_line(self) -> None:
        self.console.write(b"\n")

    def raise_if_crashed(self) -> None:
        if self.tap.fatal:
            raise kernel_failure(self.tap.fatal)

    def command(self, command: str, timeout_s: float, stdin: bytes | None = None) -> CommandResult:
        answer = self.ssh.start(command, self.wakeup, stdin).answer
        assert answer
        return answer


def with_fields(message: Any, **fields: Any) -> Any:
    """Return a message of this class that has these fields only."""
    return message.model_construct(**fields)


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
        kernels = {arm: with_fields(Kernel, image=with_fields(Artifact, sha256=arm.value)) for arm in Arm}
        job = with_fields(RunJob, device=device, plan=trivial_plan(0), purpose=self.purpose, kernels=kernels)
        self.strategy.device = device
        strategy: Any = self.strategy
        images = {each.image.sha256: VariantImage(Path(arm.value), each.image.sha256) for arm, each in kernels.items()}
        self.baseline = images[kernels[Arm.BASELINE].image.sha256]
        self.device = SshDevice(strategy, job, images, {}, {})

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


MACHINE_CHECK = b"""\
[   61.000100] mce: [Hardware Error]: CPU 0: Machine Check Exception: 5 Bank 9: be00000000000090\r
[   61.000200] mce: [Hardware Error]: Machine check: Processor context corrupt\r
[   61.000300] Kernel panic - not syncing: Fatal machine check\r
[   61.000400] ---[ end Kernel panic - not syncing: Fatal machine check ]---\r
"""
