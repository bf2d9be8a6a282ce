"""Handle the requests of workers, whatever the kind of the job, and end the claims of those that have stopped."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from sqlalchemy import and_, or_, select

from wqlab_contracts.celery_names import JOB_QUEUES
from wqlab_contracts.enums import JobKind, JobState, Outcome
from wqlab_contracts.messages import ClaimRequest, Heartbeat, HeartbeatAnswer, JobEvents
from wqlab_contracts.messages.jobs import Claim, FinishJob, JobResult

from ..http.problems import ApiProblem, not_found
from ..models import Job
from ..storage.db import clock
from . import claims
from .errors import infrastructure_failure
from .kinds import Context, Kind
from .state import Ended

Kinds = Mapping[JobKind, Kind[Any]]


def kind_of(context: Context, kinds: Kinds, job_id: int) -> Kind[Any]:
    """Return the object that handles jobs of this job's kind. Raises ApiProblem 404 if there is no such job."""
    found = context.session.scalar(select(Job.kind).where(Job.id == job_id))
    if found is None:
        raise not_found("job", job_id)
    return kinds[found]


def claim(context: Context, kinds: Kinds, job_id: int, request: ClaimRequest) -> Claim:
    """Claim a job for a worker.

    A worker that lost the answer sends its request again with the same nonce, and gets the same claim. Raises
    NotClaimable if the job cannot be claimed now, and ApiProblem 404 if there is no such job.
    """
    kind = kind_of(context, kinds, job_id)
    job = kind.lock(context.session, job_id)
    if now := claims.find_repeated_claim(context.session, job, request.nonce):
        payload = kind.repeat(context, job, now)
    else:
        payload = kind.take(context, job, request)
        job.claim_nonce = request.nonce
    return Claim(job=payload, fence=job.fence, expires_in_s=kind.claim_s(context.settings))


def heartbeat(context: Context, kinds: Kinds, job_id: int, body: Heartbeat) -> HeartbeatAnswer:
    """Extend a claim. Raises StaleFence if the claim has been lost, ApiProblem 404 if there is no such job."""
    kind = kind_of(context, kinds, job_id)
    job = kind.lock(context.session, job_id)
    kind.extend(context, job, claims.check_fence(context.session, job, body.fence))
    return HeartbeatAnswer(expires_in_s=kind.claim_s(context.settings), cancel=job.cancel_requested_at is not None)


def record(context: Context, kinds: Kinds, job_id: int, body: JobEvents) -> None:
    """Store events of a job. Raises StaleFence, ApiProblem 404, 422."""
    kind = kind_of(context, kinds, job_id)
    job = kind.lock(context.session, job_id)
    claims.check_fence(context.session, job, body.fence)
    kind.record(context, job, body.events)


def finish(context: Context, kinds: Kinds, job_id: int, body: FinishJob) -> None:
    """End an attempt with its result. A repeated request is accepted and changes nothing.

    Raises StaleFence if the fence holds the job no longer, or held it until it ended with another result; ApiProblem
    404, and 422 for a result that is incomplete or of another kind.
    """
    kind = kind_of(context, kinds, job_id)
    job = kind.lock(context.session, job_id)
    digest = _digest(body.result)
    if job.state is not JobState.RUNNING and job.fence == body.fence and job.result_digest == digest:
        return
    claims.check_fence(context.session, job, body.fence)
    if body.result.kind is not _KIND_OF_RESULT.get(job.kind, job.kind):
        raise ApiProblem(422, f"{claims.describe(job)} cannot end with the result of a job {body.result.kind}")
    kind.finish(context, job, body.result)
    job.result_digest = digest


_KIND_OF_RESULT = {JobKind.PREVIEW_WATCH: JobKind.READ_LIST}
"""Kinds whose worker does the same as for another kind."""


def _digest(result: JobResult) -> str:
    return hashlib.sha256(result.model_dump_json().encode()).hexdigest()


# --- the tick ---------------------------------------------------------------------------------------------------


def late_jobs(context: Context, kinds: Kinds) -> list[tuple[JobKind, int]]:
    """Return kind and id of the jobs whose claim has expired, or that no worker has taken in time."""
    now = clock(context.session)
    expired = and_(Job.state == JobState.RUNNING, Job.expires_at <= now)
    untaken = [
        and_(Job.kind == kind, Job.state == JobState.QUEUED, Job.created_at <= now - each.worker_timeout)
        for kind, each in kinds.items()
        if each.worker_timeout is not None
    ]
    found = context.session.execute(select(Job.kind, Job.id).where(or_(expired, *untaken)).order_by(Job.id))
    return [(kind, job_id) for kind, job_id in found]


def end_late(context: Context, kinds: Kinds, kind_name: JobKind, job_id: int) -> None:
    """End the attempt of a late job, unless it is no longer late."""
    kind = kinds[kind_name]
    job = kind.lock(context.session, job_id)
    if claims.is_expired(context.session, job):
        kind.expire(context, job)
    elif job.state is JobState.QUEUED and kind.worker_timeout is not None:
        if job.created_at > clock(context.session) - kind.worker_timeout:
            return
        advice = f"check that a worker for the queue `{JOB_QUEUES[kind_name]}` is running; {kind.alternative}"
        failure = infrastructure_failure(f"no worker began {kind.name}", advice=advice)
        kind.conclude(context, job, Ended(Outcome.FAILED, failure))
