"""Rows -> the resources of contracts/api.py. Pure: everything a view shows is an argument, nothing is loaded here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from wqlab_contracts import cpu_layout
from wqlab_contracts.api import submissions as api
from wqlab_contracts.enums import Arm, Verdict
from wqlab_contracts.messages import CompilerWarning

from .. import models
from ..estimates.eta import Eta
from ..estimates.lava_pools import Standing


@dataclass
class RunRows:
    """One run with what its view shows."""

    run: models.Run
    boots: Sequence[models.Boot] = ()
    findings: Sequence[models.Finding] = ()
    blocks_completed: int = 0
    queue_position: int | None = None


@dataclass
class SubmissionRows:
    """One submission with what its view shows."""

    submission: models.Submission
    apply: models.Apply | None
    builds: Sequence[tuple[models.SubmissionBuild, models.Build]]
    runs: Sequence[RunRows]
    verdicts: Mapping[Verdict, int]
    eta: Eta


def submission_summary(
    row: models.Submission, verdicts: Mapping[Verdict, int], targets: Sequence[api.TargetSummary]
) -> api.SubmissionSummary:
    return api.SubmissionSummary(
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
        verdicts=dict(verdicts),
        retry_of=row.retry_of,
        targets=list(targets),
        done_boots=sum(target.done_boots for target in targets),
        total_boots=sum(target.total_boots for target in targets),
        created_at=row.created_at,
        finished_at=row.finished_at,
    )


def submission_view(rows: SubmissionRows) -> api.SubmissionView:
    summary = submission_summary(rows.submission, rows.verdicts, [target_summary(each.run) for each in rows.runs])
    return api.SubmissionView(
        **{name: getattr(summary, name) for name in api.SubmissionSummary.model_fields},
        request=rows.submission.request,
        apply=apply_view(rows.apply),
        builds=_submission_builds(rows),
        runs=[run_view(each) for each in rows.runs],
        eta=api.Eta(
            finish_at=rows.eta.finish_at,
            what=rows.eta.what,
            done_boots=rows.eta.done_boots,
            total_boots=rows.eta.total_boots,
        ),
        exit_code=rows.submission.exit_code,
    )


def target_summary(run: models.Run) -> api.TargetSummary:
    return api.TargetSummary(
        run_id=run.id,
        plan=run.plan_name,
        device_type=run.device_type,
        emulated=run.device_spec.emulated,
        device=run.device_name,
        state=run.state,
        outcome=run.outcome,
        verdict=run.verdict,
        headline=run.headline,
        done_boots=run.boots_done,
        total_boots=run.boots_planned,
    )


def apply_view(row: models.Apply | None) -> api.ApplyView:
    if row is None:
        raise ValueError("a submission without an apply row")
    result = row.result
    baseline = result.baseline if result else None
    return api.ApplyView(
        state=row.state,
        outcome=row.outcome,
        failure=row.failure,
        base_commit=baseline.base_commit if baseline else None,
        release=baseline.release if baseline else None,
        patches=result.patches if result else [],
        checkpatch=result.checkpatch if result else [],
        series_mbox=result.series_mbox if result else None,
    )


# --- builds -----------------------------------------------------------------------------------------------------


def build_view(
    row: models.Build,
    arm: Arm | None = None,
    new_warnings: Sequence[CompilerWarning] = (),
    reused_before: datetime | None = None,
) -> api.BuildView:
    """`reused_before`: a build that is older than this was made for somebody else."""
    result = row.result
    return api.BuildView(
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
        release=result.release if result else "",
        compiler=result.compiler if result else "",
        reproducer=result.reproducer if result else "",
        duration_s=result.duration_s if result else None,
        new_warnings=list(new_warnings),
        artifacts=result.artifacts if result else [],
        progress=row.progress,
    )


def is_reused(row: models.Build, before: datetime | None) -> bool:
    """Whether it was made for somebody else, before the time given, or found in a worker's cache."""
    return (before is not None and row.created_at < before) or (row.result is not None and row.result.reused)


def new_warnings(candidate: models.Build, baseline: models.Build | None) -> list[CompilerWarning]:
    """Warnings of the candidate that the baseline lacks. Lines move under a patch, so a warning is known by its file,
    option and text, and counted: a second one of the same kind in the same file is new."""
    if candidate.result is None or baseline is None or baseline.result is None:
        return []
    known: dict[tuple[str, str, str], int] = {}
    for warning in baseline.result.warnings:
        known[_identity(warning)] = known.get(_identity(warning), 0) + 1
    fresh = []
    for warning in candidate.result.warnings:
        if known.get(_identity(warning), 0) > 0:
            known[_identity(warning)] -= 1
        else:
            fresh.append(warning)
    return fresh


def _identity(warning: CompilerWarning) -> tuple[str, str, str]:
    return warning.where.partition(":")[0], warning.option, warning.text


def _submission_builds(rows: SubmissionRows) -> list[api.BuildView]:
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


def run_view(rows: RunRows) -> api.RunView:
    run = rows.run
    boots = {boot.id: boot for boot in rows.boots}
    return api.RunView(
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
        progress=run.progress,
        queue_position=rows.queue_position,
        created_at=run.created_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        boots=[boot_view(boot) for boot in rows.boots],
        findings=[finding_view(each, boots[each.boot_id]) for each in rows.findings if each.boot_id in boots],
    )


def boot_view(row: models.Boot) -> api.BootView:
    return api.BootView(
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


def finding_view(row: models.Finding, boot: models.Boot) -> api.FindingView:
    return api.FindingView(
        kind=row.kind,
        arm=boot.arm,
        block=boot.block,
        attempt=boot.attempt,
        title=row.title,
        excerpt=row.excerpt,
        console_offset=row.console_offset,
        fatal=row.fatal,
    )


# --- the lab ----------------------------------------------------------------------------------------------------


def device_view(
    row: models.Device, lease: models.Lease | None, stands: Standing, check: int | None = None
) -> api.DeviceView:
    """`check`: the unfinished run that checks its health."""
    return api.DeviceView(
        name=row.name,
        device_type=row.device_type,
        lab=row.lab,
        health=row.health,
        health_reason=row.health_reason,
        health_checked_at=row.health_checked_at,
        lease=None
        if lease is None
        else api.LeaseView(run_id=lease.run_id, holder=lease.holder, fence=lease.fence, expires_at=lease.expires_at),
        measured_topology=row.measured_topology,
        layout=cpu_layout.measured(row.measured_topology) if row.measured_topology else None,
        health_check=check,
        check_requested_at=row.check_requested_at,
        backend=row.backend,
        away=stands.away,
        elsewhere=stands.elsewhere,
    )


def count_verdicts(pairs: Iterable[tuple[Verdict, int]]) -> dict[Verdict, int]:
    """In the order of the vocabulary, so that two answers with the same counts are the same text."""
    counted = dict(pairs)
    return {verdict: counted[verdict] for verdict in Verdict if counted.get(verdict)}
