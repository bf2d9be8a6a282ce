"""Process jobs that read something for the server: branches, mail threads, watched lists, heads of forges, commits."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from wqlab_contracts.enums import Outcome
from wqlab_contracts.messages.branch_readings import BranchReadingResult
from wqlab_contracts.messages.commit_lists import CommitListResult
from wqlab_contracts.messages.forge_readings import ForgeReadingResult
from wqlab_contracts.messages.list_reads import ListReadResult
from wqlab_contracts.messages.lookups import LookupResult
from wqlab_contracts.messages.thread_lookups import ThreadLookupResult

from ..settings import Settings
from ..workspace import Workspace
from .heartbeats import Heartbeats, Stop
from .jobs import ProgressReporter, ResultT, connect_server, failure_of, finish, outcome_of, work_and_upload
from .server import JobRef, Server

DOWNLOAD_SHARE = 0.6
"""Share of a thread lookup's claim for downloads; the rest is for reading the mails."""


def lookup(id_: int, settings: Settings) -> None:
    """Process a lookup. It needs no heartbeats, because its time limit is shorter than its claim."""
    from ..apply.lookup import look_up

    server = connect_server(settings)
    claim = server.claim_lookup(id_)
    if claim is None:
        return
    try:
        result = look_up(claim.job, Workspace.from_environment())
    except Exception as error:
        failure = failure_of(error)
        result = LookupResult(outcome=outcome_of(failure), failure=failure)
    finish(server.finish_lookup, JobRef("lookups", id_, claim.fence), result)


def thread_lookup(id_: int, settings: Settings) -> None:
    """Process a thread lookup, within the time of its claim."""
    from ..intake.archive import ArchiveClient, Limits
    from ..intake.fetch_thread import fetch_thread

    server, claimed_at = connect_server(settings), time.monotonic()
    claim = server.claim_thread_lookup(id_)
    if claim is None:
        return
    left_s = max(1.0, (claim.expires_in_s - (time.monotonic() - claimed_at)) * DOWNLOAD_SHARE)
    try:
        with Workspace.from_environment().session() as workspace:
            client = ArchiveClient(workspace, limits=Limits(answer_s=left_s, total_s=left_s))
            found = fetch_thread(claim.job.series, claim.job.archives, workspace, client, inspected=True)
        result = ThreadLookupResult(outcome=Outcome.PASSED, thread=found.taken, inspection=found.inspection)
    except Exception as error:
        failure = failure_of(error)
        result = ThreadLookupResult(outcome=outcome_of(failure), failure=failure)
    finish(server.finish_thread_lookup, JobRef("thread_lookups", id_, claim.fence), result)


@dataclass(frozen=True)
class _Claimed:
    """A claimed job: its server, its reference, and how long the claim is valid from which time."""

    server: Server
    ref: JobRef
    expires_in_s: float
    claimed_at: float
    """time.monotonic() before the claim."""

    def read(
        self,
        read: Callable[[Workspace, ProgressReporter], ResultT],
        send: Callable[[JobRef, ResultT], None],
        kind: type[ResultT],
    ) -> None:
        """Call `read` and send its result to the server.

        Heartbeats extend the claim meanwhile: the first fetch of a tree takes minutes.
        """
        stop = Stop()
        with Heartbeats(self.server, self.ref, self.expires_in_s, self.claimed_at, stop):
            result = work_and_upload(
                self.server, self.ref, stop, lambda workspace, progress: (read(workspace, progress), []), kind
            )
            finish(send, self.ref, result)


def branch_reading(id_: int, settings: Settings) -> None:
    """Read the patches of a branch."""
    from ..apply.read_branch import read_branch

    server, claimed_at = connect_server(settings), time.monotonic()
    claim = server.claim_branch_reading(id_)
    if claim is not None:
        _Claimed(server, JobRef("branch_readings", id_, claim.fence), claim.expires_in_s, claimed_at).read(
            partial(read_branch, claim.job), server.finish_branch_reading, BranchReadingResult
        )


def forge_reading(id_: int, settings: Settings) -> None:
    """Read the head of a pull request or branch."""
    from ..apply.read_forge_head import read_forge_head

    server, claimed_at = connect_server(settings), time.monotonic()
    claim = server.claim_forge_reading(id_)
    if claim is not None:
        _Claimed(server, JobRef("forge_readings", id_, claim.fence), claim.expires_in_s, claimed_at).read(
            partial(read_forge_head, claim.job), server.finish_forge_reading, ForgeReadingResult
        )


def commit_list(id_: int, settings: Settings) -> None:
    """List the commits of a bisection."""
    from ..apply.list_commits import list_commits

    server, claimed_at = connect_server(settings), time.monotonic()
    claim = server.claim_commit_list(id_)
    if claim is not None:
        _Claimed(server, JobRef("commit_lists", id_, claim.fence), claim.expires_in_s, claimed_at).read(
            partial(list_commits, claim.job), server.finish_commit_list, CommitListResult
        )


def list_read(id_: int, settings: Settings) -> None:
    """Read new mails of a watched list, or its last mails for the preview of a rule."""
    from ..intake.read_list import read_for_preview, read_list

    server, claimed_at = connect_server(settings), time.monotonic()
    claim = server.claim_list_read(id_)
    if claim is None:
        return
    job = claim.job

    def read(workspace: Workspace, progress: ProgressReporter) -> ListReadResult:
        reader = read_for_preview if job.heads_only else read_list
        found = reader(job.source, workspace, progress, limit=job.limit)
        return ListReadResult(outcome=Outcome.PASSED, found=found)

    _Claimed(server, JobRef("list_reads", id_, claim.fence), claim.expires_in_s, claimed_at).read(
        read, server.finish_list_read, ListReadResult
    )
