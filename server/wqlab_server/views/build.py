"""Build the resources of contracts/api from rows. Pure: all rows are arguments, nothing is loaded here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from wqlab_contracts import cpu_layout
from wqlab_contracts.api.builds import BuildView
from wqlab_contracts.api.devices import DeviceView, LeaseView
from wqlab_contracts.api.runs import BootView, FindingView, RunView
from wqlab_contracts.api.submissions import (
    ApplyView,
    Eta,
    SubmissionSummary,
    SubmissionView,
    SubmittedRequest,
    TargetSummary,
)
from wqlab_contracts.enums import Arm, JobState, Outcome, Verdict
from wqlab_contracts.messages import CompilerWarning, TakenThread

from .. import models
from ..estimates.eta import Estimate
from ..estimates.lava_pools import Availability


@dataclass
class RunRows:
    """A run and the rows that its view needs."""

    run: models.Run
    boots: Sequence[models.Boot] = ()
    findings: Sequence[models.Finding] = ()
    blocks_completed: int = 0
    queue_position: int | None = None
    lab_discards: Collection[tuple[int, int]] = ()
    """(block, attempt) of each block that was discarded without counting against an arm."""


class VerdictCounts(NamedTuple):
    """Number of primary comparisons with each verdict. Measured and modelled figures are never counted together."""

    measured: Mapping[Verdict, int] = MappingProxyType({})
    modelled: Mapping[Verdict, int] = MappingProxyType({})


@dataclass
class SubmissionRows:
    """A submission and the rows that its view needs."""

    submission: models.Submission
    request: SubmittedRequest
    apply: models.Apply | None
    builds: Sequence[tuple[models.SubmissionBuild, models.Build]]
    runs: Sequence[RunRows]
    traced: Sequence[RunRows]
    """Runs of traced boots; not loaded for a report."""
    verdicts: VerdictCounts
    eta: Estimate


def submission_summary(
    row: models.Submission, verdicts: VerdictCounts, targets: Sequence[TargetSummary]
) -> SubmissionSummary:
    return SubmissionSummary(
        id=row.id,
        title=row.title or f"submission {row.id}",
        author=row.author,
        version=row.version,
        series_key=row.series_key,
        tree=row.tree,
        owner=row.owner,
        priority=row.priority,
        state=row.state,
        outcome=row.outcome,
        failure=row.failure,
        verdicts=dict(verdicts.measured),
        modelled_verdicts=dict(verdicts.modelled),
        retry_of=row.retry_of,
        targets=list(targets),
        done_boots=sum(target.done_boots for target in targets),
        total_boots=sum(target.total_boots for target in targets),
        created_at=row.created_at,
        finished_at=row.finished_at,
        pinned_at=row.pinned_at,
        pinned_by=row.pinned_by,
    )


def submission_view(rows: SubmissionRows) -> SubmissionView:
    summary = submission_summary(rows.submission, rows.verdicts, [target_summary(each.run) for each in rows.runs])
    return SubmissionView(
        **{name: getattr(summary, name) for name in SubmissionSummary.model_fields},
        request=rows.request,
        apply=apply_view(rows.apply),
        builds=_submission_builds(rows),
        runs=[run_view(each) for each in rows.runs],
        traced_runs=[run_view(each) for each in rows.traced],
        eta=Eta(
            finish_at=rows.eta.finish_at,
            what=rows.eta.what,
            done_boots=rows.eta.done_boots,
            total_boots=rows.eta.total_boots,
        ),
        exit_code=rows.submission.exit_code,
    )


def target_summary(run: models.Run) -> TargetSummary:
    return TargetSummary(
        run_id=run.id,
        plan=run.plan_name,
        device_type=run.device_type,
        emulated=run.device_spec.emulated,
        modelled=run.device_spec.modelled,
        device=run.device_name,
        state=run.state,
        outcome=run.outcome,
        verdict=run.verdict,
        headline=run.headline,
        done_boots=run.boots_done,
        total_boots=run.boots_planned,
    )


def checkpatch_skipped(apply: models.Apply) -> str:
    """Return why checkpatch did not check every patch of the series; empty if it did."""
    if apply.state is not JobState.FINISHED:
        return "the series is not applied yet"
    if apply.outcome is Outcome.CANCELED:
        return "the submission was canceled"
    if apply.outcome is not Outcome.PASSED or apply.result is None:
        return "the series was not applied"
    return apply.result.checkpatch_skipped


def taken_thread(apply: models.Apply) -> TakenThread | None:
    """Return the mails of a series that is given by a Message-ID; None until they are found."""
    if apply.result is not None and apply.result.thread is not None:
        return apply.result.thread
    return apply.payload.thread.taken if apply.payload.thread is not None else None


def apply_view(row: models.Apply | None) -> ApplyView:
    if row is None:
        raise ValueError("this submission has no apply row")
    result = row.result
    baseline = result.baseline if result else None
    return ApplyView(
        state=row.state,
        outcome=row.outcome,
        failure=row.failure,
        base_commit=baseline.base_commit if baseline else None,
        release=baseline.release if baseline else None,
        patches=result.patches if result else [],
        checkpatch=result.checkpatch if result else [],
        checkpatch_skipped=checkpatch_skipped(row),
        prior_art=result.prior_art if result else None,
        base_package=result.base_package if result else "",
        series_mbox=result.series_mbox if result else None,
        thread=taken_thread(row),
        files_deleted_at=row.files_deleted_at,
    )


# --- builds -----------------------------------------------------------------------------------------------------


def build_view(
    row: models.Build,
    arm: Arm | None = None,
    new_warnings: Sequence[CompilerWarning] = (),
    reused_before: datetime | None = None,
) -> BuildView:
    """Return the view of a build. A build created before `reused_before` is shown as reused."""
    result = row.result
    return BuildView(
        id=row.id,
        key=row.key,
        arm=arm,
        tree=row.source.tree.name,
        origin=row.source.tree.url or row.source.tree.debian_source or "",
        base_commit=row.source.base_commit,
        tree_oid=row.source.tree_oid,
        recipe=row.recipe.name,
        arch="arm64" if row.arch == "arm64" else "x86_64",
        state=row.state,
        outcome=row.outcome,
        failure=row.failure,
        reused=is_reused(row, reused_before),
        build_id_gnu=result.build_id_gnu if result else "",
        layout_build_ids=[each.build_id_gnu for each in result.layouts] if result else [],
        release=result.release if result else "",
        compiler=result.compiler if result else "",
        reproducer=result.reproducer if result else "",
        duration_s=result.duration_s if result else None,
        new_warnings=list(new_warnings),
        artifacts=result.artifacts if result else [],
        files_deleted_at=row.files_deleted_at,
        progress=row.progress,
    )


def is_reused(row: models.Build, before: datetime | None) -> bool:
    """Return True if the build was created before `before` (for another submission) or found in a worker's cache."""
    return (before is not None and row.created_at < before) or (row.result is not None and row.result.reused)


def new_warnings(candidate: models.Build, baseline: models.Build | None) -> list[CompilerWarning]:
    """Return the candidate's compiler warnings that the baseline does not have.

    A patch shifts line numbers, so warnings are compared by file, option and text, and counted: a second equal warning
    in the same file is new.
    """
    if candidate.result is None or baseline is None or baseline.result is None:
        return []
    known: dict[tuple[str, str, str], int] = {}
    for warning in baseline.result.warnings:
        known[_identity(warning)] = known.get(_identity(warning), 0) + 1
    new = []
    for warning in candidate.result.warnings:
        if known.get(_identity(warning), 0) > 0:
            known[_identity(warning)] -= 1
        else:
            new.append(warning)
    return new


def _identity(warning: CompilerWarning) -> tuple[str, str, str]:
    return warning.where.partition(":")[0], warning.option, warning.text


def _submission_builds(rows: SubmissionRows) -> list[BuildView]:
    baselines = {
        (part.recipe, part.arch, part.emulated): build for part, build in rows.builds if part.arm is Arm.BASELINE
    }
    views = []
    for part, build in rows.builds:
        baseline = baselines.get((part.recipe, part.arch, part.emulated)) if part.arm is Arm.CANDIDATE else None
        warnings = new_warnings(build, baseline)
        views.append(build_view(build, part.arm, warnings, reused_before=rows.submission.created_at))
    return views


# --- runs -------------------------------------------------------------------------------------------------------


def run_view(rows: RunRows) -> RunView:
    run = rows.run
    boots = {boot.id: boot for boot in rows.boots}
    return RunView(
        id=run.id,
        submission_id=run.submission_id,
        purpose=run.purpose,
        plan=run.plan_name,
        device_type=run.device_type,
        device=run.device_name,
        state=run.state,
        outcome=run.outcome,
        failure=run.failure,
        attempt=run.attempts,
        blocks_planned=len(run.blocks),
        blocks_completed=rows.blocks_completed,
        looks=run.looks,
        looked=run.looked,
        progress=run.progress,
        queue_position=rows.queue_position,
        created_at=run.created_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        files_deleted_at=run.files_deleted_at,
        consoles_deleted_at=run.consoles_deleted_at,
        boots=[boot_view(boot) for boot in rows.boots],
        findings=[finding_view(each, boots[each.boot_id]) for each in rows.findings if each.boot_id in boots],
    )


def boot_view(row: models.Boot) -> BootView:
    return BootView(
        id=row.id,
        run_id=row.run_id,
        block=row.block,
        position=row.position,
        arm=row.arm,
        attempt=row.attempt,
        device=row.device_name,
        state=row.state,
        outcome=row.outcome,
        failure=row.failure,
        valid=row.valid,
        kernel_boot_id=row.kernel_boot_id,
        token=row.token,
        build_id_gnu=row.build_id_gnu,
        release=row.release,
        cmdline=row.cmdline,
        topology=row.topology,
        environment=row.environment,
        started_at=row.started_at,
        finished_at=row.finished_at,
        golden_s=row.golden_s,
        kexec_s=row.kexec_s,
        workload_s=row.workload_s,
        overhead_s=row.overhead_s,
        console_bytes=row.console_bytes,
        console_truncated=row.console_truncated,
    )


def finding_view(row: models.Finding, boot: models.Boot) -> FindingView:
    return FindingView(
        kind=row.kind,
        arm=boot.arm,
        block=boot.block,
        attempt=boot.attempt,
        title=row.title,
        excerpt=row.excerpt,
        console_offset=row.console_offset,
        fatal=row.fatal,
        stack=row.stack,
        defect=row.defect,
    )


# --- the lab ----------------------------------------------------------------------------------------------------


def device_view(
    row: models.Device, lease: LeaseView | None, availability: Availability, check: int | None = None
) -> DeviceView:
    """Return the view of a device. `check` is the id of its unfinished health check run."""
    return DeviceView(
        name=row.name,
        device_type=row.device_type,
        lab=row.lab,
        health=row.health,
        health_reason=row.health_reason,
        health_checked_at=row.health_checked_at,
        lease=lease,
        measured_topology=row.measured_topology,
        layout=cpu_layout.measured_layout(row.measured_topology) if row.measured_topology else None,
        health_check=check,
        check_requested_at=row.check_requested_at,
        backend=row.backend,
        away=availability.unavailable_reason,
        elsewhere=availability.held_elsewhere,
    )


def count_verdicts(pairs: Iterable[tuple[Verdict, int]]) -> dict[Verdict, int]:
    """Return the counts in the order of the enum, so that equal counts give identical JSON."""
    counted = dict(pairs)
    return {verdict: counted[verdict] for verdict in Verdict if counted.get(verdict)}
