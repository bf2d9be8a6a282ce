"""The own system of a device keeps its power while it runs, and comes back after cancellations and trials."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.specs import BootMethod
from wqlab_worker.backends import answering_system, device_trial
from wqlab_worker.backends.cancellation import canceled
from wqlab_worker.backends.device_trial import Trial
from wqlab_worker.backends.kexec import Status
from wqlab_worker.measure.device_interface import DeviceFailure

from .dual_boot import KEY, OWN, RESTARTED, DualBoot, failure_of

pytestmark = pytest.mark.usefixtures("short_times")


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
    """The golden system starts only after the cancellation. Without a restart, the machine would stay in it."""
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


@pytest.mark.usefixtures("short_shutdown")
def test_a_restart_whose_end_cannot_be_seen_does_not_cut_the_power() -> None:
    """The address or the key has changed: the own system may be running."""
    machine = DualBoot(cancel_after="reboot", stays_down=10_000)
    with pytest.raises(DeviceFailure):
        machine.strategy.transition(Status.golden, key=KEY)
    machine.greeting = True
    machine.strategy.transition(Status.off)
    assert machine.actions == RESTARTED


@pytest.mark.usefixtures("short_shutdown")
def test_a_golden_system_that_does_not_come_gets_a_power_cycle_after_the_shutdown() -> None:
    machine = DualBoot(cancel_after="reboot", stays_down=10_000)
    with pytest.raises(DeviceFailure):
        machine.strategy.transition(Status.golden, key=KEY)
    machine.strategy.transition(Status.off)
    assert machine.actions == [*RESTARTED, "off", "on"]


@pytest.mark.parametrize("command", ["halt", "poweroff"])
@pytest.mark.usefixtures("short_shutdown")
def test_a_canceled_shutdown_does_not_leave_the_machine_off(command: str) -> None:
    machine = DualBoot(cancel_after=command)
    with pytest.raises(DeviceFailure) as caught:
        machine.strategy.try_power_switch() if command == "halt" else machine.strategy.shut_down()
    assert caught.value.failure.kind is ErrorKind.CANCELED
    machine.strategy.transition(Status.off)
    assert machine.actions == ["on", command, "off", "on"]
    assert machine.system == OWN


def test_a_machine_that_starts_its_own_system_is_left_alone() -> None:
    machine = DualBoot()
    machine.strategy.shut_down()
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


def last_boot(system: str | None, **more: Any) -> DualBoot:
    machine = DualBoot(timeout_s=1, **more)
    machine.strategy.transition(Status.golden, key=KEY)
    machine.strategy.transition(Status.off)
    machine.actions, machine.system, machine.next = [], system, None
    return machine


def test_a_kernel_that_hangs_in_its_restart_is_ended_at_the_end_of_the_session() -> None:
    machine = last_boot(None, hangs=True)
    machine.strategy.await_own_system_after_session()
    assert machine.actions == ["off", "on"]
    assert machine.system == OWN


@pytest.mark.parametrize(
    ("system", "more"), [(OWN, {}), (None, {"refusal": "Permission denied (publickey)."}), (None, {"greeting": True})]
)
def test_a_system_that_is_back_keeps_its_power(system: str | None, more: dict[str, Any]) -> None:
    machine = last_boot(system, **more)
    machine.strategy.await_own_system_after_session()
    assert machine.actions == []


def test_the_end_of_a_canceled_session_waits_for_nothing() -> None:
    machine = last_boot(None)
    machine.stop.request(canceled("not needed any more"))
    machine.strategy.await_own_system_after_session()
    assert machine.actions == []


def test_a_machine_that_was_never_restarted_is_not_waited_for() -> None:
    machine = DualBoot(system=None)
    machine.strategy.await_own_system_after_session()
    assert machine.actions == []


def trial_of(machine: DualBoot) -> Trial:
    trial: Any = Trial.__new__(Trial)  # without labgrid's drivers
    trial._strategy, trial._tap, trial._say = machine.strategy, machine.strategy.tap, lambda message: None
    trial._target = SimpleNamespace(cleanup=lambda: None)
    trial._console = SimpleNamespace(tail=b"")
    trial._device = SimpleNamespace(
        choose_golden="grub-reboot wqlab",
        boot=BootMethod(power_off_s=0, golden_timeout_s=5),
        netconsole=None,
        power=SimpleNamespace(kind="debug_cable"),
    )
    trial._switched, trial._boots, trial._on_at, trial._since = False, 0, 0.0, "power on"
    return trial  # type: ignore[no-any-return]


@pytest.mark.usefixtures("short_shutdown")
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
