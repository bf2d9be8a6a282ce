"""Advance a submission: apply, build, run, compare, report.

`advance` reads a submission's rows and takes the next possible steps. It is idempotent and may be called at any time,
because it acts only on rows that it has locked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import structlog
from sqlalchemy import not_, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from wqlab_contracts.api import report as api_report
from wqlab_contracts.enums import (
    Arm,
    DeviceHealth,
    ErrorKind,
    EventKind,
    JobState,
    OutboxEvent,
    Outcome,
    RunPurpose,
    SubmissionState,
    Verdict,
)
from wqlab_contracts.messages import ApplyResult, Failure, TakenThread
from wqlab_contracts.validation_file import read_validations

from ..builds import locks as build_locks
from ..builds import service as builds
from ..comparisons import service as comparisons
from ..jobs import claims
from ..jobs.errors import canceled_failure, infrastructure_failure
from ..jobs.state import change_state
from ..lab import lease
from ..lab import service as lab_service
from ..models import (
    FORGE_SOURCE,
    Apply,
    BisectionStep,
    Build,
    Comparison,
    Device,
    Order,
    Run,
    Submission,
    SubmissionBuild,
    WatchedHead,
)
from ..reports.stored_report import store_report
from ..settings import Settings
from ..storage import source_mails
from ..storage.announcements import announce
from ..storage.artifacts import ArtifactStore
from ..storage.db import SessionFactory, clock, transaction
from ..storage.events import emit, emit_run_state
from ..submissions import service as submissions
from ..submissions.state import end
from ..views.conclusion import conclusion_of, kernel_failure
from ..views.load import is_modelled_device, is_modelled_figure, run_rows
from . import health_checks, patchwork_checks, trace_boots, walks

log = structlog.get_logger(__name__)


def advance(factory: SessionFactory, settings: Settings, submission_id: int) -> None:
    """Take every step that is possible for the submission now. Raises ApiProblem 404."""
    with transaction(factory) as session:
        submission = submissions.lock(session, submission_id)
        if submission.state is not SubmissionState.FINISHED:
            _advance_jobs(session, submission, settings)
        ready_to_compare = submission.state is SubmissionState.COMPARING
    if ready_to_compare:
        _compare_and_finish(factory, settings, submission_id)


def _compare_and_finish(factory: SessionFactory, settings: Settings, submission_id: int) -> None:
    try:
        with transaction(factory) as session:
            submission = submissions.lock(session, submission_id)
            if submission.state is SubmissionState.COMPARING:
                compared = comparisons.store(session, submission_id, read_validations(settings.data_dir)[0])
                kernel_failures = _record_verdicts(session, submission, compared)
                _finish_submission(session, submission, settings, kernel_failures)
    except DBAPIError:
        raise  # a database error: the next tick tries again
    except Exception as error:
        # The samples cannot be compared. Finish the submission with a failure; otherwise every tick would fail.
        log.exception("comparison_failed", submission=submission_id)
        with transaction(factory) as session:
            submission = submissions.lock(session, submission_id)
            if submission.state is SubmissionState.COMPARING:
                failure = infrastructure_failure(
                    f"the samples could not be compared: {error}",
                    advice="the samples are stored and can be downloaded as CSV; see the server's log for details",
                )
                _finish_submission(session, submission, settings, [failure])


def _advance_jobs(session: Session, submission: Submission, settings: Settings) -> None:
    """Advance the submission's apply, builds and runs, up to the state COMPARING."""
    apply = session.scalars(select(Apply).where(Apply.submission_id == submission.id).with_for_update()).one()
    runs = session.scalars(
        select(Run).where(Run.submission_id == submission.id).order_by(Run.target, Run.id).with_for_update()
    ).all()
    if submission.cancel_requested_at is not None:
        _cancel_unfinished_jobs(session, submission, apply, runs)
    if apply.state is not JobState.FINISHED:
        return
    if apply.outcome is not Outcome.PASSED or apply.result is None:
        if apply.result is not None and apply.result.thread is not None:
            _copy_thread_facts(session, submission, apply, apply.result.thread)
        failure = apply.failure or infrastructure_failure("the series was not applied")
        for run in runs:
            lease.finish_unclaimed(session, run, Outcome.FAILED, failure)
        _finish_submission(session, submission, settings, [failure])
        return
    if submission.cancel_requested_at is None:
        _copy_series_facts(session, submission, apply, apply.result)
        _ensure_builds(session, submission, apply.result, runs)
        for run in runs:
            _queue_when_built(session, run, force=submission.request.force)
    _release_from_devices_out_of_service(session, runs)
    _fail_unschedulable_runs(session, runs, settings)
    _enter_next_state(session, submission, runs, settings)


def _enter_next_state(session: Session, submission: Submission, runs: Sequence[Run], settings: Settings) -> None:
    """Move the submission to the state that its runs have reached; finish a canceled one after its last run."""
    if all(run.state is JobState.FINISHED for run in runs):
        if submission.cancel_requested_at is not None:
            _finish_submission(session, submission, settings)
            return
        if submission.state is SubmissionState.RUNNING and trace_boots.order(session, submission, runs):
            return
        if submission.state is SubmissionState.APPLYING:
            submissions.enter(session, submission, SubmissionState.BUILDING)
        submissions.enter(session, submission, SubmissionState.COMPARING)
        return
    if submission.state is SubmissionState.APPLYING:
        submissions.enter(session, submission, SubmissionState.BUILDING)
        patchwork_checks.write_checks(session, settings, submission, clock(session))
    if submission.state is SubmissionState.BUILDING and not any(run.state is JobState.WAITING for run in runs):
        submissions.enter(session, submission, SubmissionState.RUNNING)


def _copy_thread_facts(session: Session, submission: Submission, apply: Apply, thread: TakenThread) -> None:
    """Copy title, series key, author, version and source mail of a series that was found by Message-ID."""
    _remember_source(session, submission, apply, thread)
    submission.title = submissions.truncate(thread.subject) or submission.title
    submission.series_key = submissions.truncate(thread.series_key) or submission.series_key
    submission.author = submissions.truncate(thread.author)
    submission.version = thread.revision


def _remember_source(session: Session, submission: Submission, apply: Apply, thread: TakenThread) -> None:
    """Remember the mail that an answer replies to. The lab has read it from an archive that the operator lists."""
    known = source_mails.find(session, submission.id)
    if thread.source is not None and (known is None or not known.verified):
        asked = apply.payload.thread.archives if apply.payload.thread is not None else []
        checked = any(each.name == thread.archive and each.dkim_checked for each in asked)
        trusted = checked and thread.source.sender_checked
        source = thread.source.model_copy(update={"verified": True, "sender_checked": trusted})
        source_mails.remember(session, submission.id, source)


def _copy_series_facts(session: Session, submission: Submission, apply: Apply, result: ApplyResult) -> None:
    """Copy title, series key, author, and version and source mail of a series that was found by Message-ID."""
    if result.thread is not None:
        submission.version = result.thread.revision
        _remember_source(session, submission, apply, result.thread)
    # A pull request has its title and key already: the heads of one are versions of one series.
    of_forge = select(Order.id).where(Order.submission_id == submission.id, Order.source == FORGE_SOURCE)
    if session.scalar(of_forge.limit(1)) is None:
        submission.title = submissions.truncate(result.title) or submission.title
        submission.series_key = submissions.truncate(result.series_key) or submission.series_key
    if result.candidate is not None and result.patches:
        submission.author = submissions.truncate(result.patches[0].author)


# --- builds -----------------------------------------------------------------------------------------------------


def _ensure_builds(session: Session, submission: Submission, applied: ApplyResult, runs: Sequence[Run]) -> None:
    """Find or create one build per arm, recipe, architecture and emulation, and link it to the waiting runs.

    Builds are shared between targets and with other submissions. A walk has a build for each patch.
    """
    sources = walks.sources_of(applied)
    for run in runs:
        if run.state is not JobState.WAITING:
            continue
        spec, of_arm = run.device_spec, dict[Arm, int]()
        for arm, source in sources.items():
            if source is None:
                continue
            link = session.scalar(
                select(SubmissionBuild).where(
                    SubmissionBuild.submission_id == submission.id,
                    SubmissionBuild.arm == arm,
                    SubmissionBuild.recipe == run.recipe.name,
                    SubmissionBuild.arch == spec.arch,
                    SubmissionBuild.emulated == spec.on_bench,
                )
            )
            build = session.get(Build, link.build_id) if link is not None else None
            if build is None or build.outcome is Outcome.CANCELED:  # another submission canceled it
                build = builds.ensure_build(
                    session,
                    source,
                    run.recipe,
                    arch=spec.arch,
                    emulated=spec.on_bench,
                    fragments=run.fragments,
                    modules=run.modules,
                    toolchain=applied.toolchain,
                    layouts=max(each.layouts for each in runs),
                )
                if link is None:
                    link = SubmissionBuild(
                        submission_id=submission.id,
                        arm=arm,
                        recipe=run.recipe.name,
                        arch=spec.arch,
                        emulated=spec.on_bench,
                    )
                    session.add(link)
                link.build_id = build.id
                session.flush()
                emit(session, submission.id, EventKind.BUILD_STATE, build_id=build.id, state=build.state, arm=arm)
            of_arm[arm] = build.id
        run.baseline_build_id, run.candidate_build_id = of_arm.get(Arm.BASELINE), of_arm.get(Arm.CANDIDATE)
        if applied.patch_sources:
            walks.begin(run, applied, of_arm)


def _queue_when_built(session: Session, run: Run, *, force: bool) -> None:
    """Queue a waiting run when its builds have passed; finish it when one has failed.

    A run whose kernels are byte-identical passes at once, unless `force` is set: it has nothing to measure.
    """
    if run.state is not JobState.WAITING:
        return
    if run.walk:
        _queue_walk_when_built(session, run, force=force)
        return
    build_ids = [
        (build_id, is_baseline)
        for build_id, is_baseline in ((run.candidate_build_id, False), (run.baseline_build_id, True))
        if build_id is not None
    ]
    run_builds = [(session.get_one(Build, build_id), is_baseline) for build_id, is_baseline in build_ids]
    for build, is_baseline in run_builds:
        if build.outcome is Outcome.FAILED:
            lease.finish_unclaimed(session, run, Outcome.FAILED, builds.failure_for_arm(build, is_baseline))
            return
    if all(build.outcome is Outcome.PASSED for build, _ in run_builds):
        if not force and builds.are_byte_identical([build for build, _ in run_builds]):
            lease.finish_unclaimed(session, run, Outcome.PASSED, None)
            return
        change_state(run, JobState.QUEUED)
        emit_run_state(session, run)


def _queue_walk_when_built(session: Session, run: Run, *, force: bool) -> None:
    """Queue a waiting walk when all its builds have ended: a patch that does not build is left out of the blocks."""
    baseline = session.get_one(Build, run.baseline_build_id)
    if baseline.outcome is Outcome.FAILED:
        lease.finish_unclaimed(session, run, Outcome.FAILED, builds.failure_for_arm(baseline, True))
        return
    all_builds = [baseline, *(session.get_one(Build, step.build_id) for step in run.walk)]
    if not all(build.outcome in {Outcome.PASSED, Outcome.FAILED} for build in all_builds):
        return
    ended = walks.plan(session, run, force=force)
    if ended is not None:
        lease.finish_unclaimed(session, run, ended.outcome, ended.failure)
        return
    change_state(run, JobState.QUEUED)
    emit_run_state(session, run)


def _release_from_devices_out_of_service(session: Session, runs: Sequence[Run]) -> None:
    """Let each unclaimed run whose wanted device is quarantined or retired use any device of the type."""
    for run in runs:
        if run.wanted_device is not None and run.state in {JobState.WAITING, JobState.QUEUED}:
            device = session.get_one(Device, run.wanted_device)
            if device.retired_at is not None or device.health is DeviceHealth.QUARANTINED:
                log.info("wanted_device_out_of_service", run=run.id, device=device.name)
                run.wanted_device = None


def _fail_unschedulable_runs(session: Session, runs: Sequence[Run], settings: Settings) -> None:
    """Fail each unclaimed run if all devices it could use are quarantined, retired or failing their health checks.

    Otherwise the run would wait until a maintainer intervenes.
    """
    for run in runs:
        if run.state in {JobState.WAITING, JobState.QUEUED}:
            reason = lab_service.out_of_service_reason(
                session, run.device_type, run.wanted_backend
            ) or health_checks.unschedulable_reason(session, run, settings)
            if reason is not None:
                advice = "have a maintainer repair or release a device (`wqlab devices`), then run `wqlab retry`"
                lease.finish_unclaimed(session, run, Outcome.FAILED, infrastructure_failure(reason, advice=advice))


# --- cancel -----------------------------------------------------------------------------------------------------


def _cancel_unfinished_jobs(session: Session, submission: Submission, apply: Apply, runs: Sequence[Run]) -> None:
    """Cancel unclaimed jobs now, and request cancellation of claimed ones.

    A worker learns of the request at its next heartbeat; its job ends then, or when the claim expires. Builds that
    other submissions use too are left alone.
    """
    if apply.state is JobState.RUNNING:
        apply.cancel_requested_at = apply.cancel_requested_at or submission.cancel_requested_at
    elif apply.state is not JobState.FINISHED:
        claims.finish(session, apply, Outcome.CANCELED, canceled_failure())
        emit(session, submission.id, EventKind.APPLY_STATE, state=apply.state, outcome=apply.outcome)
    for run in runs:
        if run.state is JobState.RUNNING:
            run.cancel_requested_at = run.cancel_requested_at or submission.cancel_requested_at
        else:
            lease.finish_unclaimed(session, run, Outcome.CANCELED, canceled_failure())
    own_builds = select(SubmissionBuild.build_id).where(SubmissionBuild.submission_id == submission.id)
    for build in session.scalars(
        select(Build)
        .where(Build.id.in_(own_builds), Build.state != JobState.FINISHED)
        .order_by(Build.id)
        .with_for_update()
    ):
        if build_locks.submissions_using(session, build.id) != [submission.id]:
            continue
        if build.state is JobState.RUNNING:
            build.cancel_requested_at = build.cancel_requested_at or submission.cancel_requested_at
        else:
            claims.finish(session, build, Outcome.CANCELED, canceled_failure())
            emit(
                session,
                submission.id,
                EventKind.BUILD_STATE,
                build_id=build.id,
                state=build.state,
                outcome=build.outcome,
            )


# --- finish -----------------------------------------------------------------------------------------------------


def _record_verdicts(session: Session, submission: Submission, compared: Sequence[Comparison]) -> list[Failure]:
    """Store each run's verdict and headline, as shown in the report, for lists.

    Return the kernel failures of passed runs, found on their consoles.
    """
    runs = session.scalars(
        select(Run)
        .where(Run.submission_id == submission.id, Run.purpose == RunPurpose.MEASURE)
        .order_by(Run.target, Run.id)
    ).all()
    by_run: dict[int, list[api_report.Comparison]] = defaultdict(list)
    for row in compared:
        if row.patch is None:
            by_run[row.run_id].append(row.data)
    kernel_failures = []
    for rows in run_rows(session, runs):
        conclusion = conclusion_of(rows, by_run[rows.run.id])
        rows.run.verdict, rows.run.headline = conclusion.verdict, conclusion.headline
        kernel_failures.append(kernel_failure(rows, conclusion))
    submission.facets = submissions.facets(submission.request, [run.verdict for run in runs if run.verdict])
    return [failure for failure in kernel_failures if failure is not None]


def _is_untold(session: Session, submission: Submission) -> bool:
    """Return True if a regression in the submission is not announced.

    It measures a head of a watched tree, whose regression is announced when a second paired run has confirmed it, or
    it is a step of a bisection, whose regression is known.
    """
    head = select(WatchedHead.id).where(WatchedHead.submission_id == submission.id)
    step = select(BisectionStep.id).where(BisectionStep.submission_id == submission.id)
    return session.scalar(head.limit(1)) is not None or session.scalar(step.limit(1)) is not None


def _finish_submission(
    session: Session, submission: Submission, settings: Settings, failures: Sequence[Failure] = ()
) -> None:
    """Finish the submission: set outcome and exit code, store the report, emit and announce the events."""
    session.flush()
    run_failures = session.scalars(
        select(Run.failure)
        .where(Run.submission_id == submission.id, Run.purpose == RunPurpose.MEASURE, Run.outcome == Outcome.FAILED)
        .order_by(Run.target)
    )
    all_failures = [*failures, *(failure for failure in run_failures if failure is not None)]
    # A model's verdict is no regression of a kernel: it changes no exit code, and nobody is told of it.
    verdicts = session.execute(
        select(Comparison.question, Comparison.verdict)
        .join(Run, Run.id == Comparison.run_id)
        .where(Run.submission_id == submission.id, Comparison.patch.is_(None), not_(is_modelled_figure()))
    )
    canceled = submission.cancel_requested_at is not None or any(f.kind is ErrorKind.CANCELED for f in all_failures)
    result = end(all_failures, [(question, verdict) for question, verdict in verdicts], canceled=canceled)
    submissions.enter(session, submission, SubmissionState.FINISHED)
    submission.outcome, submission.failure, submission.exit_code = result.outcome, result.failure, int(result.exit_code)
    submission.finished_at = clock(session)
    store_report(session, submission, ArtifactStore.of(settings), settings.public_url)
    announce(session, OutboxEvent.SUBMISSION_FINISHED, submission.id, submission_id=submission.id)
    found = select(Run.id).where(
        Run.submission_id == submission.id, Run.verdict == Verdict.REGRESSION, not_(is_modelled_device())
    )
    if session.scalar(found.limit(1)) is not None and not _is_untold(session, submission):
        announce(session, OutboxEvent.REGRESSION_FOUND, submission.id, submission_id=submission.id)
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
