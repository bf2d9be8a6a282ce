"""Name the lab's jobs in LAVA, and cancel those whose lease is over."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import structlog

from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages import RunJob

from .lava_client import Lava, LavaJob

log = structlog.get_logger()

_NAME = LinearPattern(r"wqlab (\S+) run (\d{1,18}) fence (\d{1,18}) on (\S+): ")


@dataclass(frozen=True)
class Holder:
    """The lease that a job belongs to."""

    lab: str
    run_id: int
    fence: int
    device: str


def job_name(job: RunJob, fence: int) -> str:
    """Return the job's description in LAVA, which names its lease."""
    return f"wqlab {job.device.lab} run {job.run_id} fence {fence} on {job.device.name}: {job.plan.name}"


def parse_job_holder(job: LavaJob) -> Holder | None:
    """Return the lease that the job's description names; None for a job that is not of this software."""
    match = _NAME.match(job.description or "")
    return Holder(match[1], int(match[2]), int(match[3]), match[4]) if match else None


def cancel_orphaned_jobs(lava: Lava, lab: str, live: Callable[[], Collection[tuple[int, int]]]) -> list[int]:
    """Cancel this lab's jobs whose lease (run, fence) is over and return their numbers. Raises LavaError.

    Jobs are listed before the leases: a job is submitted under its lease, so a listed job without one is orphaned.
    """
    ours = [
        (job, holder) for job in lava.unfinished(lava.user()) if (holder := parse_job_holder(job)) and holder.lab == lab
    ]
    if not ours:
        return []
    leases = set(live())
    orphaned = [job for job, holder in ours if (holder.run_id, holder.fence) not in leases and job.state != "Canceling"]
    for job in orphaned:
        log.warning("cancelling an orphaned LAVA job", job=job.id, description=job.description)
        lava.cancel(job.id)
    return [job.id for job in orphaned]
