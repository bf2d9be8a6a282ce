"""Poll the repositories of forges for changes whose event was lost: open pull requests and branches with heads that the
lab does not know, and those that are gone.

What a poll finds is handled as if its event had arrived. Runs in the workers of the queue `outbox`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog
from sqlalchemy import or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import FORGE_POLL, OUTBOX_QUEUE
from wqlab_contracts.forges_file import find_forge
from wqlab_contracts.messages.forge_listings import ForgeListing, ListedHead
from wqlab_contracts.specs import Forge

from ...http.forge_api import ForgeApi, ForgeUnreachable
from ...models import ForgeChange, ForgeRepository
from ...settings import Settings
from ...storage.db import Message, SessionFactory, clock, post, transaction
from .events import ask_again, empty_repository, lock_change, repository_url
from .list_heads import list_heads
from .read_change import ApiFailed

NUDGE_AGAIN = timedelta(minutes=2)
"""Time after which the message for a due poll is sent again."""

log = structlog.get_logger(__name__)

Connect = Callable[[Forge, str], ForgeApi]


@dataclass(frozen=True)
class _Known:
    """A pull request or branch as the lab knew it before a poll."""

    id: int
    events: int


# --- schedule ---------------------------------------------------------------------------------------------------


def nudge_due(session: Session, settings: Settings, forges: Sequence[Forge]) -> None:
    """Send messages for the polls that are due. A repository that is listed for the first time is polled at once.

    One that the operator no longer lists is forgotten: what changes before it is listed again was not missed.
    """
    now = clock(session)
    rows = {row.forge: row for row in session.scalars(select(ForgeRepository).with_for_update())}
    for name in rows.keys() - {forge.name for forge in forges}:
        session.delete(rows[name])
    for forge in forges:
        row = rows.get(forge.name) or repository(session, forge)
        if row.url != repository_url(forge):
            row.url, row.listing, row.start, row.due_at, row.polled_at = repository_url(forge), None, {}, None, None
            row.problem, row.problem_at = "", None
        if settings.forge_poll_s == 0 and row.due_at is not None and row.due_at > now:
            row.due_at = None
        elif settings.forge_poll_s:
            row.due_at = row.due_at or now
        if (
            row.due_at is not None
            and row.due_at <= now
            and (row.nudged_at is None or row.nudged_at <= now - NUDGE_AGAIN)
        ):
            row.nudged_at = now
            post(session, Message(FORGE_POLL, row.id, OUTBOX_QUEUE))


def repository(session: Session, forge: Forge) -> ForgeRepository:
    """Lock and return the row of a forge's repository, a new one if there is none."""
    values = empty_repository(forge)
    session.execute(insert(ForgeRepository).values(**values).on_conflict_do_nothing())
    return session.scalars(
        select(ForgeRepository)
        .where(ForgeRepository.forge == forge.name)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).one()


def order(session: Session, forge: Forge) -> None:
    """Let a repository be polled now, also if polls are switched off."""
    row = repository(session, forge)
    row.due_at = row.nudged_at = clock(session)
    post(session, Message(FORGE_POLL, row.id, OUTBOX_QUEUE))


# --- one poll ---------------------------------------------------------------------------------------------------


def poll(factory: SessionFactory, settings: Settings, repository_id: int, connect: Connect = ForgeApi) -> None:
    """Poll a repository that is due, and store what is new. An error is stored; the next poll comes by schedule."""
    with transaction(factory) as session:
        row = session.get(ForgeRepository, repository_id, with_for_update=True)
        now = clock(session)
        if row is None or row.due_at is None or row.due_at > now:
            return
        # A second message finds it not due.
        later = now + timedelta(seconds=settings.forge_poll_s)
        row.due_at, row.nudged_at = later if settings.forge_poll_s else None, None
        changes = session.execute(
            select(ForgeChange.key, ForgeChange.id, ForgeChange.events).where(ForgeChange.forge == row.forge)
        )
        known = {key: _Known(number, events) for key, number, events in changes}
        session.flush()
        session.expunge(row)
    forge = find_forge(settings.data_dir, row.forge)
    if forge is None:
        _fail(factory, row, f"forge {row.forge} is not in intake/forges.yaml, or the file has mistakes")
        return
    try:
        listing = list_heads(connect(forge, forge.read_token()), row.listing)
    except (ForgeUnreachable, ValueError) as error:
        _fail(factory, row, str(error))
    except ApiFailed as error:
        _fail(factory, row, str(error), error.wait_s)
    else:
        _store(factory, row, known, listing)


def _fail(factory: SessionFactory, row: ForgeRepository, problem: str, wait: float | None = None) -> None:
    log.warning("forge_poll_failed", forge=row.forge, problem=problem)
    with transaction(factory) as session:
        now = clock(session)
        values = {"problem": problem[:1000], "problem_at": now}
        session.execute(update(ForgeRepository).where(ForgeRepository.id == row.id).values(**values))
        if wait is not None:
            later = now + timedelta(seconds=wait)
            session.execute(
                update(ForgeRepository)
                .where(ForgeRepository.id == row.id, ForgeRepository.due_at < later)
                .values(due_at=later)
            )


def _store(
    factory: SessionFactory, polled: ForgeRepository, known: Mapping[str, _Known], listing: ForgeListing
) -> None:
    """Store the listing, and let the API be asked about what was missed, in one transaction."""
    with transaction(factory) as session:
        row = session.get(ForgeRepository, polled.id, with_for_update=True)
        if row is None or row.url != polled.url:
            return  # The operator has removed it, or listed another repository under this name, meanwhile.
        now = clock(session)
        heads = {head.key: head for head in listing.heads}
        if row.listing is None or not (row.listing.is_complete and listing.is_complete):
            # Of a repository with more pages than are read, heads that were there before can appear at any poll.
            row.start = row.start | {key: head.head for key, head in heads.items() if key not in known}
        else:
            row.start = {key: head for key, head in row.start.items() if key in heads}
        row.listing, row.polled_at, row.problem, row.problem_at = listing, now, "", None
        missed = _missed(session, row, known, heads, complete=listing.is_complete)
        for change in missed:
            log.info("forge_change_missed", forge=row.forge, change=change.key)
            ask_again(session, change, now)
        if missed:
            row.missed, row.missed_at = row.missed + len(missed), now


def _missed(
    session: Session,
    row: ForgeRepository,
    known: Mapping[str, _Known],
    heads: Mapping[str, ListedHead],
    *,
    complete: bool,
) -> list[ForgeChange]:
    """Return the changes, locked, that no event has told: new ones, those with another head, and those that are gone.

    What an event has told during the poll is left to it.
    """
    found = []
    current = session.scalars(
        select(ForgeChange)
        .where(ForgeChange.forge == row.forge, or_(~ForgeChange.closed, ForgeChange.key.in_(heads)))
        .order_by(ForgeChange.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).all()
    for change in current:
        before, head = known.get(change.key), heads.get(change.key)
        if change.due_at is not None or before is None or before.events != change.events:
            continue
        if head is None:
            differs = complete and not change.closed and change.head != ""
        else:
            is_retargeted = change.number is not None and change.branch != head.branch
            differs = change.closed or change.head != head.head or is_retargeted
        if differs:
            found.append(change)
    told = {change.key for change in current}
    for key in sorted(heads.keys() - told):
        head = heads[key]
        if row.start.get(key) != head.head:
            found.append(lock_change(session, row.forge, key, head.number, "" if head.number else head.branch))
    return found
