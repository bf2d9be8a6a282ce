"""Reading submissions: filters, pages, events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, func, literal_column, or_, select, text, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session, defer

from wqlab_contracts import messages
from wqlab_contracts.enums import Outcome, SubmissionState, Verdict

from ..http.problems import not_found
from ..models import Apply, Event, Submission

EVENT_BATCH = 500
"""How many events are read at once; a stream reads on until it gets fewer."""

COUNTED = 10_000
"""Nobody pages through more; counting on would cost more than the page."""


class Sort(StrEnum):
    NEWEST = "newest"
    OLDEST = "oldest"
    ENDED = "ended"
    """Unfinished ones first, then those that ended last."""
    PRIORITY = "priority"
    """The highest first."""
    TITLE = "title"
    OWNER = "owner"
    TREE = "tree"


@dataclass(frozen=True)
class Filter:
    """Every condition that is not None must hold."""

    state: SubmissionState | None = None
    outcome: Outcome | None = None
    active: bool | None = None
    """Not finished."""
    verdict: Verdict | None = None
    """Of at least one target."""
    tree: str | None = None
    owner: str | None = None
    author: str | None = None
    """Part of the series' author, any case."""
    plan: str | None = None
    device_type: str | None = None
    """With `plan`: both in one target."""
    series_key: str | None = None
    q: str | None = None
    """Part of title, series key, author or owner, any case; or a submission's number."""
    since: datetime | None = None
    until: datetime | None = None


def get(session: Session, submission_id: int) -> Submission:
    """Raises ApiProblem 404."""
    row = session.get(Submission, submission_id)
    if row is None:
        raise not_found("submission", submission_id)
    return row


def page(
    session: Session, wanted: Filter, sort: Sort, after: int | None, limit: int
) -> tuple[Sequence[Submission], int, int | None]:
    """At most `limit` rows behind the submission `after`, the total without paging (COUNTED + 1 stands for any number
    above COUNTED), and the id to go on behind (None on the last page). Rows come without their request, which can hold
    a whole mailbox.

    A page begins behind a row and not at a number, so that rows that come or go shift nothing. Where that row stands is
    looked up, so a cursor stays good for any order.
    """
    conditions = _conditions(wanted)
    fitting = select(Submission.id).where(*conditions).limit(COUNTED + 1).subquery()
    total = session.scalar(select(func.count()).select_from(fitting)) or 0
    key, falling = _ORDER[sort]
    columns = [Submission.id] if key is None else [key, Submission.id]
    query = select(Submission).where(*conditions).options(defer(Submission.request, raiseload=True))
    if after is not None:
        place = [select(column).where(Submission.id == after).scalar_subquery() for column in columns]
        behind = tuple_(*columns) < tuple_(*place) if falling else tuple_(*columns) > tuple_(*place)
        query = query.where(behind)
    ordered = query.order_by(*(column.desc() if falling else column.asc() for column in columns))
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
"""What each order is by, and whether it falls; the id decides between equals."""


def _conditions(wanted: Filter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    for column in ("state", "outcome", "tree", "owner", "series_key"):
        if (value := getattr(wanted, column)) is not None:
            found.append(getattr(Submission, column) == value)
    if wanted.active is not None:
        # A literal and not a parameter, so that the planner knows the condition of the index of unfinished ones.
        finished: ColumnElement[str] = literal_column("'finished'")
        found.append(Submission.state != finished if wanted.active else Submission.state == finished)
    if facets := _facets(wanted):
        found.append(Submission.facets.contains(facets))
    if wanted.since is not None:
        found.append(Submission.created_at >= wanted.since)
    if wanted.until is not None:
        found.append(Submission.created_at < wanted.until)
    if wanted.author:
        # The second condition is the meant one, the first has the index.
        found += [column.icontains(wanted.author, autoescape=True) for column in (Submission.search, Submission.author)]
    if wanted.q:
        matches: ColumnElement[bool] = Submission.search.icontains(wanted.q, autoescape=True)
        if wanted.q.isascii() and wanted.q.isdigit() and len(wanted.q) < 10:
            matches = or_(matches, Submission.id == int(wanted.q))
        found.append(matches)
    return found


def _facets(wanted: Filter) -> list[str]:
    """As `service.facets` writes them."""
    found = [] if wanted.verdict is None else [f"verdict:{wanted.verdict}"]
    if wanted.plan is not None and wanted.device_type is not None:
        found.append(f"target:{wanted.plan}@{wanted.device_type}")
    elif wanted.plan is not None:
        found.append(f"plan:{wanted.plan}")
    elif wanted.device_type is not None:
        found.append(f"type:{wanted.device_type}")
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
