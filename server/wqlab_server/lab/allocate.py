"""Assign free devices to waiting runs. Pure: no session, clock or network; the order of the inputs does not matter.

The queue is ordered by `estimates.queue_score`: priority, plus a point per minute of waiting, minus a penalty per
device that the submitter already holds.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from wqlab_contracts.enums import DeviceHealth
from wqlab_contracts.specs import Backend

from ..estimates.queue_score import queue_score


@dataclass(frozen=True)
class PoolDevice:
    """A device of the pool, leased or free."""

    name: str
    device_type: str
    lab: str
    health: DeviceHealth
    backend: Backend = "labgrid"
    unavailable: bool = False
    """The lab's own server cannot provide the device now."""
    backlog: float = 0.0
    """Number of jobs before a new run in the lab's own queue."""


@dataclass(frozen=True)
class HeldDevice:
    """A device that is leased or offered to a run."""

    device: str
    owner: str


@dataclass(frozen=True)
class WaitingRun:
    """A queued run without a device."""

    run_id: int
    owner: str
    priority: int
    waited_s: float
    device_type: str
    backend: Backend | None = None
    """Restrict the run to devices with this backend; None allows any."""
    wanted_device: str | None = None
    """Name of the only device that the run may use: the one to be checked, or the one that the submission names."""
    checks_health: bool = True
    """True for a health check: its device may be suspect or unchecked, but not quarantined. Other runs need a device
    whose health is good."""
    avoid: frozenset[str] = field(default_factory=frozenset)
    """Devices on which the run had an infrastructure failure; used only if no other device fits."""
    decisions_per_s: float = math.inf
    """Decisions that its next blocks are expected to give per second of device time; infinite before the first look."""


@dataclass(frozen=True)
class Assignment:
    run_id: int
    device: str


def allocate(
    devices: Collection[PoolDevice],
    held: Collection[HeldDevice],
    waiting: Collection[WaitingRun],
    capacity: Mapping[str, int],
) -> list[Assignment]:
    """Assign at most one run per device and one device per run.

    `capacity`: lab -> devices at once; a lab without an entry has no limit.
    """
    pool = _Pool(devices, held, capacity)
    queue = _Queue(held, waiting)
    assignments: list[Assignment] = []
    while pool and (run := queue.pop()):
        device = pool.take_device_for(run)
        if device is not None:
            assignments.append(Assignment(run.run_id, device))
            queue.count_device(run.owner)
        queue.push_next(run.owner)
    return assignments


class _Queue:
    """Priority queue of waiting runs: the highest score first, then the oldest run.

    Runs of one submission have equal scores: those without a look come first, then those whose next blocks are expected
    to decide most for their device time.

    A device that a submitter gets changes the score of that submitter's runs only, and of all of them by the same
    amount. Their order among themselves is fixed, so the heap holds only the first run of each submitter.
    """

    def __init__(self, held: Collection[HeldDevice], waiting: Collection[WaitingRun]) -> None:
        self._devices_held = Counter(lease.owner for lease in held)
        self._runs: dict[str, list[WaitingRun]] = defaultdict(list)
        """Submitter -> runs, the next one last."""
        for run in sorted(waiting, key=_rank):
            self._runs[run.owner].append(run)
        self._heap: list[tuple[float, int, str]] = []
        for owner in self._runs:
            self.push_next(owner)

    def pop(self) -> WaitingRun | None:
        """Remove and return the first run; the caller must then call `push_next` with the run's owner."""
        if not self._heap:
            return None
        _, _, owner = heappop(self._heap)
        return self._runs[owner].pop()

    def count_device(self, owner: str) -> None:
        """Count one more device held by `owner`."""
        self._devices_held[owner] += 1

    def push_next(self, owner: str) -> None:
        """Put the owner's next run on the heap."""
        if runs := self._runs[owner]:
            run = runs[-1]
            score = queue_score(run.priority, run.waited_s, self._devices_held[owner])
            heappush(self._heap, (-score, run.run_id, owner))


def _rank(run: WaitingRun) -> tuple[float, float, int]:
    return queue_score(run.priority, run.waited_s, 0), run.decisions_per_s, -run.run_id


class _Pool:
    """Devices that can be assigned now: free, not quarantined, in a lab with capacity left."""

    def __init__(
        self, devices: Collection[PoolDevice], held: Collection[HeldDevice], capacity: Mapping[str, int]
    ) -> None:
        labs = {device.name: device.lab for device in devices}
        taken = {lease.device for lease in held}
        busy = Counter(labs[device] for device in taken if device in labs)
        self._capacity_left = {lab: limit - busy[lab] for lab, limit in capacity.items()}
        self._free = {
            device.name: device
            for device in sorted(devices, key=lambda device: (device.backlog, device.name))
            if device.name not in taken
            and device.health is not DeviceHealth.QUARANTINED
            and not device.unavailable
            and self._has_capacity(device.lab)
        }
        self._good: dict[str, dict[str, None]] = defaultdict(dict)
        """Device type -> names of good devices: the shortest backlog first, then by name."""
        for device in self._free.values():
            if device.health is DeviceHealth.GOOD:
                self._good[device.device_type][device.name] = None

    def __bool__(self) -> bool:
        return bool(self._free)

    def take_device_for(self, run: WaitingRun) -> str | None:
        """Remove a device for `run` from the pool and return its name; None if none fits."""
        if run.wanted_device is not None:
            wanted = self._free.get(run.wanted_device)
            usable = wanted is not None and (run.checks_health or wanted.health is DeviceHealth.GOOD)
            name = run.wanted_device if usable else None
        else:
            good = self._good[run.device_type]
            fit = [name for name in good if run.backend in (None, self._free[name].backend)] if run.backend else good
            name = next((name for name in fit if name not in run.avoid), next(iter(fit), None))
        if name is None:
            return None
        lab = self._free[name].lab
        self._drop(name)
        if lab in self._capacity_left:
            self._capacity_left[lab] -= 1
            if not self._has_capacity(lab):
                for other in [device.name for device in self._free.values() if device.lab == lab]:
                    self._drop(other)
        return name

    def _has_capacity(self, lab: str) -> bool:
        return self._capacity_left.get(lab, 1) > 0

    def _drop(self, name: str) -> None:
        device = self._free.pop(name)
        self._good[device.device_type].pop(name, None)
