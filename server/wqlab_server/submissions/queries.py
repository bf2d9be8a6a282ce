"""Reading submissions: filters, pages, events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, func, or_, select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session, defer

from wqlab_contracts import messages
from wqlab_contracts.enums import Outcome, SubmissionState

from ..models import Apply, Event, Submission
from ..problems import not_found

EVENT_BATCH = 500
"""How many events are read at once; a stream reads on until it gets fewer."""


@dataclass(frozen=True)
class Filter:
    """Every condition that is not None must hold."""

    state: SubmissionState | None = None
    outcome: Outcome | None = None
    tree: str | None = None
    owner: str | None = None
    plan: str | None = None
    device_type: str | None = None
    """With `plan`: both in one target."""
    series_key: str | None = None
    q: str | None = None
    """Part of title, series key or owner, any case; or a submission's number."""
    since: datetime | None = None
    until: datetime | None = None


def get(session: Session, submission_id: int) -> Submission:
    """Raises ApiProblem 404."""
    row = session.get(Submission, submission_id)
    if row is None:
        raise not_found("submission", submission_id)
    return row


def page(
    session: Session, wanted: Filter, before: int | None, limit: int
) -> tuple[Sequence[Submission], int, int | None]:
    """Newest first: at most `limit` rows with an id under `before`, the total without paging, and the id to go on
    before (None on the last page). Rows come without their request, which can hold a whole mailbox."""
    conditions = _conditions(wanted)
    total = session.scalar(select(func.count(Submission.id)).where(*conditions)) or 0
    query = select(Submission).where(*conditions).options(defer(Submission.request, raiseload=True))
    if before is not None:
        query = query.where(Submission.id < before)
    rows = session.scalars(query.order_by(Submission.id.desc()).limit(limit + 1)).all()
    return rows[:limit], total, rows[limit - 1].id if len(rows) > limit else None


def _conditions(wanted: Filter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    for column in ("state", "outcome", "tree", "owner", "series_key"):
        if (value := getattr(wanted, column)) is not None:
            found.append(getattr(Submission, column) == value)
    target: dict[str, Any] = {
        name: value for name in ("plan", "device_type") if (value := getattr(wanted, name)) is not None
    }
    if target:
        found.append(type_coerce(Submission.request, JSONB)["targets"].contains([target]))
    if wanted.since is not None:
        found.append(Submission.created_at >= wanted.since)
    if wanted.until is not None:
        found.append(Submission.created_at < wanted.until)
    if wanted.q:
        matches: list[ColumnElement[bool]] = [
            column.icontains(wanted.q, autoescape=True)
            for column in (Submission.title, Submission.series_key, Submission.owner)
        ]
        if wanted.q.isascii() and wanted.q.isdigit() and len(wanted.q) < 10:
            matches.append(Submission.id == int(wanted.q))
        found.append(or_(*matches))
    return found


def events_after(session: Session, submission_id: int, after: int) -> list[messages.Event]:
    """The next events by `seq`, at most EVENT_BATCH."""
    rows = session.scalars(
        select(Event)
        .where(Event.submission_id == submission_id, Event.seq > after)
        .order_by(Event.seq)
        .limit(EVENT_BATCH)
    )
    return [
        messages.Event(
            seq=row.seq,
            at=row.at,
            kind=row.kind,
            build_id=row.build_id,
            run_id=row.run_id,
            boot_id=row.boot_id,
            data=row.data,
        )
        for row in rows
    ]


def series_of(session: Session, submission: Submission) -> messages.Artifact:
    """The series as an mbox. Raises ApiProblem 404, which says when there will be one."""
    apply = session.scalars(select(Apply).where(Apply.submission_id == submission.id)).one_or_none()
    mbox = apply.result.series_mbox if apply is not None and apply.result is not None else None
    if mbox is not None:
        return mbox
    if submission.request.series is None:
        hint = "it is a study of settings, without a series"
    elif apply is not None and apply.outcome is not None:
        hint = f"applying it ended as {apply.outcome}"
    else:
        hint = "it has not been applied yet"
    raise not_found("series of submission", submission.id, hint)


def is_finished(session: Session, submission_id: int) -> bool:
    state = session.scalar(select(Submission.state).where(Submission.id == submission_id))
    return state is SubmissionState.FINISHED
