"""Order reads of the lists that enabled watches read, and store the mails that workers read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import SERVER_QUEUE, TICK
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.messages.jobs import JobResult
from wqlab_contracts.messages.list_mails import MAILS_A_READ, ListMail, ListMails, ListPosition, ListSource
from wqlab_contracts.messages.list_reads import ListReadJob, ListReadResult
from wqlab_contracts.specs import Archive, ListWatch

from ..jobs import claims
from ..jobs.errors import infrastructure_failure
from ..jobs.kinds import Context, Kind
from ..models import ListRead, SeenMail, Watch, WatchedList
from ..settings import Settings
from ..storage.db import Message, clock, post
from ..storage.times import is_recent
from .mailbox import replies

OVERLAP = timedelta(days=1)
"""How far before the time of interest the first read of a list begins: archives date a mail by its headers, not by its
arrival. A mail that is read twice is stored once."""
LONGEST_PAUSE = timedelta(minutes=15)
"""Longest time between two reads of a list that cannot be read."""
READS_KEPT = timedelta(days=1)
MAILS_KEPT = timedelta(days=30)
ID_BYTES = 998
"""Longest Message-ID of a mail that is stored: RFC 5322 allows no longer line, and an index has no room for one."""
_BATCH = 500


def order_reads(session: Session, data: DataFolder) -> None:
    """Order a read of each watched list that is due. A list whose watches were all disabled is forgotten."""
    now = clock(session)
    since: dict[str, datetime] = {}
    for watch in session.scalars(select(Watch).where(Watch.enabled_at.is_not(None))):
        if isinstance(watch.spec, ListWatch) and watch.enabled_at is not None:
            since[watch.spec.archive] = min(watch.enabled_at, since.get(watch.spec.archive, watch.enabled_at))
    watched = {row.archive: row for row in session.scalars(select(WatchedList).with_for_update())}
    for name in watched.keys() - since.keys():
        session.delete(watched[name])
    for name, enabled_at in sorted(since.items()):
        archive = data.archive(name)
        if archive is None or archive.epochs is None:
            continue
        row = watched.get(name)
        if row is None:
            row = WatchedList(archive=name, epochs=archive.epochs, since=enabled_at - OVERLAP, next_read_at=now)
            session.add(row)
            session.flush()
        elif row.epochs != archive.epochs:
            row.since = (row.read_at or row.since) - OVERLAP
            row.epochs, row.epoch, row.commit, row.next_read_at = archive.epochs, None, None, now
        if row.next_read_at <= now:
            _order(session, row, archive)
    session.execute(
        delete(ListRead)
        .where(ListRead.state == JobState.FINISHED, ListRead.finished_at < now - READS_KEPT)
        .execution_options(synchronize_session=False)
    )
    session.execute(delete(SeenMail).where(SeenMail.settled, SeenMail.seen_at < now - MAILS_KEPT))


def _order(session: Session, row: WatchedList, archive: Archive) -> None:
    """Queue a read behind the list's position, unless one is unfinished."""
    unfinished = select(ListRead.id).where(ListRead.key == row.archive, ListRead.state != JobState.FINISHED)
    if session.scalar(unfinished) is not None:
        return
    source = ListSource(archive=archive, position=position_of(row), since=row.since)
    claims.queue(session, ListRead(key=row.archive, payload=ListReadJob(source=source, limit=MAILS_A_READ)))


def position_of(row: WatchedList) -> ListPosition | None:
    return None if row.epoch is None else ListPosition(epoch=row.epoch, commit=row.commit)


# --- results of workers -----------------------------------------------------------------------------------------------


class ListReadKind(Kind[ListRead]):
    """Jobs that read new mails of watched lists: their mails and the list's new position are stored together.

    A job that fails is not retried; the list orders another one after a pause.
    """

    model = ListRead
    retried = False

    def finish(self, context: Context, job: ListRead, result: JobResult) -> None:
        assert isinstance(result, ListReadResult)  # noqa: S101 - the protocol has checked its kind
        # It is finished first: what is left of the list is ordered at once, and a list has one unfinished read.
        self.end(context, job, result.outcome, result.failure)
        _store(context.session, job, result, context.settings)

    def expire(self, context: Context, job: ListRead) -> None:
        failure = infrastructure_failure(f"worker {job.holder} stopped responding")
        self.finish(context, job, ListReadResult(outcome=Outcome.FAILED, failure=failure))

    def ended(self, context: Context, job: ListRead) -> None:
        post(context.session, Message(TICK, None, SERVER_QUEUE))


def _store(session: Session, read: ListRead, result: ListReadResult, settings: Settings) -> None:
    row = session.scalar(select(WatchedList).where(WatchedList.archive == read.key).with_for_update())
    source = read.payload.source
    if row is None or row.epochs != source.archive.epochs or position_of(row) != source.position:
        return  # The list is no longer watched, or was begun anew: what was read belongs to another position.
    now = clock(session)
    if result.found is None:
        row.failures += 1
        row.failure = result.failure
        row.failing_since = row.failing_since or now
        pause = timedelta(seconds=settings.list_read_s) * 2 ** min(row.failures - 1, 10)
        row.next_read_at = now + min(pause, max(LONGEST_PAUSE, timedelta(seconds=settings.list_read_s)))
        return
    found = result.found
    _store_mails(session, row.archive, found)
    replies.store(session, row.archive, found.replies, now)
    if found.position is not None:
        row.epoch, row.commit = found.position.epoch, found.position.commit
    row.mails += len(found.mails)
    row.last_mail_at = found.mails[-1].archived_at if found.mails else row.last_mail_at
    row.read_at, row.failures, row.failure, row.failing_since = now, 0, None, None
    row.next_read_at = now + timedelta(seconds=settings.list_read_s if found.is_complete else 0)
    if not found.is_complete:
        session.flush()
        _order(session, row, source.archive)


def _store_mails(session: Session, archive: str, found: ListMails) -> None:
    heads = [mail for mail in found.mails if mail.is_head and is_storable(mail)]
    unique = {mail.message_id: mail for mail in reversed(heads)}
    rows = [
        {"archive": archive, "message_id": message_id, "mail": mail, "settled": False, "removed": False}
        for message_id, mail in unique.items()
    ]
    for batch in _batches(rows):
        session.execute(insert(SeenMail).values(batch).on_conflict_do_nothing())
    session.execute(
        update(SeenMail).where(SeenMail.archive == archive, SeenMail.message_id.in_(found.removed)).values(removed=True)
    )


def is_storable(mail: ListMail) -> bool:
    """Return True if the mail has a Message-ID, and neither this id nor its In-Reply-To exceeds ID_BYTES."""
    return all(len((each or "").encode()) <= ID_BYTES for each in (mail.message_id, mail.in_reply_to)) and bool(
        mail.message_id
    )


def _batches(rows: Sequence[dict[str, object]]) -> Iterable[list[dict[str, object]]]:
    return (list(rows[start : start + _BATCH]) for start in range(0, len(rows), _BATCH))


def undecided(session: Session, archive: str) -> int:
    """Return the number of cover letters and patches that await the other mails of their series."""
    return session.scalar(select(func.count()).where(SeenMail.archive == archive, ~SeenMail.settled)) or 0


def waits_for_worker_since(session: Session, archive: str, now: datetime) -> datetime | None:
    """Return since when a read of the list has waited for a worker, if that is more than a minute."""
    queued = select(ListRead.created_at).where(ListRead.key == archive, ListRead.state == JobState.QUEUED)
    since = session.scalar(queued)
    return None if since is None or is_recent(since, now, timedelta(minutes=1)) else since
