"""Put the mails of a watched list together to series, and write what each rule decides on those that are complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.enums import DecisionReason, DecisionState
from wqlab_contracts.messages import normalised_subject

from ..models import RuleDecisionRow, SeenMail, StoredRule
from .listed_series import ListedSeries, collect
from .match_rules import Propose, Refused, Taken, address_of, judge_all, propose_nothing

INCOMPLETE_WAIT = timedelta(days=1)
"""How long a series waits for its missing patches, after the last one has arrived."""
COVER_LETTER_WAIT = timedelta(hours=1)
"""How long a series waits for the unknown mail that its patches reply to; this mail may be the cover letter."""
DECISIONS_KEPT = timedelta(days=30)
"""How long decisions on series that a rule does not want are kept."""
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

    `propose` is asked for the targets of rules that measure what a series touches. `checked`: the archives that check
    senders. In others anybody can write the sender of a revision, so that none supersedes another.
    """
    rows = {row.message_id: row for row in session.scalars(_unsettled(archive))}
    if not rows:
        return
    stored = session.scalars(
        select(StoredRule).where(StoredRule.enabled_at.is_not(None)).order_by(StoredRule.name)
    ).all()
    stored = [rule for rule in stored if rule.rule.archive == archive]
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
        rules = [rule for rule in stored if rule.name not in before and _was_on(rule, series)]
        for rule, answer in zip(rules, _answers(rules, series, members, before, propose, checked=checked), strict=True):
            values = _values(session, rule, series, answer, now, checked=checked)
            before[rule.name] = values["state"]
            if values["state"] is DecisionState.WAITING:
                session.execute(insert(RuleDecisionRow).values(values).on_conflict_do_nothing())
            else:
                refused.append(values)
    for start in range(0, len(refused), _BATCH):
        batch = refused[start : start + _BATCH]
        session.execute(insert(RuleDecisionRow).values(batch).on_conflict_do_nothing())
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
    """Return revision -> rule -> state of the decisions that exist, of whatever list."""
    found: dict[Revision, dict[str, DecisionState]] = {}
    columns = (RuleDecisionRow.root, RuleDecisionRow.revision, RuleDecisionRow.rule, RuleDecisionRow.state)
    for root, revision, rule, state in session.execute(select(*columns).where(RuleDecisionRow.root.in_(roots))):
        found.setdefault((root, revision), {})[rule] = state
    return found


def _was_on(rule: StoredRule, series: ListedSeries) -> bool:
    """Return True if the rule was on when the series was complete. An archive's times are whole seconds."""
    return rule.enabled_at is not None and rule.enabled_at.replace(microsecond=0) <= series.archived_at


def _waits(series: ListedSeries, members: Sequence[SeenMail], now: datetime) -> bool:
    """Return True while mails of the series may still arrive. Only a removal ends the wait at once."""
    if any(row.removed for row in members):
        return False
    seen_at = max(row.seen_at for row in members)
    if not series.is_complete:
        return now < seen_at + INCOMPLETE_WAIT
    return series.awaits_cover_letter and now < seen_at + COVER_LETTER_WAIT


def _answers(
    rules: Sequence[StoredRule],
    series: ListedSeries,
    members: Sequence[SeenMail],
    before: Mapping[str, DecisionState],
    propose: Propose,
    *,
    checked: frozenset[str],
) -> list[Taken | Refused]:
    is_checked = all(stored.rule.archive in checked for stored in rules)
    answers = judge_all([stored.rule for stored in rules], series, propose, sender_checked=is_checked)
    if any(row.removed for row in members):
        return [_instead(each, DecisionReason.REMOVED, "the archive has removed a mail of it") for each in answers]
    if not series.is_complete:
        numbers = ", ".join(f"{number}/{series.total}" for number in series.missing[:20])
        detail = f"after a day the list has no {numbers}" if numbers else "it has no patches"
        return [_instead(each, DecisionReason.INCOMPLETE, detail) for each in answers]
    taker = next((name for name, state in before.items() if state in _ACTIVE), None)
    if taker is not None:
        return [_instead(each, DecisionReason.OTHER_RULE, f"rule {taker} takes it") for each in answers]
    return answers


def _instead(answer: Taken | Refused, reason: DecisionReason, detail: str) -> Refused:
    """Return the reason why a series is not taken that the rule would take otherwise."""
    keeps = isinstance(answer, Refused) and answer.reason is not DecisionReason.OTHER_RULE
    return answer if keeps and isinstance(answer, Refused) else Refused(answer.rule, reason, detail)


def _values(
    session: Session,
    rule: StoredRule,
    series: ListedSeries,
    answer: Taken | Refused,
    now: datetime,
    *,
    checked: frozenset[str],
) -> dict[str, Any]:
    """Return the columns of a decision. Revisions that it supersedes, and that wait, are not taken any more."""
    first = series.mails[0]
    values: dict[str, Any] = {
        "rule": rule.name,
        "archive": rule.rule.archive,
        "root": series.root,
        "revision": series.version,
        "message_id": first.message_id,
        "subject": first.subject,
        "author": first.author,
        "author_address": address_of(first.author)[:_INDEXED],
        "subject_key": normalised_subject(first.subject)[:_INDEXED],
        "targets": list(answer.targets) if isinstance(answer, Taken) else [],
        "detail": "",
        "created_at": now,
    }
    if isinstance(answer, Taken):
        values |= {"state": DecisionState.WAITING, "reason": None, "decided_at": None}
        later = _supersede(session, values, [first.in_reply_to or "", *first.references], checked)
        if later is not None:
            answer = Refused(rule.rule, DecisionReason.SUPERSEDED, f"v{later} has arrived")
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
            RuleDecisionRow.state.in_(_ACTIVE),
            RuleDecisionRow.revision != new["revision"],
            RuleDecisionRow.created_at > new["created_at"] - REVISIONS_APART,
            RuleDecisionRow.archive.in_(checked),
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


def other_revisions(author_address: str, subject_key: str, ancestors: Sequence[str]) -> Select[RuleDecisionRow]:
    """Return the query of the decisions on all revisions of a series: by one author, with one subject or in reply to
    each other."""
    return select(RuleDecisionRow).where(
        RuleDecisionRow.author_address == author_address,
        or_(
            and_(RuleDecisionRow.subject_key == subject_key, RuleDecisionRow.subject_key != ""),
            RuleDecisionRow.root.in_([each for each in ancestors if each]),
        ),
    )


def unwanted_before(at: datetime) -> ColumnElement[bool]:
    """Return the condition for decisions on series that a rule does not want, from before a time."""
    return and_(
        RuleDecisionRow.state == DecisionState.NOT_TAKEN,
        RuleDecisionRow.reason.in_(_UNWANTED),
        RuleDecisionRow.created_at < at,
    )
