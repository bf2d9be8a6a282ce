"""Noise floors: effects of the control series, by plan, its window, and device type.

They are the comparisons of the newest finished submission of the control series with the same parameters and
repetitions, since a shorter window is noisier. They need no table of their own: retention never deletes comparisons.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_comparison import ALPHA, LEAST_BLOCKS, MOST_BLOCKS, blocks_that_find, estimate_effect
from wqlab_contracts.api.instrument import NoiseFloor
from wqlab_contracts.api.report import Comparison as ComparisonData
from wqlab_contracts.enums import PAIR, SEEDED, Arm, Question, Role, RunPurpose, Scale
from wqlab_contracts.specs import Profile

from ..models import Boot, BootValue, Comparison, Run, Submission

MOST_SEEDS = 16
"""Most seeds that are planned without being asked for."""
_POWER = 0.95

_CONTROLS_LOOKED_AT = 100
"""Newest runs of the control series among which one with the same window is looked for."""

_Values = dict[tuple[str, str, str], dict[int, dict[Arm, float]]]
"""(scenario, setting, metric) -> block -> arm -> value."""


def noise_floors(session: Session, plan: str, device_type: str, profile: Profile) -> list[NoiseFloor]:
    """Return the noise floors of a plan on an instrumented device type; empty if the control was never measured with
    this profile's window."""
    newest = _newest_control(session, plan, device_type, profile)
    if newest is None:
        return []
    run_id, measured_at = newest
    values = _values(session, run_id)
    rows = session.scalars(select(Comparison).where(Comparison.run_id == run_id).order_by(Comparison.position))
    return [
        NoiseFloor(
            scenario=of.scenario,
            setting=of.setting,
            metric=of.metric,
            floor=floor,
            seeds=of.candidate.n,
            seeds_needed=_seeds_needed(of, values),
            measured_at=measured_at,
        )
        for of in (row.data for row in rows)
        if of.candidate is not None and (floor := _floor(of)) is not None
    ]


def control_spreads(session: Session, plan: str, device_type: str, profile: Profile) -> dict[str, float]:
    """Return metric -> largest standard deviation of a seed's difference in the control series, on the scale of the
    differences (logarithms for `ratio`)."""
    newest = _newest_control(session, plan, device_type, profile)
    if newest is None:
        return {}
    found: dict[str, float] = {}
    rows = session.scalars(select(Comparison).where(Comparison.run_id == newest[0]))
    scales = {row.data.metric: row.data.scale for row in rows}
    for (_, _, metric), blocks in _values(session, newest[0]).items():
        noise = _noise(blocks, scales.get(metric, Scale.RATIO))
        if noise is not None:
            found[metric] = max(found.get(metric, 0.0), float(np.sqrt(np.square(noise).mean())))
    return found


def _newest_control(session: Session, plan: str, device_type: str, profile: Profile) -> tuple[int, datetime] | None:
    controls = session.execute(
        select(Run.id, Run.compared_at, Run.profile)
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
        .limit(_CONTROLS_LOOKED_AT)
    )
    newest = next((row for row in controls if _has_same_window(row.profile, profile)), None)
    return None if newest is None or newest.compared_at is None else (newest.id, newest.compared_at)


def _floor(of: ComparisonData) -> float | None:
    """Return the largest effect, in the unit of effects, that the control's interval contains; None if it has none."""
    judged = of.evidence in SEEDED and of.role is not Role.EXPLANATORY
    if not judged or of.question is not Question.KERNEL or of.effect is None:
        return None
    if of.ci95 is not None:
        return max(map(abs, of.ci95))
    return abs(of.effect) if of.exact or of.effect == 0 else None


def _has_same_window(one: Profile, other: Profile) -> bool:
    return one.parameters == other.parameters and one.repetitions == other.repetitions


@dataclass(frozen=True)
class PlannedSeeds:
    """Number of seeds of a submission that states none, and the reason for it."""

    seeds: int
    why: str
    """For people: the metric that needs them, or that some effects are not found."""


def planned_seeds(session: Session, plan: str, device_type: str, profile: Profile) -> PlannedSeeds:
    """Return the seeds that show an effect of twice the threshold of every judged metric, at least LEAST_BLOCKS and at
    most MOST_SEEDS.

    Until the control was measured, the profile's own number applies.
    """
    floors = noise_floors(session, plan, device_type, profile)
    if not floors:
        why = f"the plan's number; the noise floor of {plan} on {device_type} is not measured"
        return PlannedSeeds(profile.blocks, why)
    missed = [floor for floor in floors if floor.seeds_needed is None or floor.seeds_needed > MOST_SEEDS]
    if missed:
        needs = ", ".join(f"{of.metric} needs {of.seeds_needed or 'more than ' + str(MOST_BLOCKS)}" for of in missed)
        return PlannedSeeds(
            MOST_SEEDS, f"the most that are planned unless the submission states more; by the noise floor {needs}"
        )
    most = max(floors, key=lambda floor: floor.seeds_needed or 0)
    needed = most.seeds_needed or LEAST_BLOCKS
    why = (
        "by the noise floor they show an effect of twice the threshold of each metric in 95 % of cases; "
        f"{most.metric} needs the most"
    )
    return PlannedSeeds(needed, why)


def _values(session: Session, run_id: int) -> _Values:
    found: _Values = defaultdict(lambda: defaultdict(dict))
    for value, block, arm in session.execute(
        select(BootValue, Boot.block, Boot.arm)
        .join(Boot, Boot.id == BootValue.boot_id)
        .where(BootValue.run_id == run_id)
    ):
        found[value.scenario, value.setting, value.metric][block][arm] = value.value
    return found


def _seeds_needed(of: ComparisonData, values: _Values) -> int | None:
    """Return the seeds needed at the spread of the control, without its own effect; every effect is found if there is
    no spread."""
    noise = _noise(values[of.scenario, of.setting, of.metric], of.scale)
    if noise is None or not of.delta:
        return None
    if not noise.any():
        return LEAST_BLOCKS
    limit = math.log1p(of.delta / 100) if of.scale is Scale.RATIO else of.delta
    return blocks_that_find(limit, noise, ALPHA, _POWER)


def _noise(blocks: Mapping[int, Mapping[Arm, float]], scale: Scale) -> NDArray[np.float64] | None:
    """Return the differences without their own effect, for `ratio` those of logarithms; None with fewer than two pairs,
    or without ratio.

    They are enlarged because the effect was estimated from the same seeds.
    """
    pairs = [(block[Arm.BASELINE], block[Arm.CANDIDATE]) for block in blocks.values() if len(block) == len(PAIR)]
    if len(pairs) < 2:
        return None
    if all(before == after for before, after in pairs):
        return np.zeros(len(pairs))
    if scale is Scale.RATIO and any(before <= 0 or after <= 0 for before, after in pairs):
        return None
    d = np.array([math.log(after / before) if scale is Scale.RATIO else after - before for before, after in pairs])
    return (d - estimate_effect(d)) * math.sqrt(len(d) / (len(d) - 1))
