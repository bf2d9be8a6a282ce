"""Undo the effects of a clock that was set back.

Every time in the database is from its own clock. When an administrator or NTP sets that clock back by an hour, a claim
that was to expire in a minute has an hour more: nobody would miss a holder that dies.
"""

from __future__ import annotations

from datetime import timedelta

import structlog
from sqlalchemy import case, func, update
from sqlalchemy.orm import Session

from wqlab_contracts.enums import JobState

from ..jobs.claims import Job
from ..models import Apply, Build, Lease, Run
from ..settings import Settings

log = structlog.get_logger(__name__)


def shorten_claims(session: Session, settings: Settings) -> None:
    """Let no claim, lease or offer last longer from now on than one that begins now.

    A live holder extends its claim at its next heartbeat.
    """
    now = func.clock_timestamp()
    claim, lease, offer = (timedelta(seconds=s) for s in (settings.claim_s, settings.lease_s, settings.offer_s))
    lengths: tuple[tuple[type[Job], timedelta], ...] = ((Apply, claim), (Build, claim), (Run, lease))
    shortened: dict[str, list[int]] = {}
    for table, length in lengths:
        late = update(table).where(table.state == JobState.RUNNING, table.expires_at > now + length)
        found = session.scalars(late.values(expires_at=now + length).returning(table.id))
        shortened[table.__tablename__] = list(found)
    longest = case((Lease.holder == "", offer), else_=lease)
    late_leases = update(Lease).where(Lease.expires_at > now + longest)
    shortened["leases"] = list(session.scalars(late_leases.values(expires_at=now + longest).returning(Lease.run_id)))
    if any(shortened.values()):
        log.warning("clock_was_set_back", shortened={name: ids for name, ids in shortened.items() if ids})
