"""Do what a worker does for a job, without HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wqlab_contracts.messages import ClaimRequest
from wqlab_contracts.messages.jobs import FinishJob, JobResult
from wqlab_server.jobs import protocol
from wqlab_server.jobs.kinds import Context
from wqlab_server.pipeline.job_kinds import KINDS
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, transaction
from wqlab_server.storage.live_data import LiveData


def end_job(
    sessions: SessionFactory, settings: Settings, data: LiveData, job_id: int, work: Callable[[Any], JobResult]
) -> None:
    """Claim a job, and finish it with the result of `work`, which gets what the worker would."""
    with transaction(sessions) as session:
        claim = protocol.claim(Context(session, settings, data), KINDS, job_id, ClaimRequest(worker="w/1"))
    result = work(claim.job)
    with transaction(sessions) as session:
        protocol.finish(Context(session, settings, data), KINDS, job_id, FinishJob(fence=claim.fence, result=result))
