"""Times in a unit that people read: 17.1 s, not 17112760 us. JSON, CSV and KCIDB keep the unit of the plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from wqlab_comparison import words
from wqlab_contracts.api.curves import MetricCurve
from wqlab_contracts.api.report import Comparison, Report, TargetReport
from wqlab_contracts.api.sweeps import SweepCurve
from wqlab_contracts.enums import Scale
from wqlab_contracts.specs import Metric

_M = TypeVar("_M", bound=BaseModel)


@dataclass(frozen=True)
class _Unit:
    """The unit in which a metric is shown."""

    divisor: float
    """How many of the plan's unit it is."""
    name: str


def readable(report: Report) -> Report:
    """Return the report with each time in the unit that fits its figures, the same in the whole report."""
    sizes: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for target in report.targets:
        for of in _comparisons(target):
            sizes[target.plan.name, of.metric, of.unit] += [arm.mean for arm in (of.baseline, of.candidate) if arm]
    units: dict[str, dict[str, _Unit]] = defaultdict(dict)
    for (plan, metric, unit), values in sizes.items():
        divisor, name = words.readable_time(values, unit)
        if divisor != 1:
            units[plan][metric] = _Unit(divisor, name)
    if not units:
        return report
    sweep = report.sweep and report.sweep.model_copy(
        update={"curves": [_curve_over_topology(each, units[each.plan]) for each in report.sweep.curves]}
    )
    targets = [_target(target, units[target.plan.name]) for target in report.targets]
    return report.model_copy(update={"targets": targets, "sweep": sweep})


def _comparisons(target: TargetReport) -> Iterator[Comparison]:
    yield from target.comparisons
    for rung in target.ladder.rungs if target.ladder else ():
        yield from rung.comparisons


def _target(target: TargetReport, units: Mapping[str, _Unit]) -> TargetReport:
    if not units:
        return target
    plan, ladder = target.plan, target.ladder
    metrics = [_with_unit(each, units[each.name]) if each.name in units else each for each in plan.metrics]
    references = [
        _divided(each, units[each.metric], "mean", "stddev")
        if each.metric in units and each.relative_to is None
        else each
        for each in target.references
    ]
    curves = [_curve(each, units[each.metric]) if each.metric in units else each for each in target.curves]
    absolute = {metric.name for metric in plan.metrics if metric.scale is Scale.DIFFERENCE}
    floors = [
        _divided(each, units[each.metric], "floor") if each.metric in units and each.metric in absolute else each
        for each in target.noise_floors
    ]
    rungs = ladder and [
        rung.model_copy(update={"comparisons": [_comparison(each, units) for each in rung.comparisons]})
        for rung in ladder.rungs
    ]
    return target.model_copy(
        update={
            "plan": plan.model_copy(update={"metrics": metrics}),
            "comparisons": [_comparison(each, units) for each in target.comparisons],
            "values": [
                _divided(each, units[each.metric], "value") if each.metric in units else each for each in target.values
            ],
            "references": references,
            "curves": curves,
            "noise_floors": floors,
            "ladder": ladder and ladder.model_copy(update={"rungs": rungs}),
        }
    )


def _comparison(of: Comparison, units: Mapping[str, _Unit]) -> Comparison:
    unit = units.get(of.metric)
    if unit is None:
        return of
    arms = {}
    for name in ("baseline", "candidate"):
        if (arm := getattr(of, name)) is not None:
            modes = arm.modes and tuple(_divided(mode, unit, "mean") for mode in arm.modes)
            arms[name] = _divided(arm, unit, "mean", "stddev").model_copy(update={"modes": modes})
    effects = _divided(of, unit, "effect", "delta", "ci95") if of.effect_unit == of.unit else of
    return effects.model_copy(update={**arms, "unit": unit.name})


def _curve(curve: MetricCurve, unit: _Unit) -> MetricCurve:
    lines = [
        line.model_copy(update={"points": [_divided(point, unit, "mean", "stddev") for point in line.points]})
        for line in curve.lines
    ]
    return curve.model_copy(update={"unit": unit.name, "lines": lines})


def _curve_over_topology(curve: SweepCurve, units: Mapping[str, _Unit]) -> SweepCurve:
    unit = units.get(curve.metric)
    if unit is None:
        return curve
    points = [_divided(point, unit, "baseline", "candidate") for point in curve.points]
    if curve.effect_unit != curve.unit:
        return curve.model_copy(update={"unit": unit.name, "points": points})
    points = [_divided(point, unit, "effect", "ci95", "noise_floor") for point in points]
    divided = _divided(curve, unit, "delta")
    return divided.model_copy(update={"unit": unit.name, "effect_unit": unit.name, "points": points})


def _with_unit(metric: Metric, unit: _Unit) -> Metric:
    shown = metric.model_copy(update={"unit": unit.name})
    return _divided(shown, unit, "delta", "emulator_delta") if metric.scale is Scale.DIFFERENCE else shown


def _divided(of: _M, unit: _Unit, *names: str) -> _M:
    """Return a copy whose figures of these names, numbers or intervals, are in the other unit."""
    update: dict[str, object] = {}
    for name in names:
        value = getattr(of, name)
        if isinstance(value, tuple):
            update[name] = tuple(each / unit.divisor for each in value)
        elif value is not None:
            update[name] = value / unit.divisor
    return of.model_copy(update=update)
