"""Quotas of submitters: unfinished submissions, and device time, build time and bytes in 24 hours.

Maintainers and administrators have none. Limits are settings; 0 means no limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, func, literal_column, or_, select
from sqlalchemy.orm import Session, defer

from wqlab_contracts.api.quotes import Quota, QuotaName, Quote, QuoteBasis
from wqlab_contracts.enums import JobState, Scope, SubmissionState

from ..estimates import timings
from ..http.auth import Principal
from ..models import Artifact, ArtifactLink, Build, Job, Run, RunAttempt, Submission, SubmissionBuild
from ..settings import Settings
from ..storage.db import clock
from ..views.load import submission_rows
from ..wait import QuotaUsedUp

WINDOW = timedelta(days=1)
UNMEASURED_BOOT_S = 60.0
"""Time counted for each remaining boot of a run whose plan was never measured on its device type."""
WAIT_UNKNOWN = timedelta(minutes=10)
"""Time after which to try again if it is not known when something is left."""
_OLDEST = 3
"""Unfinished submissions whose end is estimated for a used-up quota of submissions."""
_TEXTS = {
    QuotaName.SUBMISSIONS_WAITING: "unfinished submissions",
    QuotaName.DEVICE_MINUTES: "minutes of device time in 24 hours",
    QuotaName.BUILD_MINUTES: "minutes of kernel builds in 24 hours",
    QuotaName.BYTES: "bytes stored in 24 hours",
}


def device_s(quote: Quote) -> float:
    """Return the device time (seconds) that a quote predicts.

    A boot of a plan that was never measured counts UNMEASURED_BOOT_S, as it does while the run is not finished: a guess
    does not use up a quota.
    """
    return sum(
        target.device_s
        if target.device_s is not None and target.basis is QuoteBasis.MEASURED
        else target.boots * UNMEASURED_BOOT_S
        for target in quote.targets
    )


@dataclass(frozen=True)
class _Use:
    """Use of a quota, spread evenly from `start` to `end`."""

    start: datetime
    end: datetime
    amount: float


def is_limited(principal: Principal) -> bool:
    """Return True if quotas apply to the principal's submissions."""
    return not principal.may(Scope.MAINTAIN)


def quotas(session: Session, settings: Settings, owner: str) -> list[Quota]:
    """Return the quotas of a submitter, without those that have no limit."""
    now = clock(session)
    limits = {
        QuotaName.SUBMISSIONS_WAITING: float(settings.quota_waiting),
        QuotaName.DEVICE_MINUTES: settings.quota_device_minutes,
        QuotaName.BUILD_MINUTES: settings.quota_build_minutes,
        QuotaName.BYTES: float(settings.quota_bytes),
    }
    found = []
    for name, limit in limits.items():
        if not limit:
            continue
        if name is QuotaName.SUBMISSIONS_WAITING:
            count = _unfinished(session, owner)
            found.append(_quota(name, limit, count, None if count < limit else _first_finish(session, owner)))
            continue
        past, planned = _uses(session, name, owner, now)
        used = planned + sum(_within(use, now) for use in past)
        found.append(_quota(name, limit, used, None if used < limit else _available_at(past, planned, limit, now)))
    return found


def check(session: Session, settings: Settings, owner: str) -> None:
    """Raise QuotaUsedUp if the submitter has used up a quota. It names the quota and the time to wait.

    Two submissions of one submitter at once are checked one after the other.
    """
    session.execute(select(func.pg_advisory_xact_lock(func.hashtext(f"quota {owner}"))))
    spent = [quota for quota in quotas(session, settings, owner) if quota.left <= 0]
    if not spent:
        return
    now = clock(session)
    errors = []
    for quota in spent:
        when = "; something is left again when one of your submissions has finished"
        if quota.available_at is not None:
            when = f"; available again at {quota.available_at:%Y-%m-%d %H:%M} UTC"
        errors.append(
            {
                "quota": quota.name.value,
                "detail": f"{_amount(quota.used)} of {_amount(quota.limit)} {_TEXTS[quota.name]} are used{when}",
                **({"available_at": quota.available_at.isoformat()} if quota.available_at else {}),
            }
        )
    wait = max((quota.available_at or now + WAIT_UNKNOWN) - now for quota in spent)
    raise QuotaUsedUp(
        f"your quota is used up: {'; '.join(error['detail'] for error in errors)}. Cancel a submission that you do not "
        "need, or ask a maintainer of the lab",
        pause=wait,
        errors=errors,
    )


def _quota(name: QuotaName, limit: float, used: float, available_at: datetime | None = None) -> Quota:
    return Quota(name=name, limit=limit, used=used, left=max(limit - used, 0.0), available_at=available_at)


def _amount(value: float) -> str:
    return f"{value:.0f}"


def _unfinished(session: Session, owner: str) -> int:
    # A literal instead of a parameter, so that the planner can use the partial index of unfinished submissions.
    finished: ColumnElement[str] = literal_column("'finished'")
    query = select(func.count()).where(Submission.owner == owner, Submission.state != finished)
    return session.scalar(query) or 0


def _first_finish(session: Session, owner: str) -> datetime | None:
    """Return the estimated time at which the first of the submitter's oldest submissions finishes; None if unknown."""
    oldest = (
        select(Submission)
        .where(Submission.owner == owner, Submission.state != SubmissionState.FINISHED)
        .order_by(Submission.id)
        .limit(_OLDEST)
        .options(defer(Submission.request))
    )
    ends = [submission_rows(session, row, environments=False).eta.finish_at for row in session.scalars(oldest)]
    return min((end for end in ends if end is not None), default=None)


def _uses(session: Session, name: QuotaName, owner: str, now: datetime) -> tuple[list[_Use], float]:
    """Return the past uses of a quota, and the amount that unfinished work will use."""
    if name is QuotaName.DEVICE_MINUTES:
        return _device_minutes(session, owner, now), _planned_device_minutes(session, owner)
    if name is QuotaName.BUILD_MINUTES:
        return _build_minutes(session, owner, now), 0.0
    return _bytes(session, owner, now), 0.0


def _device_minutes(session: Session, owner: str, now: datetime) -> list[_Use]:
    end = func.coalesce(RunAttempt.finished_at, now)
    rows = session.execute(
        select(RunAttempt.started_at, end)
        .join(Run, Run.id == RunAttempt.run_id)
        .where(Run.owner == owner, Run.submission_id.is_not(None), end > now - WINDOW)
    )
    return [_minutes(start, ended) for start, ended in rows]


def _planned_device_minutes(session: Session, owner: str) -> float:
    """Return the estimated time of the remaining boots of unfinished runs."""
    boots = func.coalesce(func.jsonb_array_length(func.jsonb_path_query_array(Run.blocks, _EACH_BOOT)), 0)
    rows = session.execute(
        select(Run.plan_name, Run.device_type, func.sum(func.greatest(boots - Run.boots_done, 0)))
        .where(Run.owner == owner, Run.submission_id.is_not(None), Run.state != JobState.FINISHED)
        .group_by(Run.plan_name, Run.device_type)
    ).all()
    times = timings.boot_times(session, {(plan, device_type) for plan, device_type, _ in rows}) if rows else {}
    total = 0.0
    for plan, device_type, count in rows:
        mean = times.get((plan, device_type))
        total += float(count) * (UNMEASURED_BOOT_S if mean is None else mean.seconds)
    return total / 60


_EACH_BOOT: ColumnElement[str] = literal_column("'$[*][*]'::jsonpath")


def _build_minutes(session: Session, owner: str, now: datetime) -> list[_Use]:
    """Return the builds that the submitter's submissions caused; a build that existed before is not counted."""
    end = func.coalesce(Build.finished_at, now)
    rows = session.execute(
        select(Build.started_at, end)
        .where(
            Build.started_at.is_not(None),
            end > now - WINDOW,
            Build.id.in_(
                select(SubmissionBuild.build_id)
                .join(Submission, Submission.id == SubmissionBuild.submission_id)
                .where(Submission.owner == owner, Submission.created_at <= Build.created_at)
                .correlate(Build)
            ),
        )
    )  # fmt: skip
    return [_minutes(start, ended) for start, ended in rows if start is not None]


def _minutes(start: datetime, end: datetime) -> _Use:
    return _Use(start, end, max((end - start).total_seconds(), 0.0) / 60)


def _bytes(session: Session, owner: str, now: datetime) -> list[_Use]:
    """Return the bytes that each submission has stored, at the time when it was created."""
    recent = (Submission.owner == owner, Submission.created_at > now - WINDOW)
    uses = [
        _Use(at, at, float(size))
        for at, size in session.execute(
            select(Submission.created_at, func.pg_column_size(Submission.request)).where(*recent)
        )
    ]
    of_submission = or_(
        ArtifactLink.job_id.in_(select(Job.id).where(Job.submission_id == Submission.id).correlate(Submission)),
        ArtifactLink.job_id.in_(
            select(SubmissionBuild.build_id)
            .join(Build, Build.id == SubmissionBuild.build_id)
            .where(SubmissionBuild.submission_id == Submission.id, Build.created_at >= Submission.created_at)
            .correlate(Submission)
        ),
    )
    artifacts = (
        select(Submission.created_at, func.sum(Artifact.size))
        .select_from(Submission)
        .join(ArtifactLink, of_submission)
        .join(Artifact, Artifact.sha256 == ArtifactLink.sha256)
        .where(*recent)
        .group_by(Submission.id)
    )
    return uses + [_Use(at, at, float(size)) for at, size in session.execute(artifacts)]


def _within(use: _Use, at: datetime) -> float:
    """Return the amount that was used in the 24 hours before `at`."""
    start = at - WINDOW
    if use.start >= start:
        return use.amount
    if use.end <= start:
        return 0.0
    return use.amount * ((use.end - start) / (use.end - use.start))


def _available_at(past: Sequence[_Use], planned: float, limit: float, now: datetime) -> datetime | None:
    """Return the first minute at which less than `limit` is used, if no more is used until then.

    None if the unfinished work alone uses it up.
    """
    if planned >= limit:
        return None
    early, late = now, now + WINDOW + timedelta(minutes=1)
    while late - early > timedelta(minutes=1):
        middle = early + (late - early) / 2
        if planned + sum(_within(use, middle) for use in past) < limit:
            late = middle
        else:
            early = middle
    return late
