"""How long boots and builds took before: what every estimate of the server is made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import func, select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from wqlab_contracts.enums import Arm, Outcome

from ..models import Boot, Build, Run, SubmissionBuild

HISTORY = 40
"""How many of the newest boots or builds a usual time is taken from."""


@dataclass(frozen=True)
class Usual:
    seconds: float
    """Mean."""
    count: int
    """Of how many."""


@dataclass(frozen=True)
class BootTime(Usual):
    """One boot, power cycle to result."""

    workload_s: float
    """The part of it that grows with what is measured."""
    cells: float
    """How many scenarios times settings were measured in a boot."""

    def with_cells(self, cells: int) -> float:
        """Seconds of a boot that measures so many."""
        return self.seconds + self.workload_s * (cells / self.cells - 1)


def boots(session: Session, pairs: Collection[tuple[str, str]]) -> dict[tuple[str, str], BootTime]:
    """(plan, device type) -> the newest whole boots, power cycle to result; only pairs that were measured."""
    found = {}
    passed = select(Boot.id).where(Boot.run_id == Run.id, Boot.outcome == Outcome.PASSED)
    for plan, device_type in pairs:
        runs = (
            select(Run.id)
            .where(Run.plan_name == plan, Run.device_type == device_type, passed.exists())
            .order_by(Run.id.desc())
            .limit(HISTORY)
        )
        newest = (
            select(
                func.extract("epoch", Boot.finished_at - Boot.started_at).label("seconds"),
                func.coalesce(Boot.workload_s, 0.0).label("workload"),
                (
                    func.jsonb_array_length(type_coerce(Run.profile, JSONB)["settings"])
                    * func.jsonb_array_length(type_coerce(Run.plan, JSONB)["scenarios"])
                ).label("cells"),
            )
            .join(Run, Run.id == Boot.run_id)
            .where(Boot.run_id.in_(runs), Boot.outcome == Outcome.PASSED, Boot.finished_at.is_not(None))
            .order_by(Boot.id.desc())
            .limit(HISTORY)
            .subquery()
        )
        columns = newest.c
        count, *means = session.execute(
            select(func.count(), func.avg(columns.seconds), func.avg(columns.workload), func.avg(columns.cells))
        ).one()
        if count:
            seconds, workload_s, cells = map(float, means)
            found[plan, device_type] = BootTime(seconds, count, workload_s, cells)
    return found


def builds(session: Session) -> dict[tuple[str, str, Arm], Usual]:
    """(recipe, arch, arm) -> the newest builds that compiled something."""
    seconds: dict[tuple[str, str, Arm], list[float]] = defaultdict(list)
    rows = session.execute(
        select(SubmissionBuild.recipe, SubmissionBuild.arch, SubmissionBuild.arm, Build.result)
        .join(Build, Build.id == SubmissionBuild.build_id)
        .where(Build.outcome == Outcome.PASSED)
        .order_by(Build.id.desc())
        .limit(HISTORY)
    )
    for recipe, arch, arm, result in rows:
        if result is not None and not result.reused and result.duration_s > 0:
            seconds[recipe, arch, arm].append(result.duration_s)
    return {key: Usual(sum(each) / len(each), len(each)) for key, each in seconds.items()}
