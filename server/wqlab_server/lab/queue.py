"""The queue in words and numbers: who is before whom, what each run waits for, and about when it starts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from wqlab_contracts.api.queue import QueueEntry, QueueView, RunsAhead, Waits
from wqlab_contracts.enums import DeviceHealth, JobState, RunPurpose

from ..estimates.lab_snapshot import QueueState, Unit, Work
from ..jobs.state import AGING_PER_MINUTE, SHARE

LONGEST = 500
_NAMED = 3
"""How many groups of runs ahead the words name."""
RULE = (
    "A free device goes to the run with the highest score that it fits: priority (0 to 100), plus "
    f"{AGING_PER_MINUTE:g} point a minute of waiting, less {SHARE:g} points for each device that its owner has already. "
    "Waiting has no bound, so every run gets its turn."
)


def view(state: QueueState) -> QueueView:
    """Runs that are offered a device first, then the rest by score."""
    queued = state.queued
    schedule = state.schedule()
    free = _Free(state)
    entries: list[QueueEntry] = []
    places: dict[str, int] = {}
    for run in state.offered:
        entries.append(_entry(state, run, Waits.OFFERED, [], starts_s=0.0, position=len(entries) + 1, in_type=0))
    for number, run in enumerate(queued[: LONGEST - len(entries)]):
        places[run.device_type] = places.get(run.device_type, 0) + 1
        starts_s = schedule.place(run.device_type, run.left_s, wanted=run.wanted_device)
        ahead = _ahead(state, run, queued[:number])
        waits = free.why(run, queued[:number])
        if waits in {Waits.NEXT, Waits.OUT_OF_SERVICE, Waits.AWAY}:
            ahead = []
        entries.append(
            _entry(
                state, run, waits, ahead, starts_s=starts_s, position=len(entries) + 1,
                in_type=places[run.device_type],
            )
        )  # fmt: skip
    return QueueView(
        at=state.now,
        rule=RULE,
        aging_per_minute=AGING_PER_MINUTE,
        share_per_device=SHARE,
        total=len(state.offered) + len(queued),
        entries=entries,
        waiting_for_kernels=sum(
            run.state is JobState.WAITING and run.purpose is RunPurpose.MEASURE for run in state.work
        ),
    )


class _Free:
    """Devices that are still to be had as the runs come to their turn."""

    def __init__(self, state: QueueState) -> None:
        self._units = state.units
        self._left = {unit.name for unit in state.units if unit.run_id is None}
        busy: dict[str, int] = {}
        for unit in state.units:
            busy[unit.lab] = busy.get(unit.lab, 0) + (unit.run_id is not None)
        self._slots = {lab: most - busy.get(lab, 0) for lab, most in state.capacity.items()}

    def why(self, run: Work, before: Sequence[Work]) -> Waits:
        wanted = [unit for unit in self._units if run.wants(unit)]
        in_service = [unit for unit in wanted if unit.health is not DeviceHealth.QUARANTINED]
        if not in_service:
            return Waits.OUT_OF_SERVICE
        in_service = [unit for unit in in_service if not unit.away]
        if not in_service:
            return Waits.AWAY
        ready = [unit for unit in in_service if run.wanted_device or unit.health is DeviceHealth.GOOD]
        free = [unit for unit in ready if unit.name in self._left]
        with_slot = [unit for unit in free if self._slots.get(unit.lab, 1) > 0]
        if with_slot:
            self._take(min(with_slot, key=lambda unit: unit.name))
            return Waits.NEXT
        if free:
            return Waits.CAPACITY
        if not ready:
            return Waits.UNCHECKED
        return Waits.AHEAD if any(_competes(run, other, wanted) for other in before) else Waits.BUSY

    def _take(self, unit: Unit) -> None:
        self._left.discard(unit.name)
        if unit.lab in self._slots:
            self._slots[unit.lab] -= 1


def _competes(run: Work, other: Work, wanted: Sequence[Unit]) -> bool:
    return any(other.wants(unit) for unit in wanted)


def _ahead(state: QueueState, run: Work, before: Sequence[Work]) -> list[RunsAhead]:
    """At work on a device that it could have, then those before it in the queue; one entry per submission and plan."""
    wanted = [unit for unit in state.units if run.wants(unit)]
    names = {unit.name for unit in wanted}
    at_work = [other for other in state.work if other.device in names]
    queued = [other for other in before if _competes(run, other, wanted)]
    groups: dict[tuple[int | None, str, bool], list[Work]] = {}
    for other, running in [*((each, True) for each in at_work), *((each, False) for each in queued)]:
        groups.setdefault((other.submission_id, other.plan, running), []).append(other)
    return [
        RunsAhead(
            submission_id=submission_id,
            owner=works[0].owner,
            plan=plan,
            runs=len(works),
            running=running,
            boots_left=sum(work.boots_left for work in works),
        )
        for (submission_id, plan, running), works in groups.items()
    ]


@dataclass(frozen=True)
class _Points:
    aging: float
    share: float
    held: int


def _entry(
    state: QueueState,
    run: Work,
    waits: Waits,
    ahead: list[RunsAhead],
    *,
    starts_s: float | None,
    position: int,
    in_type: int,
) -> QueueEntry:
    waited_s = state.waited_s(run)
    points = _Points(AGING_PER_MINUTE * waited_s / 60, -SHARE * state.held[run.owner], state.held[run.owner])
    known = starts_s is not None and waits not in {Waits.OUT_OF_SERVICE, Waits.UNCHECKED, Waits.AWAY}
    return QueueEntry(
        position=position,
        position_in_type=in_type,
        run_id=run.run_id,
        submission_id=run.submission_id,
        title=run.title,
        owner=run.owner,
        purpose=run.purpose,
        plan=run.plan,
        device_type=run.device_type,
        wanted_device=run.wanted_device,
        offered_device=run.device,
        queued_at=run.created_at,
        waited_s=waited_s,
        priority=run.priority,
        aging=round(points.aging, 2),
        devices_held=points.held,
        share=points.share,
        score=round(run.priority + points.aging + points.share, 2),
        waits=waits,
        ahead=ahead,
        ahead_runs=sum(group.runs for group in ahead),
        ahead_boots=sum(group.boots_left for group in ahead),
        starts_at=state.now + timedelta(seconds=starts_s) if known and starts_s is not None else None,
        why=_why(state, run, waits, ahead, points),
    )


def _why(state: QueueState, run: Work, waits: Waits, ahead: list[RunsAhead], points: _Points) -> str:
    device = run.wanted_device or run.device_type
    said = {
        Waits.OFFERED: f"{run.device} is set aside for it; the lab's worker is about to begin",
        Waits.NEXT: f"a device ({device}) is free: it gets one in the next moment",
        Waits.BUSY: f"waits for: {_groups(ahead)} on {device}",
        Waits.AHEAD: f"waits for: {_groups(ahead)} ahead on {device}",
        Waits.UNCHECKED: f"no device of {device} has passed a health check; one is ordered",
        Waits.CAPACITY: f"a device is free, but its lab has as many at work as it can run ({_bounds(state, run)})",
        Waits.AWAY: f"no device of {device} can be had now: {_away(state, run)}",
        Waits.OUT_OF_SERVICE: f"every device of {device} is quarantined; a maintainer has to release one",
    }[waits]
    held = f"{points.held} device{'' if points.held == 1 else 's'}"
    share = f"; {run.owner} has {held} already, which takes {-points.share:g} points" if points.held else ""
    return said + (share if waits in {Waits.AHEAD, Waits.BUSY, Waits.CAPACITY} else "")


def _away(state: QueueState, run: Work) -> str:
    return "; ".join(sorted({f"{unit.name}: {unit.away}" for unit in state.units if run.wants(unit) and unit.away}))


def _groups(ahead: list[RunsAhead]) -> str:
    if not ahead:
        return "a device"
    parts = []
    for group in ahead[:_NAMED]:
        runs = f"{group.runs} run{'' if group.runs == 1 else 's'} of {group.plan}"
        whose = f"submission {group.submission_id}, {group.owner}" if group.submission_id else "the lab"
        boots = f"{group.boots_left} boot{'' if group.boots_left == 1 else 's'} left"
        parts.append(f"{runs} ({whose}; {'at work, ' if group.running else ''}{boots})")
    more = sum(group.runs for group in ahead[_NAMED:])
    return ", ".join(parts) + (f" and {more} more" if more else "")


def _bounds(state: QueueState, run: Work) -> str:
    labs = sorted({unit.lab for unit in state.units if run.wants(unit)} & state.capacity.keys())
    return ", ".join(f"{lab}: {state.capacity[lab]} at once" for lab in labs)
