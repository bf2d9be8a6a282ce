"""Noise floors: effects of the control series, by plan and device type.

They are the comparisons of the newest finished submission of the control series, so they need no table of their own:
retention never deletes comparisons.
"""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api.instrument import NoiseFloor
from wqlab_contracts.api.report import Comparison as ComparisonData
from wqlab_contracts.enums import Evidence, Question, Role, RunPurpose

from ..models import Comparison, Run, Submission


def noise_floors(session: Session, plan: str, device_type: str) -> list[NoiseFloor]:
    """Return the noise floors of a plan on an instrumented device type; empty if the control was never measured."""
    newest = session.execute(
        select(Run.id, Run.compared_at)
        .join(Submission, Submission.id == Run.submission_id)
        .where(
            Submission.noise_control,
            Run.purpose == RunPurpose.MEASURE,
            Run.plan_name == plan,
            Run.device_type == device_type,
            Run.compared_at.is_not(None),
            select(Comparison.run_id).where(Comparison.run_id == Run.id).exists(),
        )
        .order_by(Run.compared_at.desc())
        .limit(1)
    ).one_or_none()
    if newest is None:
        return []
    run_id, measured_at = newest
    rows = session.scalars(select(Comparison).where(Comparison.run_id == run_id).order_by(Comparison.position))
    return [
        NoiseFloor(
            scenario=of.scenario,
            setting=of.setting,
            metric=of.metric,
            floor=floor,
            seeds=of.candidate.n,
            measured_at=measured_at,
        )
        for of in (row.data for row in rows)
        if of.candidate is not None and (floor := _floor(of)) is not None
    ]


def _floor(of: ComparisonData) -> float | None:
    """Return the largest effect in percent that the control's interval contains; None if it has no interval."""
    counted = of.evidence is Evidence.INSTRUMENTED and of.role is not Role.EXPLANATORY
    if not counted or of.question is not Question.KERNEL or of.effect is None:
        return None
    if of.ci95 is not None:
        return max(map(abs, of.ci95))
    return abs(of.effect) if of.exact or of.effect == 0 else None
