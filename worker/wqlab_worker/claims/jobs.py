"""Process the job of an id: claim it, work on it under heartbeats, and send its result.

It is not an error if another worker holds the claim.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import structlog

from wqlab_contracts.enums import ErrorKind, Outcome
from wqlab_contracts.messages import (
    ApplyJob,
    ApplyResult,
    Artifact,
    BuildJob,
    BuildResult,
    Failure,
    Progress,
    RunJob,
    RunResult,
)
from wqlab_contracts.messages.branch_readings import BranchReadingJob, BranchReadingResult
from wqlab_contracts.messages.commit_lists import CommitListJob, CommitListResult
from wqlab_contracts.messages.forge_readings import ForgeReadingJob, ForgeReadingResult
from wqlab_contracts.messages.jobs import Claim, JobResult
from wqlab_contracts.messages.list_reads import ListReadJob, ListReadResult
from wqlab_contracts.messages.lookups import LookupJob, LookupResult
from wqlab_contracts.messages.thread_lookups import ThreadLookupJob, ThreadLookupResult

from ..backends.cancellation import Stop
from ..settings import Settings
from ..workspace import Workspace
from . import runs
from .heartbeats import Heartbeats, lease_lost
from .outcomes import failure_of, outcome_of
from .server import JobRef, Server, ServerRefused, StaleFence

log = structlog.get_logger()

PROGRESS_INTERVAL_S = 1.0
DOWNLOAD_SHARE = 0.6
"""Share of a thread lookup's first claim for downloads: somebody waits for it. The rest is for reading the mails."""


class Stopped(Exception):
    """Raised by a job's progress call if its claim is lost or the job is canceled."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.summary)
        self.failure = failure


def connect_server(settings: Settings) -> Server:
    """Return a client of the configured server, in the name of this process."""
    return Server(
        settings.server_url,
        settings.worker_token.get_secret_value(),
        worker=f"{socket.gethostname()}/{os.getpid()}",
        lab=settings.lab,
        ca_file=settings.ca_file,
    )


def process(id_: int, settings: Settings) -> None:
    """Claim the job, do what its kind asks for, and send the result."""
    server, claimed_at = connect_server(settings), time.monotonic()
    claim = server.claim(id_)
    if claim is None:
        return
    ref, stop = JobRef(claim.job.kind, id_, claim.fence), Stop()
    with Heartbeats(server, ref, claim.expires_in_s, claimed_at, stop):
        if isinstance(claim.job, RunJob):
            result: JobResult = runs.run(claim.job, ref, server, stop, settings)
        else:
            result = work_and_upload(claim, server, ref, stop)
        finish(server, ref, result)


def work_and_upload(claim: Claim, server: Server, ref: JobRef, stop: Stop) -> JobResult:
    """Do the job in this machine's workspace, upload its artifacts and return its result, or why it failed."""
    try:
        with Workspace.from_environment().session() as workspace:
            result, artifacts = _work(claim, server, workspace, ProgressReporter(server, ref, stop))
            for artifact in artifacts:
                server.upload(ref, workspace.path_of(artifact), artifact.kind, artifact.name)
            return result
    except Exception as error:
        failure = failure_of(error)
        return _RESULTS[type(claim.job)](outcome=outcome_of(failure), failure=failure)


_RESULTS: dict[type, Callable[..., JobResult]] = {
    ApplyJob: ApplyResult,
    BuildJob: BuildResult,
    LookupJob: LookupResult,
    ThreadLookupJob: ThreadLookupResult,
    BranchReadingJob: BranchReadingResult,
    ForgeReadingJob: ForgeReadingResult,
    CommitListJob: CommitListResult,
    ListReadJob: ListReadResult,
    RunJob: RunResult,
}


def _work(
    claim: Claim, server: Server, workspace: Workspace, progress: ProgressReporter
) -> tuple[JobResult, list[Artifact]]:
    """Return the result of a job, and the files that belong to it. What a kind needs is imported for it alone."""
    match claim.job:
        case ApplyJob() as job:
            return _apply(job, server, workspace, progress)
        case BuildJob() as job:
            return _build(job, server, workspace, progress)
        case LookupJob() as job:
            from ..apply.lookup import look_up

            return look_up(job, workspace), []
        case ThreadLookupJob() as job:
            return _find_thread(job, workspace, claim.expires_in_s * DOWNLOAD_SHARE), []
        case BranchReadingJob() as job:
            from ..apply.read_branch import read_branch

            return read_branch(job, workspace, progress), []
        case ForgeReadingJob() as job:
            from ..apply.read_forge_head import read_forge_head

            return read_forge_head(job, workspace, progress), []
        case CommitListJob() as job:
            from ..apply.list_commits import list_commits

            return list_commits(job, workspace, progress), []
        case ListReadJob() as job:
            from ..intake.read_list import read_for_preview, read_list

            reader = read_for_preview if job.heads_only else read_list
            found = reader(job.source, workspace, progress, limit=job.limit)
            return ListReadResult(outcome=Outcome.PASSED, found=found), []
        case job:
            raise NotImplementedError(f"this worker has nothing for jobs of kind {job.kind}")


def _apply(
    job: ApplyJob, server: Server, workspace: Workspace, progress: ProgressReporter
) -> tuple[ApplyResult, list[Artifact]]:
    from ..apply.apply_series import apply

    if job.thread is not None and (taken := job.thread.taken) is not None:
        workspace.use(workspace.path_of(taken.mbox))
        server.fetch(taken.mbox, workspace.fetched)
    result = apply(job, workspace, progress)
    bundle = result.candidate.bundle if result.candidate else None
    mails = result.thread.mbox if result.thread else None
    return result, [artifact for artifact in (bundle, result.series_mbox, mails) if artifact]


def _build(
    job: BuildJob, server: Server, workspace: Workspace, progress: ProgressReporter
) -> tuple[BuildResult, list[Artifact]]:
    from ..build.build_kernel import build

    if job.source.bundle:
        workspace.use(workspace.path_of(job.source.bundle))
        server.fetch(job.source.bundle, workspace.fetched)
    result = build(job, workspace, progress)
    return result, [*result.artifacts, *(each for layout in result.layouts for each in layout.artifacts)]


def _find_thread(job: ThreadLookupJob, workspace: Workspace, limit_s: float) -> ThreadLookupResult:
    from ..intake.archive import ArchiveClient, Limits
    from ..intake.fetch_thread import fetch_thread

    client = ArchiveClient(workspace, limits=Limits(answer_s=limit_s, total_s=limit_s))
    found = fetch_thread(job.series, job.archives, workspace, client, inspected=True)
    return ThreadLookupResult(outcome=Outcome.PASSED, thread=found.taken, inspection=found.inspection)


class ProgressReporter:
    """The `progress` argument of a job.

    It reports to the server at most once a second, and raises Stopped if the job must end.
    """

    def __init__(self, server: Server, ref: JobRef, stop: Stop) -> None:
        self._server = server
        self._ref = ref
        self._stop = stop
        self._reported_at = 0.0
        self._text = ""

    def __call__(self, text: str, done: int, total: int) -> None:
        if self._stop.failure:
            raise Stopped(self._stop.failure)
        now = time.monotonic()
        if now - self._reported_at < PROGRESS_INTERVAL_S and text == self._text:
            return
        self._reported_at, self._text = now, text
        try:
            self._server.send_events(self._ref, [Progress(at=datetime.now(UTC), text=text, done=done, total=total)])
        except StaleFence as error:
            self._stop.request(lease_lost(f"{self._ref}: another worker holds the claim"))
            raise Stopped(lease_lost(str(error))) from error
        except (httpx.TransportError, ServerRefused) as error:
            log.warning("progress not reported", job=str(self._ref), error=repr(error))


def finish(server: Server, ref: JobRef, result: JobResult) -> None:
    """Send the result. A stale claim is only logged: another worker has the job, or the server has this result already.

    If the server refuses the result, the job is failed with the server's reason, because after its expiry another
    worker would only repeat it and be refused too. Raises ServerRefused if the server refuses this as well.
    """
    try:
        try:
            server.finish(ref, result)
        except ServerRefused as error:
            log.error("result refused", job=str(ref), error=str(error))
            failure = Failure(
                kind=ErrorKind.INFRASTRUCTURE, summary=f"the server refused the worker's result: {error}"[:1000]
            )
            server.finish(ref, type(result)(outcome=Outcome.FAILED, failure=failure))
    except StaleFence:
        log.warning("result not sent: the claim is stale", job=str(ref))
