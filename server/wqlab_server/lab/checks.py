"""Request, read and finish device checks. `pipeline.device_check` advances them."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api import queue as api_queue
from wqlab_contracts.enums import DeviceHealth, DeviceStep, JobState, Outcome, StepOutcome
from wqlab_contracts.messages import CheckStep, Failure

from ..http.problems import ApiProblem, not_found
from ..models import DeviceCheck, Run
from ..storage.db import clock
from ..storage.events import CHECK_CHANNEL, notify
from . import queries, service

CHECKS_SHOWN = 10
"""Number of a device's newest checks that its history shows."""


def request(session: Session, name: str, by: str) -> DeviceCheck:
    """Return the device's unfinished check, or create one. The check starts as soon as the device is free.

    Raises ApiProblem 404 for an unknown device, 409 for a device that is out of the pool.
    """
    device, _ = queries.device(session, name)
    session.refresh(device, with_for_update=True)
    if device.retired_at is not None:
        raise ApiProblem(409, f"{name} is no longer in the device-types folder")
    if device.health is DeviceHealth.QUARANTINED:
        raise ApiProblem(409, f"{name} is quarantined ({device.health_reason}); release it, then request the check")
    check = session.scalar(
        select(DeviceCheck).where(DeviceCheck.device_name == name, DeviceCheck.finished_at.is_(None))
    )
    if check is None:
        check = DeviceCheck(device_name=name, by=by)
        session.add(check)
        session.flush()
        service.request_check(session, device)
    return check


def read(session: Session, name: str, check_id: int) -> api_queue.DeviceCheck:
    """Return one check of the device. Raises ApiProblem 404 if the device has no such check."""
    check = session.get(DeviceCheck, check_id)
    if check is None or check.device_name != name:
        raise not_found(f"check of {name} with id", check_id, f"GET /devices/{name}/history lists its checks")
    return views(session, [check])[0]


def list_for_device(session: Session, name: str) -> list[api_queue.DeviceCheck]:
    """Return the newest checks of the device, newest first."""
    newest = (
        select(DeviceCheck).where(DeviceCheck.device_name == name).order_by(DeviceCheck.id.desc()).limit(CHECKS_SHOWN)
    )
    return views(session, session.scalars(newest).all())


def views(session: Session, checks: Collection[DeviceCheck]) -> list[api_queue.DeviceCheck]:
    """Return the checks as the API shows them."""
    run_ids = {check.health_run_id for check in checks if check.health_run_id}
    runs_by_id = {
        row.id: row
        for row in session.execute(select(Run.id, Run.state, Run.outcome, Run.progress).where(Run.id.in_(run_ids)))
    }

    def view(check: DeviceCheck) -> api_queue.DeviceCheck:
        run = runs_by_id.get(check.health_run_id or 0)
        doing = _describe_activity(run.state, run.progress) if run else "is being ordered"
        return api_queue.DeviceCheck(
            id=check.id,
            device=check.device_name,
            by=check.by,
            created_at=check.created_at,
            finished_at=check.finished_at,
            outcome=check.outcome,
            failure=check.failure,
            steps=check.steps,
            doing="" if check.finished_at else doing,
            health_run_id=check.health_run_id,
            changes=check.changes,
        )

    return [view(check) for check in checks]


def _describe_activity(state: JobState, progress: str) -> str:
    if state is JobState.WAITING:
        return "waits for the golden kernel"
    return "waits for the device" if state is JobState.QUEUED else progress or "is starting"


# --- changes ----------------------------------------------------------------------------------------------------


def notify_change(session: Session, check: DeviceCheck) -> None:
    """Notify clients that follow the check that there is something new."""
    check.changes += 1
    notify(session, CHECK_CHANNEL, check.id)


def finish(session: Session, check: DeviceCheck, outcome: Outcome, failure: Failure | None) -> None:
    """Finish a check with the outcome of its run; record each step without a result as skipped, with the reason."""
    if outcome is not Outcome.PASSED:
        reason = failure.summary if failure else "the check ended before this step"
        now, done = clock(session), {step.step: step for step in check.steps}
        check.steps = [
            done.get(step) or CheckStep(at=now, step=step, outcome=StepOutcome.SKIPPED, text=f"not reached: {reason}")
            for step in DeviceStep
        ]
    check.outcome, check.failure, check.finished_at = outcome, failure, clock(session)
    notify_change(session, check)
