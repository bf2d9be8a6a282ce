"""Which unfinished submissions a tick looks at: those that `pipeline.advance` could bring on.

Thousands may wait for devices, or for kernels that are being built; taking each one's rows and locks to find nothing to
do would make a tick as long as the queue.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, exists, or_, select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import DeviceHealth, JobState, Outcome, SubmissionState

from ..models import Apply, Build, Device, Run, Submission


def due(session: Session) -> Sequence[int]:
    """Ids in order. Wide rather than narrow: to advance a submission in vain does no harm, to miss one would."""
    applied = and_(
        Apply.state == JobState.FINISHED,
        or_(
            Submission.state == SubmissionState.APPLYING,
            and_(Submission.state == SubmissionState.BUILDING, ~_a_run(Run.state == JobState.WAITING)),
            ~_a_run(Run.state != JobState.FINISHED),
            _a_run(Run.state == JobState.WAITING, _kernels_are_decided()),
            # Its units may all be out of service, or never come through their checks.
            _a_run(Run.state.in_([JobState.WAITING, JobState.QUEUED]), ~_has_good_unit()),
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


def _a_run(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    return exists().where(Run.submission_id == Submission.id, *conditions)


def _kernels_are_decided() -> ColumnElement[bool]:
    """Of a waiting run: its builds are not named yet, all have ended, or one has ended without a kernel."""
    of_run = Build.id.in_([Run.baseline_build_id, Run.candidate_build_id])
    return or_(
        Run.baseline_build_id.is_(None),
        ~exists().where(of_run, Build.state != JobState.FINISHED),
        exists().where(of_run, Build.outcome != Outcome.PASSED),
    )


def _has_good_unit() -> ColumnElement[bool]:
    return exists().where(
        Device.device_type == Run.device_type, Device.retired_at.is_(None), Device.health == DeviceHealth.GOOD
    )
