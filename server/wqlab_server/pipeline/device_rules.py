"""Apply the rules of devices, whose series they take, to runs that start: an operator may have made them stricter."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import ADVANCE, SERVER_QUEUE
from wqlab_contracts.enums import ErrorKind, JobState, Outcome
from wqlab_contracts.loading import DataFolder

from ..intake.watches import LIST_SOURCE
from ..jobs.errors import make_failure
from ..lab import lease
from ..models import FORGE_SOURCE, Apply, Order, Run, Submission
from ..runs import service as runs
from ..storage.db import Message, post
from ..submissions.device_access import access_mistakes


def refusal(session: Session, run: Run, data: DataFolder) -> str | None:
    """Return why the devices of a run's type do not take its series; None if they do, or it is a run of the lab."""
    if run.submission_id is None or run.device_type not in _strict_types(data):
        return None
    submission = session.get_one(Submission, run.submission_id)
    if submission.noise_control:
        return None
    apply = session.scalars(select(Apply).where(Apply.submission_id == submission.id)).one()
    owner = None if _is_on_behalf(session, submission.id) else submission.owner
    found = access_mistakes(submission.request, data, owner, apply.payload.tree)
    own = f"/targets/{run.target}/"
    return next((mistake["detail"] for mistake in found if mistake["pointer"].startswith(own)), None)


def _strict_types(data: DataFolder) -> list[str]:
    """Return the device types with a device that does not take anyone's series."""
    return [each.name for each in data.device_types.values() if not all(map(each.takes_anyone, each.units))]


def _is_on_behalf(session: Session, submission_id: int) -> bool:
    """Return True if a list's watch or a forge made the submission: its series is not that of its owner."""
    made = select(Order.id).where(Order.submission_id == submission_id, Order.source.in_([LIST_SOURCE, FORGE_SOURCE]))
    return session.scalar(made.limit(1)) is not None


def runs_to_check(session: Session, data: DataFolder) -> list[int]:
    """Return the queued runs of people's submissions on device types with a device that does not take anyone's."""
    strict = _strict_types(data)
    queued = select(Run.id).where(
        Run.state == JobState.QUEUED, Run.submission_id.is_not(None), Run.device_type.in_(strict)
    )
    return list(session.scalars(queued.order_by(Run.id))) if strict else []


def end_refused(session: Session, run_id: int, data: DataFolder) -> None:
    """End a queued run whose devices do not take its series any more: it would wait for ever."""
    run = runs.lock_run(session, run_id)
    reason = refusal(session, run, data)
    if reason is not None and run.state is JobState.QUEUED:
        advice = "the rule of the device was changed after the submission was made"
        lease.finish_unclaimed(session, run, Outcome.FAILED, make_failure(ErrorKind.USER, reason, advice=advice))
        post(session, Message(ADVANCE, run.submission_id, SERVER_QUEUE))
