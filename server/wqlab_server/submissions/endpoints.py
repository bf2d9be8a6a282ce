"""Endpoints to create, list, read, cancel and retry submissions and to follow their events."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response, status
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.submissions import SubmissionRequest, SubmissionSummary, SubmissionView
from wqlab_contracts.enums import AuditAction, Outcome, Scope, SubmissionState, Verdict
from wqlab_contracts.jsontypes import JsonTime
from wqlab_contracts.messages import Event

from ..http.audit import Audit
from ..http.auth import Reader, Submitter
from ..http.deps import AppSettings, Data, Db, Store
from ..http.downloads import TEXT, StoredBytes, send
from ..http.inspection_process import BoundedInspect
from ..http.limits import SlotStream, slow_responses
from ..http.paging import PAGE_DEFAULT, Before, Id, Limit, encode_cursor, plain_text
from ..http.problems import ApiProblem, documented
from ..http.sse import event_schema, guarded, notifications_of
from ..models import Submission
from ..views.build import VerdictCounts, submission_summary, submission_view
from ..views.load import deciding_verdicts, submission_rows, target_summaries
from . import queries, quotas, service
from .stream import events

router = APIRouter(prefix="/submissions", tags=["submissions"], responses=documented(401, 403, 422, 429))

_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The events as a stream; with `Accept: application/json` the events so far, as a list",
        "content": {
            "text/event-stream": {"schema": event_schema("Event")},
            "application/json": {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/Event"}}},
        },
    },
    204: {"description": "The submission is finished and has no later event: do not reconnect"},
}

_MBOX: dict[int | str, dict[str, Any]] = {
    200: {"description": "The mbox", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


_RULES = (
    "the lab has no such tree, recipe, plan, device type, scenario, setting or parameter; the series is no patch, or "
    "its git URL or ref is unusable; the targets need different compilers; no "
    "instrumented device can have a topology of the sweep"
)


def _view(session: Db, submission: Submission) -> SubmissionView:
    return submission_view(submission_rows(session, submission))


@router.post("", status_code=status.HTTP_201_CREATED, responses=documented(400, 409, 413, 503, rules=_RULES))
def create_submission(
    *,
    body: SubmissionRequest,
    session: Db,
    data: Data,
    settings: AppSettings,
    principal: Submitter,
    audit: Audit,
    response: Response,
    inspect: BoundedInspect,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=200,
            description="A second request with the same key returns the submission that the first one created",
        ),
    ] = None,
) -> SubmissionView:
    """Submit a series or a settings study. A refusal lists every mistake of the request."""
    submission = _create(session, data, settings, body, principal, key=idempotency_key, inspect=inspect)
    # An idempotency key may have found a submission of an earlier transaction.
    if session.scalar(select(Submission.created_at == func.now()).where(Submission.id == submission.id)):
        targets = [f"{target.plan} on {target.device_type}" for target in submission.request.targets]
        audit.record(session, AuditAction.CREATE_SUBMISSION, f"submission/{submission.id}", targets=targets)
    response.headers["Location"] = f"/api/v1/submissions/{submission.id}"
    return _view(session, submission)


def _create(
    session: Db,
    data: Data,
    settings: AppSettings,
    body: SubmissionRequest,
    principal: Submitter,
    *,
    key: str | None,
    inspect: BoundedInspect,
) -> Submission:
    def create() -> Submission:
        limited = quotas.is_limited(principal)
        return service.create(
            session,
            data.current(),
            settings,
            body,
            principal.owner,
            idempotency_key=key,
            limited=limited,
            inspect=inspect,
        )

    try:
        with session.begin_nested():
            return create()
    except IntegrityError:
        if key is None:
            raise
        return create()  # a concurrent request with the same key was faster: this call finds its submission


def _filter(
    *,
    state: SubmissionState | None = None,
    outcome: Outcome | None = None,
    active: Annotated[bool | None, Query(description="true: not finished; false: finished")] = None,
    verdict: Annotated[Verdict | None, Query(description="Verdict of at least one target")] = None,
    tree: Annotated[str | None, Query(max_length=100)] = None,
    owner: Annotated[str | None, Query(max_length=100)] = None,
    author: Annotated[str | None, Query(max_length=200, description="Part of the series' author, any case")] = None,
    plan: Annotated[str | None, Query(max_length=100)] = None,
    device_type: Annotated[str | None, Query(max_length=100)] = None,
    series_key: Annotated[str | None, Query(max_length=500)] = None,
    message_id: Annotated[
        str | None,
        Query(
            max_length=1000, description="Message-ID of the mail that the series came in: cover letter or only patch"
        ),
    ] = None,
    q: Annotated[
        str | None,
        Query(max_length=200, description="Part of title, series key, author or owner; or a submission's id"),
    ] = None,
    since: Annotated[JsonTime | None, Query(description="Created at or after this time")] = None,
    until: Annotated[JsonTime | None, Query(description="Created before this time")] = None,
    one_per_series: Annotated[bool, Query(description="Only the newest matching submission of each series")] = False,
) -> queries.Filter:
    texts = {
        "tree": tree,
        "owner": owner,
        "author": author,
        "plan": plan,
        "device_type": device_type,
        "series_key": series_key,
        "message_id": message_id,
        "q": q,
    }
    for name, text in texts.items():
        if text is not None:
            plain_text(name, text)
    return queries.Filter(
        state=state,
        outcome=outcome,
        active=active,
        verdict=verdict,
        since=since,
        until=until,
        one_per_series=one_per_series,
        **texts,
    )


@router.get("")
def list_submissions(
    conditions: Annotated[queries.Filter, Depends(_filter)],
    session: Db,
    _: Reader,
    before: Before,
    sort: queries.Sort = queries.Sort.NEWEST,
    limit: Limit = PAGE_DEFAULT,
) -> Page[SubmissionSummary]:
    """List the submissions that match every filter; keep the filters and `sort` the same while following `next`."""
    rows, total, last = queries.page(session, conditions, sort, before, limit)
    ids = [row.id for row in rows]
    verdicts, targets = deciding_verdicts(session, ids), target_summaries(session, ids)
    return Page[SubmissionSummary](
        items=[submission_summary(row, verdicts.get(row.id, VerdictCounts()), targets.get(row.id, [])) for row in rows],
        total=min(total, queries.MAX_COUNT),
        at_least=total > queries.MAX_COUNT,
        next=None if last is None else encode_cursor(last),
    )


@router.get("/{submission_id}", responses=documented(404))
def get_submission(submission_id: Id, session: Db, _: Reader) -> SubmissionView:
    """One submission with its builds, runs and boots, and its estimated end."""
    return _view(session, queries.get(session, submission_id))


@router.get("/{submission_id}/series", response_class=StoredBytes, responses={**TEXT, **documented(404)})
def get_submission_series(submission_id: Id, session: Db, store: Store, _: Reader) -> StoredBytes:
    """The series under test as an mbox, which applies to the base commit in the submission's `apply`."""
    mbox, deleted_at = queries.series_of(session, queries.get(session, submission_id))
    return send(store, mbox, deleted_at)


@router.get("/{submission_id}/mbox", response_class=PlainTextResponse, responses={**_MBOX, **documented(404, 410)})
def get_submission_mbox(submission_id: Id, session: Db, store: Store, _: Reader) -> Response:
    """The mbox as it was submitted, or the mails as they were taken from an archive, whether or not they applied."""
    submission = queries.get(session, submission_id)
    if (taken := queries.thread_of(session, submission)) is not None:
        return send(store, *taken)
    return PlainTextResponse(
        queries.submitted_mbox(submission),
        headers={
            "Content-Disposition": f'attachment; filename="submission-{submission_id}.mbox"',
            "X-Content-Type-Options": "nosniff",
        },
    )


@router.post("/{submission_id}/cancel", responses=documented(404, 409))
def cancel_submission(submission_id: Id, session: Db, principal: Submitter, audit: Audit) -> SubmissionView:
    """Cancel a submission: its jobs stop and its devices are released. Canceling it again changes nothing."""
    submission = queries.get(session, submission_id)
    _check_may_change(submission, principal, "cancel it", audit, AuditAction.CANCEL_SUBMISSION)
    audit.record(session, AuditAction.CANCEL_SUBMISSION, f"submission/{submission_id}")
    return _view(session, service.cancel(session, submission_id))


@router.post("/{submission_id}/retry", status_code=status.HTTP_201_CREATED, responses=documented(404, 409, 503))
def retry_submission(
    *,
    submission_id: Id,
    session: Db,
    data: Data,
    settings: AppSettings,
    principal: Submitter,
    audit: Audit,
    response: Response,
    inspect: BoundedInspect,
    blocks: Annotated[int | None, Query(ge=1, le=100)] = None,
) -> SubmissionView:
    """Create a new submission, owned by the caller, with the request of a finished one. With `blocks` each target runs
    that many blocks. The finished submission does not change; its builds that passed are reused."""
    submission = queries.get(session, submission_id)
    _check_may_change(submission, principal, "retry it", audit, AuditAction.RETRY_SUBMISSION)
    limited = quotas.is_limited(principal)
    created = service.retry(
        session,
        data.current(),
        settings,
        submission_id,
        principal.owner,
        blocks=blocks,
        limited=limited,
        inspect=inspect,
    )
    audit.record(session, AuditAction.RETRY_SUBMISSION, f"submission/{submission_id}", created=created.id)
    response.headers["Location"] = f"/api/v1/submissions/{created.id}"
    return _view(session, created)


@router.put("/{submission_id}/pin", responses=documented(404))
def pin_submission(submission_id: Id, session: Db, principal: Submitter, audit: Audit) -> SubmissionView:
    """Pin a submission: retention keeps its kernels, logs and consoles, whatever their age. Pinning it again changes
    nothing. Files that retention has deleted do not come back."""
    submission = queries.get(session, submission_id)
    _check_may_change(submission, principal, "pin it", audit, AuditAction.PIN_SUBMISSION)
    pinned = service.pin(session, submission_id, principal.owner)
    audit.record(session, AuditAction.PIN_SUBMISSION, f"submission/{submission_id}")
    return _view(session, pinned)


@router.delete("/{submission_id}/pin", responses=documented(404))
def unpin_submission(submission_id: Id, session: Db, principal: Submitter, audit: Audit) -> SubmissionView:
    """Unpin a submission: its files are kept for as long as those of others."""
    submission = queries.get(session, submission_id)
    _check_may_change(submission, principal, "unpin it", audit, AuditAction.UNPIN_SUBMISSION)
    unpinned = service.unpin(session, submission_id)
    audit.record(session, AuditAction.UNPIN_SUBMISSION, f"submission/{submission_id}")
    return _view(session, unpinned)


@router.get("/{submission_id}/events", response_class=StreamingResponse, responses={**_EVENTS, **documented(404, 503)})
def stream_submission_events(
    *,
    submission_id: Id,
    request: Request,
    session: Db,
    _: Reader,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="`seq` of the last event already received")] = 0,
    last_event_id: Annotated[str | None, Header(max_length=20, description="As sent by EventSource")] = None,
    accept: Annotated[str, Header(max_length=500, include_in_schema=False)] = "text/event-stream",
) -> Response:
    """Follow the submission's events (text/event-stream; `id` is the event's `seq`). Resume with Last-Event-ID or
    `after`; the higher one counts. The stream ends when the submission is finished."""
    row = queries.get(session, submission_id)
    seen = max(after, _parse_event_id(last_event_id))
    if "application/json" in accept and "text/event-stream" not in accept:
        with slow_responses(request).reports.use(request):
            return JSONResponse([event.model_dump(mode="json") for event in _all_events(session, row.id, seen)])
    if row.state is SubmissionState.FINISHED and seen >= row.event_seq:
        return Response(status_code=status.HTTP_204_NO_CONTENT)
    state = request.app.state
    return SlotStream(
        request,
        slow_responses(request).streams,
        guarded(request, events(state.sessions, notifications_of(request), row.id, seen)),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def _all_events(session: Db, submission_id: int, after: int) -> list[Event]:
    found: list[Event] = []
    while batch := queries.events_after(session, submission_id, found[-1].seq if found else after):
        found += batch
    return found


def _parse_event_id(last_event_id: str | None) -> int:
    """Return the event's `seq`; 0, the beginning, for anything that is not an event number."""
    if last_event_id and last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 10:
        return int(last_event_id)
    return 0


def _check_may_change(
    submission: Submission, principal: Submitter, action: str, audit: Audit, audited: AuditAction
) -> None:
    """Raise ApiProblem 403 unless the principal owns the submission or is a maintainer."""
    if submission.owner != principal.owner and not principal.may(Scope.MAINTAIN):
        audit.refuse(audited, f"submission/{submission.id}")
        raise ApiProblem(
            403,
            f"submission {submission.id} belongs to {submission.owner}; only its owner or a maintainer may {action}",
        )
