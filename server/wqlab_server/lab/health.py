"""Change a device's health, and select the devices to check. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from wqlab_contracts.enums import DeviceHealth, ErrorKind, Outcome, RunPurpose
from wqlab_contracts.messages import Failure

from ..jobs.errors import IllegalTransition
from ..storage.times import is_recent

ALLOWED: Mapping[DeviceHealth, frozenset[DeviceHealth]] = {
    DeviceHealth.UNKNOWN: frozenset({DeviceHealth.GOOD, DeviceHealth.SUSPECT, DeviceHealth.QUARANTINED}),
    DeviceHealth.GOOD: frozenset({DeviceHealth.SUSPECT, DeviceHealth.QUARANTINED}),
    DeviceHealth.SUSPECT: frozenset({DeviceHealth.GOOD, DeviceHealth.QUARANTINED}),
    # Only a release brings a device back, and then it is checked like a new one.
    DeviceHealth.QUARANTINED: frozenset({DeviceHealth.UNKNOWN}),
}


CONCLUSIVE = frozenset({DeviceHealth.GOOD, DeviceHealth.QUARANTINED})
"""Health that a completed check can set; an interrupted check leaves the health as it was."""


@dataclass(frozen=True)
class Health:
    """A device's health with its reason."""

    state: DeviceHealth
    reason: str


def change_health(old: DeviceHealth, new: DeviceHealth, reason: str) -> Health:
    """Return the new health; an unchanged state is allowed. Raises IllegalTransition if `ALLOWED` lacks the change."""
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
    unreachable: bool = False,
    abandoned: bool = False,
) -> Health:
    """Return a device's health after one attempt of a run.

    `suspect`: the worker reported that the device may be faulty. `lost`: the lease expired, so the device's state is
    unknown. `unreachable`: the lab's own equipment did not answer, so that a check says nothing about the device.
    `abandoned`: too many checks of the device in a row were inconclusive.
    """
    if old.state is DeviceHealth.QUARANTINED or outcome is Outcome.CANCELED:
        return old
    if purpose is RunPurpose.HEALTH_CHECK:
        if outcome is Outcome.PASSED and not suspect:
            return change_health(old.state, DeviceHealth.GOOD, "")
        # The golden kernel is known to work, so a failure on it is the device's. An interrupted check proves nothing.
        if failure is not None and ((suspect and not unreachable) or failure.kind is ErrorKind.KERNEL):
            return change_health(old.state, DeviceHealth.QUARANTINED, f"health check: {failure.summary}")
        if failure is not None and abandoned:
            return change_health(
                old.state, DeviceHealth.QUARANTINED, f"no health check was conclusive: {failure.summary}"
            )
    # Both arms of a canary boot kernels that have worked, so a kernel failure makes the device suspect too.
    suspect = suspect or (purpose is RunPurpose.CANARY and failure is not None and failure.kind is ErrorKind.KERNEL)
    if (suspect or lost) and old.state is DeviceHealth.GOOD:
        return change_health(
            old.state, DeviceHealth.SUSPECT, failure.summary if failure else "its last run was interrupted"
        )
    return old


@dataclass(frozen=True)
class CheckableDevice:
    """A device of the pool, with the data that determines if it is checked."""

    name: str
    device_type: str
    lab: str
    health: DeviceHealth
    free: bool
    """The device has no lease and its lab can provide it now."""
    check_pending: bool
    """A health check of the device is waiting or running."""
    checked_at: datetime | None
    """When the last check that set the health to good ended."""
    check_failed_at: datetime | None
    """When the last inconclusive check ended."""
    interval: timedelta
    """How often a device of the type is checked while the lab is idle."""
    requested: bool = False
    """A maintainer requested a check, or released the device."""
    on_demand: bool = False
    """Checked only for a run that needs the device, and not because the lab is idle."""


def select_devices_to_check(
    devices: Sequence[CheckableDevice], demand: Mapping[str, int], now: datetime, retry_after: timedelta, *, idle: bool
) -> list[str]:
    """Return the names of the devices to check now.

    `demand`: device type -> number of runs that need such a device. For each run without a good device, one device of
    unknown or suspect health is checked, so that a run never gets a device that has not been seen working. While the
    lab is `idle`, devices never checked, or not checked within their type's interval, are checked one at a time, except
    those checked `on_demand`. A `requested` check is ordered regardless of demand, even while a run has the device: the
    check's priority then gives it the device next. A device whose last check was inconclusive is checked again after
    `retry_after`.
    """
    ordered = sorted(devices, key=lambda device: device.name)

    def is_requested(device: CheckableDevice) -> bool:
        return device.requested and not device.check_pending and device.health is not DeviceHealth.QUARANTINED

    chosen = [device.name for device in ordered if is_requested(device)]
    ordered = [replace(device, check_pending=True) if is_requested(device) else device for device in ordered]

    def is_checkable(device: CheckableDevice) -> bool:
        waited = device.check_failed_at is None or not is_recent(device.check_failed_at, now, retry_after)
        return device.free and not device.check_pending and waited

    for device_type in sorted(demand):
        of_type = [device for device in ordered if device.device_type == device_type]
        good = sum(device.health is DeviceHealth.GOOD for device in of_type)
        pending = sum(device.check_pending and device.health is not DeviceHealth.GOOD for device in of_type)
        missing = demand[device_type] - good - pending
        doubtful = [d for d in of_type if d.health in {DeviceHealth.UNKNOWN, DeviceHealth.SUSPECT} and is_checkable(d)]
        doubtful.sort(key=lambda device: (device.health is DeviceHealth.SUSPECT, device.name))
        chosen += [device.name for device in doubtful[: max(missing, 0)]]
    if idle and not chosen and not any(device.check_pending for device in ordered):
        due = [
            device
            for device in ordered
            if is_checkable(device)
            and not device.on_demand
            and device.health is not DeviceHealth.QUARANTINED
            and (device.checked_at is None or now >= device.checked_at + device.interval)
        ]
        due.sort(key=lambda device: (device.checked_at is not None, device.checked_at or now, device.name))
        chosen += [device.name for device in due[:1]]
    return chosen
