"""A device whose own operating system starts by default, on a scripted machine: restarts by SSH, recovery by power."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from wqlab_contracts.enums import Arm, DeviceStep, ErrorKind
from wqlab_contracts.messages import BootKey
from wqlab_contracts.specs import BootMethod, OwnSystem
from wqlab_worker.backends import kexec, own_system
from wqlab_worker.backends.console_tap import ConsoleTap, Wakeup
from wqlab_worker.backends.kexec import BootTimes, KexecStrategy, Status
from wqlab_worker.backends.ssh import CommandResult
from wqlab_worker.claims.heartbeats import Stop, canceled
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
    """It is on and silent until its power is cut."""
    ignores_off: bool = False
    ready_line: bool = True
    up_s: float = 500.0
    shutdown_answers: int = 0
    """Number of times the old system still answers after `reboot` or `poweroff`."""
    actions: list[str] = field(default_factory=list)
    timeout_s: int = 5

    def __post_init__(self) -> None:
        self.stop = Stop()
        self.stop.extend(time.monotonic() + 60)
        strategy: Any = KexecStrategy.__new__(KexecStrategy)  # without labgrid's drivers
        strategy.status, strategy.stage, strategy.times = Status.unknown, None, BootTimes()
        strategy.token, strategy.golden_boot_id, strategy.restarted = "", "", False
        strategy.device = SimpleNamespace(
            boot=BootMethod(power_off_s=0, golden_timeout_s=5),
            own_system=OwnSystem.model_construct(timeout_s=self.timeout_s),
        )
        strategy.wakeup, strategy.cancel, strategy.place_lost = Wakeup(), self.stop, lambda: None
        strategy.tap = ConsoleTap(SimpleNamespace(), RecordingSink(), strategy.wakeup)
        strategy.ssh, strategy.power = self, self
        strategy.target = SimpleNamespace(activate=lambda driver: None)
        self.strategy: KexecStrategy = strategy
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
        if not self.hangs:
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
            else:
                started, self.next = self.next, None
                self._start(started or None)  # "" is a system that has ended
        return None if self.system is not None else self.refusal

    def start(self, command: str, *_: object) -> Any:
        status, output = 0, ""
        if command == own_system.READ_SYSTEM:
            output = f"{BOOT_ID}\n{self.up_s} 1.0\n{self.system}\n"
        elif command == "grub-reboot wqlab":
            self.actions.append("choose")
            status, self.chosen = self.choose_status, True
        elif command in {"poweroff", "halt"}:
            self.actions.append(command)
            self.next, self.hangs = "", command == "halt"
        else:
            assert command in {"reboot", own_system.RESTART_LAB_SYSTEM}, command
            self.actions.append("restart")
            golden = self.chosen and not self.forgets_choice and self.system == OWN
            self.chosen = False
            self.next = GOLDEN if golden else OWN
            if golden and not self.shutdown_answers:
                self.connect()
        return SimpleNamespace(done=True, answer=CommandResult(status, output.encode(), b"not found\n"))


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kexec, "QUIET_S", 0.05)
    monkeypatch.setattr(own_system, "PAUSE_S", 0.01)
    monkeypatch.setattr(own_system, "HALT_S", 0.01)


def failure_of(machine: DualBoot) -> DeviceFailure:
    with pytest.raises(DeviceFailure) as caught:
        machine.strategy.transition(Status.golden, key=KEY)
    assert caught.value.failure.kind is ErrorKind.INFRASTRUCTURE
    assert caught.value.suspect
    return caught.value


RESTARTED = ["choose", "restart"]


@pytest.mark.parametrize("shutdown_answers", [0, 3])
def test_a_running_system_is_restarted_and_keeps_its_power(shutdown_answers: int) -> None:
    machine = DualBoot(shutdown_answers=shutdown_answers)
    machine.strategy.transition(Status.golden, key=KEY)
    assert machine.actions == RESTARTED
    assert machine.strategy.golden_boot_id == BOOT_ID


def test_the_golden_system_is_found_by_ssh_without_its_ready_line() -> None:
    machine = DualBoot(ready_line=False, shutdown_answers=2)
    machine.strategy.transition(Status.golden, key=KEY)
    assert machine.actions == RESTARTED
    assert machine.strategy.golden_boot_id == BOOT_ID


def test_the_device_is_left_to_its_own_system_after_each_boot() -> None:
    machine = DualBoot()
    for attempt in range(2):
        machine.strategy.transition(Status.golden, key=KEY.model_copy(update={"attempt": attempt}))
        machine.system = VARIANT
        machine.strategy.transition(Status.off)
    assert machine.actions == 2 * [*RESTARTED, "restart"]
    machine.connect()
    assert machine.system == OWN


def test_a_silent_variant_gets_a_power_cycle() -> None:
    machine = DualBoot()
    machine.strategy.transition(Status.golden, key=KEY)
    machine.system = None
    machine.strategy.transition(Status.off)
    assert machine.actions == [*RESTARTED, "off", "on"]
    assert machine.system == OWN


def test_a_canceled_run_leaves_the_device_to_its_own_system() -> None:
    machine = DualBoot()
    machine.strategy.transition(Status.golden, key=KEY)
    machine.stop.request(canceled("not needed any more"))
    machine.strategy.transition(Status.off)
    assert machine.actions == [*RESTARTED, "restart"]


def test_a_device_of_which_nothing_is_known_keeps_its_power_when_it_is_left() -> None:
    """Its own system may be starting."""
    machine = DualBoot(system=None)
    machine.strategy.transition(Status.off)
    assert machine.actions == []


def test_a_silent_device_is_switched_on() -> None:
    machine = DualBoot(system=None, timeout_s=0)
    machine.strategy.transition(Status.golden, key=KEY)
    assert machine.actions == ["on", *RESTARTED]


def test_a_silent_device_that_is_on_gets_a_power_cycle() -> None:
    machine = DualBoot(system=None, timeout_s=0, hangs=True)
    machine.strategy.transition(Status.golden, key=KEY)
    assert machine.actions == ["on", "off", "on", *RESTARTED]


def test_a_system_of_the_lab_that_runs_at_the_beginning_is_restarted_first() -> None:
    machine = DualBoot(system=VARIANT)
    machine.strategy.transition(Status.golden, key=KEY)
    assert machine.actions == ["restart", *RESTARTED]


def test_a_device_that_stays_silent_is_reported() -> None:
    machine = DualBoot(system=None, starts=None, timeout_s=0)
    failure = failure_of(machine)
    assert "own system does not answer by SSH" in failure.failure.summary
    assert "after a power cycle" in failure.failure.summary
    assert failure.stage is DeviceStep.GOLDEN
    assert machine.actions == ["on", "off", "on"]


def test_a_system_that_refuses_the_key_keeps_its_power() -> None:
    machine = DualBoot(system=None, refusal="root@box: Permission denied (publickey).")
    failure = failure_of(machine)
    assert "refuses the lab's key" in failure.failure.summary
    assert "authorized_keys" in failure.failure.advice
    assert machine.actions == []


def test_a_choice_that_fails_is_reported_before_the_restart() -> None:
    machine = DualBoot(choose_status=127)
    failure = failure_of(machine)
    assert "`grub-reboot wqlab` failed on the device's own system (exit status 127)" in failure.failure.summary
    assert "not found" in failure.failure.excerpt
    assert machine.actions == ["choose"]


def test_a_boot_loader_that_starts_the_own_system_again_is_named() -> None:
    failure = failure_of(DualBoot(forgets_choice=True))
    assert "started the device's own system in place of the golden system" in failure.failure.summary
    assert "next_entry" in failure.failure.advice
    assert failure.stage is DeviceStep.GOLDEN


def test_cancellation_ends_the_wait_for_the_own_system() -> None:
    machine = DualBoot(system=None)
    machine.stop.request(canceled("not needed any more"))
    with pytest.raises(DeviceFailure) as caught:
        machine.strategy.transition(Status.golden, key=KEY)
    assert caught.value.failure.kind is ErrorKind.CANCELED
    assert machine.actions == []


def test_the_own_system_is_shut_down_before_its_power_is_cut() -> None:
    machine = DualBoot(shutdown_answers=2)
    own_system.shut_down(machine.strategy)
    assert machine.actions == ["poweroff"]
    assert machine.system is None


@pytest.mark.parametrize("system", [GOLDEN, VARIANT, None])
def test_nothing_else_is_shut_down(system: str | None) -> None:
    machine = DualBoot(system=system)
    own_system.shut_down(machine.strategy)
    assert machine.actions == []


def test_a_power_switch_that_works_brings_the_halted_system_back() -> None:
    machine = DualBoot(shutdown_answers=1)
    own_system.try_power_switch(machine.strategy)
    machine.strategy.transition(Status.golden, key=KEY)
    assert machine.actions == ["halt", "off", "on", *RESTARTED]


def test_a_power_switch_that_does_nothing_is_found() -> None:
    machine = DualBoot(timeout_s=0, ignores_off=True)
    with pytest.raises(DeviceFailure) as caught:
        own_system.try_power_switch(machine.strategy)
    assert "did not come back in 0 s after its power was switched off and on" in caught.value.failure.summary
    assert (caught.value.stage, caught.value.suspect) == (DeviceStep.POWER, True)
    assert machine.actions == ["halt", "off", "on"]
