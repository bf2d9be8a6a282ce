"""Load lines, points and shifts as resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pydantic_core import to_json
from sqlalchemy import RowMapping, func, select
from sqlalchemy.orm import Session

from wqlab_contracts.api import history as api
from wqlab_contracts.api.watches import HeadRef
from wqlab_contracts.enums import ShiftState

from ..models import Bisection, HistoryLine, HistoryPoint, HistoryShift, Run, WatchedHead
from .shifts import is_worse

OPEN = (ShiftState.NEW, ShiftState.CONFIRMED)

_submission_id = (
    select(Run.submission_id).where(Run.id == HistoryPoint.run_id).correlate(HistoryPoint).scalar_subquery()
)
"""Submission of a point's run, by an index lookup for each point: a join would read all runs for a long line."""
_POINT_COLUMNS = (
    HistoryPoint.line_id,
    HistoryPoint.head_id,
    WatchedHead.name,
    WatchedHead.commit,
    HistoryPoint.at,
    HistoryPoint.value,
    HistoryPoint.stddev,
    HistoryPoint.n,
    HistoryPoint.effect,
    HistoryPoint.ci_low,
    HistoryPoint.ci_high,
    HistoryPoint.verdict,
    HistoryPoint.run_id,
    _submission_id.label("submission_id"),
    HistoryPoint.cut,
)


def lines_of(session: Session, rows: Sequence[HistoryLine]) -> list[api.HistoryLine]:
    """Return lines with their last points, in the order of `rows`."""
    ids = [row.id for row in rows]
    counted = session.execute(
        select(HistoryShift.line_id, func.count())
        .where(HistoryShift.line_id.in_(ids), HistoryShift.state.in_(OPEN))
        .group_by(HistoryShift.line_id)
    )
    opened = {line_id: count for line_id, count in counted}  # noqa: C416 - rows, not tuples
    last = _last_points(session, ids)
    return [api.HistoryLine(**_line_fields(row, last.get(row.id), opened.get(row.id, 0))) for row in rows]


def points_of(session: Session, line_id: int) -> Sequence[RowMapping]:
    """Return the columns of a line's points, oldest first."""
    return (
        session.execute(
            select(*_POINT_COLUMNS)
            .join(WatchedHead, WatchedHead.id == HistoryPoint.head_id)
            .where(HistoryPoint.line_id == line_id)
            .order_by(HistoryPoint.head_id)
        )
        .mappings()
        .all()
    )


def line_json(session: Session, row: HistoryLine) -> bytes:
    """Return a line with all its points, levels and shifts, as `HistoryLineData` in JSON.

    The points are written from their columns. A model object for each of thousands would double the time.
    """
    series = [_point_content(each) for each in points_of(session, row.id)]
    rows = session.scalars(select(HistoryShift).where(HistoryShift.line_id == row.id).order_by(HistoryShift.id)).all()
    found = shifts_of(session, rows)
    opened = sum(each.state in OPEN for each in found)
    last = _last_points(session, [row.id]).get(row.id)
    data = api.HistoryLineData(**_line_fields(row, last, opened), series=[], levels=row.levels, shifts=found)
    return to_json({**data.model_dump(), "series": series}, inf_nan_mode="null")


def shifts_of(session: Session, rows: Sequence[HistoryShift]) -> list[api.HistoryShift]:
    """Return shifts with their lines and heads, in the order of `rows`."""
    lines = session.scalars(select(HistoryLine).where(HistoryLine.id.in_({row.line_id for row in rows}))).all()
    views = {view.id: view for view in lines_of(session, lines)}
    heads = _heads(session, {id_ for row in rows for id_ in (row.before_id, row.after_id)})
    searches = _bisections(session, {row.bisection_id for row in rows if row.bisection_id is not None})
    return [_shift(row, views[row.line_id], heads, searches) for row in rows]


def _bisections(session: Session, ids: Iterable[int]) -> dict[int, api.ShiftBisection]:
    rows = session.execute(
        select(Bisection.id, Bisection.state, Bisection.culprit, Bisection.first, Bisection.culprit_subject).where(
            Bisection.id.in_(list(ids))
        )
    )
    return {
        row.id: api.ShiftBisection(
            id=row.id, state=row.state, culprit=row.culprit, first=row.first, subject=row.culprit_subject
        )
        for row in rows
    }


def _shift(
    row: HistoryShift,
    line: api.HistoryLine,
    heads: Mapping[int, HeadRef],
    searches: Mapping[int, api.ShiftBisection],
) -> api.HistoryShift:
    return api.HistoryShift(
        id=row.id,
        line=line,
        state=row.state,
        source=row.source,
        before=heads[row.before_id],
        after=heads[row.after_id],
        suspected_effect=row.suspected_effect,
        worse=is_worse(line.direction, row.suspected_effect),
        submission_id=row.submission_id,
        bisection=searches[row.bisection_id] if row.bisection_id is not None else None,
        effect=row.effect,
        ci95=_interval(row.ci_low, row.ci_high),
        verdict=row.verdict,
        reason=row.reason,
        owner=row.owner,
        notes=row.notes,
        created_at=row.created_at,
        decided_at=row.decided_at,
        changed_at=row.changed_at,
        changed_by=row.changed_by,
    )


def _line_fields(row: HistoryLine, last: api.HistoryPoint | None, opened: int) -> dict[str, object]:
    return {
        "id": row.id,
        "tree": row.watch,
        "ref": row.ref,
        "plan": row.plan_name,
        "device_type": row.device_type,
        "scenario": row.scenario,
        "setting": row.setting,
        "metric": row.metric,
        "unit": row.unit,
        "scale": row.scale,
        "direction": row.direction,
        "role": row.role,
        "evidence": row.evidence,
        "points": row.points,
        "last": last,
        "level": row.levels[-1] if row.levels else None,
        "recent": row.recent,
        "delta": row.delta,
        "open_shifts": opened,
    }


def _last_points(session: Session, line_ids: Sequence[int]) -> dict[int, api.HistoryPoint]:
    """Return the newest point of each line, by one index lookup each."""
    newest = (
        select(HistoryPoint.head_id)
        .where(HistoryPoint.line_id == HistoryLine.id)
        .order_by(HistoryPoint.head_id.desc())
        .limit(1)
        .correlate(HistoryLine)
        .scalar_subquery()
    )
    found = session.execute(
        select(*_POINT_COLUMNS)
        .select_from(HistoryLine)
        .join(HistoryPoint, (HistoryPoint.line_id == HistoryLine.id) & (HistoryPoint.head_id == newest))
        .join(WatchedHead, WatchedHead.id == HistoryPoint.head_id)
        .where(HistoryLine.id.in_(line_ids))
    ).mappings()
    return {row["line_id"]: api.HistoryPoint.model_validate(_point_content(row)) for row in found}


def _heads(session: Session, ids: Iterable[int]) -> dict[int, HeadRef]:
    rows = session.execute(
        select(WatchedHead.id, WatchedHead.name, WatchedHead.commit).where(WatchedHead.id.in_(list(ids)))
    )
    return {row.id: HeadRef(id=row.id, name=row.name, commit=row.commit) for row in rows}


def _point_content(row: RowMapping) -> dict[str, object]:
    """Return the fields of an `api.HistoryPoint`."""
    return {
        "head": {"id": row["head_id"], "name": row["name"], "commit": row["commit"]},
        "at": row["at"],
        "value": row["value"],
        "stddev": row["stddev"],
        "n": row["n"],
        "effect": row["effect"],
        "ci95": _interval(row["ci_low"], row["ci_high"]),
        "verdict": row["verdict"],
        "run_id": row["run_id"],
        "submission_id": row["submission_id"],
        "cut": row["cut"],
    }


def _interval(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (low, high)
