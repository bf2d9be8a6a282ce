"""Put the mails of a watched list together to series, and write what each watch decides on those that are complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.enums import DecisionReason, DecisionState
from wqlab_contracts.mail import address_of
from wqlab_contracts.messages import normalised_subject
from wqlab_contracts.specs import ListWatch

from ..models import SeenMail, Watch, WatchDecisionRow
from .listed_series import ListedSeries, collect
from .match_watches import Propose, Refused, Taken, judge_all, propose_nothing

INCOMPLETE_WAIT = timedelta(days=1)
"""How long a series waits for its missing patches, after the last one has arrived."""
COVER_LETTER_WAIT = timedelta(hours=1)
"""How long a series waits for the unknown mail that its patches reply to; this mail may be the cover letter."""
DECISIONS_KEPT = timedelta(days=30)
"""How long decisions on series that a watch does not want are kept."""
REVISIONS_APART = timedelta(days=60)
"""Longest time between two revisions of one series; a later series may have the same subject."""
_BATCH = 500
_ACTIVE = (DecisionState.WAITING, DecisionState.TAKEN)
_INDEXED = 200
_UNWANTED = (DecisionReason.PATHS, DecisionReason.SUBJECTS, DecisionReason.AUTHORS, DecisionReason.NOT_ASKED)
Revision = tuple[str, int]
"""Root and number of a revision."""


def decide(
    session: Session,
    archive: str,
    now: datetime,
    propose: Propose = propose_nothing,
    checked: frozenset[str] = frozenset(),
) -> None:
    """Decide on the series of a list whose mails have arrived, or that have waited long enough.

    `propose` is asked for the targets of watches that measure what a series touches. `checked`: the archives that check
    senders. In others anybody can write the sender of a revision, so that none supersedes another.
    """
    rows = {row.message_id: row for row in session.scalars(_unsettled(archive))}
    if not rows:
        return
    enabled = session.scalars(select(Watch).where(Watch.enabled_at.is_not(None)).order_by(Watch.name))
    stored = [(row, row.spec) for row in enabled if isinstance(row.spec, ListWatch) and row.spec.archive == archive]
    parents = {row.mail.in_reply_to for row in rows.values()} - rows.keys() - {None}
    known = session.scalars(select(SeenMail).where(SeenMail.archive == archive, SeenMail.message_id.in_(parents)))
    everything = rows | {row.message_id: row for row in known}
    found = collect(row.mail for row in everything.values())
    decided = _decided(session, {series.root for series in found})
    settled: list[str] = []
    refused: list[dict[str, Any]] = []
    for series in found:
        members = [everything[mail.message_id] for mail in series.mails]
        if all(row.settled for row in members) or _waits(series, members, now):
            continue
        settled += [row.message_id for row in members]
        before = decided.setdefault((series.root, series.version), {})
        watches = [spec for row, spec in stored if row.name not in before and _was_enabled(row, series)]
        for answer in _answers(watches, series, members, before, propose, sender_checked=archive in checked):
            values = _values(session, series, answer, now, checked=checked)
            before[answer.watch.name] = values["state"]
            if values["state"] is DecisionState.WAITING:
                session.execute(insert(WatchDecisionRow).values(values).on_conflict_do_nothing())
            else:
                refused.append(values)
    for start in range(0, len(refused), _BATCH):
        batch = refused[start : start + _BATCH]
        session.execute(insert(WatchDecisionRow).values(batch).on_conflict_do_nothing())
    # A patch that was sent twice belongs to no series: the first one stays.
    in_series = {mail.message_id for series in found for mail in series.mails}
    settled += [message_id for message_id in rows if message_id not in in_series]
    session.execute(
        update(SeenMail).where(SeenMail.archive == archive, SeenMail.message_id.in_(settled)).values(settled=True)
    )


def _unsettled(archive: str) -> Select[SeenMail]:
    return (
        select(SeenMail)
        .where(SeenMail.archive == archive, ~SeenMail.settled)
        .order_by(SeenMail.seen_at, SeenMail.message_id)
    )


def _decided(session: Session, roots: set[str]) -> dict[Revision, dict[str, DecisionState]]:
    """Return revision -> watch -> state of the decisions that exist, of whatever list."""
    found: dict[Revision, dict[str, DecisionState]] = {}
    columns = (WatchDecisionRow.root, WatchDecisionRow.revision, WatchDecisionRow.watch, WatchDecisionRow.state)
    for root, revision, watch, state in session.execute(select(*columns).where(WatchDecisionRow.root.in_(roots))):
        found.setdefault((root, revision), {})[watch] = state
    return found


def _was_enabled(row: Watch, series: ListedSeries) -> bool:
    """Return True if the watch was enabled when the series was complete. An archive's times are whole seconds."""
    return row.enabled_at is not None and row.enabled_at.replace(microsecond=0) <= series.archived_at


def _waits(series: ListedSeries, members: Sequence[SeenMail], now: datetime) -> bool:
    """Return True while mails of the series may still arrive. Only a removal ends the wait at once."""
    if any(row.removed for row in members):
        return False
    seen_at = max(row.seen_at for row in members)
    if not series.is_complete:
        return now < seen_at + INCOMPLETE_WAIT
    return series.awaits_cover_letter and now < seen_at + COVER_LETTER_WAIT


def _answers(
    watches: Sequence[ListWatch],
    series: ListedSeries,
    members: Sequence[SeenMail],
    before: Mapping[str, DecisionState],
    propose: Propose,
    *,
    sender_checked: bool,
) -> list[Taken | Refused]:
    answers = judge_all(watches, series, propose, sender_checked=sender_checked)
    if any(row.removed for row in members):
        return [_instead(each, DecisionReason.REMOVED, "the archive has removed a mail of it") for each in answers]
    if not series.is_complete:
        numbers = ", ".join(f"{number}/{series.total}" for number in series.missing[:20])
        detail = f"after a day the list has no {numbers}" if numbers else "it has no patches"
        return [_instead(each, DecisionReason.INCOMPLETE, detail) for each in answers]
    taker = next((name for name, state in before.items() if state in _ACTIVE), None)
    if taker is not None:
        return [_instead(each, DecisionReason.OTHER_WATCH, f"watch {taker} takes it") for each in answers]
    return answers


def _instead(answer: Taken | Refused, reason: DecisionReason, detail: str) -> Refused:
    """Return the reason why a series is not taken that the watch would take otherwise."""
    keeps = isinstance(answer, Refused) and answer.reason is not DecisionReason.OTHER_WATCH
    return answer if keeps and isinstance(answer, Refused) else Refused(answer.watch, reason, detail)


def _values(
    session: Session, series: ListedSeries, answer: Taken | Refused, now: datetime, *, checked: frozenset[str]
) -> dict[str, Any]:
    """Return the columns of a decision. Revisions that it supersedes, and that wait, are not taken any more."""
    first = series.mails[0]
    values: dict[str, Any] = {
        "watch": answer.watch.name,
        "archive": answer.watch.archive,
        "root": series.root,
        "revision": series.version,
        "message_id": first.message_id,
        "subject": first.subject,
        "author": first.author,
        "author_address": address_of(first.author).casefold()[:_INDEXED],
        "subject_key": normalised_subject(first.subject)[:_INDEXED],
        "targets": list(answer.targets) if isinstance(answer, Taken) else [],
        "detail": "",
        "created_at": now,
    }
    if isinstance(answer, Taken):
        values |= {"state": DecisionState.WAITING, "reason": None, "decided_at": None}
        later = _supersede(session, values, [first.in_reply_to or "", *first.references], checked)
        if later is not None:
            answer = Refused(answer.watch, DecisionReason.SUPERSEDED, f"v{later} has arrived")
    if isinstance(answer, Refused):
        values |= {
            "state": DecisionState.NOT_TAKEN,
            "reason": answer.reason,
            "detail": answer.detail,
            "decided_at": now,
        }
    return values


def _supersede(
    session: Session, new: Mapping[str, Any], ancestors: Sequence[str], checked: frozenset[str]
) -> int | None:
    """End the decisions on earlier revisions that wait. Return the number of a later one that is taken, or None.

    Only mails of archives in `checked` supersede others: the sender of another mail may be somebody else.
    """
    if new["archive"] not in checked:
        return None
    others = session.scalars(
        other_revisions(new["author_address"], new["subject_key"], ancestors)
        .where(
            WatchDecisionRow.state.in_(_ACTIVE),
            WatchDecisionRow.revision != new["revision"],
            WatchDecisionRow.created_at > new["created_at"] - REVISIONS_APART,
            WatchDecisionRow.archive.in_(checked),
        )
        .with_for_update()
    ).all()
    later = max((row.revision for row in others if row.revision > new["revision"]), default=None)
    if later is not None:
        return later
    for row in others:
        if row.state is DecisionState.WAITING:
            row.state, row.reason = DecisionState.NOT_TAKEN, DecisionReason.SUPERSEDED
            row.detail, row.decided_at = f"v{new['revision']} has arrived", new["created_at"]
    session.flush()
    return None


def other_revisions(author_address: str, subject_key: str, ancestors: Sequence[str]) -> Select[WatchDecisionRow]:
    """Return the query of the decisions on all revisions of a series: by one author, with one subject or in reply to
    each other. Mails without an address have no author in common."""
    return select(WatchDecisionRow).where(
        WatchDecisionRow.author_address == author_address,
        WatchDecisionRow.author_address != "",
        or_(
            and_(WatchDecisionRow.subject_key == subject_key, WatchDecisionRow.subject_key != ""),
            WatchDecisionRow.root.in_([each for each in ancestors if each]),
        ),
    )


def unwanted_before(at: datetime) -> ColumnElement[bool]:
    """Return the condition for decisions on series that a watch does not want, from before a time."""
    return and_(
        WatchDecisionRow.state == DecisionState.NOT_TAKEN,
        WatchDecisionRow.reason.in_(_UNWANTED),
        WatchDecisionRow.created_at < at,
    )
