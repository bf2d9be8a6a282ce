"""Create submissions with a snapshot of everything they use, cancel and retry them, and advance their state."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.celery_names import ADVANCE, SERVER_QUEUE
from wqlab_contracts.enums import EventKind, OutboxEvent, Outcome, SubmissionState, Verdict
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.mail import source_of
from wqlab_contracts.mails import mbox
from wqlab_contracts.mails.inspection import inspect
from wqlab_contracts.messages import ApplyJob, TakenThread, Target, ThreadSource, normalised_subject
from wqlab_contracts.messages.apply import OTHERS_LIMIT
from wqlab_contracts.specs import Tree

from ..http.inspection_process import Inspect
from ..http.problems import ApiProblem, invalid, not_found
from ..jobs import claims
from ..models import Apply, Artifact, ArtifactLink, Device, Submission
from ..settings import Settings
from ..storage.announcements import announce
from ..storage.db import Message, clock, post
from ..storage.events import emit
from ..storage.source_mails import find, remember
from . import quotas
from .device_access import access_mistakes
from .plan_runs import plan_run
from .plan_targets import plan_target
from .state import check_transition
from .validate import mistakes
from .walk import boots_per_block

_MAX_TEXT = 500
"""Maximum characters of an indexed text; a btree index entry has room for 2,700 bytes."""


def create(
    session: Session,
    data: DataFolder,
    settings: Settings,
    request: SubmissionRequest,
    owner: str,
    *,
    idempotency_key: str | None = None,
    retry_of: int | None = None,
    taken: TakenThread | None = None,
    limited: bool = False,
    repository: Tree | None = None,
    on_behalf: bool = False,
    inspect: Inspect = inspect,
) -> Submission:
    """Create a submission with its apply queued and its runs waiting.

    If the owner has used the same `idempotency_key` before, returns the submission created then. Raises ApiProblem 422
    with every mistake of the request, or if the key was used for another request; with `limited`, QuotaUsedUp if a
    quota of the owner is used up. The submission keeps the request with a target for each point of its sweep. `taken`
    are the mails of a series that is given by a Message-ID, if an earlier submission has taken them. `repository`
    replaces the tree of the data folder, for a pair of commits of another repository. `on_behalf`: a rule or forge took
    the series from somebody else, so that devices for the series of named people do not take it. `inspect` inspects the
    request's mbox; an endpoint gives `BoundedInspect`.
    """
    requested, request = request, request.expanded()
    if idempotency_key is not None:
        known = session.scalar(
            select(Submission).where(Submission.owner == owner, Submission.idempotency_key == idempotency_key)
        )
        if known is not None:
            if known.request != request:
                raise ApiProblem(422, f"idempotency key {idempotency_key!r} was used for another request")
            return known
    found = mistakes(requested, data, settings.local_git_path_list, inspect)
    if not is_noise_control(request, data):
        found += access_mistakes(request, data, None if on_behalf else owner, repository)
    if found:
        raise invalid(found)
    if limited:
        quotas.check(session, settings, owner)
    toolchain = data.recipes[request.recipe_for(data.device_type(request.targets[0].device_type))].toolchain
    submission = Submission(
        request=request,
        owner=owner,
        idempotency_key=idempotency_key,
        retry_of=retry_of,
        tree=request.tree,
        facets=facets(request),
        priority=request.priority,
        noise_control=is_noise_control(request, data),
        state=SubmissionState.APPLYING,
        event_seq=0,
        **_names(request),
    )
    session.add(submission)
    session.flush()
    if request.series is not None and request.series.mbox is not None:
        source = source_of(request.series.mbox.text)
        if source is not None:
            remember(session, submission.id, source)
    by_id = request.series is not None and request.series.thread is not None
    apply = Apply(
        submission_id=submission.id,
        owner=owner,
        payload=ApplyJob(
            submission_id=submission.id,
            tree=data.with_origin(repository or data.trees[request.tree]),
            series=None,
            thread=ThreadSource(archives=list(data.archives), taken=taken) if by_id else None,
            others=[each for name, each in data.trees.items() if name != request.tree][:OTHERS_LIMIT],
            walk=request.walk,
            toolchain=toolchain,
        ),
    )
    claims.queue(session, apply)
    if taken is not None:
        link = ArtifactLink(sha256=taken.mbox.sha256, job_id=apply.id, kind=taken.mbox.kind, name=taken.mbox.name)
        session.add(link)
    boots = boots_per_block(request, inspect)
    for index, target in enumerate(request.targets):
        _check_known(session, index, target)
        planned = plan_target(session, data, request, target, boots=boots)
        session.add(plan_run(submission, index, target, data, planned, boots=boots))
    emit(session, submission.id, EventKind.SUBMISSION_STATE, state=submission.state)
    announce(session, OutboxEvent.SUBMISSION_ACCEPTED, submission.id, submission_id=submission.id)
    return submission


def _check_known(session: Session, index: int, target: Target) -> None:
    """Raise ApiProblem 422 if the target names a device of the data folder that no tick has taken in yet."""
    if target.device is not None and session.get(Device, target.device) is None:
        detail = f"{target.device} is new; it can be named a few seconds from now"
        raise invalid([{"pointer": f"/targets/{index}/device", "detail": detail}])


def is_noise_control(request: SubmissionRequest, data: DataFolder) -> bool:
    """Return True if the series is the control series of the data folder, whoever submits it."""
    mbox = request.series.mbox if request.series is not None else None
    control = data.noise_control
    if mbox is None or not control or len(mbox.text) > 2 * len(control):  # the lines of 20 MB would need 1 GB
        return False
    return _lines(mbox.text) == _lines(control)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().split("\n")]


def lock(session: Session, submission_id: int) -> Submission:
    """Lock and return a submission, re-read from the database. Raises ApiProblem 404 if there is none of this id."""
    submission = session.scalar(
        select(Submission)
        .where(Submission.id == submission_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    if submission is None:
        raise not_found("submission", submission_id)
    return submission


def cancel(session: Session, submission_id: int) -> Submission:
    """Request the cancellation of a submission: waiting jobs end now, running jobs are asked to stop.

    Changes nothing if the submission is finished or canceled already. Raises ApiProblem 404 if there is none of this
    id.
    """
    submission = lock(session, submission_id)
    if submission.state is not SubmissionState.FINISHED and submission.cancel_requested_at is None:
        submission.cancel_requested_at = clock(session)
        post(session, Message(ADVANCE, submission.id, SERVER_QUEUE))
    return submission


def retry(
    session: Session,
    data: DataFolder,
    settings: Settings,
    submission_id: int,
    owner: str,
    *,
    blocks: int | None = None,
    limited: bool = False,
    inspect: Inspect = inspect,
) -> Submission:
    """Create a new submission with the request of a finished one; builds that passed are reused.

    With `blocks` each target runs that many blocks, whatever number the request or its plan says. The finished
    submission is not changed, so that its report stays valid. A series that it took from a mail archive is taken from
    its own copy, so that both test the same mails. Raises ApiProblem 404 if there is none of this id, 409 if it is not
    finished, and with `limited` QuotaUsedUp if a quota of the owner is used up.
    """
    old = lock(session, submission_id)
    if old.state is not SubmissionState.FINISHED:
        raise ApiProblem(409, f"submission {old.id} is {old.state}; cancel it first or wait until it is finished")
    taken = _stored_thread(session, old)
    repository = _repository(session, old)
    request = old.request
    if blocks is not None:
        request = request.model_copy(update={"blocks": blocks, "looks": None})
    again = create(
        session,
        data,
        settings,
        request,
        owner,
        retry_of=old.id,
        taken=taken,
        limited=limited,
        repository=repository,
        inspect=inspect,
    )
    source = find(session, old.id)
    if source is not None:
        remember(session, again.id, source)
    return again


def _repository(session: Session, submission: Submission) -> Tree | None:
    """Return the repository of a pair of commits, which may be that of a watched tree; None for any other series."""
    series = submission.request.series
    if series is None or series.commits is None:
        return None
    return session.scalars(select(Apply).where(Apply.submission_id == submission.id)).one().payload.tree


def _stored_thread(session: Session, submission: Submission) -> TakenThread | None:
    """Return the mails that a submission by Message-ID took, if they are still stored, and keep them from retention.

    A series that could not be taken or applied is looked for again: its author may have sent what was missing.
    """
    apply = session.scalars(select(Apply).where(Apply.submission_id == submission.id)).one()
    taken = apply.result.thread if apply.result is not None and apply.outcome is Outcome.PASSED else None
    if taken is None:
        return None
    stored = session.scalar(
        select(Artifact.sha256)
        .where(Artifact.sha256 == taken.mbox.sha256, Artifact.deleted_at.is_(None), Artifact.stored)
        .with_for_update()
    )
    return None if stored is None else taken


def pin(session: Session, submission_id: int, by: str) -> Submission:
    """Pin the submission, so that retention keeps its files. Raises ApiProblem 404 if there is none of this id."""
    submission = lock(session, submission_id)
    if submission.pinned_at is None:
        submission.pinned_at, submission.pinned_by = clock(session), by
    return submission


def unpin(session: Session, submission_id: int) -> Submission:
    """Unpin the submission. Raises ApiProblem 404 if there is none of this id."""
    submission = lock(session, submission_id)
    submission.pinned_at = submission.pinned_by = None
    return submission


def enter(session: Session, submission: Submission, state: SubmissionState) -> None:
    """Set a submission's state and emit the event. Does nothing if the submission is in that state already.

    Raises IllegalTransition if the transition is not allowed.
    """
    if submission.state is state:
        return
    check_transition(submission.state, state)
    submission.state = state
    if state is not SubmissionState.FINISHED:
        emit(session, submission.id, EventKind.SUBMISSION_STATE, state=state)


def facets(request: SubmissionRequest, verdicts: Iterable[Verdict] = ()) -> list[str]:
    """Return the facets that lists filter by: each target's plan, device type and both, and the targets' verdicts."""
    found = [f"verdict:{verdict}" for verdict in verdicts]
    for target in request.targets:
        found += [f"plan:{target.plan}", f"type:{target.device_type}", f"target:{target.plan}@{target.device_type}"]
    return sorted(set(found))


def truncate(text: str) -> str:
    """Truncate a submitter's text to what a PostgreSQL index can hold."""
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + "..."


def _names(request: SubmissionRequest) -> dict[str, object]:
    """Return the columns title, series_key, author and version, as known before the series has been applied."""
    if request.series is None:
        targets = ", ".join(f"{target.plan} on {target.device_type}" for target in request.targets)
        if request.sweep is not None:
            values = ",".join(f"{topology.value(request.sweep.vary)}" for topology in request.sweep.topologies())
            plans = ", ".join(dict.fromkeys(target.plan for target in request.targets))
            targets = f"{plans} over {request.sweep.vary}={values}"
        return {"title": truncate(f"settings study: {targets}"), "series_key": "", "author": "", "version": None}
    if request.series.git is not None:
        title = f"{request.series.git.ref} of {request.series.git.url}"
        return {
            "title": truncate(title),
            "series_key": truncate(normalised_subject(title)),
            "author": "",
            "version": None,
        }
    if request.series.commits is not None:
        title = f"{request.series.commits.ref} of {request.tree}"
        return {"title": truncate(title), "series_key": truncate(title), "author": "", "version": None}
    if request.series.thread is not None:
        named = request.series.thread
        title = f"<{named.message_id}>" if named.patchwork_series is None else f"series {named.patchwork_series}"
        return {"title": truncate(title), "series_key": truncate(title), "author": "", "version": None}
    assert request.series.mbox is not None  # noqa: S101 - validated: one of the four
    first = mbox.parse_first_headers(request.series.mbox.text)
    subject = " ".join((first.subject if first else "").split()) or "mailbox"
    return {
        "title": truncate(subject),
        "series_key": truncate(normalised_subject(subject)),
        "author": truncate(first.author) if first else "",
        "version": first.version if first else None,
    }
