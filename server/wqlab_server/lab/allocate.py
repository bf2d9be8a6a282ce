"""Which waiting run gets which free board. Pure: no session, clock or network; the order of its inputs is irrelevant.

One score orders the queue (`jobs.queue_score`): priority, plus a point for each minute waited, less some for each board
that the submitter already holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from wqlab_contracts.enums import DeviceHealth

from ..jobs import queue_score


@dataclass(frozen=True)
class Unit:
    name: str
    device_type: str
    lab: str
    health: DeviceHealth


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
    """At most one run per unit, one unit per run, and per lab no more boards than `capacity` (absent: no bound)."""
    labs = {unit.name: unit.lab for unit in units}
    taken = {lease.device for lease in held}
    busy = Counter(labs[lease.device] for lease in held if lease.device in labs)
    boards = Counter(lease.owner for lease in held)
    free = {unit.name: unit for unit in units if unit.name not in taken and unit.health is not DeviceHealth.QUARANTINED}
    left = {run.run_id: run for run in waiting}
    made: list[Assignment] = []
    while left and free:
        run = max(left.values(), key=lambda run: (_score(run, boards[run.owner]), -run.run_id))
        del left[run.run_id]
        fitting = [
            unit
            for unit in free.values()
            if _fits(run, unit) and busy[unit.lab] < capacity.get(unit.lab, busy[unit.lab] + 1)
        ]
        if not fitting:
            continue
        unit = min(fitting, key=lambda unit: (unit.name in run.avoid, unit.name))
        del free[unit.name]
        busy[unit.lab] += 1
        boards[run.owner] += 1
        made.append(Assignment(run.run_id, unit.name))
    return made


def _score(run: Waiting, boards_held: int) -> float:
    return queue_score(run.priority, run.waited_s, boards_held)


def _fits(run: Waiting, unit: Unit) -> bool:
    if run.wanted_device is not None:
        return unit.name == run.wanted_device
    return unit.device_type == run.device_type and unit.health is DeviceHealth.GOOD
