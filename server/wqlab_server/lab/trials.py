"""Device trials: the worker of a lab tries a machine that is to be added, and writes its files.

Only the page or command that requested a trial waits for it, so no tick looks after it: it is ended when it is read.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from wqlab_contracts.api import device_trials as api
from wqlab_contracts.celery_names import DEVICE_TRIAL, lab_queue
from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.messages.device_trials import TrialProgress, TrialResult
from wqlab_contracts.new_devices.description import NewDevice

from ..http.problems import ApiProblem, invalid, not_found
from ..jobs import claims
from ..jobs.errors import StaleFence, infrastructure_failure
from ..jobs.state import change_state
from ..models import Device, DeviceTrial, Lab
from ..settings import Settings
from ..storage.db import clock
from ..storage.events import TRIAL_CHANNEL, notify
from ..storage.times import is_recent

WORKER_TIMEOUT = timedelta(minutes=2)
"""How long a trial waits for a worker of its lab, which may be busy with runs."""
RETENTION = timedelta(days=30)


def request(session: Session, device: NewDevice, by: str, *, write: bool) -> int:
    """Queue a trial and return its id.

    Raises ApiProblem 409 if the lab has such a device or tries a machine already, 422 for a lab that has no worker.
    """
    row = session.scalar(select(Device).where(Device.name == device.name))
    if row is not None and row.retired_at is None:
        raise ApiProblem(409, f"{device.name} is a device of lab {row.lab} already; choose another name")
    # The row of the lab is the lock: two machines at once could share a BMC or a console.
    if session.scalar(select(Lab).where(Lab.name == device.lab).with_for_update()) is None:
        known = ", ".join(session.scalars(select(Lab.name).order_by(Lab.name))) or "none"
        detail = f"no worker of a lab {device.lab} has reported; labs with a worker: {known}"
        raise invalid([{"pointer": "/device/lab", "detail": detail}])
    now = clock(session)
    for other in session.scalars(
        select(DeviceTrial)
        .where(DeviceTrial.lab == device.lab, DeviceTrial.state != JobState.FINISHED)
        .with_for_update()
    ):
        _end_if_lost(session, other, now)
        if other.state is not JobState.FINISHED:
            raise ApiProblem(
                409, f"lab {device.lab} tries {other.device.name} now (trial {other.id}); wait for its end"
            )
    session.execute(delete(DeviceTrial).where(DeviceTrial.created_at < now - RETENTION))
    trial = DeviceTrial(device=device, lab=device.lab, owner=by, write=write, steps=[])
    session.add(trial)
    session.flush()
    change_state(trial, JobState.QUEUED)
    claims.nudge(session, trial, DEVICE_TRIAL, lab_queue(trial.lab), now)
    return trial.id


def read(session: Session, trial_id: int) -> api.DeviceTrial:
    """Return a trial. Raises ApiProblem 404."""
    trial = lock(session, trial_id)
    _end_if_lost(session, trial, clock(session))
    result = trial.result or TrialResult(outcome=Outcome.FAILED)
    return api.DeviceTrial(
        id=trial.id,
        device=trial.device,
        write=trial.write,
        by=trial.owner,
        state=trial.state,
        outcome=trial.outcome,
        failure=trial.failure,
        doing=trial.progress,
        steps=trial.steps,
        topology=result.topology,
        disks=result.disks,
        machine=result.machine,
        files=result.files,
        refusal=result.refusal,
        created_at=trial.created_at,
        finished_at=trial.finished_at,
        changes=trial.changes,
    )


def cancel(session: Session, trial_id: int) -> None:
    """Stop a trial; the worker switches the machine off. Nothing changes for a finished one. Raises ApiProblem 404."""
    trial = lock(session, trial_id)
    if trial.state is JobState.QUEUED:
        claims.finish(session, trial, Outcome.CANCELED, None)
    elif trial.state is JobState.RUNNING:
        trial.cancel_requested_at = trial.cancel_requested_at or clock(session)
    _changed(session, trial)


def lock(session: Session, trial_id: int) -> DeviceTrial:
    """Lock and return a trial. Raises ApiProblem 404."""
    trial = session.scalar(select(DeviceTrial).where(DeviceTrial.id == trial_id).with_for_update())
    if trial is None:
        raise not_found("device trial", trial_id)
    return trial


def _end_if_lost(session: Session, trial: DeviceTrial, now: datetime) -> None:
    """Finish, as failed, a trial that no worker took in time or whose worker has stopped."""
    failure = None
    if trial.state is JobState.QUEUED and not is_recent(trial.created_at, now, WORKER_TIMEOUT):
        failure = infrastructure_failure(
            f"no worker of lab {trial.lab} took the trial",
            advice="See on the page Lab whether the lab's worker runs, and whether all its devices are busy.",
        )
    elif trial.state is JobState.RUNNING and trial.expires_at is not None and now >= trial.expires_at:
        failure = infrastructure_failure(
            f"worker {trial.holder} stopped responding", advice="Switch the machine off by hand, then try it again."
        )
    if failure is not None:
        claims.finish(session, trial, Outcome.FAILED, failure)
        _changed(session, trial)


def _changed(session: Session, trial: DeviceTrial) -> None:
    trial.changes += 1
    notify(session, TRIAL_CHANNEL, trial.id)


# --- worker requests --------------------------------------------------------------------------------------------


def claim(
    session: Session, trial_id: int, holder: str, settings: Settings, nonce: str | None
) -> tuple[DeviceTrial, int]:
    """Claim a trial. Raises NotClaimable if it is not queued, and ApiProblem 404."""
    trial = lock(session, trial_id)
    fence = claims.take_once(session, trial, holder, settings.claim_s, nonce)
    _changed(session, trial)
    return trial, fence


def progress(session: Session, trial_id: int, body: TrialProgress) -> None:
    """Store the steps that have ended. Raises StaleFence."""
    trial = lock(session, trial_id)
    claims.check_fence(session, trial, body.fence)
    trial.steps, trial.progress = body.steps, body.doing
    _changed(session, trial)


def finish(session: Session, trial_id: int, fence: int, result: TrialResult) -> None:
    """Store the result. Repeating the same request changes nothing. Raises StaleFence and ApiProblem 404."""
    trial = lock(session, trial_id)
    if trial.state is JobState.FINISHED and trial.fence == fence:
        if trial.result == result:
            return
        raise StaleFence(claims.describe(trial), fence)
    claims.check_fence(session, trial, fence)
    claims.finish(session, trial, result.outcome, result.failure)
    trial.result, trial.steps = result, result.steps or trial.steps
    _changed(session, trial)
