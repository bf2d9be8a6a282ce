"""Finish the jobs of a submission with simulated results, where workers would do them."""

from __future__ import annotations

import hashlib
import random
from datetime import datetime, timedelta

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from wqlab_contracts.enums import Arm, BootState, JobKind, JobState, Outcome, Scale
from wqlab_contracts.messages import ApplyResult, BuildResult, CommitRange, PatchSummary, Source
from wqlab_server.models import (
    Apply,
    BlockAttempt,
    Boot,
    Build,
    Job,
    Run,
    RunAttempt,
    Sample,
    Submission,
    SubmissionBuild,
)
from wqlab_server.pipeline.advance import advance
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, transaction

from . import story

_RELEASE = "6.12.0"
_BOOT = timedelta(seconds=40)


def finish_jobs(
    factory: SessionFactory,
    settings: Settings,
    number: int,
    *,
    heads: tuple[int, int],
    at: datetime,
    again: bool = False,
) -> None:
    """Finish a submission that compares two heads (indexes), and date it back. `again`: it confirms a shift."""
    with transaction(factory) as session:
        submission = session.get_one(Submission, number)
        submission.request = submission.request.model_copy(update={"trace": False})  # nothing is booted
        _apply(session, number, heads=heads, at=at, again=again)
    advance(factory, settings, number)
    with transaction(factory) as session:
        _build(session, number, heads=heads, at=at)
    advance(factory, settings, number)
    with transaction(factory) as session:
        runs = session.scalars(select(Run).where(Run.submission_id == number, Run.state == JobState.QUEUED)).all()
        for run in runs:
            _run(session, run, heads=heads, at=at, again=again)
    advance(factory, settings, number)
    with transaction(factory) as session:
        session.execute(update(Submission).where(Submission.id == number).values(created_at=at, finished_at=at))
        ids = select(Job.id).where(Job.submission_id == number, Job.kind == JobKind.RUN)
        session.execute(update(Job).where(Job.id.in_(ids)).values(finished_at=at))
        session.execute(update(Run).where(Run.id.in_(ids)).values(compared_at=at))


def _apply(session: Session, number: int, *, heads: tuple[int, int], at: datetime, again: bool) -> None:
    row = session.scalars(select(Apply).where(Apply.submission_id == number)).one()

    def source(index: int) -> Source:
        commit = story.commit(index)
        return Source(tree=row.payload.tree, base_commit=commit, tree_oid=commit, commit=commit, release=_RELEASE)

    subject = story.title(heads[1])
    row.state, row.outcome, row.finished_at = JobState.FINISHED, Outcome.PASSED, at
    row.result = ApplyResult(
        outcome=Outcome.PASSED,
        baseline=source(heads[0]),
        candidate=source(heads[1]),
        title=f"{subject}{', both sides again' if again else ''}",
        patches=[PatchSummary(subject=subject, author="nobody <nobody@example.org>")],
        range=CommitRange(ahead=heads[1] - heads[0], behind=0),
        toolchain=story.compiler(heads[1]),
    )


def _build(session: Session, number: int, *, heads: tuple[int, int], at: datetime) -> None:
    rows = session.execute(
        select(Build, SubmissionBuild.arm)
        .join(SubmissionBuild, SubmissionBuild.build_id == Build.id)
        .where(SubmissionBuild.submission_id == number, Build.state != JobState.FINISHED)
    ).all()
    for build, arm in rows:
        index = heads[arm is Arm.CANDIDATE]
        build.state, build.outcome, build.finished_at = JobState.FINISHED, Outcome.PASSED, at
        build.result = BuildResult(
            outcome=Outcome.PASSED,
            build_id_gnu=hashlib.sha1(build.key.encode(), usedforsecurity=False).hexdigest(),
            content_sha256=story.content(index),
            release=_RELEASE,
            compiler=build.toolchain,
            duration_s=60.0,
        )


def _run(session: Session, run: Run, *, heads: tuple[int, int], at: datetime, again: bool) -> None:
    """Finish a run with simulated boots, a baseline and a candidate in each block, and simulated samples."""
    device = run.wanted_device or ""
    run.state, run.outcome, run.attempts, run.device_name = JobState.FINISHED, Outcome.PASSED, 1, device
    boots = [
        Boot(
            run_id=run.id, block=block, position=position, arm=arm, attempt=0, device_name=device, fence=1,
            state=BootState.FINISHED, outcome=Outcome.PASSED, valid=True, release=_RELEASE,
            kernel_boot_id=f"{run.id}.{block}.{position}", cmdline="console=ttyS0",
            environment={}, commands={}, overhead_s=1.0, workload_s=25.0,
            started_at=at - (2 * len(run.blocks) - 2 * block - position) * _BOOT,
            finished_at=at - (2 * len(run.blocks) - 2 * block - position - 1) * _BOOT,
        )
        for block, arms in enumerate(run.blocks)
        for position, arm in enumerate(arms)
    ]  # fmt: skip
    session.add_all(boots)
    attempt = RunAttempt(run_id=run.id, number=1, device_name=device, fence=1, outcome=Outcome.PASSED)
    attempt.started_at, attempt.finished_at = boots[0].started_at, at
    session.add(attempt)
    session.add_all(
        BlockAttempt(run_id=run.id, block=block, attempt=0, finished=True, device_name=device, at=at)
        for block in range(len(run.blocks))
    )
    session.flush()
    noise = random.Random(f"{heads} {again} {run.device_type}")
    samples = []
    for boot in boots:
        counted = story.values(
            run.device_type, heads[boot.arm is Arm.CANDIDATE], measured_at=heads[1], again=again, noise=noise
        )
        for metric in run.plan.metrics:
            value = counted.get(metric.name, _constant(metric.name, metric.scale))
            samples.append(
                {
                    "run_id": run.id, "boot_id": boot.id, "scenario": run.plan.scenarios[0].name, "setting": "",
                    "repetition": 0, "metric": metric.name, "value": value, "warmup": False,
                }
            )  # fmt: skip
    session.execute(insert(Sample), samples)


def _constant(name: str, scale: Scale) -> float:
    """Return a value for a metric that the story has nothing to say of."""
    return 1.0 if scale is Scale.RATIO else 100.0
