"""Calculation of a quote: what a request costs the lab and when it would be finished. Pure: the lab's state and past
times are arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from wqlab_comparison import words
from wqlab_contracts.api.canaries import CanaryRecord
from wqlab_contracts.api.devices import DeviceCounts
from wqlab_contracts.api.quotes import BuildQuote, DetectableEffect, Quote, QuoteBasis, QuoteMistake, TargetQuote
from wqlab_contracts.enums import JobState
from wqlab_contracts.specs import DeviceType, Profile, Scenario, TestPlan

from ..estimates.lab_snapshot import DeviceSnapshot, LabSnapshot, UnfinishedRun, availability_class
from ..estimates.queue_score import queue_score
from ..estimates.timings import BootTime, MeanTime
from .walk import UNKNOWN_PATCHES

_WEAKEST_FIRST = (QuoteBasis.UNKNOWN, QuoteBasis.PLANNED, QuoteBasis.MEASURED)


TYPICAL_BOOT_SHARE = 1 / 4
"""Share of the limits of its two boots that a device takes."""
TYPICAL_REPETITION_SHARE = 1 / 12
"""Share of its limit that a repetition takes: the median of the plans that state a run time or load."""


@dataclass(frozen=True)
class SimilarBoots:
    """Past boots of a plan on another device type."""

    device_type: str
    time: BootTime


@dataclass(frozen=True)
class RequestedTarget:
    """A valid target of the request, with past times of its plan and device type."""

    index: int
    plan: TestPlan
    device_type: DeviceType
    profile: Profile
    """The plan's profile with the request's settings, parameters and blocks applied."""
    boots_per_block: int
    measured: BootTime | None
    detectable: DetectableEffect | None
    why_blocks: str = ""
    """Why so many blocks are planned, or what so few cannot do."""
    expected_blocks: float | None = None
    """Mean number of blocks of a run with looks, if there is no difference."""
    canaries: Sequence[CanaryRecord] = ()
    patches_unknown: bool = False
    """True for a walk whose number of patches is not known yet."""
    similar: SimilarBoots | None = None
    """Past boots of the plan on a similar device type, if there are none on this one."""
    traced_boots: int = 0
    """Boots that are added if a primary metric differs."""


LINK_S = 50.0
"""Seconds to link a kernel in another layout, if none was measured: that of a `measure` kernel on a busy machine."""


@dataclass(frozen=True)
class RequestedKernel:
    """A kernel that the request needs."""

    recipe: str
    build_time: MeanTime | None
    """Mean time of past builds like this one; None if there was none."""
    exists: bool = False
    """True if the kernel was built already, assuming the series has the tree's last known commit as base."""
    links: int = 0
    """Further links of the kernel, for other layouts."""
    link_s: float = LINK_S
    """Seconds of one of them."""


@dataclass(frozen=True)
class Request:
    """The request to be quoted."""

    owner: str
    priority: int
    targets: Sequence[RequestedTarget]
    kernels: Sequence[RequestedKernel]
    builds_ahead: Sequence[MeanTime | None] = field(default_factory=list)
    """Mean times of builds of other submissions that are queued or running."""
    errors: Sequence[Mapping[str, str]] = field(default_factory=list)
    """Mistakes of the request: `pointer` and `detail`."""


def quote(request: Request, state: LabSnapshot) -> Quote:
    """Calculate the quote of a request in the lab's current state.

    Kernels are built one after another, those of other submissions first. Then each target is scheduled on the device
    that becomes free first, after all runs with a higher or equal queue score.
    """
    builds = _builds(request.kernels)
    build_s = _sum([each.build_s for each in builds])
    ahead_s = _sum([usual.seconds if usual else None for usual in request.builds_ahead])
    ready_s = _sum([build_s, ahead_s])
    score = queue_score(request.priority, 0.0, state.devices_held[request.owner])
    before = [run for run in _waiting_runs(state) if state.score(run) >= score]
    schedule = state.schedule()
    for run in before:
        schedule.place(run.device_type, run.remaining_s, requested_device=run.wanted_device)
    targets = []
    for target in request.targets:
        boot_s, basis, text = boot_time(target)
        device_s = boot_s * target.profile.blocks * target.boots_per_block
        start_s = schedule.place(target.device_type.name, device_s, not_before_s=ready_s or 0.0)
        known = start_s is not None and ready_s is not None
        starts_at = state.now + timedelta(seconds=start_s) if known and start_s is not None else None
        ahead = [run for run in before if run.device_type == target.device_type.name]
        running = [run for run in state.runs if run.device and run.device_type == target.device_type.name]
        devices = count_devices(state, target.device_type.name)
        targets.append(
            TargetQuote(
                index=target.index,
                plan=target.plan.name,
                device_type=target.device_type.name,
                emulated=target.device_type.emulated,
                blocks=target.profile.blocks,
                looks=target.profile.looks,
                expected_blocks=target.expected_blocks,
                boots=target.profile.blocks * target.boots_per_block,
                settings=len(target.profile.settings),
                boot_s=round(boot_s, 1),
                device_s=round(device_s, 1),
                expected_device_s=None
                if target.expected_blocks is None
                else round(boot_s * target.expected_blocks * target.boots_per_block, 1),
                basis=basis,
                measured_boots=target.measured.count if target.measured else 0,
                basis_text=text,
                detectable=target.detectable,
                canaries=list(target.canaries),
                queue_position=len(ahead) + 1,
                ahead_runs=len(ahead) + len(running),
                ahead_boots=sum(run.boots_left for run in [*ahead, *running]),
                device_counts=devices,
                starts_at=starts_at,
                ends_at=starts_at + timedelta(seconds=device_s) if starts_at else None,
                notes=[
                    *_target_notes(target),
                    *_notes(devices, ready_s, [*ahead, *running]),
                    *_trace_notes(target, boot_s),
                ],
            )
        )
    bases = [*(each.basis for each in builds), *(each.basis for each in targets)]
    return Quote(
        at=state.now,
        errors=[QuoteMistake(pointer=error["pointer"], detail=error["detail"]) for error in request.errors],
        builds=builds,
        build_s=build_s,
        targets=targets,
        device_s=_sum([each.device_s for each in targets]) if targets else None,
        expected_device_s=_expected_device_s(targets),
        starts_at=_if_all_known([each.starts_at for each in targets], min),
        ends_at=_if_all_known([each.ends_at for each in targets], max),
        basis=min(bases, key=_WEAKEST_FIRST.index, default=QuoteBasis.UNKNOWN),
    )


def _expected_device_s(targets: Sequence[TargetQuote]) -> float | None:
    """Return the expected device time; targets without an expectation count with their largest number of blocks."""
    if all(each.expected_device_s is None for each in targets):
        return None
    return _sum([each.device_s if each.expected_device_s is None else each.expected_device_s for each in targets])


def _waiting_runs(state: LabSnapshot) -> list[UnfinishedRun]:
    """Return the runs without a device, including those whose kernels are not built yet, highest score first."""
    waiting = [run for run in state.runs if run.state is JobState.WAITING]
    return sorted([*state.queued, *waiting], key=lambda run: (-state.score(run), run.run_id))


def count_devices(state: LabSnapshot, device_type: str) -> DeviceCounts:
    """Count the devices of a type by availability."""
    of_type: list[DeviceSnapshot] = [device for device in state.devices if device.device_type == device_type]
    counts = dict.fromkeys(DeviceCounts.model_fields, 0)
    for device in of_type:
        counts[availability_class(device.health, leased=device.run_id is not None)] += 1
    return DeviceCounts(**counts)


# --- times ------------------------------------------------------------------------------------------------------


def boot_time(target: RequestedTarget) -> tuple[float, QuoteBasis, str]:
    """Estimate the time of one boot: seconds, the basis of the estimate, and a description of it."""
    past, settings = target.measured, len(target.profile.settings)
    cells = settings * len(target.plan.scenarios)
    if past is not None:
        boots = f"{past.count} boot{'' if past.count == 1 else 's'}"
        text = f"mean of {boots} of {target.plan.name} on {target.device_type.name}"
        if cells != past.cells:
            text += f", with the workload scaled from {past.cells:g} to {cells} (scenarios times settings)"
        return past.scaled_to(cells), QuoteBasis.MEASURED, text
    if (similar := target.similar) is not None:
        text = (
            f"a guess, since {target.plan.name} was not measured on {target.device_type.name} yet: its boots on "
            f"{similar.device_type}"
        )
        return similar.time.scaled_to(cells), QuoteBasis.PLANNED, text
    boot = target.device_type.boot
    startup_s = boot.power_off_s + TYPICAL_BOOT_SHARE * (boot.golden_timeout_s + boot.variant_timeout_s)
    rounds = target.profile.repetitions.most * settings
    workload_s = sum(rounds * repetition_s(target.profile, scenario) for scenario in target.plan.scenarios)
    text = (
        f"a guess, since {target.plan.name} was not measured on such a device type yet: {startup_s:.0f} s to boot, and "
        f"{workload_s:.0f} s for its repetitions ({rounds * len(target.plan.scenarios)}) by the plan's timings"
    )
    return startup_s + workload_s, QuoteBasis.PLANNED, text


def repetition_s(profile: Profile, scenario: Scenario) -> float:
    """Return the usual seconds of a repetition: the run time that the plan sets, if any, else a share of its limit."""
    runtime = {**profile.parameters, **scenario.parameters}.get("runtime_s", 0)
    if isinstance(runtime, int | float) and runtime > 0:
        return float(min(runtime, profile.measure_timeout_s))
    return profile.measure_timeout_s * TYPICAL_REPETITION_SHARE


def _builds(kernels: Sequence[RequestedKernel]) -> list[BuildQuote]:
    by_recipe: dict[str, list[RequestedKernel]] = {}
    for kernel in kernels:
        by_recipe.setdefault(kernel.recipe, []).append(kernel)
    quotes = []
    for recipe, needed in by_recipe.items():
        unbuilt = [kernel for kernel in needed if not kernel.exists]
        missing = [kernel.build_time for kernel in unbuilt]
        link_s = sum(kernel.links * kernel.link_s for kernel in unbuilt)
        known = [time for time in missing if time is not None]
        complete = len(known) == len(missing)
        quotes.append(
            BuildQuote(
                recipe=recipe,
                kernels=len(needed),
                reused=len(needed) - len(missing),
                build_s=round(sum(each.seconds for each in known) + link_s, 1) if complete else None,
                basis=QuoteBasis.MEASURED if complete else QuoteBasis.UNKNOWN,
                measured_builds=sum(each.count for each in known),
                links=sum(kernel.links for kernel in unbuilt),
            )
        )
    return quotes


def _target_notes(target: RequestedTarget) -> list[str]:
    noun = "seed" if target.device_type.instrumented else "block"
    blocks = [f"{words.count(target.profile.blocks, noun)}: {target.why_blocks}"] if target.why_blocks else []
    return [*blocks, *([UNKNOWN_PATCHES] if target.patches_unknown else [])]


def _trace_notes(target: RequestedTarget, boot_s: float) -> list[str]:
    """Return what traced boots add, which the times leave out because most runs need none."""
    if not target.traced_boots:
        return []
    minutes = max(1, round(target.traced_boots * boot_s / 60))
    return [
        f"if a primary metric differs, {target.traced_boots} traced boots more (about {minutes} min) count what else "
        "differs"
    ]


def _notes(devices: DeviceCounts, ready_s: float | None, ahead: Sequence[UnfinishedRun]) -> list[str]:
    notes = []
    if devices.free + devices.busy == 0:
        reason = (
            "every device of this type is quarantined" if devices.quarantined else "there is no device of this type"
        )
        notes.append(f"{reason}: no run can start")
    elif devices.good + devices.busy == 0:
        notes.append(
            "no device of this type has passed a health check yet: a health check is run first and takes a few minutes"
        )
    if ready_s is None:
        notes.append(
            "kernels like these have not been built in this lab yet, so the time until they are ready is unknown"
        )
    untimed = sorted({run.plan for run in ahead if run.boot_s is None})
    if untimed:
        notes.append(f"runs of {', '.join(untimed)} are ahead, whose times on this device type are not known yet")
    return notes


def _sum(times: Sequence[float | None]) -> float | None:
    known = [time for time in times if time is not None]
    return round(sum(known), 1) if len(known) == len(times) else None


def _if_all_known(times: Sequence[datetime | None], pick: Callable[[list[datetime]], datetime]) -> datetime | None:
    """Return `pick` of the times, or None unless all of them are known."""
    known = [time for time in times if time is not None]
    return pick(known) if known and len(known) == len(times) else None
