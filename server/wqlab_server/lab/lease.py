"""Offer, take, extend and release device leases.

A lease is a row with an expiry and a fence; only the database's clock counts. It begins as an offer (without a holder):
the device is reserved and the lab's worker is notified. Claiming the run turns the offer into a lease, heartbeats
extend it, and finishing the run or expiry ends it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import lab_queue
from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.messages import Failure

from ..jobs import claims
from ..jobs.errors import NotClaimable
from ..models import Device, Lease, Run, RunAttempt
from ..settings import Settings
from ..storage.db import clock
from ..storage.events import emit_run_state


def offer(session: Session, run: Run, device: str, settings: Settings) -> bool:
    """Reserve `device` for `run` and notify the lab's worker; return False if either is no longer free.

    The caller holds the row locks of the run and its submission; the device's row is locked here.
    """
    locked = session.scalar(select(Device).where(Device.name == device).with_for_update())
    if locked is None or locked.retired_at is not None or run.state is not JobState.QUEUED:
        return False
    taken = session.scalar(
        select(Lease.device_name).where((Lease.device_name == locked.name) | (Lease.run_id == run.id)).limit(1)
    )
    if taken is not None or run.cancel_requested_at is not None:
        return False
    now = clock(session)
    session.add(
        Lease(
            device_name=locked.name,
            run_id=run.id,
            fence=claims.next_fence(session),
            holder="",
            expires_at=now + timedelta(seconds=settings.offer_s),
        )
    )
    run.device_name = locked.name
    run.nudged_at, run.nudges = None, 0
    claims.nudge(session, run, now, lab_queue(locked.lab))
    emit_run_state(session, run)
    return True


def take(session: Session, run: Run, holder: str, lab: str | None, settings: Settings) -> Device:
    """Claim `run` with the device offered for it, and return the device.

    Raises NotClaimable if there is no live offer, the device is in another lab, or the run is not queued.
    """
    lease = session.scalar(select(Lease).where(Lease.run_id == run.id).with_for_update())
    if lease is None or lease.holder or lease.expires_at <= clock(session):
        raise NotClaimable(claims.describe(run), "no device is reserved for it")
    device = session.scalars(select(Device).where(Device.name == lease.device_name).with_for_update()).one()
    if lab is not None and device.lab != lab:
        raise NotClaimable(claims.describe(run), f"its device {device.name} is in lab {device.lab}, not {lab}")
    claims.take(session, run, holder, settings.lease_s, lease.fence)
    assert run.expires_at is not None  # noqa: S101 - take() has just set it
    lease.holder, lease.expires_at = holder, run.expires_at
    session.add(
        RunAttempt(run_id=run.id, number=run.attempts, device_name=device.name, fence=lease.fence, holder=holder)
    )
    return device


def finish_unclaimed(session: Session, run: Run, outcome: Outcome, failure: Failure | None) -> None:
    """Finish a run that no worker holds; do nothing for any other run. An offered device is returned unchanged.

    The caller holds the row locks of the run and its submission.
    """
    if run.state not in {JobState.WAITING, JobState.QUEUED}:
        return
    offered = session.scalar(select(Lease).where(Lease.run_id == run.id).with_for_update())
    if offered is not None:
        session.delete(offered)
    claims.finish(session, run, outcome, failure)
    emit_run_state(session, run)


def extend(session: Session, run: Run, now: datetime, settings: Settings) -> None:
    """Extend the run's claim and its lease to the same time."""
    claims.extend(run, now, settings.lease_s)
    lease = session.scalars(select(Lease).where(Lease.run_id == run.id)).one()
    assert run.expires_at is not None  # noqa: S101
    lease.expires_at = run.expires_at


def release(session: Session, run: Run) -> Device | None:
    """End the run's lease and return its device, locked; None without a lease."""
    lease = session.scalar(select(Lease).where(Lease.run_id == run.id).with_for_update())
    if lease is None:
        return None
    device = session.scalars(select(Device).where(Device.name == lease.device_name).with_for_update()).one()
    session.delete(lease)
    session.flush()
    return device
