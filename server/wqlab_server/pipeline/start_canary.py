"""Start a canary on an idle device: choose its plan and its kernels, which are at hand."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import structlog
from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from wqlab_comparison import LEAST_BLOCKS
from wqlab_comparison.block_order import block_plan
from wqlab_contracts.enums import CanaryKind, JobState, Outcome, RunPurpose
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.specs import DeviceType, TestPlan

from ..jobs.state import change_state
from ..lab import lease
from ..models import Build, CanaryRun, Device, Run, Submission, SubmissionBuild
from ..settings import Settings
from ..storage.db import clock
from ..submissions import detectable_effect, plan_runs
from . import health_checks

log = structlog.get_logger(__name__)

USED_WITHIN = timedelta(days=90)
"""Time within which a plan must have been measured on the device type to have canaries."""
_OWNER = "lab"
_LAYOUTS = 4
"""Layouts in which the golden kernel is linked for canaries."""


class _Kernels(NamedTuple):
    kind: CanaryKind
    baseline: int
    candidate: int
    layouts: int = 1


def start_canary(session: Session, data: DataFolder, device: str, settings: Settings) -> Run | None:
    """Offer the device to its interrupted canary or to a new one; return it, or None if there is no plan or kernel."""
    run = session.scalar(
        select(Run)
        .where(Run.wanted_device == device, Run.purpose == RunPurpose.CANARY, Run.state == JobState.QUEUED)
        .order_by(Run.id)
        .limit(1)
        .with_for_update()
    )
    run = run or _create(session, data, session.get_one(Device, device), settings)
    if run is not None:
        lease.offer(session, run, device, settings)
    return run


def _create(session: Session, data: DataFolder, device: Device, settings: Settings) -> Run | None:
    device_type = data.device_type(device.device_type)
    kernels = _kernels(session, device, device_type)
    if kernels and (linked := _golden_layouts(session, data, device, settings)) is not None:
        kernels.append(linked)
    plans = _plans(session, data, device_type)
    if not kernels or not plans:
        return None
    plan, (kind, baseline, candidate, layouts) = _next(session, device.name, plans, kernels)
    profile = plan.profile(device_type.emulated)
    profile = profile.model_copy(
        update={"settings": [plan.reference_setting], "blocks": max(profile.blocks, LEAST_BLOCKS), "looks": []}
    )
    seed = secrets.randbits(48)
    run = Run(
        submission_id=None,
        purpose=RunPurpose.CANARY,
        canary=CanaryRun(kind=kind),
        owner=_OWNER,
        priority=0,
        seed=seed,
        blocks=block_plan(profile.blocks, series=True, seed=seed),
        profile=profile,
        wanted_device=device.name,
        baseline_build_id=baseline,
        candidate_build_id=candidate,
        layouts=layouts,
        **plan_runs.snapshot(data, device_type, plan),
    )
    session.add(run)
    session.flush()
    change_state(run, JobState.QUEUED)
    log.info("canary_ordered", device=device.name, run=run.id, plan=plan.name, kind=kind)
    return run


def _kernels(session: Session, device: Device, device_type: DeviceType) -> list[_Kernels]:
    """Return the kernels at hand: the golden kernel of the device's last health check, and the newest pair of the
    control series."""
    found = []
    golden_build = aliased(Build, flat=True)
    golden = session.scalar(
        select(Run.baseline_build_id)
        .join(golden_build, golden_build.id == Run.baseline_build_id)
        .where(
            Run.wanted_device == device.name,
            Run.purpose == RunPurpose.HEALTH_CHECK,
            Run.outcome == Outcome.PASSED,
            golden_build.files_deleted_at.is_(None),
        )
        .order_by(Run.id.desc())
        .limit(1)
    )
    if golden is not None:
        found.append(_Kernels(CanaryKind.SAME_KERNEL, golden, golden))
    control = session.execute(
        select(SubmissionBuild.submission_id, func.array_agg(SubmissionBuild.build_id))
        .join(Submission, Submission.id == SubmissionBuild.submission_id)
        .join(Build, Build.id == SubmissionBuild.build_id)
        .where(
            Submission.noise_control,
            SubmissionBuild.recipe == device_type.recipe,
            SubmissionBuild.arch == device_type.arch,
            SubmissionBuild.emulated == device_type.on_bench,
            Build.outcome == Outcome.PASSED,
            Build.files_deleted_at.is_(None),
        )
        .group_by(SubmissionBuild.submission_id)
        .having(func.count() == 2)
        .order_by(SubmissionBuild.submission_id.desc())
        .limit(1)
    ).one_or_none()
    if control is not None:
        baseline, candidate = session.scalars(
            select(SubmissionBuild.build_id)
            .where(SubmissionBuild.build_id.in_(control[1]), SubmissionBuild.submission_id == control[0])
            .order_by(SubmissionBuild.arm)
        )
        found.append(_Kernels(CanaryKind.NOPS, baseline, candidate))
    return found


def _golden_layouts(session: Session, data: DataFolder, device: Device, settings: Settings) -> _Kernels | None:
    """Return the golden kernel in several layouts, or None while it is linked or if this device cannot boot it.

    This is the only kernel that is built for canaries: once for each golden kernel, from kept objects.
    """
    if device.backend == "lava":
        return None
    build = health_checks.golden_kernel_build(
        session, data, data.device_type(device.device_type), settings, layouts=_LAYOUTS
    )
    if not isinstance(build, Build) or build.outcome is not Outcome.PASSED:
        return None
    return _Kernels(CanaryKind.OTHER_LAYOUT, build.id, build.id, _LAYOUTS)


def _plans(session: Session, data: DataFolder, device_type: DeviceType) -> list[TestPlan]:
    """Return the plans that were measured on the device type, and its `noise_plan`; each has a verdict."""
    used = set(
        session.scalars(
            select(Run.plan_name)
            .where(
                Run.device_type == device_type.name,
                Run.purpose == RunPurpose.MEASURE,
                Run.created_at > clock(session) - USED_WITHIN,
            )
            .distinct()
        )
    )
    # A plan with fragments of its own needs other kernels than the golden system's.
    suitable = {
        name: plan.measured(None, device_type.emulated)
        for name, plan in sorted(data.plans.items(), key=lambda item: (item[0] != device_type.noise_plan, item[0]))
        if not plan.checks_health
        and not plan.fragments
        and detectable_effect.primary_metric(plan, device_type.emulated) is not None
    }
    return [suitable[name] for name in sorted(used.intersection(suitable) | set(list(suitable)[:1]))]


def _next(
    session: Session, device: str, plans: Sequence[TestPlan], kernels: Sequence[_Kernels]
) -> tuple[TestPlan, _Kernels]:
    """Return the plan and kernels whose last canary on the device is the oldest."""
    last = {
        (plan, kind): run_id
        for plan, kind, run_id in session.execute(
            select(Run.plan_name, CanaryRun.kind, func.max(Run.id))
            .join(CanaryRun, CanaryRun.run_id == Run.id)
            .where(Run.wanted_device == device)
            .group_by(Run.plan_name, CanaryRun.kind)
        )
    }
    pairs = [(plan, each) for each in kernels for plan in plans]
    return min(pairs, key=lambda pair: last.get((pair[0].name, pair[1].kind), 0))
