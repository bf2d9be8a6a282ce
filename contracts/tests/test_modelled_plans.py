"""Plans as modelled devices run them."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_contracts.enums import Evidence, Role, Scale
from wqlab_contracts.loading import DataFolder, load_data
from wqlab_contracts.specs import TestPlan

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def data() -> DataFolder:
    return load_data(ROOT)


def of_role(plan: TestPlan, role: Role) -> dict[str, Evidence]:
    return {each.name: each.evidence(emulated=True) for each in plan.metrics if each.role(emulated=True) is role}


@pytest.mark.parametrize(
    ("name", "primary", "evidence"),
    [
        ("queue-rate", "items_per_s", Evidence.MODELLED),
        ("dm-crypt-affinity", "bandwidth", Evidence.MODELLED),
        ("xfs-fsync", "bandwidth", Evidence.MODELLED),
        # Their primary metric is traced, and no repetition is.
        ("aio-migration", "kernel_instructions_per_op", Evidence.INSTRUMENTED),
        ("hotplug", "kernel_instructions_per_op", Evidence.INSTRUMENTED),
    ],
)
def test_the_primary_metric_is_that_of_hardware_if_it_is_measured(
    data: DataFolder, name: str, primary: str, evidence: Evidence
) -> None:
    plan = data.plans[name].for_instrumented(modelled=True)
    assert of_role(plan, Role.PRIMARY) == {primary: evidence}
    assert plan.is_instrumented
    assert TestPlan.model_validate_json(plan.model_dump_json(by_alias=True)) == plan


def test_a_modelled_plan_has_its_own_metrics_and_the_counts(data: DataFolder) -> None:
    plan = data.plans["dm-crypt-affinity"].for_instrumented(modelled=True)
    assert plan.is_modelled
    secondary = of_role(plan, Role.SECONDARY)
    assert secondary["read_clat_p99"] is Evidence.MODELLED
    assert secondary["kernel_instructions_per_op"] is Evidence.INSTRUMENTED
    assert "local_l3_share" not in {metric.name for metric in plan.metrics}  # it is traced
    assert plan.tradeoff is None
    assert {each.metric for each in plan.references} == {"bandwidth", "cpu_utilisation"}
    assert not data.plans["dm-crypt-affinity"].for_instrumented().is_modelled


def test_modelled_ratios_are_judged_only_beyond_the_error_of_the_model(data: DataFolder) -> None:
    plan = data.plans["queue-rate"]
    own = {metric.name: metric for metric in plan.metrics}
    modelled = {metric.name: metric for metric in plan.for_instrumented(modelled=True).metrics}
    assert (own["items_per_s"].delta, modelled["items_per_s"].delta) == (1, 3)
    for name, metric in modelled.items():
        if name in own and metric.scale is not Scale.RATIO:
            assert metric.delta == own[name].delta
