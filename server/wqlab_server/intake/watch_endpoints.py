"""Endpoints of watches: of all; previews and decisions of those of lists; looks and heads of those of trees."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, status
from sqlalchemy import func, select

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.watches import (
    PREVIEW_DAYS,
    PREVIEW_DAYS_MAX,
    WatchDecision,
    WatchedHead,
    WatchPreview,
    WatchView,
)
from wqlab_contracts.enums import AuditAction, DecisionReason, DecisionState, WatchedHeadState
from wqlab_contracts.specs import WatchSpec

from ..http import long_poll
from ..http.audit import Audit
from ..http.auth import Admin, Maintainer, Reader, Submitter
from ..http.deps import AppSettings, Data, Db
from ..http.paging import PAGE_DEFAULT, Before, Limit, encode_cursor, plain_text
from ..http.problems import documented
from ..models import Watch, WatchDecisionRow
from ..models import WatchedHead as HeadRow
from . import previews, watch_views, watches

router = APIRouter(prefix="/watches", tags=["watches"], responses=documented(401, 403, 422, 429))
WatchName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
_REFERENCES = (
    "the lab has no such archive, tree, plan, device type or account; the archive has no `epochs`; the tree is no git "
    "repository"
)
_SAME = "`name` or `kind` is another one; `enabled` differs from whether the watch is enabled"


@router.get("")
def list_watches(session: Db, data: Data, _: Reader) -> list[WatchView]:
    """List the watches by name, with the state of their lists and trees."""
    rows = session.scalars(select(Watch).where(Watch.removed_at.is_(None)).order_by(Watch.name)).all()
    return watch_views.views(session, rows, data.current())


@router.post("", status_code=status.HTTP_201_CREATED, responses=documented(400, 409, rules=_REFERENCES))
def create_watch(
    *, body: WatchSpec, session: Db, data: Data, settings: AppSettings, principal: Admin, audit: Audit
) -> WatchView:
    """Create a watch, disabled. It spends the quota of its `owner`, so that only administrators may create one."""
    row = watches.create(session, body, data.current(), settings, by=principal.owner)
    audit.record(session, AuditAction.CREATE_WATCH, f"watch/{row.name}", spec=watches.audited(body))
    return watch_views.view(session, row, data.current())


@router.get("/{name}", responses=documented(404))
def get_watch(name: WatchName, session: Db, data: Data, _: Reader) -> WatchView:
    """One watch, with the state of its list or tree."""
    return watch_views.view(session, watches.get(session, name), data.current())


@router.put("/{name}", responses=documented(400, 404, 409, rules=f"{_REFERENCES}; {_SAME}"))
def change_watch(
    *,
    name: WatchName,
    body: WatchSpec,
    session: Db,
    data: Data,
    settings: AppSettings,
    principal: Admin,
    audit: Audit,
) -> WatchView:
    """Replace a watch that is not of the data folder. It stays enabled or disabled; heads that wait are measured as the
    new one says, and series that it took already do not change."""
    row = watches.change(session, name, body, data.current(), settings, by=principal.owner)
    audit.record(session, AuditAction.CHANGE_WATCH, f"watch/{name}", spec=watches.audited(body))
    return watch_views.view(session, row, data.current())


@router.delete("/{name}", status_code=status.HTTP_204_NO_CONTENT, responses=documented(404, 409))
def remove_watch(name: WatchName, session: Db, _: Admin, audit: Audit) -> None:
    """Remove a watch that is not of the data folder. Its decisions or heads are kept: if it is added again, nothing is
    measured twice."""
    watches.remove(session, name)
    audit.record(session, AuditAction.REMOVE_WATCH, f"watch/{name}")


@router.post("/{name}/enable", responses=documented(404, rules=_REFERENCES))
def enable_watch(name: WatchName, session: Db, data: Data, principal: Maintainer, audit: Audit) -> WatchView:
    """Enable a watch: of a list it takes series whose last patch arrives from now on, of a tree it looks now. Enabling
    it twice changes nothing."""
    row, changed = watches.switch(session, name, data.current(), by=principal.owner, enabled=True)
    if changed:
        audit.record(session, AuditAction.ENABLE_WATCH, f"watch/{name}")
    return watch_views.view(session, row, data.current())


@router.post("/{name}/disable", responses=documented(404))
def disable_watch(name: WatchName, session: Db, data: Data, principal: Maintainer, audit: Audit) -> WatchView:
    """Disable a watch. Series that wait are not taken, heads that wait are not submitted; submissions that were made go
    on. Disabling it twice changes nothing."""
    row, changed = watches.switch(session, name, data.current(), by=principal.owner, enabled=False)
    if changed:
        audit.record(session, AuditAction.DISABLE_WATCH, f"watch/{name}")
    return watch_views.view(session, row, data.current())


# --- lists ------------------------------------------------------------------------------------------------------


@router.get("/{name}/preview", responses=documented(404, 409, 503, rules="the list cannot be read"))
async def preview_watch(
    *,
    request: Request,
    name: WatchName,
    data: Data,
    principal: Submitter,
    days: Annotated[int, Query(ge=1, le=PREVIEW_DAYS_MAX, description="Days before now to look at")] = PREVIEW_DAYS,
    wait_s: long_poll.WaitS = long_poll.DEFAULT_S,
) -> WatchPreview:
    """Show what a watch of a list would have taken in the last days, read from the archive by a worker of the lab. If
    this takes longer than `wait_s`, the response's `state` is not `finished` yet: repeat the request."""
    return await long_poll.wait_for_job(
        lambda session: previews.request(session, data.current(), name, days, principal.owner),
        previews.read,
        request=request,
        wait_s=wait_s,
    )


@router.get("/{name}/decisions")
def list_decisions(
    *,
    name: WatchName,
    session: Db,
    data: Data,
    _: Reader,
    before: Before,
    state: DecisionState | None = None,
    reason: DecisionReason | None = None,
    limit: Limit = PAGE_DEFAULT,
) -> Page[WatchDecision]:
    """List what a watch decided on each revision of a series, newest first, also for a watch that was removed.
    Decisions on series that a watch does not want are kept for 30 days."""
    conditions = [WatchDecisionRow.watch == name]
    if state is not None:
        conditions.append(WatchDecisionRow.state == state)
    if reason is not None:
        conditions.append(WatchDecisionRow.reason == reason)
    total = session.scalar(select(func.count(WatchDecisionRow.id)).where(*conditions)) or 0
    query = select(WatchDecisionRow).where(*conditions).order_by(WatchDecisionRow.id.desc()).limit(limit + 1)
    rows = session.scalars(query if before is None else query.where(WatchDecisionRow.id < before)).all()
    return Page[WatchDecision](
        items=watch_views.decisions(session, data.current(), rows[:limit]),
        total=total,
        next=encode_cursor(rows[limit - 1].id) if len(rows) > limit else None,
    )


# --- trees ------------------------------------------------------------------------------------------------------


@router.post("/{name}/check", responses=documented(404, 409))
def check_watch(name: WatchName, session: Db, data: Data, _: Maintainer, audit: Audit) -> WatchView:
    """Look for new heads of a watched tree now, for example after a push. The heads are there some seconds later."""
    row = watches.look_now(session, name)
    audit.record(session, AuditAction.CHECK_WATCH, f"watch/{name}")
    return watch_views.view(session, row, data.current())


@router.get("/{name}/heads", responses=documented(404, 409))
def list_watched_heads(
    *,
    name: WatchName,
    session: Db,
    _: Reader,
    before: Before,
    limit: Limit = PAGE_DEFAULT,
    state: WatchedHeadState | None = None,
    ref: Annotated[str | None, Query(max_length=200, description="Branch or pattern of tags, as watched")] = None,
) -> Page[WatchedHead]:
    """List the heads that were seen of a watched tree, newest first, each with the one that it was compared with."""
    watches.tree_spec(watches.get(session, name))
    conditions = [HeadRow.watch == name]
    if state is not None:
        conditions.append(HeadRow.state == state)
    if ref is not None:
        plain_text("ref", ref)
        conditions.append(HeadRow.ref == ref)
    total = session.scalar(select(func.count(HeadRow.id)).where(*conditions)) or 0
    query = select(HeadRow).where(*conditions).order_by(HeadRow.id.desc()).limit(limit + 1)
    rows = session.scalars(query if before is None else query.where(HeadRow.id < before)).all()
    return Page[WatchedHead](
        items=watch_views.heads(session, rows[:limit]),
        total=total,
        next=encode_cursor(rows[limit - 1].id) if len(rows) > limit else None,
    )
