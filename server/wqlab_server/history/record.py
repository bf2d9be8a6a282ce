"""Add the figures of a measured head to the lines of its history, and open the shifts that they make suspect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session, selectinload

from wqlab_contracts.api.report import ArmSummary
from wqlab_contracts.api.report import Comparison as ComparisonData
from wqlab_contracts.enums import PAIR, Arm, Evidence, Question, Role, RunPurpose, Verdict

from ..models import (
    Boot,
    Comparison,
    HistoryEnvironment,
    HistoryLine,
    HistoryPoint,
    Run,
    WatchedHead,
)
from ..storage.db import clock
from ..views import environment
from .shifts import open_shifts

RECENT = 40
"""Values that a line keeps for lists."""


@dataclass(frozen=True)
class _Measured:
    """A run of a head with its environments."""

    run: Run
    facts: Mapping[Arm, Mapping[str, str]]
    environment_ids: Mapping[Arm, int]


def record(session: Session, head: WatchedHead) -> list[HistoryLine]:
    """Add a point to each line that the head's submission measured, and return these lines.

    The head before gets a point of its baseline boots on a line where it has none. A kernel that is byte-identical to
    the one before was not booted, and has its value. Figures without evidence and explanatory metrics have no line. The
    caller has locked the tree, so that points of a line are added one after another.
    """
    runs = session.scalars(
        select(Run)
        .where(Run.submission_id == head.submission_id, Run.purpose == RunPurpose.MEASURE)
        .options(selectinload(Run.baseline_build), selectinload(Run.candidate_build))
        .order_by(Run.target, Run.id)
    ).all()
    lines = []
    for run in runs:
        if run.byte_identical:
            lines += _repeat_points(session, head, run)
            continue
        rows = _judged(session, run)
        if not rows:
            continue
        measured = _measured(session, run)
        for data in rows:
            line = _line(session, head, data)
            _add_points(session, line, head, measured, data)
            lines.append(line)
    head.in_history_at = clock(session)
    session.flush()
    for line in lines:
        if line.evidence is not Evidence.MODELLED:  # a shift is confirmed, bisected and told as a kernel's
            open_shifts(session, line)
    return lines


def _repeat_points(session: Session, head: WatchedHead, run: Run) -> list[HistoryLine]:
    """Give a head the values of the head before, whose kernel is byte-identical; return the lines that have them."""
    found = session.execute(
        select(HistoryLine, HistoryPoint)
        .join(HistoryPoint, HistoryPoint.line_id == HistoryLine.id)
        .where(
            HistoryLine.watch == head.watch,
            HistoryLine.ref == head.ref,
            HistoryLine.plan_name == run.plan_name,
            HistoryLine.device_type == run.device_type,
            HistoryPoint.head_id == head.parent_id,
        )
        .order_by(HistoryLine.id)
        .with_for_update(of=HistoryLine)
        .execution_options(populate_existing=True)
    ).all()
    for line, before in found:
        values = {
            "run_id": run.id,
            "environment_id": before.environment_id,
            "value": before.value,
            "n": 0,
            "effect": 0.0,
            "verdict": Verdict.EQUIVALENT,
            "at": run.finished_at or clock(session),
        }
        _insert_point(session, line, head.id, values)
    return [line for line, _ in found]


def _judged(session: Session, run: Run) -> list[ComparisonData]:
    """Return the comparisons of the two kernels that are evidence, without explanatory metrics."""
    rows = session.scalars(
        select(Comparison)
        .where(
            Comparison.run_id == run.id,
            Comparison.question == Question.KERNEL,
            Comparison.role != Role.EXPLANATORY,
        )
        .order_by(Comparison.position)
    )
    return [row.data for row in rows if row.data.evidence is not Evidence.NONE and row.data.candidate is not None]


def _measured(session: Session, run: Run) -> _Measured:
    boots = session.scalars(select(Boot).where(Boot.run_id == run.id, Boot.valid).order_by(Boot.id)).all()
    builds = {Arm.BASELINE: run.baseline_build, Arm.CANDIDATE: run.candidate_build}
    compilers = {
        arm: build.result.compiler if build is not None and build.result is not None else ""
        for arm, build in builds.items()
    }
    facts = {arm: environment.facts_of(run, arm, boots, compilers[arm]) for arm in PAIR}
    return _Measured(run, facts, {arm: _environment_id(session, facts[arm]) for arm in PAIR})


def _environment_id(session: Session, facts: Mapping[str, str]) -> int:
    digest = environment.digest_of(facts)
    session.execute(
        insert(HistoryEnvironment).values(digest=digest, facts=dict(facts)).on_conflict_do_nothing(),
    )
    return session.scalars(select(HistoryEnvironment.id).where(HistoryEnvironment.digest == digest)).one()


def _line(session: Session, head: WatchedHead, data: ComparisonData) -> HistoryLine:
    """Return the line of a comparison, locked; it is created with its first point."""
    key = {
        "watch": head.watch,
        "ref": head.ref,
        "plan_name": data.plan,
        "device_type": data.device_type,
        "scenario": data.scenario,
        "setting": data.setting,
        "metric": data.metric,
    }
    described = {
        "unit": data.unit,
        "scale": data.scale,
        "direction": data.direction,
        "role": data.role,
        "evidence": data.evidence,
        "delta": data.delta,
    }
    session.execute(
        insert(HistoryLine)
        .values(**key, **described, points=0, recent=[], levels=[])
        .on_conflict_do_update(constraint="uq_history_lines_key", set_=described)
    )
    return session.scalars(
        select(HistoryLine).filter_by(**key).with_for_update().execution_options(populate_existing=True)
    ).one()


def _add_points(
    session: Session, line: HistoryLine, head: WatchedHead, measured: _Measured, data: ComparisonData
) -> None:
    before = head.parent_id
    if before is not None and data.baseline is not None:
        known: Mapping[str, str] | None = session.scalar(
            select(HistoryEnvironment.facts)
            .join(HistoryPoint, HistoryPoint.environment_id == HistoryEnvironment.id)
            .where(HistoryPoint.line_id == line.id, HistoryPoint.head_id == before)
        )
        if known is None:
            _add_point(session, line, before, measured, Arm.BASELINE, summary=data.baseline)
            known = measured.facts[Arm.BASELINE]
        cut = environment.changes(known, measured.facts[Arm.BASELINE])
    else:
        cut = ""
    if data.candidate is not None:
        _add_point(session, line, head.id, measured, Arm.CANDIDATE, summary=data.candidate, data=data, cut=cut)


def _add_point(
    session: Session,
    line: HistoryLine,
    head_id: int,
    measured: _Measured,
    arm: Arm,
    *,
    summary: ArmSummary,
    data: ComparisonData | None = None,
    cut: str = "",
) -> None:
    low, high = data.ci95 if data is not None and data.ci95 is not None else (None, None)
    values = {
        "run_id": measured.run.id,
        "environment_id": measured.environment_ids[arm],
        "value": summary.mean,
        "stddev": summary.stddev,
        "n": summary.n,
        "effect": data.effect if data is not None else None,
        "ci_low": low,
        "ci_high": high,
        "verdict": data.verdict if data is not None else None,
        "cut": cut,
        "at": measured.run.compared_at,
    }
    _insert_point(session, line, head_id, values)


def _insert_point(session: Session, line: HistoryLine, head_id: int, values: Mapping[str, Any]) -> None:
    """Insert the point of a head unless the line has one, and update what the line keeps for lists."""
    added = session.scalar(
        insert(HistoryPoint)
        .values(line_id=line.id, head_id=head_id, **{"cut": "", **values})
        .on_conflict_do_nothing()
        .returning(HistoryPoint.head_id)
    )
    if added is not None:
        line.points += 1
        line.recent = [*line.recent, values["value"]][-RECENT:]
        line.last_at = values["at"]


def not_recorded(session: Session) -> dict[str, list[int]]:
    """Return the ids of measured heads whose figures are in no history yet, oldest first, by watched tree."""
    found: dict[str, list[int]] = defaultdict(list)
    for tree, head_id in session.execute(
        select(WatchedHead.watch, WatchedHead.id)
        .where(WatchedHead.state == "measured", WatchedHead.in_history_at.is_(None))
        .order_by(WatchedHead.id)
    ):
        found[tree].append(head_id)
    return found
