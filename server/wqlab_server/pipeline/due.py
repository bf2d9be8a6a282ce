"""Select the unfinished submissions that `pipeline.advance` could advance in a tick.

Thousands of submissions may wait for devices or builds. Locking and loading each of them would make the duration of a
tick proportional to the queue.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, exists, or_, select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import DeviceHealth, JobState, Outcome, SubmissionState

from ..models import Apply, Build, Device, Run, Submission


def due_submissions(session: Session) -> Sequence[int]:
    """Return the ids in order. The selection may include submissions that cannot advance, but must not miss any."""
    applied = and_(
        Apply.state == JobState.FINISHED,
        or_(
            Submission.state == SubmissionState.APPLYING,
            and_(Submission.state == SubmissionState.BUILDING, ~_has_run(Run.state == JobState.WAITING)),
            ~_has_run(Run.state != JobState.FINISHED),
            _has_run(Run.state == JobState.WAITING, _builds_decided()),
            # All devices of the run may be out of service, or may never pass their health checks.
            _has_run(Run.state.in_([JobState.WAITING, JobState.QUEUED]), ~_has_good_device()),
            _has_run(Run.state.in_([JobState.WAITING, JobState.QUEUED]), _wants_device_out_of_service()),
        ),
    )
    return session.scalars(
        select(Submission.id)
        .join(Apply, Apply.submission_id == Submission.id)
        .where(
            Submission.state != SubmissionState.FINISHED,
            or_(Submission.cancel_requested_at.is_not(None), Submission.state == SubmissionState.COMPARING, applied),
        )
        .order_by(Submission.id)
    ).all()


def _has_run(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    return select(Run.id).where(Run.submission_id == Submission.id, *conditions).correlate(Submission).exists()


def _builds_decided() -> ColumnElement[bool]:
    """Match waiting runs whose builds are not created yet, have all finished, or have one that did not pass."""
    of_run = Build.id.in_([Run.baseline_build_id, Run.candidate_build_id])
    return or_(
        Run.baseline_build_id.is_(None),
        ~select(Build.id).where(of_run, Build.state != JobState.FINISHED).correlate(Run).exists(),
        select(Build.id).where(of_run, Build.outcome != Outcome.PASSED).correlate(Run).exists(),
    )


def _wants_device_out_of_service() -> ColumnElement[bool]:
    out = or_(Device.retired_at.is_not(None), Device.health == DeviceHealth.QUARANTINED)
    return exists().where(Device.name == Run.wanted_device, out)


def _has_good_device() -> ColumnElement[bool]:
    return exists().where(
        Device.device_type == Run.device_type, Device.retired_at.is_(None), Device.health == DeviceHealth.GOOD
    )
