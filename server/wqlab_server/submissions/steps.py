"""Steps of a submission for its page: states, times and failures of all jobs, without figures and environments."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api import report as api_report
from wqlab_contracts.api.steps import (
    ApplyStep,
    BlockState,
    BlockStep,
    BootStep,
    BuildStep,
    FailureBrief,
    RunAttemptStep,
    RunStep,
    SubmissionSteps,
)
from wqlab_contracts.api.submissions import Eta
from wqlab_contracts.enums import Arm, ArtifactKind, JobState
from wqlab_contracts.excerpts import shorten
from wqlab_contracts.messages import Failure

from ..jobs import attempts
from ..models import Apply, BlockAttempt, Boot, Build, Run, RunAttempt, Submission, SubmissionBuild
from ..models.runs import needed_blocks
from ..storage.db import clock
from ..views.build import (
    RunRows,
    checkpatch_skipped,
    finding_view,
    is_reused,
    new_warnings,
    submission_summary,
    taken_thread,
    target_summary,
)
from ..views.load import submission_rows

EXCERPT_CHARACTERS = 2_000
"""Length to which the excerpt of a failed attempt is shortened; its middle is left out."""


def steps(session: Session, submission: Submission) -> SubmissionSteps:
    """Return the steps of a submission."""
    event_seq = submission.event_seq  # before the other rows are read: a client that follows from here misses nothing
    rows = submission_rows(session, submission, environments=False)
    assert rows.apply is not None  # noqa: S101 - created with the submission
    every = [*rows.runs, *rows.traced]
    ids = [each.run.id for each in every]
    blocks: dict[int, list[BlockAttempt]] = defaultdict(list)
    for block in session.scalars(select(BlockAttempt).where(BlockAttempt.run_id.in_(ids)).order_by(BlockAttempt.at)):
        blocks[block.run_id].append(block)
    devices: dict[int, list[RunAttempt]] = defaultdict(list)
    for device in session.scalars(select(RunAttempt).where(RunAttempt.run_id.in_(ids)).order_by(RunAttempt.number)):
        devices[device.run_id].append(device)
    failed = attempts.failed_job_attempts(session, submission.id)
    for each in every:
        failed += attempts.failed_run_attempts(each.run, each.boots, blocks[each.run.id], devices[each.run.id])
    now = clock(session)
    return SubmissionSteps(
        submission=submission_summary(submission, rows.verdicts, [target_summary(each.run) for each in rows.runs]),
        at=now,
        event_seq=event_seq,
        cancel_requested_at=submission.cancel_requested_at,
        exit_code=submission.exit_code,
        eta=Eta(
            finish_at=rows.eta.finish_at,
            what=rows.eta.what,
            done_boots=rows.eta.done_boots,
            total_boots=rows.eta.total_boots,
        ),
        apply=_apply(rows.apply),
        builds=_builds(submission, rows.builds),
        runs=[_run(each, blocks[each.run.id], devices[each.run.id]) for each in rows.runs],
        traced_runs=[_run(each, blocks[each.run.id], devices[each.run.id]) for each in rows.traced],
        attempts=[_shortened(view) for view in sorted(failed, key=lambda view: view.at or now)],
    )


def _shortened(view: api_report.AttemptView) -> api_report.AttemptView:
    excerpt = shorten(view.failure.excerpt, EXCERPT_CHARACTERS)
    return view.model_copy(update={"failure": view.failure.model_copy(update={"excerpt": excerpt})})


def _job(job: Apply | Build | Run) -> dict[str, Any]:
    return {
        name: getattr(job, name)
        for name in (
            "state", "outcome", "failure", "attempts", "holder", "progress", "progress_done", "progress_total",
            "created_at", "started_at", "finished_at",
        )
    }  # fmt: skip


def _apply(apply: Apply) -> ApplyStep:
    result = apply.result
    baseline = result.baseline if result else None
    found = Counter(finding.severity for finding in result.checkpatch) if result else Counter[str]()
    return ApplyStep(
        **_job(apply),
        base_commit=baseline.base_commit if baseline else None,
        release=baseline.release if baseline else None,
        patches=len(result.patches) if result else 0,
        checkpatch_errors=found["error"],
        checkpatch_warnings=found["warning"],
        checkpatch_skipped=checkpatch_skipped(apply),
        thread=taken_thread(apply),
    )


def _builds(submission: Submission, parts: Sequence[tuple[SubmissionBuild, Build]]) -> list[BuildStep]:
    baselines = {(part.recipe, part.arch, part.emulated): build for part, build in parts if part.arm is Arm.BASELINE}
    steps = []
    for part, build in parts:
        result = build.result
        baseline = baselines.get((part.recipe, part.arch, part.emulated)) if part.arm is Arm.CANDIDATE else None
        steps.append(
            BuildStep(
                **_job(build),
                id=build.id,
                arm=part.arm,
                recipe=part.recipe,
                arch="arm64" if part.arch == "arm64" else "x86_64",
                emulated=part.emulated,
                reused=is_reused(build, submission.created_at),
                release=result.release if result else "",
                build_id_gnu=result.build_id_gnu if result else "",
                new_warnings=len(new_warnings(build, baseline)),
                has_log=any(artifact.kind is ArtifactKind.BUILD_LOG for artifact in result.artifacts)
                if result
                else False,
            )
        )
    return steps


def _run(rows: RunRows, blocks: Sequence[BlockAttempt], devices: Sequence[RunAttempt]) -> RunStep:
    run = rows.run
    by_id = {boot.id: boot for boot in rows.boots}
    found = Counter(finding.boot_id for finding in rows.findings)
    return RunStep(
        **_job(run),
        id=run.id,
        target=run.target,
        plan=run.plan_name,
        device_type=run.device_type,
        emulated=run.device_spec.emulated,
        device=run.device_name,
        queue_position=rows.queue_position,
        done_boots=run.boots_done,
        total_boots=run.boots_planned,
        blocks=block_steps(
            run.blocks, run.state, rows.boots, blocks, needed=len(needed_blocks(run.blocks, run.looked))
        ),
        looks=run.looks,
        looked=run.looked,
        boots=[_boot(boot, found) for boot in rows.boots],
        findings=[finding_view(each, by_id[each.boot_id]) for each in rows.findings if each.boot_id in by_id],
        devices=[
            RunAttemptStep(
                number=device.number,
                device=device.device_name,
                holder=device.holder,
                outcome=device.outcome,
                failure=device.failure,
                started_at=device.started_at,
                finished_at=device.finished_at,
            )
            for device in devices
        ],
    )


def block_steps(
    planned: Sequence[Sequence[Arm]],
    state: JobState,
    boots: Sequence[Boot],
    attempts: Sequence[BlockAttempt],
    *,
    needed: int,
) -> list[BlockStep]:
    """Return the state of each planned block, the first `needed` of which the run needs. Pure."""
    last: dict[int, int] = {}
    for boot in boots:
        last[boot.block] = max(boot.attempt, last.get(boot.block, 0))
    completed = {attempt.block for attempt in attempts if attempt.finished}
    discarded = Counter(attempt.block for attempt in attempts if not attempt.finished)
    ended = {(attempt.block, attempt.attempt) for attempt in attempts}
    steps = []
    for number, arms in enumerate(planned):
        attempt = last.get(number)
        if number in completed:
            block_state = BlockState.COMPLETED
        elif number >= needed:
            block_state = BlockState.NOT_NEEDED
        elif state is JobState.FINISHED:
            block_state = BlockState.LOST
        elif state is JobState.RUNNING and attempt is not None and (number, attempt) not in ended:
            block_state = BlockState.RUNNING
        else:
            block_state = BlockState.PENDING
        steps.append(
            BlockStep(block=number, arms=list(arms), state=block_state, attempt=attempt, discarded=discarded[number])
        )
    return steps


def _boot(boot: Boot, findings: Mapping[int, int]) -> BootStep:
    return BootStep(
        id=boot.id,
        block=boot.block,
        position=boot.position,
        arm=boot.arm,
        attempt=boot.attempt,
        device=boot.device_name,
        state=boot.state,
        outcome=boot.outcome,
        valid=boot.valid,
        failure=_brief(boot.failure),
        findings=findings.get(boot.id, 0),
        started_at=boot.started_at,
        verified_at=boot.verified_at,
        finished_at=boot.finished_at,
        console_bytes=boot.console_bytes,
        console_truncated=boot.console_truncated,
    )


def _brief(failure: Failure | None) -> FailureBrief | None:
    if failure is None:
        return None
    return FailureBrief(kind=failure.kind, summary=failure.summary, advice=failure.advice)
