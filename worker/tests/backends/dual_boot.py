"""A scripted machine that starts an operating system of its own by default."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from wqlab_contracts.enums import Arm, ErrorKind
from wqlab_contracts.messages import BootKey
from wqlab_contracts.specs import BootMethod, OwnSystem
from wqlab_worker.backends import answering_system, own_system
from wqlab_worker.backends.cancellation import Stop, canceled
from wqlab_worker.backends.console_tap import ConsoleTap, Wakeup
from wqlab_worker.backends.device_access import BootTimes
from wqlab_worker.backends.kexec import Status
from wqlab_worker.backends.own_system import OwnSystemStrategy
from wqlab_worker.backends.ssh import CommandResult
from wqlab_worker.measure.device_interface import DeviceFailure

from .conftest import RecordingSink

KEY = BootKey(block=0, position=0, arm=Arm.CANDIDATE, attempt=0)
OWN, GOLDEN = "root=/dev/sda2 ro quiet", "console=ttynull wqlab.ssh=key"
VARIANT = f"{GOLDEN} wqlab.token=feed"
BOOT_ID = "aaaaaaaa-2222-3333-4444-555555555555"


@dataclass
class DualBoot:
    """A machine with an own system and the golden one; `actions` records what the lab does to it."""

    system: str | None = OWN
    """Command line of the running system; None while SSH is silent."""
    refusal: str = "no SSH answer in 1 s"
    """What SSH says while no system answers, or to a key that is refused."""
    starts: str | None = OWN
    """What starts at power on; None: nothing that answers."""
    forgets_choice: bool = False
    """The boot loader starts the own system although the golden one was chosen."""
    choose_status: int = 0
    hangs: bool = False
    """The machine is on, and answers nothing until its power is cut."""
    ignores_off: bool = False
    ready_line: bool = True
    up_s: float = 500.0
    shutdown_answers: int = 0
    """Number of times the old system still answers after `reboot` or `poweroff`."""
    stays_down: int = 0
    """Number of connections that fail between the end of the old system's SSH server and the next system's start."""
    greeting: bool = False
    """An SSH server answers although no login succeeds."""
    printed: str = ""
    """What root's shell prints before the output of each command."""
    says: str | None = None
    """Output of the forced command of the SSH server, which runs whatever the client asks; None: there is none."""
    lost: frozenset[str] = frozenset()
    """Commands during which the connection breaks."""
    endless: frozenset[str] = frozenset()
    """Commands that do not end."""
    failed_ons: int = 0
    """Number of times that the power switch refuses to switch on."""
    cancel_after: str = ""
    """The run is canceled after this command."""
    actions: list[str] = field(default_factory=list)
    timeout_s: int = 3600

    def __post_init__(self) -> None:
        self.stop = Stop()
        strategy: Any = OwnSystemStrategy.__new__(OwnSystemStrategy)  # without labgrid's drivers
        strategy.status, strategy.stage, strategy.times = Status.unknown, None, BootTimes()
        strategy.token, strategy.golden_boot_id, strategy._ended_own_at, strategy.jumped = "", "", None, False
        strategy.device = SimpleNamespace(
            boot=BootMethod(power_off_s=0, golden_timeout_s=3600),
            own_system=OwnSystem.model_construct(timeout_s=self.timeout_s),
        )
        strategy.wakeup, strategy.cancel, strategy.place_lost = Wakeup(), self.stop, lambda: None
        strategy.tap = ConsoleTap(SimpleNamespace(), RecordingSink(), strategy.wakeup)
        strategy.ssh, strategy.power = self, self
        strategy.target = SimpleNamespace(activate=lambda driver: None)
        self.strategy: OwnSystemStrategy = strategy
        self.chosen = False
        self.next: str | None = None
        """The system that starts once the running one has shut down."""

    # --- power --------------------------------------------------------------------------------------------------------

    def off(self) -> None:
        self.actions.append("off")
        if not self.ignores_off:
            self.system, self.hangs = None, False

    def on(self) -> None:
        self.actions.append("on")
        if self.failed_ons:
            self.failed_ons -= 1
            raise OSError("busy")
        if not self.hangs and self.system is None and self.next is None:
            self._start(self.starts)

    def _start(self, system: str | None) -> None:
        self.system, self.up_s = system, -1.0
        if system == GOLDEN and self.ready_line:
            self.strategy.tap.feed(f"wqlab-ready token=- boot_id={BOOT_ID}\r\n".encode())

    # --- SSH ----------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        pass

    def connect(self, *_: object) -> str | None:
        if self.next is not None:
            if self.shutdown_answers:
                self.shutdown_answers -= 1
            elif self.stays_down:
                self.stays_down -= 1
                self.system = None
            else:
                started, self.next = self.next, None
                self._start(started or None)  # "" is a system that has ended
        return None if self.system is not None else self.refusal

    def greets(self, _timeout_s: float) -> bool:
        return self.greeting

    def start(self, command: str, *_: object) -> Any:
        status, output = 0, ""
        if command == self.cancel_after:
            self.stop.request(canceled("not needed any more"))
        if command in self.lost | self.endless:
            answer = CommandResult(255, b"", b"") if command in self.lost else None
            return SimpleNamespace(done=answer is not None, answer=answer, kill=lambda: None)
        if command == answering_system.READ_SYSTEM:
            output = self.says or f"{self.printed}{BOOT_ID}\n{self.up_s} 1.0\n{self.system}\n"
        elif command == "grub-reboot wqlab":
            self.actions.append("choose")
            status, self.chosen = self.choose_status, True
        elif command in {"poweroff", "halt"}:
            self.actions.append(command)
            self.next, self.hangs = "", command == "halt"
        else:
            if command == "cat /proc/cmdline":
                return SimpleNamespace(done=True, answer=CommandResult(0, f"{self.system}\n".encode(), b""))
            assert command in {"reboot", own_system.RESTART_LAB_SYSTEM}, command
            self.actions.append("restart")
            golden = self.chosen and not self.forgets_choice and self.system == OWN
            self.chosen = False
            self.next = GOLDEN if golden else OWN
            if golden and not self.shutdown_answers and not self.stays_down:
                self.connect()
        return SimpleNamespace(done=True, answer=CommandResult(status, output.encode(), b"not found\n"))


def failure_of(machine: DualBoot) -> DeviceFailure:
    with pytest.raises(DeviceFailure) as caught:
        machine.strategy.transition(Status.golden, key=KEY)
    assert caught.value.failure.kind is ErrorKind.INFRASTRUCTURE
    assert caught.value.suspect
    return caught.value


RESTARTED = ["choose", "restart"]
"""Actions of a boot from a running own system to the golden system."""
