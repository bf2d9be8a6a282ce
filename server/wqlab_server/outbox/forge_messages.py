"""Write statuses of commits and comments on pull requests as deliveries, so that the newest one is what stays."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from wqlab_contracts.enums import DeliveryKind, DeliveryState

from ..models import Delivery, ForgeChange
from ..settings import Settings
from . import deliveries

DESCRIPTION_LIMIT = 140
"""Characters; GitHub takes no more."""
COMMENT_LIMIT = 60_000
"""Characters; GitHub takes 65,536."""
StatusState = Literal["pending", "success", "failure", "error", "canceled"]


class _Content(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ForgeStatus(_Content):
    """Status of a commit, as it is stored in a delivery."""

    forge: str
    commit: str
    context: str
    """Name of the status; a later one of the same name replaces it."""
    state: StatusState
    description: str
    target_url: str


class ForgeComment(_Content):
    """The lab's comment on a pull request, as it is stored in a delivery."""

    forge: str
    change_id: int
    number: int
    marker: str
    """Invisible line of the comment, by which it is found again."""
    body: str
    """Markdown, with the marker."""


def write_status(
    session: Session,
    settings: Settings,
    status: ForgeStatus,
    *,
    subject: int,
    submission_id: int | None,
    now: datetime,
) -> int | None:
    """Write a status as a delivery; None if it was written before. `subject` tells heads of one commit apart."""
    text = status.model_copy(update={"description": cut(status.description, DESCRIPTION_LIMIT)}).model_dump_json()
    thread = _status_thread(status.forge, status.commit, status.context)
    return write_newest(
        session,
        settings,
        DeliveryKind.FORGE_STATUS,
        deliveries.key_of("forge-status", subject, _digest(text)),
        text,
        thread=thread,
        event=status.state,
        destination=f"forge {status.forge}",
        submission_id=submission_id,
        now=now,
    )


def context_of(change: ForgeChange) -> str:
    """Return the name of the status: a pull request and a push may have the same commit."""
    return "wqlab" if change.number is not None else "wqlab/push"


def has_status(session: Session, forge: str, commit: str, context: str) -> bool:
    """Return True if a status of this name was written for the commit."""
    found = select(Delivery.id).where(Delivery.thread == _status_thread(forge, commit, context))
    return session.scalar(found.limit(1)) is not None


def _status_thread(forge: str, commit: str, context: str) -> str:
    return deliveries.key_of("forge-status", forge, commit, context)


def write_comment(
    session: Session, settings: Settings, comment: ForgeComment, *, submission_id: int, now: datetime
) -> int | None:
    """Write a comment as a delivery; None if it was written before."""
    text = comment.model_dump_json()
    return write_newest(
        session,
        settings,
        DeliveryKind.FORGE_COMMENT,
        deliveries.key_of("forge-comment", comment.change_id, submission_id, _digest(text)),
        text,
        thread=deliveries.key_of("forge-comment", comment.forge, comment.change_id),
        event="report",
        destination=f"forge {comment.forge}",
        submission_id=submission_id,
        now=now,
    )


def write_newest(
    session: Session,
    settings: Settings,
    kind: DeliveryKind,
    key: str,
    body: str,
    *,
    thread: str,
    event: str,
    destination: str,
    submission_id: int | None,
    now: datetime,
) -> int | None:
    """Write a delivery that drops the waiting ones of its thread; None if it was written before."""
    number = deliveries.write(
        session,
        kind,
        key,
        event=event,
        destination=destination,
        message_id=f"forge_{deliveries.id_of(key, settings.public_url)}",
        submission_id=submission_id,
        body=body,
        thread=thread,
        state=DeliveryState.WAITING,
        next_at=now,
    )
    if number is not None:
        # One that is being sent is left alone: it ends before this one is sent.
        session.execute(
            update(Delivery)
            .where(
                Delivery.thread == thread,
                Delivery.id < number,
                Delivery.state == DeliveryState.WAITING,
                Delivery.claimed_until.is_(None),
            )
            .values(
                state=DeliveryState.DROPPED,
                finished_at=now,
                next_at=None,
                decided_by="the lab",
                reason=f"delivery {number} replaces it",
            )
            .execution_options(synchronize_session=False)
        )
    return number


# --- before sending ---------------------------------------------------------------------------------------------


def is_replaced(session: Session, delivery: Delivery) -> str:
    """Return which newer delivery says something else of the same commit or pull request; empty if there is none."""
    newer = select(Delivery.id).where(Delivery.thread == delivery.thread, Delivery.id > delivery.id)
    number = session.scalar(newer.order_by(Delivery.id.desc()).limit(1))
    return "" if number is None else f"delivery {number} replaces it"


def is_behind(session: Session, delivery: Delivery, now: datetime) -> bool:
    """Return True if an older one is being sent, which could arrive later than this one."""
    older = select(Delivery.id).where(
        Delivery.thread == delivery.thread, Delivery.id < delivery.id, Delivery.claimed_until > now
    )
    return session.scalar(older.limit(1)) is not None


def known_comment(session: Session, delivery: Delivery) -> str | None:
    """Return the id of the lab's comment on the pull request, if it is known."""
    if delivery.kind is not DeliveryKind.FORGE_COMMENT:
        return None
    comment = ForgeComment.model_validate_json(delivery.body or "")
    return session.scalar(select(ForgeChange.comment_id).where(ForgeChange.id == comment.change_id))


def remember_comment(session: Session, delivery: Delivery, comment_id: str) -> None:
    """Store the forge's id of the comment that was written."""
    comment = ForgeComment.model_validate_json(delivery.body or "")
    session.execute(update(ForgeChange).where(ForgeChange.id == comment.change_id).values(comment_id=comment_id))


def cut(text: str, limit: int) -> str:
    """Return the text in one line of at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 3]}..."


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
