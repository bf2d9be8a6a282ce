"""Device checks: requests, progress and results. `pipeline.device_check` advances them."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api import queue as api_lab
from wqlab_contracts.celery_names import SERVER_QUEUE, TICK
from wqlab_contracts.enums import DeviceHealth, DeviceStep, ErrorKind, JobState, Outcome, StepOutcome
from wqlab_contracts.messages import CheckStep, Failure

from ..http.problems import ApiProblem, not_found
from ..models import DeviceCheck, Run
from ..storage.db import Message, clock, post
from ..storage.events import CHECK_CHANNEL, notify
from . import queries

KEPT = 10
"""How many of a device's checks its history shows."""


def ask(session: Session, name: str, by: str) -> DeviceCheck:
    """The check of the device that is under way, else a new one. It begins as soon as the device is free.

    Raises ApiProblem 404, 409 for a device that is out of the pool.
    """
    device, _ = queries.device(session, name)
    session.refresh(device, with_for_update=True)
    if device.retired_at is not None:
        raise ApiProblem(409, f"{name} is no longer in the device-types folder")
    if device.health is DeviceHealth.QUARANTINED:
        raise ApiProblem(409, f"{name} is quarantined ({device.health_reason}); release it, then have it checked")
    check = session.scalar(
        select(DeviceCheck).where(DeviceCheck.device_name == name, DeviceCheck.finished_at.is_(None))
    )
    if check is None:
        check = DeviceCheck(device_name=name, by=by)
        session.add(check)
        session.flush()
        post(session, Message(TICK, None, SERVER_QUEUE))
    return check


def read(session: Session, name: str, check_id: int) -> api_lab.DeviceCheck:
    """Raises ApiProblem 404."""
    check = session.get(DeviceCheck, check_id)
    if check is None or check.device_name != name:
        raise not_found(f"check of {name} with id", check_id, f"GET /devices/{name}/history lists its checks")
    return views(session, [check])[0]


def of_device(session: Session, name: str) -> list[api_lab.DeviceCheck]:
    """Newest first."""
    newest = select(DeviceCheck).where(DeviceCheck.device_name == name).order_by(DeviceCheck.id.desc()).limit(KEPT)
    return views(session, session.scalars(newest).all())


def views(session: Session, checks: Collection[DeviceCheck]) -> list[api_lab.DeviceCheck]:
    wanted = {run_id for check in checks for run_id in (check.health_run_id, check.noise_run_id) if run_id}
    told = {
        row.id: row
        for row in session.execute(
            select(Run.id, Run.state, Run.outcome, Run.progress, Run.steps).where(Run.id.in_(wanted))
        )
    }

    def view(check: DeviceCheck) -> api_lab.DeviceCheck:
        runs = [told[run_id] for run_id in (check.health_run_id, check.noise_run_id) if run_id in told]
        at_work = next((run for run in reversed(runs) if run.state is not JobState.FINISHED), None)
        doing = "" if check.finished_at else _waits(at_work.state, at_work.progress) if at_work else "is being ordered"
        return api_lab.DeviceCheck(
            id=check.id,
            device=check.device_name,
            by=check.by,
            created_at=check.created_at,
            finished_at=check.finished_at,
            outcome=check.outcome,
            failure=check.failure,
            steps=[step for run in runs for step in run.steps],
            doing=doing,
            health_run_id=check.health_run_id,
            noise_run_id=check.noise_run_id,
            changes=check.changes,
        )

    return [view(check) for check in checks]


def _waits(state: JobState, progress: str) -> str:
    if state is JobState.WAITING:
        return "waits for the kernel that devices are checked with"
    return "waits for the device" if state is JobState.QUEUED else progress or "begins"


# --- as it goes on ----------------------------------------------------------------------------------------------


def told(session: Session, check: DeviceCheck) -> None:
    check.changes += 1
    notify(session, CHECK_CHANNEL, check.id)


def end(session: Session, check: DeviceCheck, last: Run, outcome: Outcome, failure: Failure | None) -> None:
    """Ends a check with its `last` run. Each step that has not ended is skipped, with why, or it failed."""
    steps = {step.step: step for step in last.steps}
    if outcome is not Outcome.PASSED:
        for step in DeviceStep:
            if (step is DeviceStep.NOISE) != (check.noise_run_id is not None) or step in steps:
                continue
            blamed = failure is not None and failure.kind is not ErrorKind.CANCELED and not _failed(steps.values())
            if step is DeviceStep.NOISE and blamed and failure is not None:
                steps[step] = _step(session, step, StepOutcome.FAILED, failure.summary, failure)
            else:
                why = failure.summary if failure else "the check ended before it"
                steps[step] = _step(session, step, StepOutcome.SKIPPED, f"not reached: {why}")
        if DeviceStep.NOISE not in steps:
            steps[DeviceStep.NOISE] = _step(
                session, DeviceStep.NOISE, StepOutcome.SKIPPED, "the device must be fit before its noise is measured"
            )
    last.steps = [steps[step] for step in DeviceStep if step in steps]
    failed = _failed(steps.values())
    check.outcome = Outcome.FAILED if outcome is Outcome.PASSED and failed else outcome
    check.failure = failure or (failed.failure if failed else None)
    check.finished_at = clock(session)
    told(session, check)


def _failed(steps: Collection[CheckStep]) -> CheckStep | None:
    return next((step for step in steps if step.outcome is StepOutcome.FAILED), None)


def _step(
    session: Session, step: DeviceStep, outcome: StepOutcome, text: str, failure: Failure | None = None
) -> CheckStep:
    return CheckStep(at=clock(session), step=step, outcome=outcome, text=text, failure=failure)
