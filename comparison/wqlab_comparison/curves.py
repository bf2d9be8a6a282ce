"""Compute curves of metrics over another metric (the plan's `curve.over`), and the crossings of two settings.

A crossing is reported between two points at which the difference of the settings has opposite signs and its 95 %
interval (effect.py) excludes zero. If the intervals of points in between contain zero, the crossing lies anywhere
between the two. The intervals are not adjusted for the number of points and pairs: crossings do not affect verdicts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from wqlab_contracts.api.curves import Crossing, CurveLine, CurvePoint, MetricCurve
from wqlab_contracts.api.report import BootValue
from wqlab_contracts.enums import Arm, Evidence, Scale
from wqlab_contracts.specs import Metric, TestPlan

from . import effect, words
from .judge import summarise_arm
from .power import LEAST_BLOCKS

Boots = Mapping[tuple[str, str], Mapping[int, float]]
"""(scenario, setting) -> block -> value, of one metric on one kernel."""


@dataclass(frozen=True)
class _Difference:
    """Difference of the second setting from the first at one point, on the additive scale of `effect.differences`."""

    x: float
    estimate: float
    sign: int
    """Sign of the whole interval; 0 if it contains zero or there are too few boots for an interval."""


def curves(plan: TestPlan, emulated: bool, values: Sequence[BootValue]) -> list[MetricCurve]:
    """Return a curve per kernel and curve metric that is evidence on this device."""
    if plan.curve is None:
        return []
    found = []
    over = plan.metric(plan.curve.over)
    for arm in Arm:
        places = _places(_boots(values, arm, over.name))
        for metric in map(plan.metric, plan.curve.metrics):
            boots = _boots(values, arm, metric.name)
            if metric.evidence(emulated) is not Evidence.NONE and (lines := _lines(boots, places)):
                crossings = list(_crossings(boots, places, metric.scale))
                descriptions = [_describe(crossing, over) for crossing in crossings] + _explain_missing(
                    boots, places, crossings
                )
                found.append(
                    MetricCurve(
                        metric=metric.name,
                        unit=metric.unit,
                        evidence=metric.evidence(emulated),
                        kernel=arm,
                        over=over.name,
                        over_unit=over.unit,
                        lines=lines,
                        crossings=crossings,
                        says=descriptions,
                    )
                )
    return found


def without_evidence(plan: TestPlan, emulated: bool) -> list[str]:
    """Return the curve metrics that are no evidence on this device."""
    names = plan.curve.metrics if plan.curve else []
    return [name for name in names if plan.metric(name).evidence(emulated) is Evidence.NONE]


def _boots(values: Sequence[BootValue], arm: Arm, metric: str) -> Boots:
    found: dict[tuple[str, str], dict[int, float]] = {}
    for each in values:
        if each.arm is arm and each.metric == metric:
            found.setdefault((each.scenario, each.setting), {})[each.block] = each.value
    return found


def _places(over: Boots) -> dict[str, float]:
    """Return scenario -> x, the median reported by its boots, sorted by x. Omit x <= 0: the axis is logarithmic."""
    reported: dict[str, list[float]] = {}
    for (scenario, _), boots in over.items():
        reported.setdefault(scenario, []).extend(boots.values())
    found = {scenario: float(np.median(xs)) for scenario, xs in reported.items()}
    return {scenario: x for scenario, x in sorted(found.items(), key=lambda each: each[1]) if x > 0}


def _lines(boots: Boots, places: Mapping[str, float]) -> list[CurveLine]:
    lines = []
    for setting in dict.fromkeys(setting for _, setting in boots):
        points = []
        for scenario, x in places.items():
            if found := summarise_arm(list(boots.get((scenario, setting), {}).values())):
                points.append(CurvePoint(scenario=scenario, x=x, mean=found.mean, stddev=found.stddev, n=found.n))
        if points:
            lines.append(CurveLine(setting=setting, points=points))
    return lines


def _crossings(boots: Boots, places: Mapping[str, float], scale: Scale) -> Iterator[Crossing]:
    for first, second in combinations(dict.fromkeys(setting for _, setting in boots), 2):
        differences = list(_differences(boots, places, scale, first, second))
        certain = [index for index, each in enumerate(differences) if each.sign]
        for low, high in pairwise(certain):
            if differences[low].sign == differences[high].sign:
                continue
            between = differences[low : high + 1]
            pair = (first, second) if between[-1].sign > 0 else (second, first)
            yield Crossing(first=pair[0], second=pair[1], low=between[0].x, high=between[-1].x, estimate=_zero(between))


def _differences(
    boots: Boots, places: Mapping[str, float], scale: Scale, first: str, second: str
) -> Iterator[_Difference]:
    for scenario, x in places.items():
        one, other = boots.get((scenario, first), {}), boots.get((scenario, second), {})
        both = sorted(one.keys() & other.keys())
        if not both:
            continue
        d = effect.differences(np.array([one[b] for b in both]), np.array([other[b] for b in both]), scale)
        if d is not None:
            estimate = effect.estimate(d)
            interval = effect.interval(d, estimate)
            low, high = interval or (0.0, 0.0)
            yield _Difference(x, estimate, int(low > 0) - int(high < 0))


def _zero(differences: Sequence[_Difference]) -> float:
    """Return x where the estimates first change sign, linear over log x. The first and last must differ in sign."""
    for one, other in pairwise(differences):
        if one.estimate == 0:
            return one.x
        if one.estimate * other.estimate < 0:
            share = one.estimate / (one.estimate - other.estimate)
            return math.exp(math.log(one.x) + share * (math.log(other.x) - math.log(one.x)))
    return differences[-1].x


def _describe(crossing: Crossing, over: Metric) -> str:
    low, high, estimate = (words.number(round(x, 1)) for x in (crossing.low, crossing.high, crossing.estimate))
    return (
        f"{crossing.second} overtakes {crossing.first} between {low} and {high} {over.unit} "
        f"(the estimated differences change sign near {estimate})"
    )


def _explain_missing(boots: Boots, places: Mapping[str, float], crossings: Sequence[Crossing]) -> list[str]:
    """Return why the other pairs have no crossing: no certain change of sign, or too few boots."""
    settings = len({setting for _, setting in boots})
    pairs = settings * (settings - 1) // 2
    if not pairs:
        return []
    most = max((len(blocks) for (scenario, _), blocks in boots.items() if scenario in places), default=0)
    if most < LEAST_BLOCKS:
        return [f"no crossing can be determined with {words.count(most, 'boot')}: an interval needs {LEAST_BLOCKS}"]
    left = pairs - len({frozenset((each.first, each.second)) for each in crossings})
    return [f"{words.count(left, 'pair')} of settings without a certain change of sign"] if left else []
