"""How our jobs are called in LAVA, and what becomes of those that nobody waits for."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

import structlog

from wqlab_contracts.messages import RunJob

from .client import Lava, LavaJob

log = structlog.get_logger()

_NAME = re.compile(r"wqlab (\S+) run (\d+) fence (\d+) on (\S+): ")


@dataclass(frozen=True)
class Holder:
    """Which lease a job is for."""

    lab: str
    run_id: int
    fence: int
    device: str


def job_name(job: RunJob, fence: int) -> str:
    return f"wqlab {job.device.lab} run {job.run_id} fence {fence} on {job.device.name}: {job.plan.name}"


def holder_of(job: LavaJob) -> Holder | None:
    """None for a job that is not ours."""
    match = _NAME.match(job.description or "")
    return Holder(match[1], int(match[2]), int(match[3]), match[4]) if match else None


def cancel_left(lava: Lava, lab: str, live: Callable[[], Collection[tuple[int, int]]]) -> list[int]:
    """Cancels this lab's jobs whose lease, a pair of run and fence, is over; their numbers. Raises LavaError.

    Jobs are listed before the leases: a job is submitted under its lease, so one that is listed and has none is left.
    """
    ours = [(job, holder) for job in lava.unfinished(lava.user()) if (holder := holder_of(job)) and holder.lab == lab]
    if not ours:
        return []
    leases = set(live())
    left = [job for job, holder in ours if (holder.run_id, holder.fence) not in leases and job.state != "Canceling"]
    for job in left:
        log.warning("cancelling a LAVA job that was left", job=job.id, description=job.description)
        lava.cancel(job.id)
    return [job.id for job in left]
