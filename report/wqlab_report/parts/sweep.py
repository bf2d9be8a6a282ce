"""Arrange the results of a sweep as curves over its topologies, one for each comparison. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wqlab_comparison import words
from wqlab_comparison.sweeps import describe_sweep
from wqlab_contracts.api.report import Comparison, TargetReport
from wqlab_contracts.api.sweeps import SweepCurve, SweepPoint, SweepReport, SweepRequest
from wqlab_contracts.enums import SEEDED, Direction, ErrorKind, Evidence, Question, Role, Verdict
from wqlab_contracts.specs import NOUNS, GeneratedTopology

TRANSFERS = "transfers_across_l3_per_op"
"""Metric that is shown beside the primary one, because it is what the topology changes."""

_NOT_OF_THE_KERNEL = frozenset({ErrorKind.INFRASTRUCTURE, ErrorKind.CANCELED})

_Key = tuple[str, str, str, str, str, str, str]


def sweep_report(sweep: SweepRequest | None, targets: Sequence[TargetReport]) -> SweepReport | None:
    """Return the curves of a sweep from the reports of its targets; None if the submission is not a sweep."""
    if sweep is None:
        return None
    topologies = sweep.topologies()
    plans = dict.fromkeys(target.plan.name for target in targets)
    found = {(target.plan.name, target.device_type): target for target in targets}
    curves: list[SweepCurve] = []
    for plan in plans:
        points = [(each, found[plan, each.name]) for each in topologies if (plan, each.name) in found]
        curves += _curves(sweep, points)
    values = [f"{topology.value(sweep.vary)}" for topology in topologies]
    axis = NOUNS[sweep.vary][1]
    return SweepReport(
        vary=sweep.vary,
        title=f"{', '.join(values[:-1])} and {values[-1]} {axis}; {topologies[0].describe(omit=sweep.vary)}",
        axis=axis,
        curves=sorted(curves, key=lambda curve: (curve.plan, curve.role is not Role.PRIMARY)),
    )


def _curves(sweep: SweepRequest, points: Sequence[tuple[GeneratedTopology, TargetReport]]) -> list[SweepCurve]:
    first: dict[_Key, Comparison] = {}
    for _, target in points:
        for comparison in target.comparisons:
            if _is_shown(comparison):
                first.setdefault(_key(comparison), comparison)
    curves = []
    for key, example in first.items():
        found = [_point(topology.value(sweep.vary), target, key) for topology, target in points]
        curves.append(
            SweepCurve(
                plan=example.plan,
                scenario=example.scenario,
                setting=example.setting,
                question=example.question,
                reference=example.reference,
                kernel=example.kernel,
                metric=example.metric,
                unit=example.unit,
                effect_unit=example.effect_unit,
                direction=example.direction,
                role=example.role,
                evidence=example.evidence,
                delta=example.delta,
                points=found,
                sentence=_sentence(sweep, example, found),
            )
        )
    return curves


def _sentence(sweep: SweepRequest, example: Comparison, points: Sequence[SweepPoint]) -> str:
    text = describe_sweep(sweep.vary, [(point.value, point.verdict) for point in points])
    return f"modelled: {text}" if example.evidence is Evidence.MODELLED else text


def _is_shown(comparison: Comparison) -> bool:
    judged = comparison.role is Role.PRIMARY or comparison.metric == TRANSFERS
    return judged and comparison.evidence in SEEDED and comparison.direction is not Direction.NONE


def _key(comparison: Comparison) -> _Key:
    return (
        comparison.question,
        comparison.kernel or "",
        comparison.reference,
        comparison.scenario,
        comparison.setting,
        comparison.metric,
        comparison.plan,
    )


def _point(value: int, target: TargetReport, key: _Key) -> SweepPoint:
    """Return one point. A target whose kernel failed is a failed point, whatever figures it has left; a target that
    the lab lost or that was canceled is not measured, because neither says anything about the kernel."""
    failed = target.verdict is Verdict.FAILED
    comparison = next((each for each in target.comparisons if _key(each) == key), None)
    if failed or comparison is None:
        of_kernel = failed and not (target.failure and target.failure.kind in _NOT_OF_THE_KERNEL)
        return SweepPoint(
            value=value,
            device_type=target.device_type,
            run_id=target.run_id,
            verdict=Verdict.FAILED if of_kernel else None,
            reason=target.headline if of_kernel else _reason_without_figures(target),
        )
    return SweepPoint(
        value=value,
        device_type=target.device_type,
        run_id=target.run_id,
        verdict=comparison.verdict,
        effect=comparison.effect,
        ci95=comparison.ci95,
        exact=words.interval(comparison) == "exact",
        baseline=comparison.baseline and comparison.baseline.mean,
        candidate=comparison.candidate and comparison.candidate.mean,
        seeds=comparison.candidate.n if comparison.candidate else 0,
        noise_floor=_noise_floor(target, comparison),
        reason=comparison.reason if comparison.effect is None else "",
    )


def _noise_floor(target: TargetReport, of: Comparison) -> float | None:
    """Return the noise floor of a comparison of kernels; that of a comparison of settings is not known."""
    key = (of.scenario, of.setting, of.metric)
    floors = (each.floor for each in target.noise_floors if (each.scenario, each.setting, each.metric) == key)
    return next(floors, None) if of.question is Question.KERNEL else None


def _reason_without_figures(target: TargetReport) -> str:
    if target.failure is not None:
        return f"{target.failure.kind}: {target.failure.summary}"
    return target.headline if target.outcome is not None else "not finished"
