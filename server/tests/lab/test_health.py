"""Every transition of device health, and the selection of devices to check."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from wqlab_contracts.enums import DeviceHealth, ErrorKind, Outcome, RunPurpose
from wqlab_contracts.messages import Failure
from wqlab_server.jobs.errors import IllegalTransition
from wqlab_server.lab.health import (
    ALLOWED,
    CheckableDevice,
    Health,
    after_attempt,
    change_health,
    select_devices_to_check,
)

UNKNOWN, GOOD, SUSPECT, QUARANTINED = DeviceHealth
CHECK, MEASURE = RunPurpose.HEALTH_CHECK, RunPurpose.MEASURE
INFRA = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="no console")
PANIC = Failure(kind=ErrorKind.KERNEL, summary="panic")
NOW = datetime(2026, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(("old", "new"), list(product(DeviceHealth, DeviceHealth)))
def test_every_health_transition_is_allowed_or_refused(old: DeviceHealth, new: DeviceHealth) -> None:
    if new is old or new in ALLOWED[old]:
        assert change_health(old, new, "r").state is new
    else:
        with pytest.raises(IllegalTransition):
            change_health(old, new, "r")


def test_only_a_release_ends_a_quarantine() -> None:
    assert ALLOWED[QUARANTINED] == {UNKNOWN}
    for purpose, outcome in product(RunPurpose, Outcome):
        before = Health(QUARANTINED, "dead")
        assert after_attempt(before, purpose, outcome, INFRA, suspect=True, lost=True) == before


@pytest.mark.parametrize(
    ("old", "purpose", "outcome", "failure", "suspect", "lost", "new"),
    [
        (UNKNOWN, CHECK, Outcome.PASSED, None, False, False, GOOD),
        (SUSPECT, CHECK, Outcome.PASSED, None, False, False, GOOD),
        (SUSPECT, CHECK, Outcome.FAILED, INFRA, True, False, QUARANTINED),
        (GOOD, CHECK, Outcome.FAILED, PANIC, False, False, QUARANTINED),
        (UNKNOWN, CHECK, Outcome.FAILED, INFRA, False, False, UNKNOWN),  # a failure of the lab
        (UNKNOWN, CHECK, Outcome.FAILED, INFRA, False, True, UNKNOWN),  # the worker was lost
        (GOOD, MEASURE, Outcome.FAILED, INFRA, True, False, SUSPECT),
        (GOOD, MEASURE, Outcome.FAILED, INFRA, False, True, SUSPECT),
        (GOOD, MEASURE, Outcome.FAILED, INFRA, False, False, GOOD),
        (GOOD, MEASURE, Outcome.FAILED, PANIC, False, False, GOOD),  # the candidate's fault, not the device's
        (GOOD, MEASURE, Outcome.CANCELED, None, False, False, GOOD),
        (UNKNOWN, MEASURE, Outcome.PASSED, None, False, False, UNKNOWN),  # only a check sets the health to good
        (
            GOOD,
            CHECK,
            Outcome.PASSED,
            INFRA,
            True,
            False,
            QUARANTINED,
        ),  # passed, but the worker could not turn the power off
    ],
)
def test_attempt_changes_device_health(
    old: DeviceHealth,
    purpose: RunPurpose,
    outcome: Outcome,
    failure: Failure | None,
    suspect: bool,
    lost: bool,
    new: DeviceHealth,
) -> None:
    after = after_attempt(Health(old, ""), purpose, outcome, failure, suspect=suspect, lost=lost)
    assert after.state is new
    if new in {QUARANTINED, SUSPECT} and failure is not None and new is not old:
        assert failure.summary in after.reason


@pytest.mark.parametrize("old", [UNKNOWN, GOOD, SUSPECT])
def test_device_without_a_conclusive_check_is_quarantined(old: DeviceHealth) -> None:
    after = after_attempt(Health(old, ""), CHECK, Outcome.FAILED, INFRA, suspect=False, lost=False, abandoned=True)
    assert after.state is QUARANTINED
    assert INFRA.summary in after.reason
    measured = after_attempt(Health(old, ""), MEASURE, Outcome.FAILED, INFRA, suspect=False, lost=False, abandoned=True)
    assert measured.state is old


@pytest.mark.parametrize("old", [UNKNOWN, GOOD, SUSPECT])
def test_check_without_an_answer_of_the_equipment_says_nothing(old: DeviceHealth) -> None:
    def after(abandoned: bool) -> DeviceHealth:
        return after_attempt(
            Health(old, ""),
            CHECK,
            Outcome.FAILED,
            INFRA,
            suspect=True,
            unreachable=True,
            lost=False,
            abandoned=abandoned,
        ).state

    assert after(False) is (SUSPECT if old is GOOD else old)
    assert after(True) is QUARANTINED


def make_device(name: str, health: DeviceHealth = UNKNOWN, **more: object) -> CheckableDevice:
    given: dict[str, object] = {
        "device_type": "xeon",
        "lab": "local",
        "free": True,
        "check_pending": False,
        "checked_at": None,
        "check_failed_at": None,
        "interval": timedelta(hours=24),
    }
    return CheckableDevice(name=name, health=health, **{**given, **more})  # type: ignore[arg-type]


def select(devices: list[CheckableDevice], demand: dict[str, int], *, idle: bool = False) -> list[str]:
    return select_devices_to_check(devices, demand, NOW, timedelta(minutes=5), idle=idle)


def test_one_device_is_checked_per_run_without_a_good_device() -> None:
    devices = [make_device("a"), make_device("b"), make_device("c")]
    assert select(devices, {}) == []
    assert select(devices, {"xeon": 1}) == ["a"]
    assert select(devices, {"xeon": 2}) == ["a", "b"]
    assert select([make_device("a", GOOD), make_device("b")], {"xeon": 1}) == []
    assert select([make_device("a", check_pending=True), make_device("b")], {"xeon": 1}) == []
    assert select([make_device("a", GOOD), make_device("b")], {"ryzen": 3}) == []


def test_unknown_devices_are_checked_before_suspect_ones() -> None:
    assert select([make_device("a", SUSPECT), make_device("b")], {"xeon": 1}) == ["b"]
    assert select([make_device("a", free=False), make_device("b", SUSPECT)], {"xeon": 1}) == ["b"]
    assert select([make_device("a", QUARANTINED)], {"xeon": 1}) == []


def test_inconclusive_check_is_repeated_after_a_pause() -> None:
    assert select([make_device("a", check_failed_at=NOW - timedelta(minutes=1))], {"xeon": 1}) == []
    assert select([make_device("a", check_failed_at=NOW - timedelta(minutes=6))], {"xeon": 1}) == ["a"]


def test_idle_lab_checks_one_device_at_a_time_oldest_first() -> None:
    old, fresh = NOW - timedelta(days=3), NOW - timedelta(hours=1)
    devices = [
        make_device("a", GOOD, checked_at=fresh),
        make_device("b", GOOD, checked_at=old),
        make_device("c"),
        make_device("d", QUARANTINED),
    ]
    assert select(devices, {}, idle=True) == ["c"]
    assert select([devices[0], devices[1]], {}, idle=True) == ["b"]
    assert select([devices[0], make_device("e", check_pending=True), devices[1]], {}, idle=True) == []


def test_device_that_is_checked_on_demand_is_not_checked_because_the_lab_is_idle() -> None:
    device = make_device("a", on_demand=True)
    assert select([device], {}, idle=True) == []
    assert select([device], {device.device_type: 1}, idle=True) == ["a"]
