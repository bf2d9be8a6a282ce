"""The order of steps. `advance` looks at a submission's rows and does the next possible things. It may be called at any
time, by anyone, any number of times: it only ever acts on what it sees under a lock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import structlog
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from wqlab_contracts.api import report as api_report
from wqlab_contracts.enums import Arm, ErrorKind, EventKind, JobState, Outcome, SubmissionState
from wqlab_contracts.messages import ApplyResult, Failure

from ..builds import service as builds
from ..comparisons import service as comparisons
from ..jobs import claims
from ..jobs.errors import canceled, infrastructure
from ..jobs.state import move
from ..lab import lease
from ..lab import service as lab
from ..models import Apply, Build, Comparison, Run, Submission, SubmissionBuild
from ..reports.keep import keep
from ..settings import Settings
from ..storage.artifacts import ArtifactStore
from ..storage.db import SessionFactory, clock, transaction
from ..storage.events import emit, tell_run
from ..submissions import service as submissions
from ..submissions.state import end
from ..views.conclusion import conclusion_of, kernel_failure
from ..views.load import run_rows
from . import health_checks

log = structlog.get_logger(__name__)


def advance(factory: SessionFactory, settings: Settings, submission_id: int) -> None:
    """Does what can be done for a submission now. Raises ApiProblem 404."""
    with transaction(factory) as session:
        submission = submissions.lock(session, submission_id)
        if submission.state is not SubmissionState.FINISHED:
            _advance(session, submission, settings)
        compare = submission.state is SubmissionState.COMPARING
    if not compare:
        return
    try:
        with transaction(factory) as session:
            submission = submissions.lock(session, submission_id)
            if submission.state is SubmissionState.COMPARING:
                figures = comparisons.store(session, submission_id)
                _end(session, submission, settings, _conclude(session, submission, figures))
    except DBAPIError:
        raise  # the database's trouble: the next tick tries again
    except Exception as error:
        # The figures cannot be compared. Saying so ends the submission; leaving it would have every tick fail.
        log.exception("comparison_failed", submission=submission_id)
        with transaction(factory) as session:
            submission = submissions.lock(session, submission_id)
            if submission.state is SubmissionState.COMPARING:
                failure = infrastructure(
                    f"the figures could not be compared: {error}",
                    advice="the samples are kept and can be had as CSV; the server's log has the details",
                )
                _end(session, submission, settings, [failure])


def _advance(session: Session, submission: Submission, settings: Settings) -> None:
    apply = session.scalars(select(Apply).where(Apply.submission_id == submission.id).with_for_update()).one()
    runs = session.scalars(
        select(Run).where(Run.submission_id == submission.id).order_by(Run.target, Run.id).with_for_update()
    ).all()
    if submission.cancel_requested_at is not None:
        _cancel(session, submission, apply, runs)
    if apply.state is not JobState.FINISHED:
        return
    if apply.outcome is not Outcome.PASSED or apply.result is None:
        failure = apply.failure or infrastructure("the series was not applied")
        for run in runs:
            lease.end_unclaimed(session, run, Outcome.FAILED, failure)
        _end(session, submission, settings, [failure])
        return
    if submission.cancel_requested_at is None:
        _name(submission, apply.result)
        _get_builds(session, submission, apply.result, runs)
        for run in runs:
            _check_inputs(session, run)
    _check_units(session, runs, settings)
    if all(run.state is JobState.FINISHED for run in runs):
        if submission.cancel_requested_at is not None:
            _end(session, submission, settings)
            return
        if submission.state is SubmissionState.APPLYING:
            submissions.enter(session, submission, SubmissionState.BUILDING)
        submissions.enter(session, submission, SubmissionState.COMPARING)
        return
    if submission.state is SubmissionState.APPLYING:
        submissions.enter(session, submission, SubmissionState.BUILDING)
    if submission.state is SubmissionState.BUILDING and not any(run.state is JobState.WAITING for run in runs):
        submissions.enter(session, submission, SubmissionState.RUNNING)


def _name(submission: Submission, result: ApplyResult) -> None:
    submission.title = submissions.cut(result.title) or submission.title
    submission.series_key = submissions.cut(result.series_key) or submission.series_key
    if result.candidate is not None and result.patches:
        submission.author = submissions.cut(result.patches[0].author)


# --- builds -----------------------------------------------------------------------------------------------------


def _get_builds(session: Session, submission: Submission, applied: ApplyResult, runs: Sequence[Run]) -> None:
    """One build per arm, recipe, architecture and kind of device; shared by targets, and with other submissions."""
    sources = {Arm.BASELINE: applied.baseline, Arm.CANDIDATE: applied.candidate}
    for run in runs:
        if run.state is not JobState.WAITING:
            continue
        spec = run.device_spec
        for arm, source in sources.items():
            if source is None:
                continue
            link = session.scalar(
                select(SubmissionBuild).where(
                    SubmissionBuild.submission_id == submission.id,
                    SubmissionBuild.arm == arm,
                    SubmissionBuild.recipe == run.recipe.name,
                    SubmissionBuild.arch == spec.arch,
                    SubmissionBuild.emulated == spec.emulated,
                )
            )
            build = session.get(Build, link.build_id) if link is not None else None
            if build is None or build.outcome is Outcome.CANCELED:  # another submission's cancel is not ours
                build = builds.ensure_build(
                    session,
                    source,
                    run.recipe,
                    arch=spec.arch,
                    emulated=spec.emulated,
                    fragments=run.fragments,
                    modules=run.modules,
                    toolchain=applied.toolchain,
                )
                if link is None:
                    link = SubmissionBuild(
                        submission_id=submission.id,
                        arm=arm,
                        recipe=run.recipe.name,
                        arch=spec.arch,
                        emulated=spec.emulated,
                    )
                    session.add(link)
                link.build_id = build.id
                session.flush()
                emit(session, submission.id, EventKind.BUILD_STATE, build_id=build.id, state=build.state, arm=arm)
            if arm is Arm.BASELINE:
                run.baseline_build_id = build.id
            else:
                run.candidate_build_id = build.id


def _check_inputs(session: Session, run: Run) -> None:
    """WAITING -> QUEUED when its kernels are there, or finished when one cannot be had."""
    if run.state is not JobState.WAITING:
        return
    kernels = [
        (build_id, is_baseline)
        for build_id, is_baseline in ((run.candidate_build_id, False), (run.baseline_build_id, True))
        if build_id is not None
    ]
    found = [(session.get_one(Build, build_id), is_baseline) for build_id, is_baseline in kernels]
    for build, is_baseline in found:
        if build.outcome is Outcome.FAILED:
            lease.end_unclaimed(session, run, Outcome.FAILED, builds.blamed_on(build, is_baseline))
            return
    if all(build.outcome is Outcome.PASSED for build, _ in found):
        move(run, JobState.QUEUED)
        tell_run(session, run)


def _check_units(session: Session, runs: Sequence[Run], settings: Settings) -> None:
    """A run whose every possible unit is out of service would wait until a person comes: it says so instead."""
    for run in runs:
        if run.state in {JobState.WAITING, JobState.QUEUED}:
            reason = lab.out_of_service(session, run.device_type, run.wanted_backend) or health_checks.hopeless(
                session, run, settings
            )
            if reason is not None:
                advice = "a maintainer mends or releases a unit (`wqlab devices`), then `wqlab retry`"
                lease.end_unclaimed(session, run, Outcome.FAILED, infrastructure(reason, advice=advice))


# --- cancel -----------------------------------------------------------------------------------------------------


def _cancel(session: Session, submission: Submission, apply: Apply, runs: Sequence[Run]) -> None:
    """What waits ends now; what a worker holds is told at its next heartbeat, and ends then or with its lease."""
    if apply.state is JobState.RUNNING:
        apply.cancel_requested_at = apply.cancel_requested_at or submission.cancel_requested_at
    elif apply.state is not JobState.FINISHED:
        claims.finish(session, apply, Outcome.CANCELED, canceled())
        emit(session, submission.id, EventKind.APPLY_STATE, state=apply.state, outcome=apply.outcome)
    for run in runs:
        if run.state is JobState.RUNNING:
            run.cancel_requested_at = run.cancel_requested_at or submission.cancel_requested_at
        else:
            lease.end_unclaimed(session, run, Outcome.CANCELED, canceled())
    mine = select(SubmissionBuild.build_id).where(SubmissionBuild.submission_id == submission.id)
    for build in session.scalars(
        select(Build).where(Build.id.in_(mine), Build.state != JobState.FINISHED).order_by(Build.id).with_for_update()
    ):
        if builds.users(session, build.id) != [submission.id]:
            continue
        if build.state is JobState.RUNNING:
            build.cancel_requested_at = build.cancel_requested_at or submission.cancel_requested_at
        else:
            claims.finish(session, build, Outcome.CANCELED, canceled())
            emit(
                session,
                submission.id,
                EventKind.BUILD_STATE,
                build_id=build.id,
                state=build.state,
                outcome=build.outcome,
            )


# --- the end ----------------------------------------------------------------------------------------------------


def _conclude(session: Session, submission: Submission, figures: Sequence[Comparison]) -> list[Failure]:
    """Notes each run's verdict, the one that the report shows, for lists; what the consoles say against the kernels of
    runs that went through."""
    runs = session.scalars(select(Run).where(Run.submission_id == submission.id).order_by(Run.target, Run.id)).all()
    of_run: dict[int, list[api_report.Comparison]] = defaultdict(list)
    for row in figures:
        of_run[row.run_id].append(row.data)
    found = []
    for rows in run_rows(session, runs):
        conclusion = conclusion_of(rows, of_run[rows.run.id])
        rows.run.verdict, rows.run.headline = conclusion.verdict, conclusion.headline
        found.append(kernel_failure(rows, conclusion))
    submission.facets = submissions.facets(submission.request, [run.verdict for run in runs if run.verdict])
    return [failure for failure in found if failure is not None]


def _end(session: Session, submission: Submission, settings: Settings, failures: Sequence[Failure] = ()) -> None:
    session.flush()
    of_runs = session.scalars(
        select(Run.failure)
        .where(Run.submission_id == submission.id, Run.outcome == Outcome.FAILED)
        .order_by(Run.target)
    )
    given = [*failures, *(failure for failure in of_runs if failure is not None)]
    verdicts = session.execute(
        select(Comparison.question, Comparison.role, Comparison.verdict)
        .join(Run, Run.id == Comparison.run_id)
        .where(Run.submission_id == submission.id)
    )
    stopped = submission.cancel_requested_at is not None or any(f.kind is ErrorKind.CANCELED for f in given)
    result = end(given, [(question, role, verdict) for question, role, verdict in verdicts], canceled=stopped)
    submissions.enter(session, submission, SubmissionState.FINISHED)
    submission.outcome, submission.failure, submission.exit_code = result.outcome, result.failure, int(result.exit_code)
    submission.finished_at = clock(session)
    keep(session, submission, ArtifactStore.of(settings), settings.public_url)
    emit(session, submission.id, EventKind.REPORT_READY)
    emit(
        session,
        submission.id,
        EventKind.SUBMISSION_STATE,
        state=submission.state,
        outcome=submission.outcome,
        failure=result.failure.model_dump(mode="json") if result.failure else None,
        exit_code=submission.exit_code,
    )
