"""Resources of watches, of their decisions and of the heads of watched trees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.watches import (
    HeadRange,
    HeadRef,
    WatchDecision,
    WatchedHead,
    WatchedListView,
    WatchedTreeView,
    WatchView,
)
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.enums import OrderState, Verdict, WatchedHeadState
from wqlab_contracts.specs import ListWatch, TreeWatch
from wqlab_contracts.yamlfile import dotted

from ..models import Order, Watch, WatchDecisionRow, WatchedList
from ..models import WatchedHead as HeadRow
from ..orders import orders
from ..storage.db import clock
from . import watched_lists, watched_trees, watches

HeadCounts = dict[WatchedHeadState, int]

# --- watches ----------------------------------------------------------------------------------------------------


def view(session: Session, row: Watch, data: DataFolder) -> WatchView:
    """Return the resource of a watch."""
    return views(session, [row], data)[0]


def views(session: Session, rows: Sequence[Watch], data: DataFolder) -> list[WatchView]:
    """Return the resources of watches."""
    session.flush()
    counts: dict[str, HeadCounts] = defaultdict(dict)
    for name, state, count in session.execute(
        select(HeadRow.watch, HeadRow.state, func.count())
        .where(HeadRow.watch.in_([row.name for row in rows]))
        .group_by(HeadRow.watch, HeadRow.state)
    ):
        counts[name][state] = count
    return [_view(session, row, data, counts[row.name]) for row in rows]


def _view(session: Session, row: Watch, data: DataFolder, heads: HeadCounts) -> WatchView:
    spec = row.spec
    source = watches.LIST_SOURCE if isinstance(spec, ListWatch) else watches.TREE_SOURCE
    return WatchView(
        spec=spec.model_copy(update={"enabled": row.enabled_at is not None}),
        enabled_at=row.enabled_at,
        from_file=row.from_file,
        created_at=row.created_at,
        created_by=row.created_by,
        changed_at=row.changed_at,
        changed_by=row.changed_by,
        minutes_used=orders.minutes_used(session, row.name),
        waiting_for=orders.why_orders_wait(session, source, row.name),
        problems=[f"{dotted(place)}: {text}" for place, text in watches.problems(session, spec, data)],
        mailing_list=_list_view(session, row, spec, data) if isinstance(spec, ListWatch) else None,
        repository=_tree_view(row, spec, data, heads) if isinstance(spec, TreeWatch) else None,
    )


def _list_view(session: Session, watch: Watch, spec: ListWatch, data: DataFolder) -> WatchedListView | None:
    row = session.get(WatchedList, spec.archive) if watch.enabled_at is not None else None
    if row is None:
        return None
    archive = data.archive(spec.archive)
    return WatchedListView(
        archive=spec.archive,
        list=None if archive is None else archive.list,
        read_at=row.read_at,
        mails=row.mails,
        last_mail_at=row.last_mail_at,
        undecided=watched_lists.undecided(session, spec.archive),
        failure=row.failure,
        failing_since=row.failing_since,
        waiting_for_worker_since=watched_lists.waits_for_worker_since(session, spec.archive, clock(session)),
    )


def _tree_view(watch: Watch, spec: TreeWatch, data: DataFolder, heads: HeadCounts) -> WatchedTreeView:
    return WatchedTreeView(
        url=watched_trees.url_of(spec, data),
        looked_at=watch.looked_at,
        next_look_at=watch.due_at if watch.enabled_at is not None else None,
        problem=watch.problem,
        heads=heads,
    )


# --- decisions --------------------------------------------------------------------------------------------------


def decisions(session: Session, data: DataFolder, rows: Sequence[WatchDecisionRow]) -> list[WatchDecision]:
    """Return the resources of decisions."""
    keys = [str(row.id) for row in rows]
    query = select(Order).where(Order.source == watches.LIST_SOURCE, Order.key.in_(keys))
    placed = {int(order.key): order for order in session.scalars(query)}
    return [_decision(data, row, placed.get(row.id)) for row in rows]


def _decision(data: DataFolder, row: WatchDecisionRow, order: Order | None) -> WatchDecision:
    archive = data.archive(row.archive)
    others = {"url", "minutes", "retry_at"}
    fields = {name: getattr(row, name) for name in WatchDecision.model_fields if name not in others}
    return WatchDecision(
        **fields,
        url="" if archive is None else archive.page(row.message_id),
        minutes=order.quoted_s / 60 if order is not None and order.submission_id is not None else None,
        retry_at=order.due_at if order is not None and order.state is OrderState.WAITING else None,
    )


# --- heads ------------------------------------------------------------------------------------------------------


def heads(session: Session, rows: Sequence[HeadRow]) -> list[WatchedHead]:
    """Return the resources of heads."""
    wanted = {id_ for row in rows for id_ in (row.parent_id, row.skipped_by_id) if id_ is not None}
    others = {row.id: row for row in session.scalars(select(HeadRow).where(HeadRow.id.in_(wanted)))}
    return [_head(session, row, others) for row in rows]


def _head(session: Session, row: HeadRow, others: dict[int, HeadRow]) -> WatchedHead:
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
        select(HeadRow.commit).where(HeadRow.skipped_by_id == row.id, HeadRow.watch == row.watch).order_by(HeadRow.id)
    ).all()
    return HeadRange(
        good=parent.commit,
        bad=row.commit,
        commits=row.related.ahead if row.related is not None else None,
        skipped=list(skipped),
        descends=row.related is not None and row.related.behind == 0,
    )
