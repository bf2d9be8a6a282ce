"""Choose the devices that run canaries now, and the canaries that have to give way. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from wqlab_contracts.enums import DeviceHealth

from .allocate import Assignment, HeldDevice, PoolDevice, WaitingRun, allocate


@dataclass(frozen=True)
class CanaryDevice:
    """A device of the pool, as seen by canaries."""

    name: str
    lab: str
    emulated: bool
    """An emulated device shares the host with builds and with other emulators."""
    health: DeviceHealth
    free: bool
    """The device has no lease, and its lab can provide it at once."""
    needed: bool
    """An unfinished run may use the device."""
    idle_s: float
    """Seconds since another run than a canary used it last; infinite if none did."""
    minutes_allowed: float
    """Minutes a day that canaries may use it."""
    minutes_used: float
    """Minutes that canaries have used it in the last 24 hours."""
    failed_s: float = float("inf")
    """Seconds since its last failed canary."""


def select_devices(
    devices: Collection[CanaryDevice], held: Mapping[str, int], capacity: Mapping[str, int], *,
    idle_after_s: float, retry_after_s: float, lab_idle: bool,
) -> list[str]:  # fmt: skip
    """Return the names of the devices on which a canary may start now.

    `held`: lab -> devices that have a run. `capacity`: lab -> devices at once. `lab_idle`: no submission and no check
    is unfinished anywhere; emulated devices need it, and run one canary at a time in each lab. A device needs to be
    good, free, unused for `idle_after_s`, without a canary that failed less than `retry_after_s` ago, and within its
    minutes.
    """
    busy = Counter(held)
    chosen = []
    for device in sorted(devices, key=lambda device: (device.minutes_used, device.name)):
        limit = 1 if device.emulated else capacity.get(device.lab, busy[device.lab] + 1)
        if (
            device.health is DeviceHealth.GOOD
            and device.free
            and not device.needed
            and (lab_idle or not device.emulated)
            and device.idle_s >= idle_after_s
            and device.failed_s >= retry_after_s
            and device.minutes_used < device.minutes_allowed
            and busy[device.lab] < limit
        ):
            busy[device.lab] += 1
            chosen.append(device.name)
    return chosen


@dataclass(frozen=True)
class Pool:
    """The devices, who holds them, and the runs that wait for them."""

    devices: Collection[PoolDevice]
    held: Collection[HeldDevice]
    waiting: Collection[WaitingRun]
    capacity: Mapping[str, int]
    canaries: Mapping[str, int]
    """Device that a canary holds -> its run."""

    def assign(self) -> list[Assignment]:
        return allocate(self.devices, self.held, self.waiting, self.capacity)


def in_the_way(pool: Pool, assigned: Collection[Assignment]) -> set[str]:
    """Return the devices whose canaries keep a waiting run from a device.

    `assigned`: what `pool` has given to the waiting runs already. Runs that would get a device if there were no
    canaries stop the canary on it; if the capacity of a lab is what they lack, as many of the lab as they need.
    """
    canaries, capacity = pool.canaries, pool.capacity
    served = {each.run_id for each in assigned}
    taken = [HeldDevice(each.device, "") for each in assigned]
    others = [each for each in [*pool.held, *taken] if each.device not in canaries]
    # Devices without a canary are preferred: a canary that need not stop goes on.
    preferred = [replace(each, backlog=float("inf")) if each.name in canaries else each for each in pool.devices]
    remaining = [run for run in pool.waiting if run.run_id not in served]
    wanted = [each.device for each in allocate(preferred, others, remaining, capacity)]
    stopped = set(wanted) & set(canaries)
    lab_of = {device.name: device.lab for device in pool.devices}
    for lab in sorted({lab_of[device] for device in wanted} & capacity.keys()):
        holders = {each.device for each in others if lab_of.get(each.device) == lab} | {
            device for device in wanted if lab_of[device] == lab
        }
        going_on = sorted(device for device in canaries if lab_of.get(device) == lab and device not in stopped)
        excess = len(holders) + len(going_on) - capacity[lab]
        stopped |= set(going_on[: max(excess, 0)])
    return stopped
