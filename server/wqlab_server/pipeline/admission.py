"""Submit the orders of sources as soon as owner, quota, quiet hours and budget allow, and take their results."""

from __future__ import annotations

from datetime import timedelta

import structlog
from sqlalchemy.orm import Session

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import AuditAction, OrderState, UserRole
from wqlab_contracts.loading import DataFolder

from ..http.problems import ApiProblem
from ..models import Order, Submission, Watch
from ..orders.orders import check_budget, check_quiet_hours
from ..orders.source import Context, Proposal, Refused, Source, Stop
from ..settings import Settings
from ..storage.audit import OPERATOR, Actor, record
from ..storage.db import clock
from ..storage.owners import UnusableOwner, owner_of
from ..submissions import quotas
from ..submissions import service as submissions
from ..submissions.quote_service import make_quote
from ..wait import Wait

PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=1)
"""Pauses before the next attempt to submit an order that waits: of a Wait that says none, and the longest one."""

log = structlog.get_logger(__name__)


# --- submit -----------------------------------------------------------------------------------------------------


def submit(context: Context, source: Source, order: Order) -> None:
    """Submit an order that is due. Raises Wait if that is not possible now, Stop if it never will be."""
    session, now = context.session, clock(context.session)
    proposal = source.propose(context, order)
    watch = session.get_one(Watch, order.watch) if order.watch is not None else None
    if watch is not None:
        check_quiet_hours(session, watch)
    limited = _is_limited(context, proposal)
    if proposal.request.tree not in context.data.trees:
        raise Wait(f"the lab has no tree {proposal.request.tree} any more")
    quote = make_quote(session, context.data, context.settings, proposal.request, proposal.owner)
    if quote.errors:
        raise Refused(source.mistakes, "; ".join(f"{error.pointer}: {error.detail}" for error in quote.errors))
    quoted_s = quotas.device_s(quote)
    if watch is not None:
        check_budget(session, watch, quoted_s, source.mistakes)
    try:
        with session.begin_nested():
            made = submissions.create(
                session,
                context.data,
                context.settings,
                proposal.request,
                proposal.owner,
                idempotency_key=f"order:{order.id}:{order.tries + 1}",
                limited=limited,
                repository=proposal.repository,
                on_behalf=proposal.on_behalf,
            )
    except ApiProblem as problem:
        raise Refused(source.mistakes, problem.text) from None
    order.state, order.reason, order.submission_id, order.submitted_at = OrderState.SUBMITTED, "", made.id, now
    order.tries, order.quoted_s = order.tries + 1, order.quoted_s + quoted_s
    source.submitted(context, order, made)
    actor = Actor(name=f"watch {watch.name}") if watch is not None else OPERATOR
    record(
        session, actor, AuditAction.CREATE_SUBMISSION, f"submission/{made.id}",
        source=source.name, order=order.key, owner=proposal.owner,
        targets=[f"{target.plan} on {target.device_type}" for target in made.request.targets],
    )  # fmt: skip
    log.info("order_submitted", source=source.name, order=order.key, submission=made.id)


def _is_limited(context: Context, proposal: Proposal) -> bool:
    """Return True if quotas limit the submission. Raises Wait if its owner may not submit."""
    if not proposal.needs_account:
        return bool(proposal.limited)
    try:
        owner = owner_of(context.session, proposal.owner)
    except UnusableOwner as error:
        raise Wait(str(error)) from None
    return owner.role is UserRole.SUBMITTER if proposal.limited is None else proposal.limited


def quoted_minutes(
    session: Session, request: SubmissionRequest, owner: str, *, data: DataFolder, settings: Settings
) -> float:
    """Return the device time (minutes) that the quote of an owner's request predicts."""
    return quotas.device_s(make_quote(session, data, settings, request, owner)) / 60


# --- wait and end -----------------------------------------------------------------------------------------------


def defer(context: Context, source: Source, order: Order, reason: Exception) -> None:
    """Record what prevents the submission of an order, and try again later. Raises Stop if it has waited too long."""
    now = clock(context.session)
    if source.longest_wait is not None and now > order.created_at + source.longest_wait:
        raise Stop(f"it waited for {source.longest_wait.days} days: {reason}")
    pause = getattr(reason, "pause", None) or PAUSE
    if order.reason != str(reason):
        log.info("order_waits", source=source.name, order=order.key, reason=str(reason))
    order.reason, order.due_at = str(reason), now + min(pause, LONGEST_PAUSE)
    source.waits(context, order, reason)


def stop(context: Context, source: Source, order: Order, why: Stop) -> None:
    """End an order that will not be submitted, or not again."""
    order.state, order.reason, order.ended_at = OrderState.STOPPED, str(why), clock(context.session)
    source.stopped(context, order, why)


def conclude(context: Context, source: Source, order: Order, submission: Submission) -> None:
    """Give the result of an order's finished submission to its source; submit it again if the lab failed."""
    now = clock(context.session)
    again = source.conclude(context, order, submission)
    if not again:
        order.state, order.ended_at = OrderState.FINISHED, now
    elif order.tries < source.tries:
        order.state, order.due_at = OrderState.WAITING, now + source.first_retry * 2 ** (order.tries - 1)
        order.reason = f"{again}; it is tried again at {order.due_at:%H:%M} UTC"
        source.waits(context, order, Wait(order.reason))
    else:
        tried = f"; it was tried {order.tries} times" if order.tries > 1 else ""
        stop(context, source, order, Stop(f"{again}{tried}"))
