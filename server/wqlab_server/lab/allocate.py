"""Which waiting run gets which free device. Pure: no session, clock or network; the order of its inputs is irrelevant.

One score orders the queue (`jobs.queue_score`): priority, plus a point for each minute waited, less some for each device
that the submitter already holds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from wqlab_contracts.enums import DeviceHealth
from wqlab_contracts.specs import Backend

from ..jobs.state import queue_score


@dataclass(frozen=True)
class Unit:
    name: str
    device_type: str
    lab: str
    health: DeviceHealth
    backend: Backend = "labgrid"
    away: bool = False
    """Its lab cannot give it now."""
    backlog: float = 0.0
    """What stands before a new run in the lab's own queue."""


@dataclass(frozen=True)
class Held:
    """A live lease."""

    device: str
    owner: str


@dataclass(frozen=True)
class Waiting:
    run_id: int
    owner: str
    priority: int
    waited_s: float
    device_type: str
    backend: Backend | None = None
    """Only units that are reached so."""
    wanted_device: str | None = None
    """A health check is for one unit, whatever its health (unless it is quarantined)."""
    avoid: frozenset[str] = field(default_factory=frozenset)
    """Units on which it failed by infrastructure: taken only when there is no other."""


@dataclass(frozen=True)
class Assignment:
    run_id: int
    device: str


def allocate(
    units: Collection[Unit], held: Collection[Held], waiting: Collection[Waiting], capacity: Mapping[str, int]
) -> list[Assignment]:
    """At most one run per unit, one unit per run, and per lab no more devices than `capacity` (absent: no bound)."""
    pool = _Pool(units, held, capacity)
    queue = _Queue(held, waiting)
    made: list[Assignment] = []
    while pool and (run := queue.next()):
        device = pool.take(run)
        if device is not None:
            made.append(Assignment(run.run_id, device))
            queue.count_device(run.owner)
        queue.go_on(run.owner)
    return made


class _Queue:
    """The highest score first, then the oldest run. A device that a submitter gets moves that submitter's runs only, and
    all of them alike: their order among themselves stays, so only each submitter's first stands in the heap."""

    def __init__(self, held: Collection[Held], waiting: Collection[Waiting]) -> None:
        self._devices = Counter(lease.owner for lease in held)
        self._runs: dict[str, list[Waiting]] = defaultdict(list)
        """Of each submitter, the next one last."""
        for run in sorted(waiting, key=lambda run: (queue_score(run.priority, run.waited_s, 0), -run.run_id)):
            self._runs[run.owner].append(run)
        self._first: list[tuple[float, int, str]] = []
        for owner in self._runs:
            self.go_on(owner)

    def next(self) -> Waiting | None:
        """Takes a run out; `go_on` with its owner must follow."""
        if not self._first:
            return None
        _, _, owner = heappop(self._first)
        return self._runs[owner].pop()

    def count_device(self, owner: str) -> None:
        self._devices[owner] += 1

    def go_on(self, owner: str) -> None:
        if runs := self._runs[owner]:
            run = runs[-1]
            score = queue_score(run.priority, run.waited_s, self._devices[owner])
            heappush(self._first, (-score, run.run_id, owner))


class _Pool:
    """Units that can be given now: free, not quarantined, in a lab that has room."""

    def __init__(self, units: Collection[Unit], held: Collection[Held], capacity: Mapping[str, int]) -> None:
        labs = {unit.name: unit.lab for unit in units}
        taken = {lease.device for lease in held}
        busy = Counter(labs[device] for device in taken if device in labs)
        self._room = {lab: bound - busy[lab] for lab, bound in capacity.items()}
        self._free = {
            unit.name: unit
            for unit in sorted(units, key=lambda unit: (unit.backlog, unit.name))
            if unit.name not in taken
            and unit.health is not DeviceHealth.QUARANTINED
            and not unit.away
            and self._has_room(unit.lab)
        }
        self._good: dict[str, dict[str, None]] = defaultdict(dict)
        """Device type -> names of those that may measure: the shortest queue first, then by name."""
        for unit in self._free.values():
            if unit.health is DeviceHealth.GOOD:
                self._good[unit.device_type][unit.name] = None

    def __bool__(self) -> bool:
        return bool(self._free)

    def take(self, run: Waiting) -> str | None:
        """The unit that `run` gets, no longer in the pool."""
        if run.wanted_device is not None:
            name = run.wanted_device if run.wanted_device in self._free else None
        else:
            good = self._good[run.device_type]
            fit = [name for name in good if run.backend in (None, self._free[name].backend)] if run.backend else good
            name = next((name for name in fit if name not in run.avoid), next(iter(fit), None))
        if name is None:
            return None
        lab = self._free[name].lab
        self._drop(name)
        if lab in self._room:
            self._room[lab] -= 1
            if not self._has_room(lab):
                for other in [unit.name for unit in self._free.values() if unit.lab == lab]:
                    self._drop(other)
        return name

    def _has_room(self, lab: str) -> bool:
        return self._room.get(lab, 1) > 0

    def _drop(self, name: str) -> None:
        unit = self._free.pop(name)
        self._good[unit.device_type].pop(name, None)
