"""Health of a device: what moves it, and when it is to be checked. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from wqlab_contracts.enums import DeviceHealth, ErrorKind, Outcome, RunPurpose
from wqlab_contracts.messages import Failure

from ..jobs.errors import IllegalTransition

ALLOWED: Mapping[DeviceHealth, frozenset[DeviceHealth]] = {
    DeviceHealth.UNKNOWN: frozenset({DeviceHealth.GOOD, DeviceHealth.SUSPECT, DeviceHealth.QUARANTINED}),
    DeviceHealth.GOOD: frozenset({DeviceHealth.SUSPECT, DeviceHealth.QUARANTINED}),
    DeviceHealth.SUSPECT: frozenset({DeviceHealth.GOOD, DeviceHealth.QUARANTINED}),
    # Only a maintainer's release brings a device back, and then it is checked like a new one.
    DeviceHealth.QUARANTINED: frozenset({DeviceHealth.UNKNOWN}),
}


ANSWERS = frozenset({DeviceHealth.GOOD, DeviceHealth.QUARANTINED})
"""What a check finds out; one that was cut short leaves the device as it was."""


@dataclass(frozen=True)
class Health:
    state: DeviceHealth
    reason: str


def move(old: DeviceHealth, new: DeviceHealth, reason: str) -> Health:
    """Staying is allowed. Raises IllegalTransition."""
    if new is not old and new not in ALLOWED[old]:
        raise IllegalTransition(f"a device that is {old} cannot become {new}")
    return Health(new, reason)


def after_attempt(
    old: Health,
    purpose: RunPurpose,
    outcome: Outcome,
    failure: Failure | None,
    *,
    suspect: bool,
    lost: bool,
    given_up: bool = False,
) -> Health:
    """What one attempt of a run says of its device. `suspect`: the worker doubts the device. `lost`: the lease ran out,
    so nobody knows in which state it was left. `given_up`: no check of the device has come to an answer for too long."""
    if old.state is DeviceHealth.QUARANTINED or outcome is Outcome.CANCELED:
        return old
    if purpose is RunPurpose.HEALTH_CHECK:
        if outcome is Outcome.PASSED and not suspect:
            return move(old.state, DeviceHealth.GOOD, "")
        # The golden kernel works: what fails it on this device is the device. A check cut short says nothing.
        if failure is not None and (suspect or failure.kind is ErrorKind.KERNEL):
            return move(old.state, DeviceHealth.QUARANTINED, f"health check: {failure.summary}")
        if failure is not None and given_up:
            return move(old.state, DeviceHealth.QUARANTINED, f"no health check came to an end: {failure.summary}")
    if (suspect or lost) and old.state is DeviceHealth.GOOD:
        return move(old.state, DeviceHealth.SUSPECT, failure.summary if failure else "its last run was cut off")
    return old


@dataclass(frozen=True)
class Unit:
    name: str
    device_type: str
    lab: str
    health: DeviceHealth
    free: bool
    """No lease, and in the device-types folder."""
    check_pending: bool
    """A health check for it waits or runs."""
    checked_at: datetime | None
    check_failed_at: datetime | None
    """When the last check that gave no answer ended."""
    interval: timedelta
    asked: bool = False
    """A maintainer wants to see it checked, or has released it."""


def checks_wanted(
    units: Sequence[Unit], demand: Mapping[str, int], now: datetime, retry_after: timedelta, *, idle: bool
) -> list[str]:
    """Units to check now, in order of name.

    `demand`: device type -> runs that wait for such a unit. For each of them without a good unit one unit of unknown
    or doubtful health is checked, so that a run never goes to a device that nobody has seen working. When the lab is
    `idle`, one unit at a time is checked that never was, or not within its type's interval. A unit that is `asked` for
    is checked whoever waits. Its check is ordered though a run has it: the check's priority then gives it the device.
    """
    ordered = sorted(units, key=lambda unit: unit.name)

    def is_asked(unit: Unit) -> bool:
        return unit.asked and not unit.check_pending and unit.health is not DeviceHealth.QUARANTINED

    chosen = [unit.name for unit in ordered if is_asked(unit)]
    ordered = [replace(unit, check_pending=True) if is_asked(unit) else unit for unit in ordered]

    def may(unit: Unit) -> bool:
        waited = unit.check_failed_at is None or now >= unit.check_failed_at + retry_after
        return unit.free and not unit.check_pending and waited

    for device_type in sorted(demand):
        of_type = [unit for unit in ordered if unit.device_type == device_type]
        good = sum(unit.health is DeviceHealth.GOOD for unit in of_type)
        pending = sum(unit.check_pending and unit.health is not DeviceHealth.GOOD for unit in of_type)
        lacking = demand[device_type] - good - pending
        doubtful = [u for u in of_type if u.health in {DeviceHealth.UNKNOWN, DeviceHealth.SUSPECT} and may(u)]
        doubtful.sort(key=lambda unit: (unit.health is DeviceHealth.SUSPECT, unit.name))
        chosen += [unit.name for unit in doubtful[: max(lacking, 0)]]
    if idle and not chosen and not any(unit.check_pending for unit in ordered):
        due = [
            unit
            for unit in ordered
            if may(unit)
            and unit.health is not DeviceHealth.QUARANTINED
            and (unit.checked_at is None or now >= unit.checked_at + unit.interval)
        ]
        due.sort(key=lambda unit: (unit.checked_at is not None, unit.checked_at or now, unit.name))
        chosen += [unit.name for unit in due[:1]]
    return chosen
