"""Counts per operation."""

from __future__ import annotations

import pytest

from wqlab_contracts.messages import MeasuredTopology
from wqlab_contracts.specs import Metric, Profile, Repetitions, Scenario, TestPlan
from wqlab_worker.measure import collect
from wqlab_worker.measure.collect import NotMeasured, Unsupported, read_records
from wqlab_worker.measure.counts import collect_counts, operations
from wqlab_worker.measure.parsers import xfs_fsync

TOPOLOGY = MeasuredTopology(cpus=2, core=[0, 1], l3=[0, 0], node=[0, 0], package=[0, 0])
FIO = (
    'begin\tfio\n{"fio version": "fio-3", "jobs": [{"error": %d, "job options": {}, "read": {"total_ios": 0}, '
    '"write": {"total_ios": 9}, "sync": {"total_ios": %d}}]}\nend\tfio\n'
)
COUNTS = {"instructions": 1000, "kernel_instructions": 800}


PROFILE = Profile(parameters={}, repetitions=Repetitions(warmup=0, untraced=1, traced=0), settings=[""])
PLAN = TestPlan(
    name="pipe",
    summary="a pipe",
    script="pipe.sh",
    parser="xfs_fsync",
    scenarios=[Scenario(name="pipe", summary="a pipe")],
    reference_setting="",
    hardware=PROFILE,
    emulated=PROFILE,
    metrics=[],
)


@pytest.fixture(autouse=True)
def real_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo the scripted parser of this folder's other tests."""
    monkeypatch.setattr(collect, "parser", lambda name: xfs_fsync.parse)


def plan(**changes: object) -> TestPlan:
    return PLAN.for_instrumented().model_copy(update=changes)


def test_counts_are_divided_by_the_operations_that_the_plan_chooses() -> None:
    found = collect_counts(FIO % (0, 4), plan(), TOPOLOGY, COUNTS, setting="")
    assert found.values == {"instructions_per_op": 250.0, "kernel_instructions_per_op": 200.0}
    by_write = collect_counts(FIO % (0, 4), plan(operations="total_ios"), TOPOLOGY, {"instructions": 90}, setting="")
    assert by_write.values == {"instructions_per_op": 10.0}
    reasons = {name: str(reason) for name, reason in found.unsupported}
    assert "changes no function" in reasons["touched_transfers_per_op"]
    assert "worker pools" in reasons["pool_lock_transfers_per_op"]


BANDWIDTH = Metric.model_validate(
    {
        "name": "bandwidth",
        "summary": "MiB written in a second",
        "unit": "MiB/s",
        "scale": "ratio",
        "direction": "higher_is_better",
        "class": "performance",
        "taken_from": "untraced",
        "role_hardware": "primary",
    }
)


@pytest.mark.parametrize(("modelled", "own"), [(True, {"bandwidth": 80.0}), (False, {})])
def test_a_modelled_device_has_the_plans_own_metrics_beside_the_counts(
    monkeypatch: pytest.MonkeyPatch, modelled: bool, own: dict[str, float]
) -> None:
    measured = collect.Measurement({"bandwidth": 80.0}, [("p99", Unsupported("too few"))], frozenset({"p99"}))
    monkeypatch.setattr(collect, "parser", lambda name: lambda records, topology, traced: measured)
    of = PLAN.model_copy(update={"metrics": [BANDWIDTH]}).for_instrumented(modelled=modelled)
    found = collect_counts(FIO % (0, 4), of, TOPOLOGY, COUNTS, setting="")
    assert found.values == own | {"instructions_per_op": 250.0, "kernel_instructions_per_op": 200.0}
    assert "p99" not in dict(found.unsupported)
    without_window = collect_counts(FIO % (0, 4), of, TOPOLOGY, None, setting="")
    assert without_window.values == own
    traced = collect_counts(FIO % (0, 4), of, TOPOLOGY, None, traced=True, setting="")
    assert (traced.values, traced.unsupported) == (own, [])


def test_script_can_report_the_operations_itself() -> None:
    found = operations(read_records("value\toperations\t250\nvalue\trate\t7.5\n"), plan(parser="values"))
    assert (found.number, found.unit) == (250, "operation")


def test_script_without_window_says_so() -> None:
    found = collect_counts(FIO % (0, 4), plan(), TOPOLOGY, None, setting="")
    assert not found.values
    assert {str(reason) for _, reason in found.unsupported} == {"plan pipe marks no window, so nothing is counted"}


def test_failure_of_the_workload_is_a_failure() -> None:
    assert collect_counts(FIO % (5, 4), plan(), TOPOLOGY, COUNTS, setting="").failure
    assert collect_counts("failed\tinfrastructure\tno disk\n", plan(), TOPOLOGY, COUNTS, setting="").failure


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "completed no fsync"),
        ({"operations": "mib"}, "counts fsyncs, total_ios, not mib"),
        ({"parser": "test_workqueue"}, "counts no operations"),
        ({"parser": "values"}, "no value of operations in the output"),
    ],
)
def test_missing_operations_are_named(changes: dict[str, str], reason: str) -> None:
    with pytest.raises(NotMeasured, match=reason):
        operations(read_records(FIO % (0, 0)), plan(**changes))
