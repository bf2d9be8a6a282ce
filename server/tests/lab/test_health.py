"""Health of devices: every transition, and which devices are checked when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from wqlab_contracts.enums import DeviceHealth, ErrorKind, Outcome, RunPurpose
from wqlab_contracts.messages import Failure
from wqlab_server.jobs.errors import IllegalTransition
from wqlab_server.lab.health import ALLOWED, Health, Unit, after_attempt, checks_wanted, move

UNKNOWN, GOOD, SUSPECT, QUARANTINED = DeviceHealth
CHECK, MEASURE = RunPurpose.HEALTH_CHECK, RunPurpose.MEASURE
INFRA = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="no console")
PANIC = Failure(kind=ErrorKind.KERNEL, summary="panic")
NOW = datetime(2026, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(("old", "new"), list(product(DeviceHealth, DeviceHealth)))
def test_every_transition_is_allowed_or_refused(old: DeviceHealth, new: DeviceHealth) -> None:
    if new is old or new in ALLOWED[old]:
        assert move(old, new, "r").state is new
    else:
        with pytest.raises(IllegalTransition):
            move(old, new, "r")


def test_only_a_release_leads_out_of_quarantine() -> None:
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
        (UNKNOWN, CHECK, Outcome.FAILED, INFRA, False, False, UNKNOWN),  # the lab's own trouble
        (UNKNOWN, CHECK, Outcome.FAILED, INFRA, False, True, UNKNOWN),  # the worker died
        (GOOD, MEASURE, Outcome.FAILED, INFRA, True, False, SUSPECT),
        (GOOD, MEASURE, Outcome.FAILED, INFRA, False, True, SUSPECT),
        (GOOD, MEASURE, Outcome.FAILED, INFRA, False, False, GOOD),
        (GOOD, MEASURE, Outcome.FAILED, PANIC, False, False, GOOD),  # the candidate's fault, not the device's
        (GOOD, MEASURE, Outcome.CANCELED, None, False, False, GOOD),
        (UNKNOWN, MEASURE, Outcome.PASSED, None, False, False, UNKNOWN),  # only a check makes good
        (GOOD, CHECK, Outcome.PASSED, INFRA, True, False, QUARANTINED),  # measured, but the power stays on
    ],
)
def test_what_an_attempt_says_of_its_device(
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
def test_a_device_that_no_check_can_judge_is_given_up(old: DeviceHealth) -> None:
    after = after_attempt(Health(old, ""), CHECK, Outcome.FAILED, INFRA, suspect=False, lost=False, given_up=True)
    assert after.state is QUARANTINED
    assert INFRA.summary in after.reason
    measured = after_attempt(Health(old, ""), MEASURE, Outcome.FAILED, INFRA, suspect=False, lost=False, given_up=True)
    assert measured.state is old


def unit(name: str, health: DeviceHealth = UNKNOWN, **more: object) -> Unit:
    given: dict[str, object] = {
        "device_type": "xeon",
        "lab": "local",
        "free": True,
        "check_pending": False,
        "checked_at": None,
        "check_failed_at": None,
        "interval": timedelta(hours=24),
    }
    return Unit(name=name, health=health, **{**given, **more})  # type: ignore[arg-type]


def wanted(units: list[Unit], demand: dict[str, int], *, idle: bool = False) -> list[str]:
    return checks_wanted(units, demand, NOW, timedelta(minutes=5), idle=idle)


def test_one_check_for_each_run_that_lacks_a_device() -> None:
    units = [unit("a"), unit("b"), unit("c")]
    assert wanted(units, {}) == []
    assert wanted(units, {"xeon": 1}) == ["a"]
    assert wanted(units, {"xeon": 2}) == ["a", "b"]
    assert wanted([unit("a", GOOD), unit("b")], {"xeon": 1}) == []
    assert wanted([unit("a", check_pending=True), unit("b")], {"xeon": 1}) == []
    assert wanted([unit("a", GOOD), unit("b")], {"ryzen": 3}) == []


def test_new_devices_before_doubtful_ones_and_never_busy_or_quarantined_ones() -> None:
    assert wanted([unit("a", SUSPECT), unit("b")], {"xeon": 1}) == ["b"]
    assert wanted([unit("a", free=False), unit("b", SUSPECT)], {"xeon": 1}) == ["b"]
    assert wanted([unit("a", QUARANTINED)], {"xeon": 1}) == []


def test_a_check_that_gave_no_answer_is_repeated_only_after_a_while() -> None:
    assert wanted([unit("a", check_failed_at=NOW - timedelta(minutes=1))], {"xeon": 1}) == []
    assert wanted([unit("a", check_failed_at=NOW - timedelta(minutes=6))], {"xeon": 1}) == ["a"]


def test_an_idle_lab_checks_one_device_at_a_time_the_oldest_first() -> None:
    old, fresh = NOW - timedelta(days=3), NOW - timedelta(hours=1)
    units = [unit("a", GOOD, checked_at=fresh), unit("b", GOOD, checked_at=old), unit("c"), unit("d", QUARANTINED)]
    assert wanted(units, {}, idle=True) == ["c"]
    assert wanted([units[0], units[1]], {}, idle=True) == ["b"]
    assert wanted([units[0], unit("e", check_pending=True), units[1]], {}, idle=True) == []
