"""A submission's event stream: numbered rows, and a notification when they are committed.

The caller holds the submission's row lock or takes it here; numbers are dense and in commit order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from wqlab_contracts.enums import EventKind

from ..models import DeviceCheck, Event, Run, Submission

SUBMISSION_CHANNEL = "wqlab_submission"
"""Payload: the submission's id. New events are there."""
RUN_CHANNEL = "wqlab_run"
"""Payload: the run's id. New console text is there."""
LOOKUP_CHANNEL = "wqlab_lookup"
"""Payload: the lookup's id. It has its answer."""
CHECK_CHANNEL = "wqlab_check"
"""Payload: the id of a device's check. It has come on."""


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
    """Appends one event. Work of the lab itself (no submission) has no stream."""
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


def emit_to_all(
    session: Session, submission_ids: Iterable[int], kind: EventKind, *, build_id: int, **data: Any
) -> None:
    """One event in each stream: a build may serve many submissions."""
    for submission_id in sorted(submission_ids):
        emit(session, submission_id, kind, build_id=build_id, **data)


def tell_run(session: Session, run: Run, **more: Any) -> None:
    """That a run is in the state it is in, with its device and, at its end, how it ended."""
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
    tell_checks(session, run)


def tell_checks(session: Session, run: Run) -> None:
    """Those who follow a check of a device that the run is part of: there is something new."""
    if run.submission_id is not None:
        return
    session.flush()
    told = session.scalars(
        update(DeviceCheck)
        .where(or_(DeviceCheck.health_run_id == run.id, DeviceCheck.noise_run_id == run.id))
        .values(changes=DeviceCheck.changes + 1)
        .returning(DeviceCheck.id)
        .execution_options(synchronize_session=False)
    ).all()
    for check_id in told:
        notify(session, CHECK_CHANNEL, check_id)


def notify(session: Session, channel: str, id_: int) -> None:
    """PostgreSQL delivers it at commit, and once for equal payloads of one transaction."""
    session.execute(select(func.pg_notify(channel, str(id_))))
