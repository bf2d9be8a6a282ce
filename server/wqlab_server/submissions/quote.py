"""What a request would cost the lab and when it would be done. Pure: the lab's state and past times are arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from wqlab_contracts.api.quotes import BuildQuote, DetectableEffect, Quote, QuoteBasis, QuoteMistake, TargetQuote
from wqlab_contracts.api.submissions import UnitCounts
from wqlab_contracts.enums import JobState
from wqlab_contracts.specs import DeviceType, Profile, Scenario, TestPlan

from ..estimates.lab_snapshot import QueueState, Unit, Work, unit_class
from ..estimates.timings import BootTime, Usual
from ..jobs.state import queue_score

_WEAKEST = (QuoteBasis.UNKNOWN, QuoteBasis.PLANNED, QuoteBasis.MEASURED)


@dataclass(frozen=True)
class Wanted:
    """A target without mistakes, with what is known of its like."""

    index: int
    plan: TestPlan
    device_type: DeviceType
    profile: Profile
    """With the request's settings, parameters and blocks applied."""
    boots_per_block: int
    measured: BootTime | None
    detectable: DetectableEffect | None


@dataclass(frozen=True)
class Kernel:
    """One kernel that the request needs."""

    recipe: str
    usual: Usual | None
    exists: bool = False
    """It was built for somebody else, if the series sits where the tree was last."""


@dataclass(frozen=True)
class Request:
    owner: str
    priority: int
    wanted: Sequence[Wanted]
    kernels: Sequence[Kernel]
    builds_ahead: Sequence[Usual | None] = field(default_factory=list)
    """Others' builds that are queued or at work."""
    errors: Sequence[Mapping[str, str]] = field(default_factory=list)


def quote(request: Request, state: QueueState) -> Quote:
    """Kernels are built one after another, others' first; then each target takes the device that comes free first, after
    everything with a higher score."""
    builds = _builds(request.kernels)
    build_s = _sum([each.build_s for each in builds])
    ahead_s = _sum([usual.seconds if usual else None for usual in request.builds_ahead])
    ready_s = _sum([build_s, ahead_s])
    score = queue_score(request.priority, 0.0, state.held[request.owner])
    before = [run for run in _unplaced(state) if state.score(run) >= score]
    schedule = state.schedule()
    for run in before:
        schedule.place(run.device_type, run.left_s, wanted=run.wanted_device)
    targets = []
    for wanted in request.wanted:
        boot_s, basis, text = boot_time(wanted)
        device_s = boot_s * wanted.profile.blocks * wanted.boots_per_block
        start_s = schedule.place(wanted.device_type.name, device_s, not_before_s=ready_s or 0.0)
        known = start_s is not None and ready_s is not None
        starts_at = state.now + timedelta(seconds=start_s) if known and start_s is not None else None
        ahead = [run for run in before if run.device_type == wanted.device_type.name]
        at_work = [run for run in state.work if run.device and run.device_type == wanted.device_type.name]
        units = units_of(state, wanted.device_type.name)
        targets.append(
            TargetQuote(
                index=wanted.index,
                plan=wanted.plan.name,
                device_type=wanted.device_type.name,
                emulated=wanted.device_type.emulated,
                blocks=wanted.profile.blocks,
                boots=wanted.profile.blocks * wanted.boots_per_block,
                settings=len(wanted.profile.settings),
                boot_s=round(boot_s, 1),
                device_s=round(device_s, 1),
                basis=basis,
                measured_boots=wanted.measured.count if wanted.measured else 0,
                basis_text=text,
                detectable=wanted.detectable,
                queue_position=len(ahead) + 1,
                ahead_runs=len(ahead) + len(at_work),
                ahead_boots=sum(run.boots_left for run in [*ahead, *at_work]),
                units=units,
                starts_at=starts_at,
                ends_at=starts_at + timedelta(seconds=device_s) if starts_at else None,
                notes=_notes(units, ready_s, [*ahead, *at_work]),
            )
        )
    bases = [*(each.basis for each in builds), *(target.basis for target in targets)]
    return Quote(
        at=state.now,
        errors=[QuoteMistake(pointer=error["pointer"], detail=error["detail"]) for error in request.errors],
        builds=builds,
        build_s=build_s,
        targets=targets,
        device_s=_sum([target.device_s for target in targets]) if targets else None,
        starts_at=_all_of([target.starts_at for target in targets], min),
        ends_at=_all_of([target.ends_at for target in targets], max),
        basis=min(bases, key=_WEAKEST.index, default=QuoteBasis.UNKNOWN),
    )


def _unplaced(state: QueueState) -> list[Work]:
    """Runs without a device, those whose kernels are still being built too, highest score first."""
    waiting = [run for run in state.work if run.state is JobState.WAITING]
    return sorted([*state.queued, *waiting], key=lambda run: (-state.score(run), run.run_id))


def units_of(state: QueueState, device_type: str) -> UnitCounts:
    of_type: list[Unit] = [unit for unit in state.units if unit.device_type == device_type]
    counts = dict.fromkeys(UnitCounts.model_fields, 0)
    for unit in of_type:
        counts[unit_class(unit.health, leased=unit.run_id is not None)] += 1
    return UnitCounts(**counts)


# --- times ------------------------------------------------------------------------------------------------------


def boot_time(wanted: Wanted) -> tuple[float, QuoteBasis, str]:
    """Seconds of one boot, where that comes from, and the same in words."""
    past, settings = wanted.measured, len(wanted.profile.settings)
    cells = settings * len(wanted.plan.scenarios)
    if past is not None:
        boots = f"{past.count} boot{'' if past.count == 1 else 's'}"
        text = f"mean of {boots} of {wanted.plan.name} on {wanted.device_type.name}"
        if cells != past.cells:
            text += f", their workload scaled from {past.cells:g} scenarios times settings to {cells}"
        return past.with_cells(cells), QuoteBasis.MEASURED, text
    boot = wanted.device_type.boot
    starting_s = boot.power_off_s + boot.golden_timeout_s + boot.variant_timeout_s
    repetitions = wanted.profile.repetitions
    rounds = (repetitions.warmup + repetitions.untraced + repetitions.traced) * settings
    working_s = sum(rounds * repetition_s(wanted.profile, scenario) for scenario in wanted.plan.scenarios)
    text = (
        f"never timed here: at most {starting_s:g} s to boot, and {rounds * len(wanted.plan.scenarios)} repetitions "
        f"that take {working_s:g} s by the plan's times and limits"
    )
    return starting_s + working_s, QuoteBasis.PLANNED, text


def repetition_s(profile: Profile, scenario: Scenario) -> float:
    """The run time that the plan sets, where it sets one, else the longest that it allows."""
    runtime = {**profile.parameters, **scenario.parameters}.get("runtime_s", 0)
    if isinstance(runtime, int | float) and runtime > 0:
        return float(min(runtime, profile.measure_timeout_s))
    return float(profile.measure_timeout_s)


def _builds(kernels: Sequence[Kernel]) -> list[BuildQuote]:
    by_recipe: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        by_recipe.setdefault(kernel.recipe, []).append(kernel)
    quotes = []
    for recipe, needed in by_recipe.items():
        missing = [kernel.usual for kernel in needed if not kernel.exists]
        known = [usual for usual in missing if usual is not None]
        complete = len(known) == len(missing)
        quotes.append(
            BuildQuote(
                recipe=recipe,
                kernels=len(needed),
                reused=len(needed) - len(missing),
                build_s=round(sum(each.seconds for each in known), 1) if complete else None,
                basis=QuoteBasis.MEASURED if complete else QuoteBasis.UNKNOWN,
                measured_builds=sum(each.count for each in known),
            )
        )
    return quotes


def _notes(units: UnitCounts, ready_s: float | None, ahead: Sequence[Work]) -> list[str]:
    notes = []
    if units.good + units.busy + units.unchecked == 0:
        whole = "every device of the type is quarantined" if units.quarantined else "the type has no device"
        notes.append(f"{whole}: no run can start")
    elif units.good + units.busy == 0:
        notes.append("no device of the type has passed a health check yet: one is made first, and takes a few minutes")
    if ready_s is None:
        notes.append("kernels like these were never built here, so nobody knows when they will be ready")
    untimed = sorted({run.plan for run in ahead if run.boot_s is None})
    if untimed:
        notes.append(f"{', '.join(untimed)} is ahead and was never timed on this type")
    return notes


def _sum(times: Sequence[float | None]) -> float | None:
    known = [time for time in times if time is not None]
    return round(sum(known), 1) if len(known) == len(times) else None


def _all_of(times: Sequence[datetime | None], pick: Callable[[list[datetime]], datetime]) -> datetime | None:
    """The one that `pick` takes, if all are known."""
    known = [time for time in times if time is not None]
    return pick(known) if known and len(known) == len(times) else None
