"""Append events to a submission's event stream: numbered rows with a notification at commit.

The submission's row lock is held by the caller or taken here, so event numbers have no gaps and follow commit order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from wqlab_contracts.enums import EventKind
from wqlab_contracts.messages import Failure

from ..models import DeviceCheck, Event, Run, Submission

SUBMISSION_CHANNEL = "wqlab_submission"
"""New events of a submission. Payload: the submission's id."""
RUN_CHANNEL = "wqlab_run"
"""New console text of a run. Payload: the run's id."""
JOB_CHANNEL = "wqlab_job"
"""The end of a job. Payload: the job's id."""
CHECK_CHANNEL = "wqlab_check"
"""A change of a device check. Payload: the check's id."""


def emit(
    session: Session,
    submission_id: int | None,
    kind: EventKind,
    *,
    build_id: int | None = None,
    run_id: int | None = None,
    boot_id: int | None = None,
    **data: Any,
) -> None:
    """Append one event. Jobs of the lab itself (without a submission) have no stream and emit nothing."""
    if submission_id is None:
        return
    session.flush()
    seq = session.scalar(
        update(Submission)
        .where(Submission.id == submission_id)
        .values(event_seq=Submission.event_seq + 1)
        .returning(Submission.event_seq)
        .execution_options(synchronize_session=False)
    )
    session.add(
        Event(
            submission_id=submission_id,
            seq=seq,
            kind=kind,
            build_id=build_id,
            run_id=run_id,
            boot_id=boot_id,
            data={name: value for name, value in data.items() if value is not None},
        )
    )
    notify(session, SUBMISSION_CHANNEL, submission_id)


def dump_failure(failure: Failure | None) -> object:
    """Return a failure as events have it."""
    return None if failure is None else failure.model_dump(mode="json")


def emit_to_all(
    session: Session, submission_ids: Iterable[int], kind: EventKind, *, build_id: int, **data: Any
) -> None:
    """Append one event to the stream of each submission that uses the build."""
    for submission_id in sorted(submission_ids):
        emit(session, submission_id, kind, build_id=build_id, **data)


def emit_run_state(session: Session, run: Run, **more: Any) -> None:
    """Emit the run's state, device, outcome and failure, and notify its device checks."""
    emit(
        session,
        run.submission_id,
        EventKind.RUN_STATE,
        run_id=run.id,
        state=run.state,
        device=run.device_name,
        outcome=run.outcome,
        failure=run.failure.model_dump(mode="json") if run.failure else None,
        **more,
    )
    notify_checks(session, run)


def notify_checks(session: Session, run: Run) -> None:
    """Count a change of the device checks that the run is part of, and notify their followers."""
    if run.submission_id is not None:
        return
    session.flush()
    check_ids = session.scalars(
        update(DeviceCheck)
        .where(DeviceCheck.health_run_id == run.id)
        .values(changes=DeviceCheck.changes + 1)
        .returning(DeviceCheck.id)
        .execution_options(synchronize_session=False)
    ).all()
    for check_id in check_ids:
        notify(session, CHECK_CHANNEL, check_id)


def notify(session: Session, channel: str, id_: int) -> None:
    """Send a PostgreSQL notification; it is delivered at commit, once for equal payloads of one transaction."""
    session.execute(select(func.pg_notify(channel, str(id_))))
