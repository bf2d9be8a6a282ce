"""Read the mean durations of past boots and builds, the basis of all estimates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import func, select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from wqlab_contracts.enums import Arm, Outcome

from ..models import Boot, Build, Run, Submission, SubmissionBuild

HISTORY = 40
"""Number of the newest boots or builds that a mean is taken over."""


@dataclass(frozen=True)
class MeanTime:
    seconds: float
    count: int
    """Number of boots or builds in the mean."""


@dataclass(frozen=True)
class BootTime(MeanTime):
    """Mean time of one boot, from power cycle to result."""

    workload_s: float
    """The part of `seconds` that is proportional to the number of cells."""
    cells: float
    """Mean number of cells (scenarios times settings) measured in a boot."""

    def scaled_to(self, cells: int) -> float:
        """Return the seconds of a boot that measures `cells` cells."""
        return self.seconds + self.workload_s * (cells / self.cells - 1)


BuildTimes = dict[tuple[str, str, str, Arm], MeanTime]
"""(tree, recipe, arch, arm) -> mean time of past builds."""


def boot_times(session: Session, targets: Collection[tuple[str, str]]) -> dict[tuple[str, str], BootTime]:
    """Return (plan, device type) -> mean time of the newest passed boots; only targets that were measured."""
    found = {}
    passed = select(Boot.id).where(Boot.run_id == Run.id, Boot.outcome == Outcome.PASSED)
    for plan, device_type in targets:
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


def build_times(session: Session) -> BuildTimes:
    """Return (tree, recipe, arch, arm) -> mean time of the newest builds that compiled something.

    The first build of a tree takes many times as long as those that find its objects in the compiler cache, so builds
    of other trees do not count.
    """
    seconds: dict[tuple[str, str, str, Arm], list[float]] = defaultdict(list)
    rows = session.execute(
        select(Submission.tree, SubmissionBuild.recipe, SubmissionBuild.arch, SubmissionBuild.arm, Build.result)
        .join(Build, Build.id == SubmissionBuild.build_id)
        .join(Submission, Submission.id == SubmissionBuild.submission_id)
        .where(Build.outcome == Outcome.PASSED)
        .order_by(Build.id.desc())
        .limit(HISTORY)
    )
    for tree, recipe, arch, arm, result in rows:
        if result is not None and not result.reused and result.duration_s > 0:
            seconds[tree, recipe, arch, arm].append(result.duration_s)
    return {key: MeanTime(sum(each) / len(each), len(each)) for key, each in seconds.items()}


def link_s(session: Session) -> float | None:
    """Return the mean seconds of a link of a kernel in another layout, over the last builds; None if there was none."""
    results = session.scalars(
        select(Build.result)
        .where(Build.layouts > 1, Build.outcome == Outcome.PASSED)
        .order_by(Build.id.desc())
        .limit(_RECENT_LINKED)
    )
    seconds = [layout.duration_s for result in results if result is not None for layout in result.layouts]
    return sum(seconds) / len(seconds) if seconds else None


_RECENT_LINKED = 20
