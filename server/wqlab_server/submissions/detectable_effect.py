"""Detectable effect of a target's primary metric, from the spread between blocks in past runs of the plan. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wqlab_comparison import ALPHA, LEAST_BLOCKS, smallest_effect
from wqlab_contracts.api.quotes import DetectableEffect
from wqlab_contracts.enums import Arm, Evidence, Role, Scale
from wqlab_contracts.specs import Metric, TestPlan

_EXACT_BLOCKS = 2


@dataclass(frozen=True)
class PastValue:
    """One boot's value of the primary metric in a past run of the plan on the device type."""

    run_id: int
    block: int
    arm: Arm
    scenario: str
    setting: str
    value: float


def primary_metric(plan: TestPlan, emulated: bool) -> Metric | None:
    """Return the plan's first primary metric on emulated or real devices, or None."""
    return next((metric for metric in plan.metrics if metric.role(emulated) is Role.PRIMARY), None)


def estimate(
    plan: TestPlan, metric: Metric, *, emulated: bool, series: bool, blocks: int, past: Sequence[PastValue]
) -> DetectableEffect:
    """Estimate the smallest effect of `metric` that `blocks` blocks detect in about four cases of five.

    With `series`, kernels are compared, otherwise settings. The largest spread of any scenario and setting is used.
    """
    differences = _differences(past, metric.scale, plan.reference_setting, series)
    measured = len({(value.run_id, value.block) for value in past})
    evidence = metric.evidence(emulated)
    exact = evidence is Evidence.MECHANISM and _is_exact(past)
    deviation = _largest_deviation(differences)
    effect = None if deviation is None or exact else smallest_effect(blocks, deviation, ALPHA)
    if effect is not None and metric.scale is Scale.RATIO:
        effect = math.expm1(effect) * 100
    return DetectableEffect(
        metric=metric.name,
        unit=metric.unit,
        scale=metric.scale,
        direction=metric.direction,
        evidence=evidence,
        delta=metric.delta,
        effect=effect,
        blocks_measured=measured,
        exact=exact,
        why=_explanation(blocks, measured, deviation, exact),
    )


def _explanation(blocks: int, measured: int, deviation: float | None, exact: bool) -> str:
    """Return in words what the estimate is based on, or why there is none."""
    if exact:
        needed = "" if blocks >= _EXACT_BLOCKS else f"; {_EXACT_BLOCKS} blocks are needed"
        return (
            f"in {measured} past blocks every boot of a kernel gave the same count, so any difference is "
            f"detected{needed}"
        )
    if blocks < LEAST_BLOCKS:
        return (
            f"with fewer than {LEAST_BLOCKS} blocks no test can distinguish a difference from noise, unless every boot "
            "of a kernel gives the same count"
        )
    if deviation is None:
        return "the spread between blocks has not been measured in this lab yet"
    return f"detected in about four cases of five, at the spread of {measured} past blocks"


def _differences(
    past: Sequence[PastValue], scale: Scale, reference: str, series: bool
) -> Mapping[tuple[int, str, str, str], list[float]]:
    """Return the difference of each complete block by (run, scenario, setting, kernel).

    With `series`: candidate minus baseline; otherwise a setting minus the reference setting in the same boot. For scale
    ratio these are differences of logarithms.
    """
    boots: dict[tuple[int, int, str], dict[tuple[Arm, str], float]] = defaultdict(dict)
    for each in past:
        boots[each.run_id, each.block, each.scenario][each.arm, each.setting] = each.value
    found: dict[tuple[int, str, str, str], list[float]] = defaultdict(list)
    for (run_id, _, scenario), values in boots.items():
        for (arm, setting), value in values.items():
            other = (Arm.BASELINE, setting) if series else (arm, reference)
            if (arm is Arm.BASELINE if series else setting == reference) or other not in values:
                continue
            difference = _difference(values[other], value, scale)
            if difference is not None:
                found[run_id, scenario, setting, "" if series else arm.value].append(difference)
    return found


def _difference(before: float, after: float, scale: Scale) -> float | None:
    if scale is Scale.DIFFERENCE:
        return after - before
    return math.log(after / before) if before > 0 and after > 0 else None


def _largest_deviation(differences: Mapping[tuple[int, str, str, str], list[float]]) -> float | None:
    """Return the largest standard deviation of any scenario and setting, pooled over its runs.

    Each run's mean is subtracted first, because each series has its own effect. None if no run has two blocks.
    """
    squares: dict[tuple[str, str, str], float] = defaultdict(float)
    degrees: dict[tuple[str, str, str], int] = defaultdict(int)
    for (_, *cell), values in differences.items():
        mean = sum(values) / len(values)
        squares[cell[0], cell[1], cell[2]] += sum((value - mean) ** 2 for value in values)
        degrees[cell[0], cell[1], cell[2]] += len(values) - 1
    return max((math.sqrt(squares[cell] / degrees[cell]) for cell in squares if degrees[cell]), default=None)


def _is_exact(past: Sequence[PastValue]) -> bool:
    """Return True if all boots of a kernel gave the same integer, wherever at least two blocks were measured."""
    cells: dict[tuple[int, Arm, str, str], list[float]] = defaultdict(list)
    for value in past:
        cells[value.run_id, value.arm, value.scenario, value.setting].append(value.value)
    measured = [values for values in cells.values() if len(values) >= _EXACT_BLOCKS]
    return bool(measured) and all(values[0].is_integer() and len(set(values)) == 1 for values in measured)
