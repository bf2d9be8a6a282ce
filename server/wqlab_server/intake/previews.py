"""Previews: what a watch would have taken in the last days, from the mails that a worker reads in the archive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta

from pydantic import ValidationError
from sqlalchemy.orm import Session

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.api.watches import PREVIEW_SERIES, PreviewedSeries, PreviewedSeriesList, WatchPreview
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.enums import DecisionReason
from wqlab_contracts.messages.jobs import JobResult
from wqlab_contracts.messages.list_mails import MAILS_OF_A_PREVIEW, ListMails, ListSource
from wqlab_contracts.messages.list_reads import ListReadJob, ListReadResult
from wqlab_contracts.specs import Archive, ListWatch

from ..http.problems import ApiProblem, not_found
from ..jobs import lookups
from ..jobs.kinds import Context
from ..models import ListPreview
from ..storage.db import clock
from . import watched_lists, watches
from .listed_series import ListedSeries, collect
from .match_watches import Propose, Refused, Taken, judge, propose_nothing

_NEAR = frozenset({DecisionReason.INCOMPLETE, DecisionReason.NOT_ASKED})
"""Reasons of series that are listed too, because a small change of watch or series would have it taken."""
Minutes = Callable[[Session, SubmissionRequest, str], float]
MakeMinutes = Callable[[Context], Minutes]
MakePropose = Callable[[Context], Propose]


class PreviewKind(lookups.LookupKind[ListPreview]):
    """Previews of watches. A read of many mails may wait behind that of another list."""

    model = ListPreview
    worker_timeout = timedelta(minutes=30)
    name = "the preview"
    plural = "previews"
    alternative = "the watch can be enabled without a preview"

    def __init__(self, minutes: MakeMinutes, propose: MakePropose) -> None:
        """`minutes` and `propose` return the functions that quote a submission, and that propose targets."""
        self._minutes = minutes
        self._propose = propose

    def finish(self, context: Context, job: ListPreview, result: JobResult) -> None:
        assert isinstance(result, ListReadResult)  # noqa: S101 - the protocol has checked its kind
        if result.found is not None:
            minutes, propose = self._minutes(context), self._propose(context)
            job.found = judged(context.session, job.spec, job.payload.source, result.found, minutes, propose=propose)
        self.end(context, job, result.outcome, result.failure)


def request(session: Session, data: DataFolder, name: str, days: int, owner: str) -> int:
    """Return the id of a preview of the watch as it is now: an unfinished or recent one, else a new one.

    Raises ApiProblem 404, 409 for a watch of a tree, 422 if the list cannot be read, and 429 if the user has too many
    unfinished previews.
    """
    spec = watches.list_spec(watches.get(session, name))
    archive = data.archive(spec.archive)
    if archive is None or archive.epochs is None:
        detail = f"the list {spec.archive!r} cannot be read: intake/archives.yaml needs this archive, with `epochs`"
        raise ApiProblem(422, detail)
    source = ListSource(archive=archive, since=clock(session) - timedelta(days=days))
    new = ListPreview(
        key="\n".join((spec.model_dump_json(), archive.model_dump_json(), str(days))),
        payload=ListReadJob(source=source, heads_only=True, limit=MAILS_OF_A_PREVIEW),
        spec=spec,
        days=days,
        owner=owner,
    )
    return lookups.request(session, PreviewKind, new)


def read(session: Session, read_id: int) -> WatchPreview:
    """Return the state of a preview and, once it is finished, what it found. Raises ApiProblem 404."""
    row = session.get(ListPreview, read_id, populate_existing=True)
    if row is None:
        raise not_found("preview", read_id)
    return WatchPreview(
        spec=row.spec,
        days=row.days,
        state=row.state,
        outcome=row.outcome,
        failure=row.failure,
        progress=row.progress,
        found=row.found,
        read_at=row.finished_at,
    )


def judged(
    session: Session,
    spec: ListWatch,
    source: ListSource,
    found: ListMails,
    minutes: Minutes,
    *,
    propose: Propose = propose_nothing,
) -> PreviewedSeriesList:
    """Return what a watch says about the mails of a list since the source's time."""
    mails = [mail for mail in found.mails if watched_lists.is_storable(mail)]
    removed = set(found.removed)
    answers: list[tuple[ListedSeries, Taken | Refused]] = []
    for series in collect(mails):
        if series.archived_at < source.since:
            continue
        answer = judge(spec, series, propose, sender_checked=source.archive.dkim_checked)
        near = isinstance(answer, Taken) or answer.reason in _NEAR
        if near and removed & {mail.message_id for mail in series.mails}:
            answer = Refused(spec, DecisionReason.REMOVED, "the archive has removed a mail of it")
        elif near and not series.is_complete:
            answer = Refused(spec, DecisionReason.INCOMPLETE, "the list does not have all its patches")
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
        request = watches.request_of(answer.watch, message_id, revision, list(answer.targets))
    except ValidationError:
        return None
    return minutes(session, request, answer.watch.owner)
