"""Load bisections as resources."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit
from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_comparison.bisection import Shift
from wqlab_contracts.api import bisections as api
from wqlab_contracts.enums import BisectionStepKind as Kind
from wqlab_contracts.enums import BisectionStepState as State
from wqlab_contracts.enums import Scale
from wqlab_contracts.messages.commit_lists import ListedCommit

from ..models import Bisection, BisectionStep, CommitList, HistoryShift
from .plan import Line, lines_of


def bisections_of(session: Session, rows: Sequence[Bisection]) -> list[api.Bisection]:
    """Return bisections, in the order of `rows`."""
    shifts = _shifts(session, rows)
    found = session.scalars(
        select(BisectionStep)
        .where(BisectionStep.bisection_id.in_([row.id for row in rows]), BisectionStep.kind == Kind.REVERT)
        .order_by(BisectionStep.id)
    )
    reverts = {each.bisection_id: each for each in found}
    return [api.Bisection.model_validate(_fields(row, shifts.get(row.id), reverts.get(row.id))) for row in rows]


def bisection_data(session: Session, row: Bisection) -> api.BisectionData:
    """Return a bisection with its commits and steps."""
    listed = session.scalars(
        select(CommitList).where(CommitList.bisection_id == row.id).order_by(CommitList.level, CommitList.id)
    ).all()
    steps = session.scalars(
        select(BisectionStep).where(BisectionStep.bisection_id == row.id).order_by(BisectionStep.id)
    ).all()
    levels = {each.id: each.level for each in listed}
    return api.BisectionData.model_validate(
        {
            **_fields(
                row,
                _shifts(session, [row]).get(row.id),
                next((each for each in reversed(steps) if each.kind is Kind.REVERT), None),
            ),
            "levels": [_level(row, line) for line in lines_of(listed, steps).values()],
            "steps": [_step(each, levels[each.list_id]) for each in steps],
        }
    )


def _shifts(session: Session, rows: Sequence[Bisection]) -> dict[int, int]:
    """Return bisection -> its first shift."""
    found = session.execute(
        select(HistoryShift.bisection_id, HistoryShift.id)
        .where(HistoryShift.bisection_id.in_([row.id for row in rows]))
        .order_by(HistoryShift.id.desc())
    )
    return {bisection_id: shift_id for bisection_id, shift_id in found if bisection_id is not None}


def _fields(row: Bisection, shift_id: int | None, reverted: BisectionStep | None) -> dict[str, object]:
    culprit = None
    if row.culprit is not None:
        culprit = api.CommitRef(
            commit=row.culprit,
            subject=row.culprit_subject,
            author=row.culprit_author,
            is_merge=row.culprit_is_merge,
        )
    return {
        "id": row.id,
        "request": row.request,
        "owner": row.owner,
        "state": row.state,
        "reason": row.reason,
        "good": row.good,
        "bad": row.bad,
        "commits": row.commits,
        "culprit": culprit,
        "first": row.first,
        "probability": row.probability,
        "effect": row.effect,
        "ci95": _interval(row.ci_low, row.ci_high),
        "culprit_effect": row.culprit_effect,
        "culprit_ci95": _interval(row.culprit_ci_low, row.culprit_ci_high),
        "reverted": _step(reverted, 0) if reverted is not None else None,
        "scale": row.scale,
        "unit": row.unit,
        "failure_rate": row.failure_rate,
        "failure_title": row.failure_title,
        "device": row.device,
        "boots": row.boots,
        "plain_boots": row.plain_boots,
        "shift_id": shift_id,
        "watch": row.watch,
        "created_at": row.created_at,
        "ended_at": row.ended_at,
    }


def _step(row: BisectionStep, level: int) -> api.BisectionStep:
    return api.BisectionStep(
        id=row.id,
        kind=row.kind,
        state=row.state,
        level=level,
        baseline=row.baseline,
        candidate=row.candidate,
        submission_id=row.submission_id,
        reason=row.reason,
        effect=row.effect,
        ci95=_interval(row.ci_low, row.ci_high),
        verdict=row.verdict,
        passed=row.passed,
        failed=row.failed,
        boots=row.boots,
        submitted_at=row.submitted_at,
        ended_at=row.ended_at,
    )


def _level(row: Bisection, line: Line) -> api.BisectionLevel:
    commits = line.commits
    chances = line.chances
    return api.BisectionLevel(
        merge=line.row.merge or None,
        good=line.good,
        bad=line.bad,
        measured=chances is not None,
        commits=[
            _commit(row, line, position, commit, 1 / len(commits) if chances is None else float(chances[position - 1]))
            for position, commit in enumerate(commits, start=1)
        ],
    )


def _commit(row: Bisection, line: Line, position: int, commit: ListedCommit, probability: float) -> api.BisectionCommit:
    """Return a commit with all blocks in which it was measured against the good one."""
    is_last = position == len(line.commits)
    own = [
        each
        for each in line.steps
        if (each.kind is Kind.PROBE and each.last == position) or (each.kind is Kind.ENDS and is_last)
    ]
    measured = [each for each in own if each.state is State.MEASURED]
    differences = [value for each in measured for value in each.differences]
    effect, ci95 = _estimate(line, differences, row.scale)
    return api.BisectionCommit(
        commit=commit.commit,
        subject=commit.subject,
        author=commit.author,
        is_merge=commit.is_merge,
        position=position,
        probability=probability,
        unusable=line.unusable.get(position, ""),
        effect=effect,
        ci95=ci95,
        blocks=len(differences),
        passed=sum(each.passed for each in measured),
        failed=sum(each.failed for each in measured),
        submissions=[each.submission_id for each in own],
    )


def _estimate(
    line: Line, differences: Sequence[float], scale: Scale | None
) -> tuple[float | None, tuple[float, float] | None]:
    """Return the mean difference of the blocks and its 95 % interval, from the noise of all blocks of the bisection."""
    if not differences:
        return None, None
    mean = float(np.mean(differences))
    change = line.change
    freedom = sum(len(group) - 1 for group in line.noise if len(group) > 1)
    if not isinstance(change, Shift) or not freedom or (line.ends is not None and line.ends.exact):
        return _effect(mean, scale), None
    half = float(stdtrit(freedom, 0.975)) * change.deviation / math.sqrt(len(differences))
    return _effect(mean, scale), (_effect(mean - half, scale), _effect(mean + half, scale))


def _effect(difference: float, scale: Scale | None) -> float:
    return 100 * math.expm1(difference) if scale is Scale.RATIO else difference


def _interval(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (low, high)
