"""Store what an event says has changed, and let the forge's API be asked about it."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import FORGE_SYNC, OUTBOX_QUEUE
from wqlab_contracts.specs import Forge

from ...http.forge_api import ForgeApi
from ...models import ForgeChange, ForgeEvent, ForgeRepository
from ...storage.db import Message, clock, post
from .payloads import Hint, Ignored
from .verify import Delivered

KEPT = timedelta(days=30)
"""How long delivery ids are kept. Forges let a person repeat a delivery for some days."""


def receive(session: Session, forge: Forge, delivered: Delivered, hint: Hint | Ignored) -> tuple[str, bool]:
    """Store an event. Return the text of the answer, and True if the event leads to a query of the API.

    A delivery that was received before changes nothing.
    """
    now = clock(session)
    answer = f"ignored: {hint.reason}" if isinstance(hint, Ignored) else f"taken: {hint.key}"
    values = {"forge": forge.name, "delivery": delivered.delivery, "event": delivered.event, "answer": answer}
    new = session.scalar(
        insert(ForgeEvent).values(received_at=now, **values).on_conflict_do_nothing().returning(ForgeEvent.delivery)
    )
    if new is None:
        return f"repeated: delivery {delivered.delivery} was received before", False
    if isinstance(hint, Ignored):
        return answer, False
    session.execute(delete(ForgeEvent).where(ForgeEvent.forge == forge.name, ForgeEvent.received_at < now - KEPT))
    change = lock_change(session, forge.name, hint.key, hint.number, hint.branch)
    _apply(change, forge, hint)
    ask_again(session, change, now)
    return answer, True


def remember_refusal(session: Session, forge: Forge, problem: str) -> None:
    """Keep why the last event was refused, so that a maintainer sees that the webhook's secret is wrong.

    Anybody can send such an event, so that there is one row and one text.
    """
    values = {"refused": problem[:300].replace("\0", ""), "refused_at": clock(session)}
    row = insert(ForgeRepository).values(**empty_repository(forge) | values)
    session.execute(row.on_conflict_do_update(index_elements=[ForgeRepository.forge], set_=values))


def empty_repository(forge: Forge) -> dict[str, object]:
    """Return the columns of a repository of which nothing is known."""
    return {"forge": forge.name, "url": repository_url(forge), "start": {}, "problem": "", "missed": 0, "refused": ""}


def repository_url(forge: Forge) -> str:
    """Return the address of the repository in the forge's API."""
    return f"{forge.api_url}{ForgeApi(forge, '').repository_path}"


def ask_again(session: Session, change: ForgeChange, now: datetime) -> None:
    """Make a change due now and send the message that queries the API about it."""
    change.events += 1
    change.due_at, change.nudged_at, change.attempts = now, now, 0
    post(session, Message(FORGE_SYNC, change.id, OUTBOX_QUEUE))


def lock_change(session: Session, forge: str, key: str, number: int | None, branch: str) -> ForgeChange:
    """Return the locked row of a pull request or branch, a new one if it is not known."""
    values = {"forge": forge, "key": key, "number": number, "branch": branch}
    defaults = dict.fromkeys(("title", "author", "head", "pushed_head", "label_head", "label_by", "problem"), "")
    session.execute(
        insert(ForgeChange)
        .values(**values, **defaults, from_fork=True, closed=False, labels=[], events=0, attempts=0)
        .on_conflict_do_nothing()
    )
    return session.scalars(
        select(ForgeChange)
        .where(ForgeChange.forge == forge, ForgeChange.key == key)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).one()


def _apply(change: ForgeChange, forge: Forge, hint: Hint) -> None:
    """Keep what the API does not say: who pushed which commit, and who set the label at which commit."""
    if hint.number is None:
        change.pushed_head, change.author = hint.head, hint.sender
        return
    label_set = hint.label_set
    if label_set is None:
        # Gitea names only the labels that are set now, so a label that was set before is not set again.
        label_set = forge.label in hint.labels and forge.label not in change.labels
    if label_set:
        change.label_head, change.label_by, change.label_by_id = hint.head, hint.sender, hint.sender_id
    change.labels = list(hint.labels)
