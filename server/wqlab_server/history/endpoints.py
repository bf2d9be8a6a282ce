"""Endpoints of the history: list lines, read one with its points, list shifts, and change one."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy import RowMapping, func, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.history import HistoryLine, HistoryLineData, HistoryShift, ShiftChange
from wqlab_contracts.enums import AuditAction, Role, ShiftState
from wqlab_contracts.jsontypes import JsonAwareTime

from ..http.audit import Audit
from ..http.auth import Maintainer, Reader
from ..http.deps import Db
from ..http.etags import revalidated
from ..http.paging import PAGE_DEFAULT, Before, Id, Limit, encode_cursor, plain_text
from ..http.problems import ApiProblem, documented, invalid, not_found
from ..models import HistoryLine as LineRow
from ..models import HistoryShift as ShiftRow
from ..models import User
from ..orders import orders
from ..storage.db import clock
from . import shifts
from .views import line_json, lines_of, points_of, shifts_of

router = APIRouter(prefix="/history", tags=["history"], responses=documented(401, 403, 422, 429))

_Text = Annotated[str | None, Query(max_length=200)]
_COLUMNS = (
    *("head", "commit", "at", "value", "stddev", "boots", "effect", "ci95_low", "ci95_high", "verdict"),
    *("submission", "run", "environment_change"),
)


class PointFormat(StrEnum):
    """Format of a line's points."""

    JSON = "json"
    CSV = "csv"


@router.get("/lines")
def list_history_lines(
    *,
    session: Db,
    _: Reader,
    before: Before,
    limit: Limit = PAGE_DEFAULT,
    tree: _Text = None,
    ref: _Text = None,
    plan: _Text = None,
    device_type: _Text = None,
    scenario: _Text = None,
    setting: _Text = None,
    metric: _Text = None,
    role: Role | None = None,
) -> Page[HistoryLine]:
    """List the metrics that are followed over the heads of watched trees, newest line first."""
    wanted = {
        LineRow.watch: tree,
        LineRow.ref: ref,
        LineRow.plan_name: plan,
        LineRow.device_type: device_type,
        LineRow.scenario: scenario,
        LineRow.setting: setting,
        LineRow.metric: metric,
    }
    conditions = []
    for column, value in wanted.items():
        if value is not None:
            plain_text(column.key, value)
            conditions.append(column == value)
    if role is not None:
        conditions.append(LineRow.role == role)
    total = session.scalar(select(func.count(LineRow.id)).where(*conditions)) or 0
    query = select(LineRow).where(*conditions).order_by(LineRow.id.desc()).limit(limit + 1)
    rows = session.scalars(query if before is None else query.where(LineRow.id < before)).all()
    return Page[HistoryLine](
        items=lines_of(session, rows[:limit]),
        total=total,
        next=encode_cursor(rows[limit - 1].id) if len(rows) > limit else None,
    )


@router.get(
    "/lines/{line_id}",
    response_model=HistoryLineData,
    responses={
        **documented(404),
        200: {"content": {"text/csv": {"schema": {"type": "string"}}}},
        304: {"description": "The line still has the ETag in `If-None-Match`"},
    },
)
def get_history_line(
    line_id: Id,
    request: Request,
    session: Db,
    _: Reader,
    format: Annotated[PointFormat, Query(description="`csv`: the points alone")] = PointFormat.JSON,
) -> Response:
    """A line with its points, levels and shifts."""
    row = session.get(LineRow, line_id)
    if row is None:
        raise not_found("history line", line_id)
    if format is PointFormat.JSON:
        return revalidated(request, line_json(session, row))
    name = f"wqlab-history-{line_id}.csv"
    return Response(
        _csv(points_of(session, line_id)),
        media_type="text/csv",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@router.get("/shifts")
def list_history_shifts(
    *,
    session: Db,
    _: Reader,
    before: Before,
    limit: Limit = PAGE_DEFAULT,
    state: ShiftState | None = None,
    tree: _Text = None,
    plan: _Text = None,
    device_type: _Text = None,
    since: Annotated[JsonAwareTime | None, Query(description="Opened at this time or later")] = None,
) -> Page[HistoryShift]:
    """List changes of a metric's level, newest first."""
    conditions = []
    for column, value in ((LineRow.watch, tree), (LineRow.plan_name, plan), (LineRow.device_type, device_type)):
        if value is not None:
            plain_text(column.key, value)
            conditions.append(column == value)
    if state is not None:
        conditions.append(ShiftRow.state == state)
    if since is not None:
        conditions.append(ShiftRow.created_at >= since)
    joined = select(ShiftRow).join(LineRow, LineRow.id == ShiftRow.line_id).where(*conditions)
    total = session.scalar(select(func.count()).select_from(joined.subquery())) or 0
    query = joined.order_by(ShiftRow.id.desc()).limit(limit + 1)
    rows = session.scalars(query if before is None else query.where(ShiftRow.id < before)).all()
    return Page[HistoryShift](
        items=shifts_of(session, rows[:limit]),
        total=total,
        next=encode_cursor(rows[limit - 1].id) if len(rows) > limit else None,
    )


@router.get("/shifts/{shift_id}", responses=documented(404))
def get_history_shift(shift_id: Id, session: Db, _: Reader) -> HistoryShift:
    """One shift."""
    row = session.get(ShiftRow, shift_id)
    if row is None:
        raise not_found("shift", shift_id)
    return shifts_of(session, [row])[0]


@router.patch("/shifts/{shift_id}", responses=documented(400, 404, 409, rules="there is no account of this name"))
def change_history_shift(
    *, shift_id: Id, body: ShiftChange, session: Db, principal: Maintainer, audit: Audit
) -> HistoryShift:
    """Say why a shift is as it is, that it is fixed, or who looks after it. The figures stay.

    The state `new` has it measured again; `confirmed` undoes `explained` and `fixed`, and needs a paired run that
    has confirmed it.
    """
    row = session.get(ShiftRow, shift_id, with_for_update=True)
    if row is None:
        raise not_found("shift", shift_id)
    if body.owner and session.scalar(select(User.id).where(User.name == body.owner)) is None:
        raise invalid([{"pointer": "/owner", "detail": f"there is no account {body.owner!r}"}])
    if body.state is not None and body.state != row.state:
        _set_state(session, row, ShiftState(body.state))
    if body.owner is not None:
        row.owner = body.owner
    if body.notes is not None:
        row.notes = body.notes
    row.changed_at, row.changed_by = clock(session), principal.owner
    audit.record(
        session, AuditAction.CHANGE_SHIFT, f"shift/{row.id}", changed=body.model_dump(mode="json", exclude_unset=True)
    )
    session.flush()
    return shifts_of(session, [row])[0]


def _set_state(session: Session, row: ShiftRow, state: ShiftState) -> None:
    if state is ShiftState.CONFIRMED and row.effect is None:
        raise ApiProblem(409, f"shift {row.id} was not measured again; set the state new, and the lab measures it")
    if state is ShiftState.NEW:
        row.submission_id, row.reason = None, ""
        orders.forget(session, shifts.SOURCE, shifts.order_key(row, session.get_one(LineRow, row.line_id)))
    row.state = state


def _csv(points: Iterable[RowMapping]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for point in points:
        writer.writerow(
            [
                point["name"], point["commit"], point["at"].isoformat(), point["value"], point["stddev"], point["n"],
                point["effect"], point["ci_low"], point["ci_high"], point["verdict"], point["submission_id"],
                point["run_id"], point["cut"],
            ]
        )  # fmt: skip
    return text.getvalue()
