"""Open a bisection for each confirmed shift of a watched tree: it searches the commit, within the watch's minutes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import structlog
from sqlalchemy import case, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.bisections import BisectionRequest
from wqlab_contracts.enums import Role, ShiftState
from wqlab_contracts.loading import DataFolder

from ..bisections import service
from ..http.problems import ApiProblem
from ..intake import watched_trees
from ..models import Bisection, HistoryLine, HistoryShift, Watch, WatchedHead
from ..orders.source import Context, Source
from ..storage.db import clock

MOST_AGE = timedelta(days=7)
"""Age of a decision up to which a shift is bisected: an old one would use the device time of what is new."""

log = structlog.get_logger(__name__)


class ShiftBisections(Source):
    """Confirmed shifts. It places no orders: the steps of the bisections that it opens are those of another source."""

    name = "shift bisections"

    def items(self, context: Context) -> Sequence[int]:
        return context.session.scalars(
            select(HistoryShift.id)
            .join(HistoryLine, HistoryLine.id == HistoryShift.line_id)
            .where(
                HistoryShift.state == ShiftState.CONFIRMED,
                HistoryShift.bisection_id.is_(None),
                HistoryShift.decided_at > clock(context.session) - MOST_AGE,
            )
            # The primary metric is what the others follow from.
            .order_by(case((HistoryLine.role == Role.PRIMARY, 0), else_=1), HistoryShift.id)
        ).all()

    def find(self, context: Context, item: int | str) -> None:
        """Open the bisection of a shift; shifts of the same heads and target share one."""
        _open(context.session, int(item), context.data)


def _open(session: Session, shift_id: int, data: DataFolder) -> None:
    line = session.scalars(
        select(HistoryLine)
        .join(HistoryShift, HistoryShift.line_id == HistoryLine.id)
        .where(HistoryShift.id == shift_id)
    ).one()
    watch = session.get_one(Watch, line.watch, with_for_update=True)
    shift = session.get_one(HistoryShift, shift_id, with_for_update=True, populate_existing=True)
    if shift.bisection_id is not None or watch.enabled_at is None or watch.tree_spec.tree not in data.trees:
        return
    spec = watch.tree_spec
    same = _bisection_of_equal_shift(session, line, shift)
    if same is not None:
        shift.bisection_id = same
        return
    before, after = (session.get_one(WatchedHead, id_) for id_ in (shift.before_id, shift.after_id))
    request = BisectionRequest(
        tree=spec.tree,
        good=before.commit,
        bad=after.commit,
        ref=after.name,
        plan=line.plan_name,
        device_type=line.device_type,
        scenario=line.scenario,
        setting=line.setting,
        parameters=spec.parameters,
        metric=line.metric,
        blocks=spec.blocks,
        priority=spec.priority,
    )
    try:
        made = service.create(
            session,
            data,
            request,
            spec.owner,
            limited=True,
            repository=watched_trees.repository_of(spec, data),
            watch=watch.name,
        )
    except ApiProblem as problem:  # such as a plan that is gone
        shift.reason = f"not bisected: {problem.text}"
        return
    shift.bisection_id = made.id
    log.info("shift_bisected", shift=shift.id, bisection=made.id)


def _bisection_of_equal_shift(session: Session, line: HistoryLine, shift: HistoryShift) -> int | None:
    """Return the bisection of another shift between the same heads, measured by the same plan on the same type."""
    return session.scalar(
        select(Bisection.id)
        .join(HistoryShift, HistoryShift.bisection_id == Bisection.id)
        .join(HistoryLine, HistoryLine.id == HistoryShift.line_id)
        .where(
            HistoryShift.before_id == shift.before_id,
            HistoryShift.after_id == shift.after_id,
            HistoryLine.plan_name == line.plan_name,
            HistoryLine.device_type == line.device_type,
        )
        .order_by(Bisection.id)
        .limit(1)
    )
