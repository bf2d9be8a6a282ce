"""Ask a forge's API about a pull request or branch, and let its head be read if it is new.

Runs in the workers of the queue `outbox`: the API and the tick do not wait for other servers.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import structlog
from sqlalchemy import select, update
from sqlalchemy.orm import Session, joinedload

from wqlab_contracts.celery_names import FORGE_SYNC, OUTBOX_QUEUE, SERVER_QUEUE, TICK
from wqlab_contracts.enums import HeadDecision
from wqlab_contracts.forges_file import find_forge
from wqlab_contracts.specs import Forge

from ...http.forge_api import ForgeApi, ForgeUnreachable
from ...jobs import claims
from ...models import ForgeChange, ForgeHead
from ...settings import Settings
from ...storage.db import Message, SessionFactory, clock, post, transaction
from .permission import Labeled, Permission, decide
from .read_change import ApiFailed, Seen, may_write, read_change

ATTEMPTS = 12
"""Attempts to ask the API, in about five hours, before the next event is waited for."""
FIRST_RETRY_S = 30.0
LONGEST_RETRY_S = 3600.0
NUDGE_AGAIN = timedelta(minutes=2)
"""Time after which the message for a due change is sent again; all requests of one sync together take less."""
NUDGES = 50

log = structlog.get_logger(__name__)

Connect = Callable[[Forge, str], ForgeApi]


def nudge_due(session: Session, now: datetime) -> None:
    """Send messages for the changes that are due: a message may be lost, and failed attempts are repeated."""
    due = (
        select(ForgeChange.id)
        .where(
            ForgeChange.due_at <= now, ForgeChange.nudged_at.is_(None) | (ForgeChange.nudged_at <= now - NUDGE_AGAIN)
        )
        .order_by(ForgeChange.due_at)
        .limit(NUDGES)
    )
    numbers = session.scalars(
        update(ForgeChange)
        .where(ForgeChange.id.in_(due))
        .values(nudged_at=now)
        .returning(ForgeChange.id)
        .execution_options(synchronize_session=False)
    ).all()
    for number in sorted(numbers):
        post(session, Message(FORGE_SYNC, number, OUTBOX_QUEUE))


def sync(factory: SessionFactory, settings: Settings, change_id: int, connect: Connect = ForgeApi) -> None:
    """Ask the API about a change that is due, and store what it says. An error is stored, with the next attempt."""
    with transaction(factory) as session:
        change = session.get(ForgeChange, change_id)
        if change is None or change.due_at is None or change.due_at > clock(session):
            return
        session.expunge(change)
    forge = find_forge(settings.data_dir, change.forge)
    if forge is None:
        _fail(factory, change, f"forge {change.forge} is not in intake/forges.yaml, or the file has mistakes")
        return
    try:
        api = connect(forge, forge.read_token())
        seen = read_change(api, change.number, change.branch)
        permission = _decide(forge, api, change, seen)
    except (ForgeUnreachable, ValueError) as error:
        _fail(factory, change, str(error))
    except ApiFailed as error:
        _fail(factory, change, str(error), error.wait_s)
    else:
        _store(factory, change, seen, permission, waits=forge.label is not None and change.number is not None)


def _decide(forge: Forge, api: ForgeApi, change: ForgeChange, seen: Seen) -> Permission:
    if seen.closed:
        return Permission(False, "")
    author, author_id = seen.author, seen.author_id
    if change.number is None:
        # The API does not say who pushed; an event does, if it is of this head.
        author, author_id = (change.author, None) if change.pushed_head == seen.head else ("", None)
    labeled = Labeled(change.label_head, change.label_by, change.label_by_id)
    return decide(
        forge, seen, author, author_id, labeled=labeled, may_write=lambda login, number: may_write(api, login, number)
    )


def _fail(factory: SessionFactory, change: ForgeChange, problem: str, wait: float | None = None) -> None:
    log.warning("forge_sync_failed", forge=change.forge, change=change.key, problem=problem)
    wait_s = max(min(FIRST_RETRY_S * 2**change.attempts, LONGEST_RETRY_S), wait or 0.0)
    with transaction(factory) as session:
        again = None if change.attempts + 1 >= ATTEMPTS else clock(session) + timedelta(seconds=wait_s)
        values: dict[str, object] = {"attempts": change.attempts + 1, "due_at": again, "nudged_at": None}
        values |= {"problem": problem[:1000], "problem_at": clock(session)}
        session.execute(
            update(ForgeChange).where(ForgeChange.id == change.id, ForgeChange.events == change.events).values(**values)
        )


def _store(factory: SessionFactory, known: ForgeChange, seen: Seen, permission: Permission, *, waits: bool) -> None:
    with transaction(factory) as session:
        change = session.scalars(
            select(ForgeChange)
            .where(ForgeChange.id == known.id)
            .with_for_update()
            .execution_options(populate_existing=True)
        ).one()
        if change.events != known.events:
            return  # another event has come meanwhile, and the API is asked again
        change.due_at, change.attempts, change.problem, change.problem_at = None, 0, "", None
        if change.updated_at is not None and seen.updated_at is not None and seen.updated_at < change.updated_at:
            return  # an answer that is older than what another process has stored
        change.head, change.closed, change.updated_at = seen.head, seen.closed, seen.updated_at
        change.from_fork = seen.from_fork
        if change.number is not None:
            change.branch, change.title, change.author = seen.branch, seen.title, seen.author
            change.labels = list(seen.labels)
        now = clock(session)
        current = _withdraw_others(session, change, now)
        if not seen.closed:
            row = current or _new_head(session, change)
            _allow(session, row, permission, waits=waits)


def _withdraw_others(session: Session, change: ForgeChange, now: datetime) -> ForgeHead | None:
    """Withdraw every head of the change but the current one, which is returned if it is known."""
    found = None
    rows = session.scalars(
        select(ForgeHead)
        .where(ForgeHead.change_id == change.id, ForgeHead.withdrawn_at.is_(None))
        .options(joinedload(ForgeHead.reading))
        .with_for_update(of=ForgeHead)
        .execution_options(populate_existing=True)
    ).all()
    for row in rows:
        if not change.closed and row.head == change.head and row.base_branch == _base_branch(change):
            found = row
            continue
        row.withdrawn_at, row.reason = now, _why_withdrawn(change)
        row.has_news()
        if row.reading is not None:
            claims.cancel(session, row.reading.id, now)
    session.flush()
    return found


def _why_withdrawn(change: ForgeChange) -> str:
    if not change.closed:
        return f"replaced by {change.head[:12]}"
    return "the pull request was closed" if change.number is not None else "the branch was deleted"


def _base_branch(change: ForgeChange) -> str:
    return "" if change.number is None else change.branch


def _new_head(session: Session, change: ForgeChange) -> ForgeHead:
    row = ForgeHead(
        change_id=change.id,
        head=change.head,
        base_branch=_base_branch(change),
        trusted=not change.from_fork,
    )
    session.add(row)
    session.flush()
    return row


def _allow(session: Session, row: ForgeHead, permission: Permission, *, waits: bool) -> None:
    """Let the tick order the reading of a permitted head; otherwise store the reason.

    A head that was once permitted stays so.

    `waits`: True if a label can still allow the head; its commit status is then `pending`.
    """
    if row.allowed:
        return
    if not permission.allowed:
        if row.reason != permission.reason:
            row.decide(HeadDecision.WAITS if waits else HeadDecision.OPEN, permission.reason)
        return
    row.allowed = permission.reason
    row.decide(HeadDecision.OPEN, "")
    post(session, Message(TICK, None, SERVER_QUEUE))
