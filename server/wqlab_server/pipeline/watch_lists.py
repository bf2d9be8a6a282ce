"""Watch mailing lists: order reads, decide on the series that have arrived, and make the submissions of rules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import structlog
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.api.touches import TouchedFile
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.enums import AuditAction, SubmissionState
from wqlab_contracts.loading import DataError
from wqlab_contracts.touches import propose

from ..estimates import lab_snapshot
from ..http.auth import SCOPE_OF_ROLE, Principal
from ..http.problems import ApiProblem
from ..intake import decide, match_rules, rules, take_series, watched_lists
from ..models import RuleDecisionRow, Run, SeenMail
from ..settings import Settings
from ..storage.audit import Actor, record
from ..storage.db import SessionFactory, clock, transaction
from ..storage.live_data import LiveData
from ..storage.owners import UnusableOwner, owner_of
from ..submissions import quotas
from ..submissions import service as submissions
from ..submissions.quote_service import make_quote
from . import list_replies
from .tick_errors import isolate_errors

log = structlog.get_logger(__name__)


def watch_lists(factory: SessionFactory, settings: Settings, data: LiveData) -> None:
    """Do what is due for watched lists. The caller makes sure that one process does this at a time."""
    try:
        current = data.current()
    except DataError:
        return  # the tick has logged it
    with isolate_errors(factory, "lists", "rules"), transaction(factory) as session:
        rules.sync_files(session, current)
    with isolate_errors(factory, "lists", "reads"), transaction(factory) as session:
        watched_lists.order_reads(session, current, settings)
    with isolate_errors(factory, "lists", "replies"), transaction(factory) as session:
        list_replies.nudge_due(session, clock(session))
    with transaction(factory) as session:
        archives = session.scalars(select(SeenMail.archive).where(~SeenMail.settled).distinct()).all()
    for archive in archives:
        with isolate_errors(factory, "lists", archive), transaction(factory) as session:
            now, propose_targets = clock(session), proposer(session, settings, current)
            decide.decide(session, archive, now, propose_targets, current.checked_archives)
    with transaction(factory) as session:
        due = take_series.due(session)
    steps = steps_of(settings, current)
    for decision_id in due:
        with isolate_errors(factory, "lists", decision_id), transaction(factory) as session:
            take_series.take(session, decision_id, steps)
    with isolate_errors(factory, "lists", "old"), transaction(factory) as session:
        before = clock(session) - decide.DECISIONS_KEPT
        session.execute(delete(RuleDecisionRow).where(decide.unwanted_before(before)))


def proposer(session: Session, settings: Settings, data: DataFolder) -> match_rules.Propose:
    """Return what proposes targets for a series, on device types with a device that can measure now."""

    @cache
    def usable() -> set[str]:
        return lab_snapshot.load(session, settings).usable_types

    def propose_targets(files: Sequence[TouchedFile]) -> list[str]:
        found = propose(files, data, usable())
        return [f"{each.target.plan}@{each.target.device_type}" for each in found.proposals]

    return propose_targets


def steps_of(settings: Settings, data: DataFolder) -> take_series.Steps:
    """Return what the domain of submissions does for a decision."""

    def minutes(session: Session, request: SubmissionRequest, owner: str) -> float:
        quote = make_quote(session, data, settings, request, owner)
        return quotas.device_s(quote) / 60

    def create(session: Session, request: SubmissionRequest, owner: str, key: str, rule: str) -> int:
        limited = quotas.is_limited(_principal(session, owner))
        made = submissions.create(
            session, data, settings, request, owner, idempotency_key=key, limited=limited, on_behalf=True
        )
        targets = [f"{target.plan} on {target.device_type}" for target in made.request.targets]
        record(
            session, _actor(rule), AuditAction.CREATE_SUBMISSION, f"submission/{made.id}", targets=targets, owner=owner
        )
        log.info("list_series_taken", rule=rule, submission=made.id)
        return made.id

    def cancel(session: Session, submission_id: int, rule: str) -> bool:
        submission = submissions.lock(session, submission_id)
        if submission.state is SubmissionState.FINISHED or submission.cancel_requested_at is not None:
            return False
        begun = select(Run.id).where(Run.submission_id == submission_id, Run.started_at.is_not(None)).limit(1)
        if session.scalar(begun) is not None:
            return False
        submissions.cancel(session, submission_id)
        record(session, _actor(rule), AuditAction.CANCEL_SUBMISSION, f"submission/{submission_id}")
        return True

    return take_series.Steps(minutes, create, cancel, data.checked_archives)


def _actor(rule: str) -> Actor:
    return Actor(name=f"rule {rule}")


def _principal(session: Session, owner: str) -> Principal:
    """Return the account that owns a rule's submissions. Raises ApiProblem 422 if it may not submit."""
    try:
        user = owner_of(session, owner)
    except UnusableOwner as error:
        raise ApiProblem(422, f"owner of the rule: {error}") from None
    return Principal(user.name, frozenset({SCOPE_OF_ROLE[user.role]}), user.id, user.role)
