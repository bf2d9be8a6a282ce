"""Read the state of forges: events, polls, statuses, errors, and heads that are not measured."""

from __future__ import annotations

import json
from collections.abc import Iterator

from sqlalchemy import ColumnElement, Select, and_, case, func, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.forges import ForgeDetail, ForgeErrorView, ForgeHeadView, ForgeStatusView, ForgeView
from wqlab_contracts.enums import DeliveryKind, ForgeHeadState, HeadDecision, JobState, SubmissionState
from wqlab_contracts.specs import Forge

from ...models import (
    Delivery,
    DeliveryAttempt,
    ForgeChange,
    ForgeEvent,
    ForgeHead,
    ForgeRepository,
    HeadReading,
    Submission,
)
from ...settings import Settings
from ...storage.db import clock

SHOWN = 100
"""Most heads of each list."""
_OF_FORGES = (DeliveryKind.FORGE_STATUS, DeliveryKind.FORGE_COMMENT)
_UNFINISHED = (ForgeHeadState.READING, ForgeHeadState.WAITING, ForgeHeadState.MEASURING)


def _state() -> ColumnElement[str]:
    """Return the expression of a head's state; its reading and its submission are joined."""
    is_read = and_(HeadReading.state == JobState.FINISHED, ForgeHead.decision == HeadDecision.OPEN)
    return case(
        (Submission.state == SubmissionState.FINISHED, ForgeHeadState.MEASURED.value),
        (ForgeHead.submission_id.is_not(None), ForgeHeadState.MEASURING.value),
        (HeadReading.state.in_([JobState.QUEUED, JobState.RUNNING]), ForgeHeadState.READING.value),
        (ForgeHead.decision == HeadDecision.WAITS, ForgeHeadState.WAITING.value),
        (is_read, ForgeHeadState.READING.value),
        else_=ForgeHeadState.NOT_MEASURED.value,
    )


def _current(forge: Forge) -> Select[ForgeHead, ForgeChange, str]:
    return (
        select(ForgeHead, ForgeChange, _state())
        .join(ForgeChange, ForgeChange.id == ForgeHead.change_id)
        .outerjoin(ForgeHead.reading)
        .outerjoin(Submission, Submission.id == ForgeHead.submission_id)
        .where(ForgeChange.forge == forge.name, ForgeHead.withdrawn_at.is_(None))
    )


def view(session: Session, settings: Settings, forge: Forge) -> ForgeView:
    """Return a forge. One that was never polled is due now, unless polls are switched off."""
    row = session.scalar(select(ForgeRepository).where(ForgeRepository.forge == forge.name))
    event = session.scalar(
        select(ForgeEvent).where(ForgeEvent.forge == forge.name).order_by(ForgeEvent.received_at.desc()).limit(1)
    )
    return ForgeView(
        name=forge.name,
        kind=forge.kind,
        repository=forge.repository,
        url=f"{forge.url.rstrip('/')}/{forge.repository}",
        tree=forge.tree,
        owner=forge.owner,
        may_spend=forge.may_spend,
        label=forge.label,
        last_event_at=event.received_at if event is not None else None,
        last_event=event.event if event is not None else "",
        last_event_answer=event.answer if event is not None else "",
        polled_at=row.polled_at if row is not None else None,
        next_poll_at=(row.due_at if row is not None else None) or (clock(session) if settings.forge_poll_s else None),
        missed=row.missed if row is not None else 0,
        missed_at=row.missed_at if row is not None else None,
        complete=row is None or row.listing is None or row.listing.is_complete,
        last_status=_last_status(session, forge),
        last_error=max(_errors(session, forge, row), key=lambda error: error.at, default=None),
        heads=_counts(session, forge),
    )


def detail(session: Session, settings: Settings, forge: Forge) -> ForgeDetail:
    """Return a forge with its heads that are not measured, or not yet."""
    unfinished = [state.value for state in _UNFINISHED]
    return ForgeDetail(
        **dict(view(session, settings, forge)),
        waiting=_heads(session, forge, _state().in_(unfinished)),
        not_measured=_heads(session, forge, _state() == ForgeHeadState.NOT_MEASURED.value),
    )


def _counts(session: Session, forge: Forge) -> dict[ForgeHeadState, int]:
    found = _current(forge).with_only_columns(_state().label("head_state"), func.count()).group_by("head_state")
    return {ForgeHeadState(state): count for state, count in session.execute(found)}


def _heads(session: Session, forge: Forge, condition: ColumnElement[bool]) -> list[ForgeHeadView]:
    found = _current(forge).where(condition).order_by(ForgeHead.id.desc()).limit(SHOWN)
    return [
        ForgeHeadView(
            id=head.id,
            change=change.key,
            title=change.title,
            author=change.author,
            commit=head.head,
            from_fork=change.from_fork,
            state=ForgeHeadState(state),
            reason=head.reason,
            seen_at=head.created_at,
            submission_id=head.submission_id,
        )
        for head, change, state in session.execute(found)
    ]


def _last_status(session: Session, forge: Forge) -> ForgeStatusView | None:
    row = session.scalar(
        select(Delivery)
        .where(Delivery.kind == DeliveryKind.FORGE_STATUS, Delivery.destination == f"forge {forge.name}")
        .order_by(Delivery.id.desc())
        .limit(1)
    )
    if row is None:
        return None
    said = json.loads(row.body or "{}")
    return ForgeStatusView(
        delivery_id=row.id,
        at=row.finished_at or row.created_at,
        commit=said.get("commit", ""),
        state=row.event,
        description=said.get("description", ""),
        delivery=row.state,
    )


def _errors(session: Session, forge: Forge, row: ForgeRepository | None) -> Iterator[ForgeErrorView]:
    """Yield the last error of each kind. A query or poll that has succeeded since then is no error any more."""
    if row is not None and row.refused_at is not None:
        yield ForgeErrorView(at=row.refused_at, what="event", problem=row.refused)
    if row is not None and row.problem_at is not None:
        yield ForgeErrorView(at=row.problem_at, what="poll", problem=row.problem)
    change = session.scalar(
        select(ForgeChange)
        .where(ForgeChange.forge == forge.name, ForgeChange.problem_at.is_not(None))
        .order_by(ForgeChange.problem_at.desc())
        .limit(1)
    )
    if change is not None and change.problem_at is not None:
        yield ForgeErrorView(at=change.problem_at, what=change.key, problem=change.problem)
    attempt = session.scalar(
        select(DeliveryAttempt)
        .join(Delivery, Delivery.id == DeliveryAttempt.delivery_id)
        .where(
            Delivery.kind.in_(_OF_FORGES), Delivery.destination == f"forge {forge.name}", DeliveryAttempt.problem != ""
        )
        .order_by(DeliveryAttempt.id.desc())
        .limit(1)
    )
    if attempt is not None:
        at = attempt.finished_at or attempt.started_at
        yield ForgeErrorView(at=at, what=f"delivery {attempt.delivery_id}", problem=attempt.problem)
