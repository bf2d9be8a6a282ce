"""Undo the effects of a clock that was set back.

Every time in the database is from its own clock. When an administrator or NTP sets that clock back by an hour, a claim
that was to expire in a minute has an hour more: nobody would miss a holder that dies.
"""

from __future__ import annotations

from datetime import timedelta

import structlog
from sqlalchemy import case, func, update
from sqlalchemy.orm import Session

from wqlab_contracts.enums import JobKind, JobState

from ..models import Job, Lease
from ..settings import Settings

log = structlog.get_logger(__name__)


def shorten_claims(session: Session, settings: Settings) -> None:
    """Let no claim, lease or offer last longer from now on than one that begins now.

    A live holder extends its claim at its next heartbeat.
    """
    now = func.clock_timestamp()
    claim, lease, offer = (timedelta(seconds=s) for s in (settings.claim_s, settings.lease_s, settings.offer_s))
    length = case((Job.kind == JobKind.RUN, lease), else_=claim)
    late = update(Job).where(Job.state == JobState.RUNNING, Job.expires_at > now + length)
    jobs = list(session.scalars(late.values(expires_at=now + length).returning(Job.id)))
    longest = case((Lease.holder == "", offer), else_=lease)
    late_leases = update(Lease).where(Lease.expires_at > now + longest)
    leases = list(session.scalars(late_leases.values(expires_at=now + longest).returning(Lease.run_id)))
    if jobs or leases:
        log.warning("clock_was_set_back", jobs=jobs, leases=leases)
