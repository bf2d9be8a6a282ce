"""Leases: who may touch a device now. A row with an expiry and a fence; only the database's clock counts.

A lease begins as an offer (no holder): the unit is set aside and the lab's worker is woken. Claiming the run takes the
offer over, heartbeats extend it, finishing or expiry ends it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import RUN, lab_queue
from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.messages import Failure

from ..jobs import claims
from ..jobs.errors import NotClaimable
from ..models import Device, Lease, Run, RunAttempt
from ..settings import Settings
from ..storage.db import clock
from ..storage.events import tell_run


def offer(session: Session, run: Run, device: str, settings: Settings) -> bool:
    """Sets `device` aside for `run` and wakes the lab's worker; False when either is no longer free.

    The caller holds the run's lock (and its submission's); the device's is taken here.
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
    claims.nudge(session, run, RUN, lab_queue(locked.lab), now)
    tell_run(session, run)
    return True


def take(session: Session, run: Run, holder: str, lab: str | None, settings: Settings) -> tuple[Device, bool]:
    """Claims `run` with the device offered for it: (device, whether a holder before left it as it was).

    Raises NotClaimable: no offer, an expired one, another lab's, or a run that is not queued.
    """
    lease = session.scalar(select(Lease).where(Lease.run_id == run.id).with_for_update())
    if lease is None or lease.holder or lease.expires_at <= clock(session):
        raise NotClaimable(claims.describe(run), "no device is set aside for it")
    device = session.scalars(select(Device).where(Device.name == lease.device_name).with_for_update()).one()
    if lab is not None and device.lab != lab:
        raise NotClaimable(claims.describe(run), f"its device {device.name} is in lab {device.lab}, not {lab}")
    claims.take(session, run, holder, settings.lease_s, lease.fence)
    assert run.expires_at is not None  # noqa: S101 - take() has just set it
    lease.holder, lease.expires_at = holder, run.expires_at
    session.add(
        RunAttempt(run_id=run.id, number=run.attempts, device_name=device.name, fence=lease.fence, holder=holder)
    )
    was_left, device.dirty = device.dirty, True
    return device, was_left


def end_unclaimed(session: Session, run: Run, outcome: Outcome, failure: Failure) -> None:
    """Ends a run that no worker holds, and nothing else; a device that was offered for it goes back as it is.

    The caller holds the run's lock (and its submission's).
    """
    if run.state not in {JobState.WAITING, JobState.QUEUED}:
        return
    offered = session.scalar(select(Lease).where(Lease.run_id == run.id).with_for_update())
    if offered is not None:
        session.delete(offered)
    claims.finish(session, run, outcome, failure)
    tell_run(session, run)


def extend(session: Session, run: Run, now: datetime, settings: Settings) -> None:
    claims.extend(run, now, settings.lease_s)
    lease = session.scalars(select(Lease).where(Lease.run_id == run.id)).one()
    assert run.expires_at is not None  # noqa: S101
    lease.expires_at = run.expires_at


def release(session: Session, run: Run, *, given_back: bool) -> Device | None:
    """Ends the run's lease: its device, locked. `given_back`: its holder says that it has left the device."""
    lease = session.scalar(select(Lease).where(Lease.run_id == run.id).with_for_update())
    if lease is None:
        return None
    device = session.scalars(select(Device).where(Device.name == lease.device_name).with_for_update()).one()
    if given_back:
        device.dirty = False
    session.delete(lease)
    session.flush()
    return device
