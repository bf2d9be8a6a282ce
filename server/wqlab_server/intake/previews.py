"""Previews: what a rule would have taken in the last days, from the mails that a worker reads in the archive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta

from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api.rules import PREVIEW_SERIES, PreviewedSeries, PreviewedSeriesList, RulePreview
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.enums import DecisionReason, JobState, Outcome
from wqlab_contracts.messages.list_mails import MAILS_OF_A_PREVIEW, ListMails, ListSource
from wqlab_contracts.messages.list_reads import ListReadResult
from wqlab_contracts.specs import Archive
from wqlab_contracts.specs.rules import ListRule

from ..http.problems import ApiProblem, not_found
from ..jobs.lookups import CACHE_TIME, FAILURE_CACHE_TIME
from ..models import ListRead, StoredRule
from ..storage.db import clock
from ..storage.times import is_recent
from . import watched_lists
from .listed_series import ListedSeries, collect
from .match_rules import Propose, Refused, Taken, judge, propose_nothing
from .take_series import request_of

MAX_UNFINISHED = 4
"""Maximum number of unfinished previews of one user."""
_NEAR = frozenset({DecisionReason.INCOMPLETE, DecisionReason.NOT_ASKED})
"""Reasons of series that are listed too, because a small change of rule or series would have it taken."""
Minutes = Callable[[Session, SubmissionRequest, str], float]


def request(session: Session, data: DataFolder, name: str, days: int, owner: str) -> int:
    """Return the id of a preview of the rule as it is now: an unfinished or recent one, else a new one.

    Raises ApiProblem 404, 422 if the rule's list cannot be read, and 429 if the user has too many unfinished previews.
    """
    row = session.get(StoredRule, name)
    if row is None:
        raise not_found("rule", name)
    archive = data.archive(row.rule.archive)
    if archive is None or archive.epochs is None:
        detail = f"the list {row.rule.archive!r} cannot be read: intake/archives.yaml needs this archive, with `epochs`"
        raise ApiProblem(422, detail)
    now = clock(session)
    last = session.scalar(
        select(ListRead)
        .where(ListRead.rule_name == name, ListRead.days == days, ListRead.rule == row.rule)
        .order_by(ListRead.id.desc())
        .limit(1)
    )
    if (
        last is not None
        and last.source.archive == archive
        and (
            last.finished_at is None
            or is_recent(last.finished_at, now, CACHE_TIME if last.outcome is Outcome.PASSED else FAILURE_CACHE_TIME)
        )
    ):
        return last.id
    unfinished = select(ListRead.id).where(
        ListRead.owner == owner, ListRead.rule.is_not(None), ListRead.state != JobState.FINISHED
    )
    if len(session.scalars(unfinished).all()) >= MAX_UNFINISHED:
        detail = f"{MAX_UNFINISHED} of your previews are unfinished; wait until one is finished"
        raise ApiProblem(429, detail, headers={"Retry-After": "10"})
    read = ListRead(
        archive=archive.name,
        source=ListSource(archive=archive, since=now - timedelta(days=days)),
        mail_limit=MAILS_OF_A_PREVIEW,
        rule_name=name,
        rule=row.rule,
        days=days,
        owner=owner,
        state=JobState.WAITING,
    )
    watched_lists.queue(session, read, now)
    return read.id


def read(session: Session, read_id: int) -> RulePreview:
    """Return the state of a preview and, once it is finished, what it found."""
    row = session.get(ListRead, read_id, populate_existing=True)
    if row is None or row.rule is None or row.days is None:
        raise not_found("preview", read_id)
    return RulePreview(
        rule=row.rule,
        days=row.days,
        state=row.state,
        outcome=row.outcome,
        failure=row.failure,
        progress=row.progress,
        found=row.preview,
        read_at=row.finished_at,
    )


def store(
    session: Session, row: ListRead, result: ListReadResult, minutes: Minutes, propose: Propose = propose_nothing
) -> None:
    """Judge the mails of a preview by its rule and store what it would have taken."""
    if row.rule is not None and result.found is not None:
        row.preview = judged(session, row.rule, row.source, result.found, minutes, propose=propose)


def judged(
    session: Session,
    rule: ListRule,
    source: ListSource,
    found: ListMails,
    minutes: Minutes,
    *,
    propose: Propose = propose_nothing,
) -> PreviewedSeriesList:
    """Return what a rule says about the mails of a list since the source's time."""
    mails = [mail for mail in found.mails if watched_lists.is_storable(mail)]
    removed = set(found.removed)
    answers: list[tuple[ListedSeries, Taken | Refused]] = []
    for series in collect(mails):
        if series.archived_at < source.since:
            continue
        answer = judge(rule, series, propose)
        near = isinstance(answer, Taken) or answer.reason in _NEAR
        if near and removed & {mail.message_id for mail in series.mails}:
            answer = Refused(rule, DecisionReason.REMOVED, "the archive has removed a mail of it")
        elif near and not series.is_complete:
            answer = Refused(rule, DecisionReason.INCOMPLETE, "the list does not have all its patches")
        answers.append((series, answer))
    archive = source.archive
    taken, others = [], []
    for series, answer in reversed(answers):
        if isinstance(answer, Taken):
            taken.append(_view(session, series, answer, archive, minutes))
        elif answer.reason in _NEAR:
            others.append(_view(session, series, answer, archive, minutes))
    refused = Counter(answer.reason for _, answer in answers if isinstance(answer, Refused))
    return PreviewedSeriesList(
        mails=len(mails),
        is_complete=found.is_complete,
        taken=len(taken),
        minutes=sum(each.minutes or 0.0 for each in taken),
        not_taken=dict(refused),
        series=[*taken, *others][:PREVIEW_SERIES],
        notes=list(found.notes),
    )


def _view(
    session: Session, series: ListedSeries, answer: Taken | Refused, archive: Archive, minutes: Minutes
) -> PreviewedSeries:
    first = series.mails[0]
    targets: Sequence[str] = answer.targets if isinstance(answer, Taken) else ()
    return PreviewedSeries(
        subject=first.subject,
        author=first.author,
        revision=series.version,
        patches=series.total,
        message_id=first.message_id,
        url=archive.page(first.message_id),
        archived_at=series.archived_at,
        taken=isinstance(answer, Taken),
        reason=None if isinstance(answer, Taken) else answer.reason,
        detail="" if isinstance(answer, Taken) else answer.detail,
        targets=list(targets),
        minutes=_minutes(session, answer, first.message_id, series.version, minutes),
    )


def _minutes(
    session: Session, answer: Taken | Refused, message_id: str, revision: int, minutes: Minutes
) -> float | None:
    if isinstance(answer, Refused):
        return None
    try:
        request = request_of(answer.rule, message_id, revision, list(answer.targets))
    except ValidationError:
        return None
    return minutes(session, request, answer.rule.owner)
