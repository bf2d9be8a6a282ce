"""Submit the two commits of a bisection's next step, on the quotas of its owner or the budget of its watched tree."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import AuditAction, BisectionState, UserRole
from wqlab_contracts.enums import BisectionStepKind as Kind
from wqlab_contracts.enums import BisectionStepState as State
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import CommitPair, Series, Target

from ..bisections import plan, suspects
from ..models import Bisection, BisectionStep, User, WatchedTree
from ..settings import Settings
from ..storage.audit import OPERATOR, record
from ..storage.db import clock
from ..storage.owners import UnusableOwner, owner_of
from ..submissions import quotas
from ..submissions import service as submissions
from ..submissions.quote_service import make_quote
from ..wait import Wait
from .admission import admit, check_budget

REPETITIONS = 3
"""Submissions of one pair of commits that the lab fails to measure, before the bisection ends."""
FIRST_RETRY = timedelta(minutes=5)

log = structlog.get_logger(__name__)


class Stop(Exception):
    """The bisection cannot go on; the text says why and what to do."""


def submit(
    session: Session,
    row: Bisection,
    action: plan.Measure,
    *,
    steps: Sequence[BisectionStep],
    data: DataFolder,
    settings: Settings,
) -> None:
    """Submit two commits. Raises Wait, Stop or ApiProblem if that is not possible."""
    now = clock(session)
    key = (action.line.row.id, action.kind, action.first, action.last)
    lost = [
        each
        for each in steps
        if each.state is State.REPEATED and (each.list_id, each.kind, each.first, each.last) == key
    ]
    if len(lost) >= REPETITIONS:
        raise Stop(f"{lost[-1].reason}; it was tried {len(lost)} times")
    if lost and (ended := lost[-1].ended_at) is not None:
        due = ended + FIRST_RETRY * 2 ** (len(lost) - 1)
        if now < due:
            raise Wait(f"{lost[-1].reason}; it is tried again at {due:%H:%M} UTC")
    if row.request.tree not in data.trees:
        raise Wait(f"the lab has no tree {row.request.tree} any more")
    request = _request(row, action, data)
    quote = make_quote(session, data, settings, request, row.owner)
    if quote.errors:
        raise Stop("; ".join(f"{error.pointer}: {error.detail}" for error in quote.errors))
    quoted_s = quotas.device_s(quote)
    _check_may_measure(session, row, quoted_s)
    made = submissions.create(
        session,
        data,
        settings,
        request,
        row.owner,
        idempotency_key=f"bisection:{row.id}:{len(steps) + 1}",
        limited=row.limited,
        repository=row.repository,
    )
    session.add(
        BisectionStep(
            bisection_id=row.id, list_id=action.line.row.id, kind=action.kind, state=State.RUNNING, first=action.first,
            last=action.last, baseline=action.baseline, candidate=action.candidate, blocks=action.blocks,
            submission_id=made.id, quoted_s=quoted_s, submitted_at=now,
        )
    )  # fmt: skip
    row.state, row.reason = _STATES[action.kind], ""
    if action.kind is Kind.CONFIRM:
        suspects.suspect(row, action.line, action.first, action.last)
    else:
        suspects.clear(row)
    record(
        session, OPERATOR, AuditAction.CREATE_SUBMISSION, f"submission/{made.id}",
        bisection=row.id, baseline=action.baseline, candidate=action.candidate,
    )  # fmt: skip
    log.info("bisection_step_submitted", bisection=row.id, kind=action.kind, submission=made.id)


_STATES = {
    Kind.ENDS: BisectionState.ENDS,
    Kind.PROBE: BisectionState.SEARCHING,
    Kind.CONFIRM: BisectionState.CONFIRMING,
}


def _request(row: Bisection, action: plan.Measure, data: DataFolder) -> SubmissionRequest:
    """Return the request that compares the two commits, on the device that measured the ends if it is still there."""
    wanted = row.request
    units = data.device_type(wanted.device_type).units if data.has_device_type(wanted.device_type) else []
    target = Target(
        plan=wanted.plan,
        device_type=wanted.device_type,
        scenarios=[wanted.scenario] if wanted.scenario else None,
        settings=[wanted.setting] if wanted.setting is not None else None,
        parameters=wanted.parameters,
        device=row.device if row.device in {unit.name for unit in units} else None,
    )
    pair = CommitPair(baseline=action.baseline, candidate=action.candidate, ref=row.ref)
    return SubmissionRequest(
        series=Series(commits=pair),
        tree=wanted.tree,
        targets=[target],
        blocks=action.blocks,
        recipe=wanted.recipe,
        priority=wanted.priority,
        trace=False,  # a step asks only whether the metric differs
    )


def _check_may_measure(session: Session, row: Bisection, quoted_s: float) -> None:
    """Raise Wait if the owner may not submit now, or the budget of the watched tree is used up."""
    if row.watched_tree is not None:
        tree = session.get_one(WatchedTree, row.watched_tree, with_for_update=True)
        row.limited = admit(session, tree, row.owner).role is UserRole.SUBMITTER
        check_budget(session, tree, quoted_s)
        return
    if session.scalar(select(User.id).where(User.name == row.owner)) is None:
        return  # a token without an account
    try:
        row.limited = owner_of(session, row.owner).role is UserRole.SUBMITTER
    except UnusableOwner as error:
        raise Wait(str(error)) from None
