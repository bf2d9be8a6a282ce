"""Load the rows that views of submissions and runs need, with a fixed number of queries for any number of rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, case, cast, func, or_, select, type_coerce
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, JSONPATH, array
from sqlalchemy.orm import Session, defer

from wqlab_contracts.api.submissions import SubmittedRequest, TargetSummary
from wqlab_contracts.enums import BootState, DeviceHealth, Evidence, JobState, Question, Role, RunPurpose, Verdict

from ..estimates import timings
from ..estimates.eta import Estimate, RemainingBuild, RemainingRun, estimate
from ..estimates.queue_score import queue_score
from ..estimates.timings import MeanTime
from ..models import (
    Apply,
    BlockAttempt,
    Boot,
    Build,
    Comparison,
    Device,
    Finding,
    Lease,
    Run,
    Submission,
    SubmissionBuild,
)
from ..models.runs import needed_blocks
from ..storage.db import clock, fetch_dict
from .build import RunRows, SubmissionRows, VerdictCounts, count_verdicts

_SNAPSHOT_COLUMNS = [
    defer(column, raiseload=True)
    for column in (Run.plan, Run.profile, Run.files, Run.fragments, Run.modules, Run.recipe)
]
"""Columns that no view of a run shows. They are not loaded: a plan is large and would be validated each time."""


_ENVIRONMENT_COLUMNS = [
    defer(column, raiseload=True) for column in (Boot.topology, Boot.environment, Boot.cmdline, Boot.commands)
]
"""Columns with a boot's reported environment: kilobytes per boot."""


def submission_rows(
    session: Session, submission: Submission, *, snapshots: bool = False, environments: bool = True
) -> SubmissionRows:
    """Load everything that a SubmissionView shows.

    With `snapshots`, the runs include their copies from the data folder (plan, files, recipe ...). Without
    `environments`, the boots do not include their reported topology, environment and commands.
    """
    apply = session.scalar(select(Apply).where(Apply.submission_id == submission.id))
    builds = [
        (part, build)
        for part, build in session.execute(
            select(SubmissionBuild, Build)
            .join(Build, Build.id == SubmissionBuild.build_id)
            .where(SubmissionBuild.submission_id == submission.id)
            .order_by(SubmissionBuild.id)
        )
    ]
    query = select(Run).where(Run.submission_id == submission.id).order_by(Run.id)
    # A report needs snapshots, and reads traced boots separately.
    query = query.where(Run.purpose != RunPurpose.TRACE) if snapshots else query.options(*_SNAPSHOT_COLUMNS)
    loaded = run_rows(session, session.scalars(query).all(), environments=environments)
    rows = [each for each in loaded if each.run.purpose is not RunPurpose.TRACE]
    traced = [each for each in loaded if each.run.purpose is RunPurpose.TRACE]
    verdicts = deciding_verdicts(session, [submission.id]).get(submission.id, VerdictCounts())
    request = submitted_request(session, submission.id)
    eta = _eta(session, submission, request, apply, builds, runs=loaded)
    return SubmissionRows(submission, request, apply, builds, rows, traced, verdicts, eta)


def submitted_request(session: Session, submission_id: int) -> SubmittedRequest:
    """Return the request of a submission. The database leaves out the text of an mbox, which may have 20 MB."""
    request = type_coerce(Submission.request, JSONB)
    text = ("series", "mbox", "text")
    content, size = session.execute(
        select(request.op("#-")(cast(array(text), ARRAY(Text))), func.octet_length(request[text].astext)).where(
            Submission.id == submission_id
        )
    ).one()
    if size is not None:
        content["series"]["mbox"] = {"size": size}
    return SubmittedRequest.model_validate(content)


def run_rows(session: Session, runs: Sequence[Run], *, environments: bool = True) -> list[RunRows]:
    """Load boots, findings, number of finished blocks and queue position of each run, in the order of `runs`."""
    ids = [run.id for run in runs]
    if not ids:
        return []
    boots: dict[int, list[Boot]] = defaultdict(list)
    query = select(Boot).where(Boot.run_id.in_(ids)).order_by(Boot.id)
    for boot in session.scalars(query if environments else query.options(*_ENVIRONMENT_COLUMNS)):
        boots[boot.run_id].append(boot)
    findings: dict[int, list[Finding]] = defaultdict(list)
    for finding in session.scalars(select(Finding).where(Finding.run_id.in_(ids)).order_by(Finding.id)):
        findings[finding.run_id].append(finding)
    finished = session.execute(
        select(BlockAttempt.run_id, func.count(BlockAttempt.block.distinct()))
        .where(BlockAttempt.run_id.in_(ids), BlockAttempt.finished)
        .group_by(BlockAttempt.run_id)
    )
    blocks = dict(finished.all())
    lab_discards: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for run_id, block, attempt in session.execute(
        select(BlockAttempt.run_id, BlockAttempt.block, BlockAttempt.attempt).where(
            BlockAttempt.run_id.in_(ids), BlockAttempt.finished.is_(False), BlockAttempt.arm.is_(None)
        )
    ):
        lab_discards[run_id].add((block, attempt))
    queued = {run.device_type for run in runs if run.state is JobState.QUEUED}
    positions = _queue_positions(session, queued) if queued else {}
    return [
        RunRows(
            run, boots[run.id], findings[run.id], blocks.get(run.id, 0), positions.get(run.id), lab_discards[run.id]
        )
        for run in runs
    ]


def deciding_verdicts(session: Session, submission_ids: Collection[int]) -> dict[int, VerdictCounts]:
    """Count the verdicts of primary metrics, and every judged regression, by submission id; modelled figures apart."""
    counted: dict[int, tuple[list[tuple[Verdict, int]], list[tuple[Verdict, int]]]] = defaultdict(lambda: ([], []))
    modelled = is_modelled_figure()
    for submission_id, verdict, is_modelled, count in session.execute(
        select(Run.submission_id, Comparison.verdict, modelled, func.count())
        .join(Comparison, Comparison.run_id == Run.id)
        .where(Run.submission_id.in_(submission_ids), Comparison.verdict.is_not(None))
        .where(or_(Comparison.role == Role.PRIMARY, _is_regression()))
        .where(Comparison.patch.is_(None))
        .group_by(Run.submission_id, Comparison.verdict, modelled)
    ):
        if submission_id is not None and verdict is not None:
            counted[submission_id][is_modelled].append((verdict, count))
    return {submission_id: VerdictCounts(*map(count_verdicts, pairs)) for submission_id, pairs in counted.items()}


def _is_regression() -> ColumnElement[bool]:
    return and_(Comparison.question == Question.KERNEL, Comparison.verdict == Verdict.REGRESSION)


def is_modelled_figure() -> ColumnElement[bool]:
    """Return True for the comparison of a modelled figure, as an SQL expression."""
    found: ColumnElement[bool] = type_coerce(Comparison.data, JSONB)["evidence"].astext == Evidence.MODELLED.value
    return found


def _is_emulated(device_spec: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return DeviceType.emulated as an SQL expression; device types of older runs have no `rehearsal`."""
    rehearsal = func.coalesce(device_spec["rehearsal"].astext, "false") == "true"
    return or_(device_spec["emulation"].astext.is_not(None), rehearsal)


def is_modelled_device() -> ColumnElement[bool]:
    """Return DeviceType.modelled of a run's device as an SQL expression."""
    return func.coalesce(type_coerce(Run.device_spec, JSONB)["emulation"]["clock"].astext, "") == "model"


def target_summaries(session: Session, submission_ids: Collection[int]) -> dict[int, list[TargetSummary]]:
    """Return the target summaries by submission id, in the order of the request."""
    rows = session.execute(
        select(
            Run.id, Run.submission_id, Run.plan_name, Run.device_type, Run.device_name, Run.state, Run.outcome,
            Run.verdict, Run.failure, Run.headline, Run.boots_done, Run.blocks, Run.looked,
            _is_emulated(type_coerce(Run.device_spec, JSONB)).label("emulated"),
            is_modelled_device().label("modelled"),
        )
        .where(Run.submission_id.in_(submission_ids), Run.purpose != RunPurpose.TRACE)
        .order_by(Run.target, Run.id)
    )  # fmt: skip
    found: dict[int, list[TargetSummary]] = defaultdict(list)
    for row in rows:
        found[row.submission_id].append(
            TargetSummary(
                run_id=row.id,
                plan=row.plan_name,
                device_type=row.device_type,
                emulated=row.emulated,
                modelled=row.modelled,
                device=row.device_name,
                state=row.state,
                outcome=row.outcome,
                verdict=row.verdict,
                failure_kind=row.failure.kind if row.failure is not None else None,
                headline=row.headline,
                done_boots=row.boots_done,
                total_boots=sum(len(arms) for arms in needed_blocks(row.blocks, row.looked)),
            )
        )
    return found


def _queue_positions(session: Session, device_types: Collection[str]) -> dict[int, int]:
    """Return each run's position (from 1) among the runs that wait for a device of the same type, by run id.

    The order is that in which devices would be assigned now; it changes when an owner gets or releases a device.
    """
    now = clock(session)
    held = devices_held(session)
    waiting = session.execute(
        select(Run.id, Run.device_type, Run.owner, Run.priority, Run.created_at)
        .outerjoin(Lease, Lease.run_id == Run.id)
        .where(
            Run.state == JobState.QUEUED,
            Run.device_type.in_(device_types),
            Lease.run_id.is_(None),
        )
    ).all()
    scored = sorted(
        waiting,
        key=lambda run: (-queue_score(run.priority, _seconds(run.created_at, now), held.get(run.owner, 0)), run.id),
    )
    counters: dict[str, int] = defaultdict(int)
    positions = {}
    for run in scored:
        counters[run.device_type] += 1
        positions[run.id] = counters[run.device_type]
    return positions


def devices_held(session: Session) -> dict[str, int]:
    """Return the number of devices leased to each owner's runs, by owner."""
    counted = select(Run.owner, func.count()).join(Lease, Lease.run_id == Run.id).group_by(Run.owner)
    return fetch_dict(session, counted)


# --- the estimate -----------------------------------------------------------------------------------------------


def _eta(
    session: Session,
    submission: Submission,
    request: SubmittedRequest,
    apply: Apply | None,
    parts: Sequence[tuple[SubmissionBuild, Build]],
    *,
    runs: Sequence[RunRows],
) -> Estimate:
    now = clock(session)
    unfinished = submission.finished_at is None
    builds_left = unfinished and any(build.state is not JobState.FINISHED for _, build in parts)
    build_times = timings.build_times(session) if builds_left else {}
    unfinished_runs = {
        (rows.run.plan_name, rows.run.device_type) for rows in runs if rows.run.state is not JobState.FINISHED
    }
    types = {device_type for _, device_type in unfinished_runs}
    boot_times = timings.boot_times(session, unfinished_runs)
    devices = _devices(session, types) if types else {}
    ahead = _boots_ahead(session, types, submission.id) if types else {}
    return estimate(
        submission.state,
        now,
        submission.finished_at,
        builds=[
            RemainingBuild(
                arm=part.arm.value,
                recipe=part.recipe,
                state=build.state,
                elapsed_s=_seconds(build.started_at, now),
                progress=build.progress,
                done=build.progress_done,
                total=build.progress_total,
                typical_s=_seconds_of(build_times.get((submission.tree, part.recipe, part.arch, part.arm))),
            )
            for part, build in parts
        ],
        runs=[
            RemainingRun(
                plan=rows.run.plan_name,
                device_type=rows.run.device_type,
                state=rows.run.state,
                progress=rows.run.progress,
                done_boots=sum(boot.valid for boot in rows.boots),
                total_boots=rows.run.boots_planned,
                boot_elapsed_s=_current_boot_s(rows.boots, now),
                boot_s=_seconds_of(boot_times.get((rows.run.plan_name, rows.run.device_type))),
                devices=devices.get(rows.run.device_type, 0),
                ahead_boots=ahead.get(rows.run.device_type, 0),
            )
            for rows in runs
        ],
        planned_targets=len(request.targets),
        apply_progress=apply.progress if apply else "",
    )


def _seconds(since: datetime | None, now: datetime) -> float:
    return 0.0 if since is None else max((now - since).total_seconds(), 0.0)


def _seconds_of(mean: MeanTime | None) -> float | None:
    return None if mean is None else mean.seconds


def _current_boot_s(boots: Sequence[Boot], now: datetime) -> float:
    current = [boot for boot in boots if boot.state is not BootState.FINISHED]
    return _seconds(current[-1].started_at, now) if current else 0.0


def _devices(session: Session, device_types: Collection[str]) -> dict[str, int]:
    """Return the number of devices of each type that are neither quarantined nor retired, by device type."""
    counted = session.execute(
        select(Device.device_type, func.count())
        .where(
            Device.device_type.in_(device_types),
            Device.health != DeviceHealth.QUARANTINED,
            Device.retired_at.is_(None),
        )
        .group_by(Device.device_type)
    )
    return dict(counted.all())


def _boots_ahead(session: Session, device_types: Collection[str], submission_id: int) -> dict[str, int]:
    """Return the number of remaining boots of other submissions' earlier runs, by device type."""
    planned = func.coalesce(
        func.jsonb_array_length(func.jsonb_path_query_array(Run.blocks, cast("$[*][*]", JSONPATH))), 0
    )
    counted = session.execute(
        select(Run.device_type, func.sum(planned - Run.boots_done))
        .where(
            Run.device_type.in_(device_types),
            Run.purpose == RunPurpose.MEASURE,
            Run.state.in_([JobState.QUEUED, JobState.RUNNING]),
            Run.submission_id != submission_id,
            case((Run.state == JobState.RUNNING, True), else_=Run.submission_id < submission_id),
        )
        .group_by(Run.device_type)
    )
    return {device_type: int(boots) for device_type, boots in counted}
