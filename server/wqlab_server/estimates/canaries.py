"""Records of canaries: noise floor, false positive rate and smallest effects by device, plan and metric.

They are calculated from the boot values of past canaries whenever they are read, so there is no table that could
disagree with the method.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Text, cast, func, select
from sqlalchemy.orm import Session

from wqlab_comparison.canaries import (
    Canary,
    FalsePositives,
    false_positives,
    floor,
)
from wqlab_comparison.canary_words import record_line
from wqlab_comparison.questions import facts_of
from wqlab_contracts.api.canaries import CanaryMetric, CanaryRecord, FalsePositiveRate, SmallestEffect
from wqlab_contracts.enums import PAIR, Arm, CanaryKind, Evidence, Role
from wqlab_contracts.specs import Metric, TestPlan

from ..models import Boot, BootValue, CanaryRun, Run
from ..storage.db import clock

KEPT = 100
"""Most canaries of a record, the newest."""
KEPT_DAYS = 180


@dataclass(frozen=True)
class _Key:
    device: str
    device_type: str
    plan: str
    kind: CanaryKind


@dataclass(frozen=True)
class _CanaryRun:
    id: int
    at: datetime


@dataclass(frozen=True)
class CanaryHistory:
    """Comparisons of the canaries of one device, plan and kind, oldest first."""

    plan: TestPlan
    emulated: bool
    runs: Sequence[_CanaryRun]
    canaries: Mapping[str, Sequence[Canary]]
    """Metric that is judged -> its comparisons, in the order of the runs."""


def records(
    session: Session,
    *,
    device: str | None = None,
    device_type: str | None = None,
    plan: str | None = None,
    devices: Collection[str] | None = None,
) -> list[CanaryRecord]:
    """Return the records of the given devices and plan, ordered by device, plan and kind."""
    conditions = [
        column == value
        for column, value in ((Run.wanted_device, device), (Run.device_type, device_type), (Run.plan_name, plan))
        if value is not None
    ]
    if devices is not None:
        conditions.append(Run.wanted_device.in_(devices))
    found = []
    for key, runs in sorted(_runs(session, conditions).items(), key=lambda item: _order(item[0])):
        history = _history(session, runs)
        if history is not None:
            found.append(_record(key, history))
    return found


def _order(key: _Key) -> tuple[str, str, int]:
    return key.device, key.plan, list(CanaryKind).index(key.kind)


def _runs(session: Session, conditions: Sequence[object]) -> dict[_Key, list[_CanaryRun]]:
    """Return the newest compared canaries with the plan and profile of the newest of all, oldest first."""
    measured = func.md5(cast(Run.plan, Text) + cast(Run.profile, Text))
    rows = session.execute(
        select(
            Run.id, Run.wanted_device, Run.device_type, Run.plan_name, CanaryRun.kind, Run.compared_at,
            measured,
        )
        .join(CanaryRun, CanaryRun.run_id == Run.id)
        .where(
            Run.compared_at > clock(session) - timedelta(days=KEPT_DAYS),
            *conditions,  # type: ignore[arg-type]
        )
        .order_by(Run.id.desc())
    )  # fmt: skip
    newest: dict[_Key, str] = {}
    found: dict[_Key, list[_CanaryRun]] = defaultdict(list)
    for run_id, device, device_type, plan, kind, at, what in rows:
        key = _Key(device, device_type, plan, kind)
        if newest.setdefault(key, what) == what and len(found[key]) < KEPT:
            found[key].append(_CanaryRun(run_id, at))
    return {key: runs[::-1] for key, runs in found.items()}


def _history(session: Session, runs: Sequence[_CanaryRun]) -> CanaryHistory | None:
    if not runs:
        return None
    plan, device_spec = session.execute(select(Run.plan, Run.device_spec).where(Run.id == runs[-1].id)).one()
    emulated = device_spec.emulated
    judged = {metric.name: metric for metric in plan.metrics if _is_judged(metric, emulated)}
    values: dict[tuple[str, int, str, str], dict[int, dict[Arm, float]]] = defaultdict(lambda: defaultdict(dict))
    rows = session.execute(
        select(
            BootValue.metric, BootValue.run_id, BootValue.scenario, BootValue.setting, Boot.block, Boot.arm,
            BootValue.value,
        )
        .join(Boot, Boot.id == BootValue.boot_id)
        .where(BootValue.run_id.in_([run.id for run in runs]), BootValue.metric.in_(judged))
        .order_by(BootValue.run_id, BootValue.scenario, BootValue.setting, Boot.block)
    )  # fmt: skip
    for metric, run_id, scenario, setting, block, arm, value in rows:
        values[metric, run_id, scenario, setting][block][arm] = value
    canaries: dict[str, list[Canary]] = {name: [] for name in judged}
    for (metric, run_id, scenario, _), blocks in values.items():
        pairs = [arms for arms in blocks.values() if len(arms) == len(PAIR)]
        canaries[metric].append(
            Canary(
                run_id,
                metric,
                facts_of(judged[metric], emulated),
                [arms[Arm.BASELINE] for arms in pairs],
                [arms[Arm.CANDIDATE] for arms in pairs],
                scenario,
            )
        )
    return CanaryHistory(plan, emulated, runs, canaries)


def _is_judged(metric: Metric, emulated: bool) -> bool:
    return metric.role(emulated) is not Role.EXPLANATORY and metric.evidence(emulated) is not Evidence.NONE


def _record(key: _Key, history: CanaryHistory) -> CanaryRecord:
    total = _rate(false_positives([canary for each in history.canaries.values() for canary in each]))
    record = CanaryRecord(
        device=key.device,
        device_type=key.device_type,
        plan=key.plan,
        kind=key.kind,
        canaries=len(history.runs),
        since=history.runs[0].at,
        until=history.runs[-1].at,
        false_positives=total,
        metrics=[
            _metric(metric, history.emulated, history.canaries[metric.name])
            for metric in history.plan.metrics
            if history.canaries.get(metric.name)
        ],
    )
    return record.model_copy(update={"line": record_line(record)})


def _metric(metric: Metric, emulated: bool, canaries: Sequence[Canary]) -> CanaryMetric:
    """Return the noise of one metric, in the scenario with the highest floor."""
    by_scenario: dict[str, list[Canary]] = defaultdict(list)
    for canary in canaries:
        by_scenario[canary.scenario].append(canary)
    floors = {scenario: floor(each) for scenario, each in by_scenario.items()}
    scenario = max(floors, key=lambda name: (found.deviation if (found := floors[name]) else 0.0, name))
    highest = floors[scenario]
    return CanaryMetric(
        metric=metric.name,
        unit=metric.unit,
        scale=metric.scale,
        role=metric.role(emulated),
        evidence=metric.evidence(emulated),
        scenario=scenario,
        floor=highest.deviation if highest else None,
        blocks=sum(len(canary.baseline) for canary in by_scenario[scenario]),
        effects=[SmallestEffect(blocks=blocks, effect=size) for blocks, size in highest.effects.items()]
        if highest
        else [],
        false_positives=_rate(false_positives(canaries)),
    )


def _rate(found: FalsePositives) -> FalsePositiveRate:
    return FalsePositiveRate(
        comparisons=found.comparisons,
        called_different=found.called,
        constant=found.constant,
        rate=found.rate,
        rate_low=found.interval and found.interval[0],
        rate_high=found.interval and found.interval[1],
    )
