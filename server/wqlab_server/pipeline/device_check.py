"""Advance the health checks of devices that maintainers asked for."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import JobState, Outcome, RunPurpose
from wqlab_contracts.loading import DataFolder

from ..lab import checks
from ..lab import service as lab_service
from ..models import Device, DeviceCheck, Run
from . import health_checks


def checks_to_advance(session: Session) -> Sequence[int]:
    """Return the ids of the unfinished device checks."""
    return session.scalars(
        select(DeviceCheck.id).where(DeviceCheck.finished_at.is_(None)).order_by(DeviceCheck.id)
    ).all()


def advance(session: Session, data: DataFolder, check_id: int) -> None:
    """Give a check its run, or finish it after the run."""
    run_id = session.scalar(select(DeviceCheck.health_run_id).where(DeviceCheck.id == check_id))
    # Lock order: runs before devices and checks.
    run = session.scalar(select(Run).where(Run.id == run_id).with_for_update())
    check = session.scalars(select(DeviceCheck).where(DeviceCheck.id == check_id).with_for_update()).one()
    if check.finished_at is not None:
        return
    if check.health_run_id is None:
        _attach_health_check(session, data, check, session.get_one(Device, check.device_name))
    elif run is not None and run.state is JobState.FINISHED and run.outcome is not None:
        checks.finish(session, check, run.outcome, run.failure)


def _attach_health_check(session: Session, data: DataFolder, check: DeviceCheck, device: Device) -> None:
    """Attach an unclaimed health check run to the check, or order one.

    A running health check is not attached: it started before the check was requested.
    """
    run = session.scalar(
        select(Run)
        .where(
            Run.wanted_device == device.name,
            Run.purpose == RunPurpose.HEALTH_CHECK,
            Run.state.in_([JobState.WAITING, JobState.QUEUED]),
        )
        .limit(1)
    )
    if run is None:
        if not data.has_device_type(device.device_type) or device.retired_at is not None:
            checks.finish(session, check, Outcome.CANCELED, lab_service.out_of_pool_failure(device))
            return
        run = health_checks.order_check(session, data, device.name)
    check.health_run_id = run.id
    checks.notify_change(session, check)
