"""Explain the queue: the position, score, reason for waiting and estimated start of each run. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from wqlab_contracts.api.queue import QueueEntry, QueueView, RunsAhead, WaitingOrder, Waits
from wqlab_contracts.enums import DeviceHealth, JobState, RunPurpose

from ..estimates.lab_snapshot import DeviceSnapshot, LabSnapshot, UnfinishedRun
from ..estimates.queue_score import AGING_PER_MINUTE, POINTS_PER_DEVICE_HELD

ENTRIES_MAX = 500
_GROUPS_NAMED = 3
"""Number of groups of runs ahead that the explanation names."""
RULE = (
    "A free device goes to the fitting run with the highest score: priority (0 to 100), plus "
    f"{AGING_PER_MINUTE:g} point per minute of waiting, minus {POINTS_PER_DEVICE_HELD:g} points for each device that "
    "the run's owner already holds. Waiting time has no limit, so every run gets a device eventually."
)


def view(state: LabSnapshot, orders: Sequence[WaitingOrder] = ()) -> QueueView:
    """Return the queue: runs with an offered device first, then the others by score, and the orders that wait."""
    queued = state.queued
    schedule = state.schedule()
    free = _FreeDevices(state)
    entries: list[QueueEntry] = []
    position_in_type: dict[str, int] = {}
    for run in state.offered:
        entries.append(
            _entry(state, run, Waits.OFFERED, [], starts_s=0.0, position=len(entries) + 1, position_in_type=0)
        )
    for number, run in enumerate(queued[: ENTRIES_MAX - len(entries)]):
        position_in_type[run.device_type] = position_in_type.get(run.device_type, 0) + 1
        starts_s = schedule.place(run.device_type, run.remaining_s, requested_device=run.wanted_device)
        ahead = _runs_ahead(state, run, queued[:number])
        waits = free.wait_reason(run, queued[:number])
        if waits in {Waits.NEXT, Waits.QUARANTINED, Waits.AWAY}:
            ahead = []
        entries.append(
            _entry(
                state, run, waits, ahead, starts_s=starts_s, position=len(entries) + 1,
                position_in_type=position_in_type[run.device_type],
            )
        )  # fmt: skip
    return QueueView(
        at=state.now,
        rule=RULE,
        total=len(state.offered) + len(queued),
        entries=entries,
        waiting_for_kernels=sum(
            run.state is JobState.WAITING and run.purpose is RunPurpose.MEASURE for run in state.runs
        ),
        orders=list(orders),
    )


class _FreeDevices:
    """Devices that remain free while the queue is served in order."""

    def __init__(self, state: LabSnapshot) -> None:
        self._devices = state.devices
        self._free = {device.name for device in state.devices if device.run_id is None}
        busy: dict[str, int] = {}
        for device in state.devices:
            busy[device.lab] = busy.get(device.lab, 0) + (device.run_id is not None)
        self._capacity_left = {lab: limit - busy.get(lab, 0) for lab, limit in state.capacity.items()}

    def wait_reason(self, run: UnfinishedRun, before: Sequence[UnfinishedRun]) -> Waits:
        """Return why `run` waits behind the runs `before` it; a free device is taken for the run."""
        usable = [device for device in self._devices if run.can_use(device)]
        in_service = [device for device in usable if device.health is not DeviceHealth.QUARANTINED]
        if not in_service:
            return Waits.QUARANTINED
        in_service = [device for device in in_service if not device.unavailable_reason]
        if not in_service:
            return Waits.AWAY
        ready = [device for device in in_service if run.wanted_device or device.health is DeviceHealth.GOOD]
        free = [device for device in ready if device.name in self._free]
        startable = [device for device in free if self._capacity_left.get(device.lab, 1) > 0]
        if startable:
            self._take(min(startable, key=lambda device: device.name))
            return Waits.NEXT
        if free:
            return Waits.CAPACITY
        if not ready:
            return Waits.HEALTH_CHECK
        return Waits.AHEAD if any(_competes(other, usable) for other in before) else Waits.BUSY

    def _take(self, device: DeviceSnapshot) -> None:
        self._free.discard(device.name)
        if device.lab in self._capacity_left:
            self._capacity_left[device.lab] -= 1


def _competes(other: UnfinishedRun, usable: Sequence[DeviceSnapshot]) -> bool:
    return any(other.can_use(device) for device in usable)


def _runs_ahead(state: LabSnapshot, run: UnfinishedRun, before: Sequence[UnfinishedRun]) -> list[RunsAhead]:
    """Group the runs ahead by submission and plan: first those on a device that `run` can use, then the queued ones."""
    usable = [device for device in state.devices if run.can_use(device)]
    names = {device.name for device in usable}
    on_device = [other for other in state.runs if other.device in names]
    queued = [other for other in before if _competes(other, usable)]
    groups: dict[tuple[int | None, str, bool], list[UnfinishedRun]] = {}
    for other, running in [*((each, True) for each in on_device), *((each, False) for each in queued)]:
        groups.setdefault((other.submission_id, other.plan, running), []).append(other)
    return [
        RunsAhead(
            submission_id=submission_id,
            owner=runs[0].owner,
            plan=plan,
            runs=len(runs),
            running=running,
            boots_left=sum(each.boots_left for each in runs),
        )
        for (submission_id, plan, running), runs in groups.items()
    ]


@dataclass(frozen=True)
class _Points:
    """Parts of a run's score besides its priority."""

    aging: float
    share: float
    """Penalty for devices held; zero or negative."""
    devices_held: int


def _entry(
    state: LabSnapshot,
    run: UnfinishedRun,
    waits: Waits,
    ahead: list[RunsAhead],
    *,
    starts_s: float | None,
    position: int,
    position_in_type: int,
) -> QueueEntry:
    waited_s = state.waited_s(run)
    points = _Points(
        AGING_PER_MINUTE * waited_s / 60,
        -POINTS_PER_DEVICE_HELD * state.devices_held[run.owner],
        state.devices_held[run.owner],
    )
    known = starts_s is not None and waits not in {Waits.QUARANTINED, Waits.HEALTH_CHECK, Waits.AWAY}
    return QueueEntry(
        position=position,
        position_in_type=position_in_type,
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
        devices_held=points.devices_held,
        share=points.share,
        score=round(run.priority + points.aging + points.share, 2),
        waits=waits,
        ahead=ahead,
        ahead_runs=sum(group.runs for group in ahead),
        ahead_boots=sum(group.boots_left for group in ahead),
        starts_at=state.now + timedelta(seconds=starts_s) if known and starts_s is not None else None,
        why=_explain(state, run, waits, ahead, points),
    )


def _explain(state: LabSnapshot, run: UnfinishedRun, waits: Waits, ahead: list[RunsAhead], points: _Points) -> str:
    device = run.wanted_device or run.device_type
    reason = {
        Waits.OFFERED: f"{run.device} is reserved for this run; the lab's worker is about to start",
        Waits.NEXT: f"a device ({device}) is free: this run gets a device next",
        Waits.BUSY: f"waits for: {_describe_groups(ahead)} on {device}",
        Waits.AHEAD: f"waits for: {_describe_groups(ahead)} ahead on {device}",
        Waits.HEALTH_CHECK: f"no device of {device} has passed a health check; one is ordered",
        Waits.CAPACITY: f"a device is free, but its lab is at capacity ({_describe_capacities(state, run)})",
        Waits.AWAY: f"every device of {device} is unavailable: {_describe_unavailable(state, run)}",
        Waits.QUARANTINED: f"every device of {device} is quarantined; a maintainer has to release one",
    }[waits]
    held = f"{points.devices_held} device{'' if points.devices_held == 1 else 's'}"
    share = f"; {run.owner} already holds {held}, which costs {-points.share:g} points" if points.devices_held else ""
    return reason + (share if waits in {Waits.AHEAD, Waits.BUSY, Waits.CAPACITY} else "")


def _describe_unavailable(state: LabSnapshot, run: UnfinishedRun) -> str:
    reasons = {
        f"{device.name}: {device.unavailable_reason}"
        for device in state.devices
        if run.can_use(device) and device.unavailable_reason
    }
    return "; ".join(sorted(reasons))


def _describe_groups(ahead: list[RunsAhead]) -> str:
    if not ahead:
        return "a device"
    parts = []
    for group in ahead[:_GROUPS_NAMED]:
        runs = f"{group.runs} run{'' if group.runs == 1 else 's'} of {group.plan}"
        source = f"submission {group.submission_id}, {group.owner}" if group.submission_id else "the lab"
        boots = f"{group.boots_left} boot{'' if group.boots_left == 1 else 's'} left"
        parts.append(f"{runs} ({source}; {'running, ' if group.running else ''}{boots})")
    more = sum(group.runs for group in ahead[_GROUPS_NAMED:])
    return ", ".join(parts) + (f" and {more} more" if more else "")


def _describe_capacities(state: LabSnapshot, run: UnfinishedRun) -> str:
    labs = sorted({device.lab for device in state.devices if run.can_use(device)} & state.capacity.keys())
    return ", ".join(f"{lab}: {state.capacity[lab]} at once" for lab in labs)
