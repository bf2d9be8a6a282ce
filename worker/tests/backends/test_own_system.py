"""A device whose own operating system starts by default: restarts by SSH, recovery by power, and what is reported."""

from __future__ import annotations

import time

import pytest

from wqlab_contracts.enums import DeviceStep, ErrorKind
from wqlab_worker.backends import answering_system, own_system
from wqlab_worker.backends.cancellation import canceled
from wqlab_worker.backends.kexec import Status
from wqlab_worker.backends.ssh import CommandResult
from wqlab_worker.measure.device_interface import DeviceFailure

from .dual_boot import BOOT_ID, GOLDEN, KEY, OWN, RESTARTED, VARIANT, DualBoot, failure_of

pytestmark = pytest.mark.usefixtures("short_times")


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
    machine.strategy.shut_down()
    assert machine.actions == ["on", "poweroff"]
    assert machine.system is None


@pytest.mark.parametrize("system", [GOLDEN, VARIANT])
def test_a_system_of_the_lab_needs_no_shutdown(system: str) -> None:
    machine = DualBoot(system=system)
    machine.strategy.shut_down()
    assert machine.actions == ["on"]


def test_a_silent_machine_is_switched_on_before_it_is_shut_down() -> None:
    machine = DualBoot(system=None)
    machine.strategy.shut_down()
    assert machine.actions == ["on", "poweroff"]


@pytest.mark.parametrize("refusal", ["no SSH answer in 1 s", "Permission denied (publickey)."])
def test_a_machine_that_cannot_be_shut_down_keeps_its_power(refusal: str) -> None:
    """Its address may be wrong, or its key missing: it may be running."""
    machine = DualBoot(system=None, starts=None, refusal=refusal, timeout_s=0)
    with pytest.raises(DeviceFailure, match="own system"):
        machine.strategy.shut_down()
    assert machine.actions == ["on"]


def test_a_switch_that_refuses_is_found_before_the_own_system_is_shut_down() -> None:
    machine = DualBoot(failed_ons=1)
    with pytest.raises(DeviceFailure, match="power could not be switched on"):
        machine.strategy.shut_down()
    machine.failed_ons = 1
    with pytest.raises(DeviceFailure, match="power could not be switched on") as caught:
        machine.strategy.try_power_switch()
    assert caught.value.stage is DeviceStep.POWER
    assert machine.actions == ["on", "on"]


def test_the_own_system_has_time_to_unmount_after_its_ssh_server_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = DualBoot()
    monkeypatch.setattr(own_system, "HALT_S", 0.2)
    started = time.monotonic()
    machine.strategy.shut_down()
    assert time.monotonic() - started >= 0.2


def test_a_power_switch_that_works_brings_the_halted_system_back() -> None:
    machine = DualBoot(shutdown_answers=1)
    machine.strategy.try_power_switch()
    machine.strategy.transition(Status.golden, key=KEY)
    assert machine.actions == ["on", "halt", "off", "on", *RESTARTED]


def test_a_power_switch_that_does_nothing_is_found() -> None:
    machine = DualBoot(timeout_s=0, ignores_off=True)
    with pytest.raises(DeviceFailure) as caught:
        machine.strategy.try_power_switch()
    assert "did not come back in 0 s after its power was switched off and on" in caught.value.failure.summary
    assert (caught.value.stage, caught.value.suspect) == (DeviceStep.POWER, True)
    assert machine.actions == ["on", "halt", "off", "on"]


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
        machine.strategy.await_variant(3600)
    assert caught.value.failure.kind is ErrorKind.KERNEL
    assert "rebooted by itself" in caught.value.failure.summary
