"""Detectable effect of a target's primary metric, from the spread between blocks in past runs of the plan. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wqlab_comparison import ALPHA, LEAST_BLOCKS, estimate_effect, smallest_effect
from wqlab_comparison.effect import bounds
from wqlab_comparison.expected_blocks import expected_blocks as mean_blocks
from wqlab_comparison.judge import default_delta
from wqlab_comparison.questions import facts_of
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
    plan: TestPlan,
    metric: Metric,
    *,
    emulated: bool,
    series: bool,
    blocks: int,
    past: Sequence[PastValue],
    family: int = 1,
) -> DetectableEffect:
    """Estimate the smallest effect of `metric` that `blocks` blocks show as relevant in about four cases of five: its
    interval is beyond the threshold, and it differs from zero in a family of so many tests.

    With `series`, kernels are compared, otherwise settings. The scenario and setting with the largest effect is used.
    """
    differences = _differences(past, metric.scale, plan.reference_setting, series)
    measured = len({(value.run_id, value.block) for value in past})
    evidence = metric.evidence(emulated)
    exact = evidence is Evidence.MECHANISM and _is_exact(past)
    noise = _noise(differences)
    mean = sum(abs(each.value) for each in past) / len(past) if past else 0.0
    limit = threshold(metric, emulated, mean)
    effect = None if not noise or exact else _largest_effect(blocks, noise, limit, family)
    if effect is not None and metric.scale is Scale.RATIO:
        effect = math.expm1(effect) * 100
    return DetectableEffect(
        metric=metric.name,
        unit=metric.unit,
        scale=metric.scale,
        direction=metric.direction,
        evidence=evidence,
        delta=metric.least_effect(emulated),
        effect=effect,
        blocks_measured=measured,
        exact=exact,
        why=_explanation(blocks, measured, bool(noise), effect, exact),
    )


def expected_blocks(
    plan: TestPlan, metric: Metric, *, emulated: bool, series: bool, looks: Sequence[int], past: Sequence[PastValue]
) -> float | None:
    """Return the mean number of blocks of a run with looks if there is no difference, at the spread of past blocks.

    The scenario and setting with the largest spread is used, since a run stops when all are decided. None without looks
    or spread.
    """
    if not looks:
        return None
    if metric.evidence(emulated) is Evidence.MECHANISM and _is_exact(past):
        return float(looks[0])
    noise = _noise(_differences(past, metric.scale, plan.reference_setting, series))
    mean = sum(abs(each.value) for each in past) / len(past) if past else 0.0
    limit = threshold(metric, emulated, mean)
    return mean_blocks(max(noise, key=lambda each: float(np.std(each))), (-limit, limit), looks) if noise else None


def threshold(metric: Metric, emulated: bool, mean: float = 0.0) -> float:
    """Return the smallest relevant effect on the scale of the differences. `mean`: of past values, for a metric without
    a threshold of its own."""
    delta = metric.least_effect(emulated)
    if delta is None:
        delta = default_delta(metric.name, facts_of(metric, emulated), mean)
    return bounds(delta, metric.scale)[1]


def _explanation(blocks: int, measured: int, has_noise: bool, effect: float | None, exact: bool) -> str:
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
    if not has_noise:
        return "the spread between blocks has not been measured in this lab yet"
    if effect is None:
        return (
            f"too many of {measured} past blocks were far from the others: no effect is detected in four cases of five"
        )
    return f"shown as relevant in about four cases of five, at the spread of {measured} past blocks"


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


def _noise(differences: Mapping[tuple[int, str, str, str], list[float]]) -> list[NDArray[np.float64]]:
    """Return the differences without their effect, pooled over runs, for each scenario and setting with two blocks.

    Each run's own effect is subtracted, because each series has another one, and the rest is enlarged by
    sqrt(n / (n - 1)), because the effect was estimated from the same blocks.
    """
    pooled: dict[tuple[str, str, str], list[NDArray[np.float64]]] = defaultdict(list)
    for (_, scenario, setting, kernel), values in differences.items():
        if len(values) > 1:
            d = np.array(values)
            pooled[scenario, setting, kernel].append((d - estimate_effect(d)) * math.sqrt(len(d) / (len(d) - 1)))
    return [np.concatenate(runs) for runs in pooled.values()]


def _largest_effect(blocks: int, noise: Sequence[NDArray[np.float64]], limit: float, family: int) -> float | None:
    """Return the effect shown in every scenario and setting; None if there is none in one of them.

    Its distance from the threshold `limit` must be found alone, and that from zero in the family.
    """
    effects: list[float] = []
    for each in noise:
        from_limit, from_zero = (smallest_effect(blocks, each, level) for level in (ALPHA, ALPHA / family))
        if from_limit is None or from_zero is None:
            return None
        effects.append(max(limit + from_limit, from_zero))
    return max(effects)


def _is_exact(past: Sequence[PastValue]) -> bool:
    """Return True if all boots of a kernel gave the same integer, wherever at least two blocks were measured."""
    cells: dict[tuple[int, Arm, str, str], list[float]] = defaultdict(list)
    for value in past:
        cells[value.run_id, value.arm, value.scenario, value.setting].append(value.value)
    measured = [values for values in cells.values() if len(values) >= _EXACT_BLOCKS]
    return bool(measured) and all(values[0].is_integer() and len(set(values)) == 1 for values in measured)
