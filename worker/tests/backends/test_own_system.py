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
from wqlab_worker.backends import answering_system, device_trial, kexec, own_system
from wqlab_worker.backends.console_tap import ConsoleTap, Wakeup
from wqlab_worker.backends.device_trial import Trial
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
    stays_down: int = 0
    """Number of connections that fail after the old system's SSH has ended and before the next one starts."""
    greeting: bool = False
    """An SSH server answers although no login succeeds."""
    printed: str = ""
    """What root's shell prints before the output of each command."""
    says: str | None = None
    """Output of a command that the SSH server runs in place of each other."""
    lost: frozenset[str] = frozenset()
    """Commands during which the connection breaks."""
    endless: frozenset[str] = frozenset()
    """Commands that do not end."""
    failed_ons: int = 0
    """Number of times that the power switch refuses to switch on."""
    cancel_after: str = ""
    """The run is canceled after this command."""
    actions: list[str] = field(default_factory=list)
    timeout_s: int = 5

    def __post_init__(self) -> None:
        self.stop = Stop()
        self.stop.extend(time.monotonic() + 60)
        strategy: Any = KexecStrategy.__new__(KexecStrategy)  # without labgrid's drivers
        strategy.status, strategy.stage, strategy.times = Status.unknown, None, BootTimes()
        strategy.token, strategy.golden_boot_id, strategy.ended_own_at, strategy.jumped = "", "", None, False
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


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kexec, "QUIET_S", 0.05)
    monkeypatch.setattr(own_system, "PAUSE_S", 0.01)
    monkeypatch.setattr(own_system, "HALT_S", 0.01)
    monkeypatch.setattr(own_system, "SHUTDOWN_S", 0.3)
    monkeypatch.setattr(own_system, "COMMAND_S", 0.05)
    monkeypatch.setattr(own_system, "POWER_ON_PAUSE_S", 0.01)


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
    assert machine.actions == ["on", "poweroff"]
    assert machine.system is None


@pytest.mark.parametrize("system", [GOLDEN, VARIANT])
def test_a_system_of_the_lab_needs_no_shutdown(system: str) -> None:
    machine = DualBoot(system=system)
    own_system.shut_down(machine.strategy)
    assert machine.actions == ["on"]


def test_a_silent_machine_is_switched_on_before_it_is_shut_down() -> None:
    machine = DualBoot(system=None)
    own_system.shut_down(machine.strategy)
    assert machine.actions == ["on", "poweroff"]


@pytest.mark.parametrize("refusal", ["no SSH answer in 1 s", "Permission denied (publickey)."])
def test_a_machine_that_cannot_be_shut_down_keeps_its_power(refusal: str) -> None:
    """Its address may be wrong, or its key missing: it may be running."""
    machine = DualBoot(system=None, starts=None, refusal=refusal, timeout_s=0)
    with pytest.raises(DeviceFailure, match="own system"):
        own_system.shut_down(machine.strategy)
    assert machine.actions == ["on"]


def test_a_switch_that_refuses_is_found_before_the_own_system_is_shut_down() -> None:
    machine = DualBoot(failed_ons=1)
    with pytest.raises(DeviceFailure, match="power could not be switched on"):
        own_system.shut_down(machine.strategy)
    machine.failed_ons = 1
    with pytest.raises(DeviceFailure, match="power could not be switched on"):
        own_system.try_power_switch(machine.strategy)
    assert machine.actions == ["on", "on"]


def test_the_own_system_has_time_to_unmount_after_its_ssh_server_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = DualBoot()
    monkeypatch.setattr(own_system, "HALT_S", 0.2)
    started = time.monotonic()
    own_system.shut_down(machine.strategy)
    assert time.monotonic() - started >= 0.2


def test_a_power_switch_that_works_brings_the_halted_system_back() -> None:
    machine = DualBoot(shutdown_answers=1)
    own_system.try_power_switch(machine.strategy)
    machine.strategy.transition(Status.golden, key=KEY)
    assert machine.actions == ["on", "halt", "off", "on", *RESTARTED]


def test_a_power_switch_that_does_nothing_is_found() -> None:
    machine = DualBoot(timeout_s=0, ignores_off=True)
    with pytest.raises(DeviceFailure) as caught:
        own_system.try_power_switch(machine.strategy)
    assert "did not come back in 0 s after its power was switched off and on" in caught.value.failure.summary
    assert (caught.value.stage, caught.value.suspect) == (DeviceStep.POWER, True)
    assert machine.actions == ["on", "halt", "off", "on"]


# --- a system that runs keeps its power ------------------------------------------------------------------------------


def test_a_shell_that_prints_a_welcome_is_read() -> None:
    machine = DualBoot(printed="Welcome to the build server\nlast login: today\n")
    machine.strategy.transition(Status.golden, key=KEY)
    assert machine.actions == RESTARTED


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        ({"endless": frozenset({answering_system.READ_SYSTEM})}, "does not answer a command"),
        ({"says": "Please log in as the user admin.\n"}, "Please log in as the user admin."),
        ({"system": None, "greeting": True, "starts": None, "refusal": "Connection closed"}, "Connection closed"),
    ],
)
def test_a_system_that_answers_and_cannot_be_used_keeps_its_power(
    machine: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering_system, "LOGIN_S", 0.01)
    scene = DualBoot(timeout_s=0, **machine)
    failure = failure_of(scene)
    assert "own system cannot be used by SSH" in failure.failure.summary
    assert reason in failure.failure.summary
    assert "has not cut its power" in failure.failure.advice
    assert scene.actions == ["on"]


def test_a_canceled_restart_waits_for_the_golden_system_and_leaves_it() -> None:
    """The own system that still answers is about to start the golden one, which nobody would leave."""
    machine = DualBoot(cancel_after="reboot", shutdown_answers=4)
    with pytest.raises(DeviceFailure):
        machine.strategy.transition(Status.golden, key=KEY)
    machine.strategy.transition(Status.off)
    assert machine.actions == [*RESTARTED, "restart"]
    machine.connect()
    assert machine.system == OWN


def test_a_canceled_restart_does_not_cut_the_power_of_a_system_that_shuts_down() -> None:
    """Its SSH server has ended, and its file systems are still mounted."""
    machine = DualBoot(cancel_after="reboot", stays_down=5)
    with pytest.raises(DeviceFailure):
        machine.strategy.transition(Status.golden, key=KEY)
    machine.strategy.transition(Status.off)
    assert machine.actions == [*RESTARTED, "restart"]


def test_a_canceled_restart_after_another_boot_does_not_cut_the_power_either() -> None:
    machine = DualBoot()
    machine.strategy.transition(Status.golden, key=KEY)
    machine.strategy.transition(Status.off)
    machine.connect()
    machine.actions, machine.cancel_after, machine.stays_down = [], "reboot", 5
    with pytest.raises(DeviceFailure):
        machine.strategy.transition(Status.golden, key=KEY.model_copy(update={"attempt": 1}))
    machine.strategy.transition(Status.off)
    assert machine.actions == [*RESTARTED, "restart"]


def test_a_restart_whose_end_cannot_be_seen_does_not_cut_the_power() -> None:
    """The address or the key has changed: the own system may be running."""
    machine = DualBoot(cancel_after="reboot", stays_down=10_000)
    with pytest.raises(DeviceFailure):
        machine.strategy.transition(Status.golden, key=KEY)
    machine.greeting = True
    machine.strategy.transition(Status.off)
    assert machine.actions == RESTARTED


def test_a_golden_system_that_does_not_come_gets_a_power_cycle_after_the_shutdown() -> None:
    machine = DualBoot(cancel_after="reboot", stays_down=10_000)
    with pytest.raises(DeviceFailure):
        machine.strategy.transition(Status.golden, key=KEY)
    machine.strategy.transition(Status.off)
    assert machine.actions == [*RESTARTED, "off", "on"]


@pytest.mark.parametrize("command", ["halt", "poweroff"])
def test_a_canceled_shutdown_does_not_leave_the_machine_off(command: str) -> None:
    machine = DualBoot(cancel_after=command)
    with pytest.raises(DeviceFailure) as caught:
        (own_system.try_power_switch if command == "halt" else own_system.shut_down)(machine.strategy)
    assert caught.value.failure.kind is ErrorKind.CANCELED
    machine.strategy.transition(Status.off)
    assert machine.actions == ["on", command, "off", "on"]
    assert machine.system == OWN


def test_a_machine_that_starts_its_own_system_is_left_alone() -> None:
    machine = DualBoot()
    own_system.shut_down(machine.strategy)
    machine.strategy.cut_power()
    machine.strategy.restore_power()
    machine.system = None  # it is starting
    machine.strategy.transition(Status.off)
    assert machine.actions == ["on", "poweroff", "off", "on"]


def test_a_switch_that_is_busy_after_the_power_off_is_asked_again() -> None:
    machine = DualBoot()
    machine.strategy.transition(Status.golden, key=KEY)
    machine.system, machine.failed_ons = None, 2
    machine.strategy.transition(Status.off)
    assert machine.actions == [*RESTARTED, "off", "on", "on", "on"]
    assert machine.system == OWN


# --- what is reported ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "said"), [("lost", "was interrupted"), ("endless", "did not end")])
def test_a_choice_that_did_not_end_is_reported_before_the_restart(how: str, said: str) -> None:
    machine = DualBoot()
    setattr(machine, how, frozenset({"grub-reboot wqlab"}))
    assert f"`grub-reboot wqlab` {said}" in failure_of(machine).failure.summary
    assert machine.actions == []


def test_a_connection_that_breaks_during_the_shutdown_is_no_failure() -> None:
    assert answering_system.still_runs(CommandResult(255, b"", b""), 5.0)


def test_a_variant_that_restarted_into_the_own_system_is_named() -> None:
    machine = DualBoot()
    machine.strategy.tap.begin_boot(KEY)
    machine.strategy.tap.begin_variant()
    machine.strategy.token, machine.strategy.jumped = "feed", True
    with pytest.raises(DeviceFailure) as caught:
        machine.strategy._await_variant(5)
    assert caught.value.failure.kind is ErrorKind.KERNEL
    assert "rebooted by itself" in caught.value.failure.summary


# --- the end of a session --------------------------------------------------------------------------------------------


def last_boot(system: str | None, **more: Any) -> DualBoot:
    machine = DualBoot(timeout_s=1, **more)
    machine.strategy.transition(Status.golden, key=KEY)
    machine.strategy.transition(Status.off)
    machine.actions, machine.system, machine.next = [], system, None
    return machine


def test_a_kernel_that_hangs_in_its_restart_is_ended_at_the_end_of_the_session() -> None:
    machine = last_boot(None, hangs=True)
    own_system.see_back(machine.strategy)
    assert machine.actions == ["off", "on"]
    assert machine.system == OWN


@pytest.mark.parametrize(
    ("system", "more"), [(OWN, {}), (None, {"refusal": "Permission denied (publickey)."}), (None, {"greeting": True})]
)
def test_a_system_that_is_back_keeps_its_power(system: str | None, more: dict[str, Any]) -> None:
    machine = last_boot(system, **more)
    own_system.see_back(machine.strategy)
    assert machine.actions == []


def test_the_end_of_a_canceled_session_waits_for_nothing() -> None:
    machine = last_boot(None)
    machine.stop.request(canceled("not needed any more"))
    own_system.see_back(machine.strategy)
    assert machine.actions == []


def test_a_machine_that_was_never_restarted_is_not_waited_for() -> None:
    machine = DualBoot(system=None)
    own_system.see_back(machine.strategy)
    assert machine.actions == []


# --- device trials ---------------------------------------------------------------------------------------------------


def trial_of(machine: DualBoot) -> Trial:
    trial: Any = Trial.__new__(Trial)  # without labgrid's drivers
    trial._strategy, trial._tap, trial._say = machine.strategy, machine.strategy.tap, lambda message: None
    trial._target = SimpleNamespace(cleanup=lambda: None)
    trial._request, trial._console = SimpleNamespace(password_folders=[]), SimpleNamespace(tail=b"")
    trial._device = SimpleNamespace(
        choose_golden="grub-reboot wqlab",
        boot=BootMethod(power_off_s=0, golden_timeout_s=5),
        netconsole=None,
        power=SimpleNamespace(kind="debug_cable"),
    )
    trial._switched, trial._boots, trial._on_at, trial._since = False, 0, 0.0, "power on"
    return trial  # type: ignore[no-any-return]


def test_a_trial_that_is_stopped_after_the_shutdown_brings_the_machine_back() -> None:
    machine = DualBoot(cancel_after="poweroff")
    trial = trial_of(machine)
    with pytest.raises(DeviceFailure):
        trial._switch_off()
    trial._leave()
    assert machine.actions == ["on", "poweroff", "off", "on"]
    assert machine.system == OWN


def test_a_trial_names_an_own_system_that_came_in_place_of_the_golden_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_trial, "FIRST_BYTE_S", 0.05)
    with pytest.raises(DeviceFailure, match="in place of the golden system"):
        trial_of(DualBoot(forgets_choice=True))._switch_on()
