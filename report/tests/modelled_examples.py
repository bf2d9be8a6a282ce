"""Make an example report of a modelled device, and one with a measured target beside it. No figure was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instrument_examples import SEEDS, TOPOLOGY, values
from report_examples import improvement
from report_parts import FIO, PATCH, XFS, build, report, ryzen, samples, target

from wqlab_contracts.api.report import Report, TargetReport
from wqlab_contracts.enums import PAIR, Arm, MetricClass
from wqlab_contracts.specs import TestPlan
from wqlab_report.content.shared_text import method_of

HASH = "1a2b3c4d5e6f" + "0" * 52
PLAN: TestPlan = XFS.for_instrumented(modelled=True)
DEVICE_TYPE = "ryzen-3900x-model"
BANDWIDTH = (912.4, 905.1, 918.8, 909.9, 903.2, 915.0)
FACTORS = (1.071, 1.069, 1.075, 1.066, 1.07, 1.072)
VALIDATED: Mapping[str, str] = {
    metric.name: "" for metric in PLAN.metrics if metric.metric_class is MetricClass.MODELLED
}
NOT_VALIDATED: Mapping[str, str] = dict.fromkeys(VALIDATED, "not validated: 3 of 10 cells right; HIGH falls")


def modelled_target(not_validated: Mapping[str, str] = VALIDATED, **more: Any) -> TargetReport:
    """Return a target with more bandwidth; its verdict is stated if the validation covers it."""
    measured = {
        ("fsync", "", metric.name, arm): _values(metric.name, arm)
        for metric in PLAN.metrics
        if metric.name == "bandwidth" or metric.metric_class is MetricClass.INSTRUMENTED
        for arm in PAIR
    }
    return target(
        21,
        PLAN,
        DEVICE_TYPE,
        samples(PLAN, DEVICE_TYPE, measured),
        [""],
        list(PAIR),
        ryzen(),
        TOPOLOGY,
        (SEEDS, SEEDS),
        {"fsync": FIO},
        summary="a model of a Ryzen 9 3900X",
        facts={"cost profile": f"ryzen-3900x sha256:{HASH}"},
        not_validated=not_validated,
        machine="ryzen-3900x",
        **more,
    )


def modelled(not_validated: Mapping[str, str] = VALIDATED) -> Report:
    return _report([modelled_target(not_validated)])


def withheld() -> Report:
    return modelled(NOT_VALIDATED)


def beside_measured() -> Report:
    """Return a report with a target that is not modelled and one that is."""
    return _report([*improvement().targets[:1], modelled_target()])


def _report(targets: list[TargetReport]) -> Report:
    title = "workqueue: Wake workers outside the pool's lock"
    builds = [build(Arm.BASELINE, 1), build(Arm.CANDIDATE, 2)]
    made = report(11, title, targets, True, builds, patches=[PATCH])
    return made.model_copy(update={"method": method_of(targets)})


def _values(metric: str, arm: Arm) -> list[float]:
    if metric != "bandwidth":
        return values(metric, arm)
    factors = FACTORS if arm is Arm.CANDIDATE else (1.0,) * SEEDS
    return [value * factor for value, factor in zip(BANDWIDTH, factors, strict=True)]
