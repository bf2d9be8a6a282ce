"""Endpoints of watched trees: list, add, change, enable, disable and remove them, look now, and list their heads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Query, status
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.watched_trees import HeadRange, HeadRef, WatchedHead, WatchedTreeView
from wqlab_contracts.enums import AuditAction, Verdict, WatchedHeadState
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.specs import WatchedTree as Spec

from ..http.audit import Audit
from ..http.auth import Maintainer, Reader
from ..http.deps import AppSettings, Data, Db
from ..http.paging import PAGE_DEFAULT, Before, Limit, encode_cursor, plain_text
from ..http.problems import documented
from ..models import WatchedHead as HeadRow
from ..models import WatchedTree
from ..orders import orders
from . import watched_trees

router = APIRouter(prefix="/watched-trees", tags=["watched trees"], responses=documented(401, 403, 422, 429))

WatchedName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
_RULES = "the lab has no such tree, plan, device type or account, or the tree is no git repository"


@router.get("")
def list_watched_trees(session: Db, data: Data, _: Reader) -> list[WatchedTreeView]:
    """List the watched trees by name."""
    query = select(WatchedTree).where(WatchedTree.removed_at.is_(None)).order_by(WatchedTree.name)
    return _views(session, session.scalars(query).all(), data.current())


@router.post("", status_code=status.HTTP_201_CREATED, responses=documented(400, 409, rules=_RULES))
def add_watched_tree(
    *, body: Spec, session: Db, data: Data, settings: AppSettings, principal: Maintainer, audit: Audit
) -> WatchedTreeView:
    """Watch branches or tags of a tree. The first head of each is the starting point; later ones are measured."""
    row = watched_trees.add(session, body, data.current(), settings, by=principal.owner)
    audit.record(session, AuditAction.CREATE_WATCHED_TREE, _resource(row), spec=body.model_dump(mode="json"))
    return _view(session, row, data.current())


@router.get("/{name}", responses=documented(404))
def get_watched_tree(name: WatchedName, session: Db, data: Data, _: Reader) -> WatchedTreeView:
    """One watched tree."""
    return _view(session, watched_trees.get(session, name), data.current())


@router.put("/{name}", responses=documented(400, 404, 409, rules=f"{_RULES}; `name` is another one"))
def change_watched_tree(
    *,
    name: WatchedName,
    body: Spec,
    session: Db,
    data: Data,
    settings: AppSettings,
    principal: Maintainer,
    audit: Audit,
) -> WatchedTreeView:
    """Replace what is watched and measured. Heads that wait are measured as the new one says."""
    row = watched_trees.change(session, name, body, data.current(), settings, by=principal.owner)
    audit.record(session, AuditAction.CHANGE_WATCHED_TREE, _resource(row), spec=body.model_dump(mode="json"))
    return _view(session, row, data.current())


@router.delete("/{name}", responses=documented(404, 409))
def remove_watched_tree(name: WatchedName, session: Db, data: Data, _: Maintainer, audit: Audit) -> WatchedTreeView:
    """Stop watching a tree. Its heads are kept: if it is added again, none is measured twice."""
    row = watched_trees.remove(session, name)
    audit.record(session, AuditAction.REMOVE_WATCHED_TREE, _resource(row))
    return _view(session, row, data.current())


@router.post("/{name}/enable", responses=documented(404))
def enable_watched_tree(name: WatchedName, session: Db, data: Data, _: Maintainer, audit: Audit) -> WatchedTreeView:
    """Watch a tree again and look now. Enabling it twice changes nothing."""
    row = watched_trees.switch(session, name, enabled=True)
    audit.record(session, AuditAction.ENABLE_WATCHED_TREE, _resource(row))
    return _view(session, row, data.current())


@router.post("/{name}/disable", responses=documented(404))
def disable_watched_tree(name: WatchedName, session: Db, data: Data, _: Maintainer, audit: Audit) -> WatchedTreeView:
    """Look for no heads and submit none; what is being measured ends. Disabling it twice changes nothing."""
    row = watched_trees.switch(session, name, enabled=False)
    audit.record(session, AuditAction.DISABLE_WATCHED_TREE, _resource(row))
    return _view(session, row, data.current())


@router.post("/{name}/check", responses=documented(404, 409))
def check_watched_tree(name: WatchedName, session: Db, data: Data, _: Maintainer, audit: Audit) -> WatchedTreeView:
    """Look for new heads now, for example after a push. The heads are there some seconds later."""
    row = watched_trees.look_now(session, name)
    audit.record(session, AuditAction.CHECK_WATCHED_TREE, _resource(row))
    return _view(session, row, data.current())


@router.get("/{name}/heads", responses=documented(404))
def list_watched_heads(
    *,
    name: WatchedName,
    session: Db,
    _: Reader,
    before: Before,
    limit: Limit = PAGE_DEFAULT,
    state: WatchedHeadState | None = None,
    ref: Annotated[str | None, Query(max_length=200, description="Branch or pattern of tags, as watched")] = None,
) -> Page[WatchedHead]:
    """List the heads that were seen, newest first, each with the one that it was compared with."""
    tree = watched_trees.get(session, name)
    conditions = [HeadRow.tree_name == tree.name]
    if state is not None:
        conditions.append(HeadRow.state == state)
    if ref is not None:
        plain_text("ref", ref)
        conditions.append(HeadRow.ref == ref)
    total = session.scalar(select(func.count(HeadRow.id)).where(*conditions)) or 0
    query = select(HeadRow).where(*conditions).order_by(HeadRow.id.desc()).limit(limit + 1)
    rows = session.scalars(query if before is None else query.where(HeadRow.id < before)).all()
    return Page[WatchedHead](
        items=_head_views(session, rows[:limit]),
        total=total,
        next=encode_cursor(rows[limit - 1].id) if len(rows) > limit else None,
    )


# --- views ------------------------------------------------------------------------------------------------------


def _resource(row: WatchedTree) -> str:
    return f"watched_tree/{row.name}"


def _view(session: Session, row: WatchedTree, data: DataFolder) -> WatchedTreeView:
    return _views(session, [row], data)[0]


def _views(session: Session, rows: Sequence[WatchedTree], data: DataFolder) -> list[WatchedTreeView]:
    session.flush()
    counts: dict[str, dict[WatchedHeadState, int]] = defaultdict(dict)
    for name, state, count in session.execute(
        select(HeadRow.tree_name, HeadRow.state, func.count())
        .where(HeadRow.tree_name.in_([row.name for row in rows]))
        .group_by(HeadRow.tree_name, HeadRow.state)
    ):
        counts[name][state] = count
    return [
        WatchedTreeView(
            spec=row.spec,
            enabled=row.enabled,
            from_file=row.from_file,
            url=watched_trees.url_of(row.spec, data),
            looked_at=row.looked_at,
            next_look_at=row.due_at if row.enabled and row.removed_at is None else None,
            problem=row.problem,
            waiting_for=orders.why_orders_wait(session, watched_trees.SOURCE, watched_trees.budget_name(row.name)),
            heads=counts[row.name],
            created_by=row.created_by,
            created_at=row.created_at,
            changed_at=row.changed_at,
        )
        for row in rows
    ]


def _head_views(session: Session, rows: Sequence[HeadRow]) -> list[WatchedHead]:
    wanted = {id_ for row in rows for id_ in (row.parent_id, row.skipped_by_id) if id_ is not None}
    others = {row.id: row for row in session.scalars(select(HeadRow).where(HeadRow.id.in_(wanted)))}
    return [_head_view(session, row, others) for row in rows]


def _head_view(session: Session, row: HeadRow, others: dict[int, HeadRow]) -> WatchedHead:
    def reference(id_: int | None) -> HeadRef | None:
        other = others.get(id_) if id_ is not None else None
        return None if other is None else HeadRef(id=other.id, name=other.name, commit=other.commit)

    parent = others.get(row.parent_id) if row.parent_id is not None else None
    return WatchedHead(
        id=row.id,
        ref=row.ref,
        name=row.name,
        commit=row.commit,
        state=row.state,
        reason=row.reason,
        seen_at=row.seen_at,
        returned_at=row.returned_at,
        compared_with=reference(row.parent_id),
        skipped_by=reference(row.skipped_by_id),
        submission_id=row.submission_id,
        submitted_at=row.submitted_at,
        ended_at=row.ended_at,
        verdicts=[Verdict(each) for each in row.verdicts],
        related=row.related,
        devices=row.devices,
        cut=row.cut,
        range=_range(session, row, parent) if row.ranged and parent is not None else None,
    )


def _range(session: Session, row: HeadRow, parent: HeadRow) -> HeadRange:
    skipped = session.scalars(
        select(HeadRow.commit)
        .where(HeadRow.skipped_by_id == row.id, HeadRow.tree_name == row.tree_name)
        .order_by(HeadRow.id)
    ).all()
    return HeadRange(
        good=parent.commit,
        bad=row.commit,
        commits=row.related.ahead if row.related is not None else None,
        skipped=list(skipped),
        descends=row.related is not None and row.related.behind == 0,
    )
