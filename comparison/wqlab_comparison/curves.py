"""Metrics over an ordered quantity, a line for each setting, and where two settings change places.

A crossing is claimed only between two points at which the sign of the difference is certain, each with its own 95 %
interval (effect.py); points in between whose interval holds zero widen it. The intervals are not adjusted for the
number of points and pairs: crossings explain, they are part of no verdict.
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
from .judge import summary
from .power import LEAST_BLOCKS

Boots = Mapping[tuple[str, str], Mapping[int, float]]
"""(scenario, setting) -> block -> value, of one metric on one kernel."""


@dataclass(frozen=True)
class _Difference:
    """The second setting against the first at one point, on the scale where effects add."""

    x: float
    estimate: float
    sign: int
    """Of the whole interval; 0 when it holds zero or there are too few boots for one."""


def curves(plan: TestPlan, emulated: bool, values: Sequence[BootValue]) -> list[MetricCurve]:
    """Of every metric of the plan's curve that is evidence on this device, for each kernel."""
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
                said = [_in_words(crossing, over) for crossing in crossings] + _of_the_others(boots, places, crossings)
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
                        says=said,
                    )
                )
    return found


def without_evidence(plan: TestPlan, emulated: bool) -> list[str]:
    """Metrics of the plan's curve that have none on this device."""
    names = plan.curve.metrics if plan.curve else []
    return [name for name in names if plan.metric(name).evidence(emulated) is Evidence.NONE]


def _boots(values: Sequence[BootValue], arm: Arm, metric: str) -> Boots:
    found: dict[tuple[str, str], dict[int, float]] = {}
    for each in values:
        if each.arm is arm and each.metric == metric:
            found.setdefault((each.scenario, each.setting), {})[each.block] = each.value
    return found


def _places(over: Boots) -> dict[str, float]:
    """Scenario -> x, the median of what its boots reported, by rising x. Zero has no place on a logarithmic axis."""
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
            if found := summary(list(boots.get((scenario, setting), {}).values())):
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
            estimate, interval = effect.estimate(d)
            low, high = interval or (0.0, 0.0)
            yield _Difference(x, estimate, int(low > 0) - int(high < 0))


def _zero(differences: Sequence[_Difference]) -> float:
    """Where the estimates first change their sign, linear over log x. The first and the last differ in sign."""
    for one, other in pairwise(differences):
        if one.estimate == 0:
            return one.x
        if one.estimate * other.estimate < 0:
            share = one.estimate / (one.estimate - other.estimate)
            return math.exp(math.log(one.x) + share * (math.log(other.x) - math.log(one.x)))
    return differences[-1].x


def _in_words(crossing: Crossing, over: Metric) -> str:
    low, high, estimate = (words.number(round(x, 1)) for x in (crossing.low, crossing.high, crossing.estimate))
    return (
        f"{crossing.second} overtakes {crossing.first} between {low} and {high} {over.unit} "
        f"(the estimated differences change sign near {estimate})"
    )


def _of_the_others(boots: Boots, places: Mapping[str, float], crossings: Sequence[Crossing]) -> list[str]:
    """Why the other pairs have none: no change of sign that is certain, or too few boots to be certain of any."""
    settings = len({setting for _, setting in boots})
    pairs = settings * (settings - 1) // 2
    if not pairs:
        return []
    most = max((len(blocks) for (scenario, _), blocks in boots.items() if scenario in places), default=0)
    if most < LEAST_BLOCKS:
        return [f"no crossing can be told with {words.count(most, 'boot')}: an interval needs {LEAST_BLOCKS}"]
    left = pairs - len({frozenset((each.first, each.second)) for each in crossings})
    return [f"{words.count(left, 'pair')} of settings without a change of sign that is certain"] if left else []
