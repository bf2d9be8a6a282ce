"""Quotes: read the lab's current state and past times from the database and calculate a quote. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from wqlab_contracts.api.quotes import Quote
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import BETWEEN, PAIR, Arm, DeviceHealth, JobState, Outcome, RunPurpose
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.mails.inspection import inspect
from wqlab_contracts.messages import Target
from wqlab_contracts.specs import Backend, CpuArch, DeviceType, GeneratedTopology

from ..estimates import canaries, lab_snapshot, timings
from ..http.inspection_process import Inspect
from ..models import Apply, Boot, BootValue, Build, Run, Submission, SubmissionBuild
from ..settings import Settings
from ..views.traced_boots import TRACED_BLOCKS, why_not_traced
from . import detectable_effect
from .device_access import access_mistakes
from .plan_targets import kernel_recipe, plan_target
from .quote_calculation import LINK_S, Request, RequestedKernel, RequestedTarget, SimilarBoots, quote
from .validate import Mistake, mistakes
from .walk import boots_per_block, patch_count

_RUNS = 20
"""Number of newest runs that the spread is calculated from."""


def make_quote(
    session: Session,
    data: DataFolder,
    settings: Settings,
    request: SubmissionRequest,
    owner: str,
    *,
    inspect: Inspect = inspect,
) -> Quote:
    """Return the quote of a request of `owner`. The request's mistakes are listed in `errors`; targets with mistakes
    are left out. `inspect` inspects its mbox; an endpoint gives `BoundedInspect`."""
    errors = mistakes(request, data, settings.local_git_path_list, inspect)
    errors += access_mistakes(request.expanded(), data, owner)
    valid = [(index, target) for index, target in request.indexed_targets() if _is_valid(index, errors)]
    series = request.series is not None
    boot_times = timings.boot_times(session, {(target.plan, target.device_type) for _, target in valid})
    boots = boots_per_block(request, inspect)
    targets = []
    for index, target in valid:
        planned = plan_target(session, data, request, target, boots=boots)
        device_type, plan, profile = planned.device_type, planned.plan, planned.profile
        metric = detectable_effect.primary_metric(plan, device_type.emulated)
        effect = expected = None
        if metric is not None:
            past = _past_values(session, plan.name, device_type.name, metric.name)
            effect = detectable_effect.estimate(
                plan, metric, emulated=device_type.emulated, series=series, blocks=profile.blocks, past=past,
                family=planned.family,
            )  # fmt: skip
            expected = detectable_effect.expected_blocks(
                plan, metric, emulated=device_type.emulated, series=series, looks=profile.looks, past=past
            )
        measured = boot_times.get((target.plan, target.device_type))
        traced_blocks = _traced_blocks(request, data, plan.name, device_type, planned.recipe.figures)
        targets.append(
            RequestedTarget(
                index=index,
                plan=plan,
                device_type=device_type,
                profile=profile,
                boots_per_block=boots,
                patches_unknown=request.walk and patch_count(request.series, inspect) is None,
                traced_boots=traced_blocks * (2 if series else 1),
                measured=measured,
                similar=None if measured else _similar_boots(session, data, plan.name, device_type),
                detectable=effect,
                why_blocks=planned.why_blocks,
                expected_blocks=expected,
                canaries=canaries.records(session, device_type=device_type.name, plan=plan.name) if series else (),
            )
        )
    build_times = timings.build_times(session)
    return quote(
        Request(
            owner=owner,
            priority=request.priority,
            targets=targets,
            kernels=_kernels(
                session,
                data,
                request,
                [(target, found.profile.most_blocks) for (_, target), found in zip(valid, targets, strict=True)],
                build_times,
                inspect=inspect,
            ),
            builds_ahead=_builds_ahead(session, build_times),
            errors=errors,
        ),
        _with_generated(lab_snapshot.load(session, settings), targets),
    )


def _with_generated(state: lab_snapshot.LabSnapshot, targets: Sequence[RequestedTarget]) -> lab_snapshot.LabSnapshot:
    """Return the lab's state with the devices of generated types that were never used: the next tick adds them."""
    known = {device.device_type for device in state.devices}
    added = [
        lab_snapshot.DeviceSnapshot(unit.name, spec.name, unit.lab, DeviceHealth.UNKNOWN, None, unit.backend)
        for spec in {target.device_type.name: target.device_type for target in targets}.values()
        if GeneratedTopology.parse(spec.name) is not None and spec.name not in known
        for unit in spec.units
    ]
    return replace(state, devices=[*state.devices, *added])


def _is_valid(index: int, errors: Sequence[Mistake]) -> bool:
    """Return True if a target and the sweep have no mistakes, so that it can be quoted."""
    if any(error["pointer"].startswith("/sweep") for error in errors):
        return False
    own = f"/targets/{index}"
    return not any(error["pointer"] == own or error["pointer"].startswith(f"{own}/") for error in errors)


def _traced_blocks(
    request: SubmissionRequest, data: DataFolder, plan: str, device_type: DeviceType, figures: bool
) -> int:
    """Return the number of traced blocks that follow if a primary metric differs."""
    backend: Backend | None = "labgrid" if any(unit.backend == "labgrid" for unit in device_type.units) else None
    if device_type.instrumented or why_not_traced(request, data.plan_files(plan), backend, figures=figures):
        return 0
    return TRACED_BLOCKS


def _kernels(
    session: Session,
    data: DataFolder,
    request: SubmissionRequest,
    targets: Sequence[tuple[Target, int]],
    times: timings.BuildTimes,
    *,
    inspect: Inspect,
) -> list[RequestedKernel]:
    """Return the needed kernels: a baseline, with a series a candidate, and in a walk those between, per recipe,
    architecture and kind of device (emulated or not). `targets`: each with its blocks."""
    arms = [*PAIR, *BETWEEN[: boots_per_block(request, inspect) - 2]] if request.series is not None else [Arm.BASELINE]
    layouts: dict[tuple[str, CpuArch, bool], int] = {}
    """Of each kind, the layouts of the target that boots the most."""
    for target, blocks in targets:
        spec = data.device_type(target.device_type)
        kind = kernel_recipe(data, request, target).name, spec.arch, spec.on_bench
        layouts[kind] = max(layouts.get(kind, 1), request.layouts_on(spec, blocks))
    existing = _existing_baselines(session, request, inspect) if targets else set()
    link_s = timings.link_s(session) or LINK_S
    return [
        RequestedKernel(
            recipe,
            _build_time(times, request.tree, recipe, arch, arm),
            arm is Arm.BASELINE and (recipe, arch, emulated) in existing,
            links=of_kind - 1,
            link_s=link_s,
        )
        for (recipe, arch, emulated), of_kind in layouts.items()
        for arm in arms
    ]


def _existing_baselines(session: Session, request: SubmissionRequest, inspect: Inspect) -> set[tuple[str, str, bool]]:
    """Return (recipe, arch, emulated) of the kernels already built from the tree's last known commit.

    Empty if the request's mailbox names another base commit.
    """
    result = type_coerce(Apply.result, JSONB)
    head = session.execute(
        select(result["baseline"]["tree_oid"].astext, result["baseline"]["base_commit"].astext)
        .where(
            Apply.outcome == Outcome.PASSED,
            result["candidate"].astext.is_(None),
            type_coerce(Apply.payload, JSONB)["tree"]["name"].astext == request.tree,
        )
        .order_by(Apply.id.desc())
        .limit(1)
    ).one_or_none()
    if head is None:
        return set()
    tree_oid, commit = head
    if request.series is not None and request.series.mbox is not None:
        named = inspect(request.series.mbox.text).base_commit
        if named is not None and named != commit:
            return set()
    found = session.execute(
        select(Build.recipe, Build.arch, Build.emulated).where(
            Build.outcome == Outcome.PASSED, type_coerce(Build.source, JSONB)["tree_oid"].astext == tree_oid
        )
    )
    return {(recipe.name, arch, emulated) for recipe, arch, emulated in found}


def _build_time(times: timings.BuildTimes, tree: str, recipe: str, arch: str, arm: Arm) -> timings.MeanTime | None:
    """Return the mean build time of an arm, else of the other arm, whose source is nearly the same; None if unknown."""
    known = (times.get((tree, recipe, arch, each)) for each in (arm, *reversed(PAIR)))
    return next((time for time in known if time is not None), None)


def _builds_ahead(session: Session, times: timings.BuildTimes) -> list[timings.MeanTime | None]:
    """Return the mean times of the builds that are queued or running."""
    tree = (
        select(Submission.tree)
        .join(SubmissionBuild, SubmissionBuild.submission_id == Submission.id)
        .where(SubmissionBuild.build_id == Build.id)
        .limit(1)
        .scalar_subquery()
    )
    pending = session.execute(
        select(tree, Build.recipe, Build.arch).where(Build.state.in_([JobState.QUEUED, JobState.RUNNING]))
    )
    return [_build_time(times, tree, recipe.name, arch, Arm.BASELINE) for tree, recipe, arch in pending]


def _similar_boots(session: Session, data: DataFolder, plan: str, device_type: DeviceType) -> SimilarBoots | None:
    """Return the boots of a plan on another device type of the same kind, of these the one with the nearest number of
    CPUs; None if it was measured on none."""
    cpus = device_type.topology.cpus
    others = {
        each.name: abs(each.topology.cpus - cpus)
        for each in data.device_types.values()
        if (each.emulated, each.instrumented, each.modelled)
        == (device_type.emulated, device_type.instrumented, device_type.modelled)
    }
    times = timings.boot_times(session, {(plan, name) for name in others})
    nearest = min(times, key=lambda key: (others[key[1]], key), default=None)
    return None if nearest is None else SimilarBoots(nearest[1], times[nearest])


def _past_values(session: Session, plan: str, device_type: str, metric: str) -> list[detectable_effect.PastValue]:
    """Return the valid boots' values of a metric in the newest compared runs of a plan on a device type."""
    newest = (
        select(Run.id)
        .where(
            Run.plan_name == plan,
            Run.device_type == device_type,
            Run.purpose == RunPurpose.MEASURE,
            Run.compared_at.is_not(None),
        )
        .order_by(Run.id.desc())
        .limit(_RUNS)
    )
    rows = session.execute(
        select(BootValue.run_id, Boot.block, Boot.arm, BootValue.scenario, BootValue.setting, BootValue.value)
        .join(Boot, Boot.id == BootValue.boot_id)
        .where(BootValue.run_id.in_(newest), BootValue.metric == metric, Boot.valid)
    )
    return [detectable_effect.PastValue(*row) for row in rows]
