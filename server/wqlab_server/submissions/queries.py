"""Queries for submissions: filters, pages, events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, String, cast, func, literal_column, or_, select, text, tuple_, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import InstrumentedAttribute, Session, defer

from wqlab_contracts import messages
from wqlab_contracts.enums import Outcome, SubmissionState, Verdict

from ..http.problems import not_found
from ..models import Apply, Event, Submission, SubmissionMail
from ..views.build import taken_thread

EVENT_BATCH = 500
"""Number of events read at once; a stream reads further batches until one has fewer."""

MAX_COUNT = 10_000
"""Limit of the total of a list. Users do not page further, and counting all rows would cost more than the page."""


class Sort(StrEnum):
    NEWEST = "newest"
    OLDEST = "oldest"
    ENDED = "ended"
    """Unfinished submissions first, then the most recently finished."""
    PRIORITY = "priority"
    """Highest priority first."""
    TITLE = "title"
    OWNER = "owner"
    TREE = "tree"


@dataclass(frozen=True)
class Filter:
    """Conditions of a list; all that are not None must hold."""

    state: SubmissionState | None = None
    outcome: Outcome | None = None
    active: bool | None = None
    """True: not finished; False: finished."""
    verdict: Verdict | None = None
    """Verdict of at least one target."""
    tree: str | None = None
    owner: str | None = None
    author: str | None = None
    """Part of the series' author; case is ignored."""
    plan: str | None = None
    device_type: str | None = None
    """Together with `plan`: both must match the same target."""
    series_key: str | None = None
    message_id: str | None = None
    """Of the mail that the series came in, without angle brackets."""
    q: str | None = None
    """Part of title, series key, author or owner (case is ignored), or a submission's id."""
    since: datetime | None = None
    """Created at or after this time."""
    until: datetime | None = None
    """Created before this time."""
    one_per_series: bool = False
    """Only the newest submission of each series, of those that match the other conditions."""


def get(session: Session, submission_id: int) -> Submission:
    """Return a submission; its `request` is loaded only when it is used. Raises ApiProblem 404 if there is none."""
    row = session.get(Submission, submission_id, options=[defer(Submission.request)])
    if row is None:
        raise not_found("submission", submission_id)
    return row


def page(
    session: Session, filter_: Filter, sort: Sort, after: int | None, limit: int
) -> tuple[Sequence[Submission], int, int | None]:
    """Return one page of submissions: at most `limit` rows after the submission `after`, the total, and the last id.

    The total ignores paging; MAX_COUNT + 1 stands for any number above MAX_COUNT. The last id is the `after` of the
    next page, None on the last one. The rows' `request` is not loaded, since it can contain a whole mailbox.

    A page starts after a row rather than at an offset, so that inserted or removed rows do not shift it. The position
    of that row is looked up, so a cursor is valid for every order.
    """
    conditions = _conditions(filter_)
    matching = select(Submission.id).where(*conditions).limit(MAX_COUNT + 1).subquery()
    total = session.scalar(select(func.count()).select_from(matching)) or 0
    key, descending = _ORDER[sort]
    columns = [Submission.id] if key is None else [key, Submission.id]
    query = select(Submission).where(*conditions).options(defer(Submission.request, raiseload=True))
    if after is not None:
        position = [select(column).where(Submission.id == after).scalar_subquery() for column in columns]
        follows = tuple_(*columns) < tuple_(*position) if descending else tuple_(*columns) > tuple_(*position)
        query = query.where(follows)
    ordered = query.order_by(*(column.desc() if descending else column.asc() for column in columns))
    rows = session.scalars(ordered.limit(limit + 1)).all()
    return rows[:limit], total, rows[limit - 1].id if len(rows) > limit else None


_ORDER: dict[Sort, tuple[ColumnElement[Any] | InstrumentedAttribute[Any] | None, bool]] = {
    Sort.NEWEST: (None, True),
    Sort.OLDEST: (None, False),
    Sort.ENDED: (func.coalesce(Submission.finished_at, text("'infinity'")), True),
    Sort.PRIORITY: (Submission.priority, True),
    Sort.TITLE: (Submission.title, False),
    Sort.OWNER: (Submission.owner, False),
    Sort.TREE: (Submission.tree, False),
}
"""Column of each order (None: the id) and True if it is descending. Equal values are ordered by id."""


def _conditions(filter_: Filter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    for column in ("state", "outcome", "tree", "owner", "series_key"):
        if (value := getattr(filter_, column)) is not None:
            found.append(getattr(Submission, column) == value)
    if filter_.message_id is not None:
        # Whoever uploads an mbox writes its Message-ID: an upload counts only if the lab has not read the mail itself.
        came_in = select(SubmissionMail.submission_id).where(SubmissionMail.message_id == filter_.message_id)
        read = came_in.where(type_coerce(SubmissionMail.source, JSONB)["verified"].as_boolean())
        found.append(Submission.id.in_(read) | Submission.id.in_(came_in) & ~read.exists())
    if filter_.active is not None:
        # A literal instead of a parameter, so that the planner can use the partial index of unfinished submissions.
        finished: ColumnElement[str] = literal_column("'finished'")
        found.append(Submission.state != finished if filter_.active else Submission.state == finished)
    if facets := _facets(filter_):
        found.append(Submission.facets.contains(facets))
    if filter_.since is not None:
        found.append(Submission.created_at >= filter_.since)
    if filter_.until is not None:
        found.append(Submission.created_at < filter_.until)
    if filter_.author:
        # The second condition is the actual one; the first one lets the planner use the index of `search`.
        found += [
            column.icontains(filter_.author, autoescape=True) for column in (Submission.search, Submission.author)
        ]
    if filter_.q:
        matches: ColumnElement[bool] = Submission.search.icontains(filter_.q, autoescape=True)
        if filter_.q.isascii() and filter_.q.isdigit() and len(filter_.q) < 10:
            matches = or_(matches, Submission.id == int(filter_.q))
        found.append(matches)
    if filter_.one_per_series:
        series = func.coalesce(func.nullif(Submission.series_key, ""), cast(Submission.id, String))
        found.append(Submission.id.in_(select(func.max(Submission.id)).where(*found).group_by(series)))
    return found


def _facets(filter_: Filter) -> list[str]:
    """Return the filter's facets in the form that `service.facets` stores."""
    found = [] if filter_.verdict is None else [f"verdict:{filter_.verdict}"]
    if filter_.plan is not None and filter_.device_type is not None:
        found.append(f"target:{filter_.plan}@{filter_.device_type}")
    elif filter_.plan is not None:
        found.append(f"plan:{filter_.plan}")
    elif filter_.device_type is not None:
        found.append(f"type:{filter_.device_type}")
    return found


def events_after(session: Session, submission_id: int, after: int) -> list[messages.Event]:
    """Return the events with a `seq` above `after` in order, at most EVENT_BATCH."""
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


def series_of(session: Session, submission: Submission) -> tuple[messages.Artifact, datetime | None]:
    """Return the mbox of the series, and when retention deleted it.

    Raises ApiProblem 404 with the reason if there is none (yet).
    """
    apply = session.scalars(select(Apply).where(Apply.submission_id == submission.id)).one_or_none()
    mbox = apply.result.series_mbox if apply is not None and apply.result is not None else None
    if apply is not None and mbox is not None:
        return mbox, apply.files_deleted_at
    if submission.request.series is None:
        hint = "this submission is a settings study without a series"
    elif apply is not None and apply.outcome is not None:
        hint = f"the apply job ended with outcome {apply.outcome}"
    else:
        hint = "the series has not been applied yet"
    raise not_found("series of submission", submission.id, hint)


def submitted_mbox(submission: Submission) -> str:
    """Return the mbox as it was submitted. Raises ApiProblem 404 if the series is a branch or there is none."""
    series = submission.request.series
    if series is None or series.mbox is None:
        reason = "it has no series" if series is None else "its series is a branch"
        raise not_found("mbox of submission", submission.id, reason)
    return series.mbox.text


def thread_of(session: Session, submission: Submission) -> tuple[messages.Artifact, datetime | None] | None:
    """Return the mails of a series that is given by a Message-ID, and when retention deleted them.

    None for another series. Raises ApiProblem 404 if the mails were not found (yet).
    """
    if submission.request.series is None or submission.request.series.thread is None:
        return None
    apply = session.scalars(select(Apply).where(Apply.submission_id == submission.id)).one()
    thread = taken_thread(apply)
    if thread is None:
        raise not_found("mbox of submission", submission.id, "its mails have not been taken from an archive")
    return thread.mbox, apply.files_deleted_at


def is_finished(session: Session, submission_id: int) -> bool:
    state = session.scalar(select(Submission.state).where(Submission.id == submission_id))
    return state is SubmissionState.FINISHED
