"""Endpoints of watched lists: rules, previews of what they would take, and what they decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, status
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.rules import (
    PREVIEW_DAYS,
    PREVIEW_DAYS_MAX,
    RuleDecision,
    RulePreview,
    RuleView,
    WatchedListView,
)
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.enums import AuditAction, DecisionReason, DecisionState, JobState, OrderState
from wqlab_contracts.specs.rules import ListRule

from ..http import long_poll
from ..http.audit import Audit
from ..http.auth import Admin, Maintainer, Reader, SignedIn
from ..http.deps import Data, Db
from ..http.paging import PAGE_DEFAULT, Before, Limit, encode_cursor
from ..http.problems import documented, not_found
from ..models import Order, RuleDecisionRow, StoredRule, WatchedList
from ..orders import orders
from ..storage.db import SessionFactory, clock, transaction
from ..storage.events import JOB_CHANNEL
from . import previews, rules, watched_lists

router = APIRouter(prefix="/rules", tags=["watched lists"], responses=documented(401, 403, 422, 429))
RuleName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
_REFERENCES = (
    "the lab has no such archive, tree, plan, device type or account; the archive has no `epochs`; `enabled` differs "
    "from whether the rule is on"
)


@router.get("")
def list_rules(session: Db, data: Data, _: Reader) -> list[RuleView]:
    """List the rules by which series on mailing lists are measured, with the state of their lists, by name."""
    current = data.current()
    rows = session.scalars(select(StoredRule).order_by(StoredRule.name)).all()
    return [_view(session, current, row) for row in rows]


@router.post("", status_code=status.HTTP_201_CREATED, responses=documented(400, 409, rules=_REFERENCES))
def create_rule(body: ListRule, session: Db, data: Data, principal: Admin, audit: Audit) -> RuleView:
    """Create a rule, switched off. It spends the quota of its `owner`, so that only administrators may create one."""
    row = rules.create(session, data.current(), body, principal.owner)
    audit.record(session, AuditAction.CREATE_RULE, f"rule/{body.name}", rule=rules.audited(body))
    return _view(session, data.current(), row)


@router.get("/{name}", responses=documented(404))
def get_rule(name: RuleName, session: Db, data: Data, _: Reader) -> RuleView:
    """One rule, with the state of its list."""
    row = session.get(StoredRule, name)
    if row is None:
        raise not_found("rule", name)
    return _view(session, data.current(), row)


@router.put("/{name}", responses=documented(400, 404, 409, rules=_REFERENCES))
def change_rule(*, name: RuleName, body: ListRule, session: Db, data: Data, principal: Admin, audit: Audit) -> RuleView:
    """Replace a rule that is not of the data folder. It stays on or off; what it took already does not
    change."""
    row = rules.change(session, data.current(), name, body, principal.owner)
    audit.record(session, AuditAction.CHANGE_RULE, f"rule/{name}", rule=rules.audited(body))
    return _view(session, data.current(), row)


@router.delete("/{name}", status_code=status.HTTP_204_NO_CONTENT, responses=documented(404, 409))
def remove_rule(name: RuleName, session: Db, _: Admin, audit: Audit) -> None:
    """Remove a rule that is not of the data folder. What it decided is kept."""
    rules.remove(session, name)
    audit.record(session, AuditAction.REMOVE_RULE, f"rule/{name}")


@router.post("/{name}/on", responses=documented(404, 409, rules=_REFERENCES))
def switch_rule_on(name: RuleName, session: Db, data: Data, principal: Maintainer, audit: Audit) -> RuleView:
    """Switch a rule on: it takes series whose last patch arrives from now on. See its preview before."""
    row, changed = rules.switch(session, data.current(), name, principal.owner, on=True)
    if changed:
        audit.record(session, AuditAction.SWITCH_RULE_ON, f"rule/{name}")
    return _view(session, data.current(), row)


@router.post("/{name}/off", responses=documented(404, 409))
def switch_rule_off(name: RuleName, session: Db, data: Data, principal: Maintainer, audit: Audit) -> RuleView:
    """Switch a rule off. Series that wait are not taken; submissions that were made go on."""
    row, changed = rules.switch(session, data.current(), name, principal.owner, on=False)
    if changed:
        audit.record(session, AuditAction.SWITCH_RULE_OFF, f"rule/{name}")
    return _view(session, data.current(), row)


@router.get("/{name}/preview", responses=documented(404, 503, rules="the rule's list cannot be read"))
async def preview_rule(
    *,
    request: Request,
    name: RuleName,
    data: Data,
    principal: SignedIn,
    days: Annotated[int, Query(ge=1, le=PREVIEW_DAYS_MAX, description="Days before now to look at")] = PREVIEW_DAYS,
    wait_s: Annotated[
        float, Query(ge=0, le=long_poll.MAX_S, description="Longest time to wait for the result")
    ] = long_poll.DEFAULT_S,
) -> RulePreview:
    """Show what the rule would have taken in the last days, read from the archive by a worker of the lab. If this takes
    longer than `wait_s`, the response's `state` is not `finished` yet: repeat the request."""
    factory: SessionFactory = request.app.state.sessions

    def request_preview() -> int:
        with transaction(factory) as session:
            return previews.request(session, data.current(), name, days, principal.owner)

    def read() -> RulePreview:
        with transaction(factory) as session:
            return previews.read(session, read_id)

    read_id = await run_in_threadpool(request_preview)
    return await long_poll.wait_until(
        lambda preview: preview.state is JobState.FINISHED,
        read,
        request=request,
        topic=(JOB_CHANNEL, str(read_id)),
        wait_s=wait_s,
    )


@router.get("/{name}/decisions")
def list_decisions(
    *,
    name: RuleName,
    session: Db,
    data: Data,
    _: Reader,
    before: Before,
    state: DecisionState | None = None,
    reason: DecisionReason | None = None,
    limit: Limit = PAGE_DEFAULT,
) -> Page[RuleDecision]:
    """List what a rule decided on each revision of a series, newest first, also for a rule that was removed. Decisions
    on series that a rule does not want are kept for 30 days."""
    conditions = [RuleDecisionRow.rule == name]
    if state is not None:
        conditions.append(RuleDecisionRow.state == state)
    if reason is not None:
        conditions.append(RuleDecisionRow.reason == reason)
    total = session.scalar(select(func.count(RuleDecisionRow.id)).where(*conditions)) or 0
    query = select(RuleDecisionRow).where(*conditions).order_by(RuleDecisionRow.id.desc()).limit(limit + 1)
    rows = session.scalars(query if before is None else query.where(RuleDecisionRow.id < before)).all()
    return Page[RuleDecision](
        items=_decisions(session, data.current(), rows[:limit]),
        total=total,
        next=encode_cursor(rows[limit - 1].id) if len(rows) > limit else None,
    )


def _view(session: Session, data: DataFolder, row: StoredRule) -> RuleView:
    now = clock(session)
    return RuleView(
        rule=row.rule,
        from_file=row.from_file,
        enabled_at=row.enabled_at,
        changed_at=row.changed_at or now,
        changed_by=row.changed_by,
        minutes_used=orders.minutes_used(session, rules.budget_name(row.name)),
        problems=[f"{field}: {detail}" for field, detail in rules.problems(session, data, row.rule)],
        watched=_watched(session, data, row) if row.enabled_at is not None else None,
    )


def _watched(session: Session, data: DataFolder, rule: StoredRule) -> WatchedListView | None:
    name = rule.rule.archive
    row = session.get(WatchedList, name)
    if row is None:
        return None
    archive = data.archive(name)
    return WatchedListView(
        archive=name,
        list=None if archive is None else archive.list,
        read_at=row.read_at,
        mails=row.mails,
        last_mail_at=row.last_mail_at,
        undecided=watched_lists.undecided(session, name),
        failure=row.failure,
        failing_since=row.failing_since,
        waiting_for_worker_since=watched_lists.waits_for_worker_since(session, name, clock(session)),
    )


def _decisions(session: Session, data: DataFolder, rows: Sequence[RuleDecisionRow]) -> list[RuleDecision]:
    keys = [str(row.id) for row in rows]
    query = select(Order).where(Order.source == rules.SOURCE, Order.key.in_(keys))
    placed = {int(order.key): order for order in session.scalars(query)}
    return [_decision(data, row, placed.get(row.id)) for row in rows]


def _decision(data: DataFolder, row: RuleDecisionRow, order: Order | None) -> RuleDecision:
    archive = data.archive(row.archive)
    others = {"url", "minutes", "retry_at"}
    fields = {name: getattr(row, name) for name in RuleDecision.model_fields if name not in others}
    return RuleDecision(
        **fields,
        url="" if archive is None else archive.page(row.message_id),
        minutes=order.quoted_s / 60 if order is not None and order.submission_id is not None else None,
        retry_at=order.due_at if order is not None and order.state is OrderState.WAITING else None,
    )
