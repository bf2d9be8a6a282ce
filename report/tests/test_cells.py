"""Times in tables are in a unit that makes them readable."""

from __future__ import annotations

import pytest
from letter_examples import measured

from wqlab_contracts.api.report import ArmSummary, Comparison
from wqlab_contracts.enums import Scale
from wqlab_report.content import cells
from wqlab_report.writers.text import render_text


def cell(metric: str, baseline: float, candidate: float, unit: str, scale: Scale = Scale.RATIO) -> Comparison:
    sides = {
        name: ArmSummary(mean=mean, stddev=mean / 100, n=6)
        for name, mean in (("baseline", baseline), ("candidate", candidate))
    }
    return measured().targets[0].comparisons[0].model_copy(
        update={"metric": metric, "unit": unit, "scale": scale, **sides}
    )  # fmt: skip


def shown(*given: Comparison) -> list[tuple[str, float, float, float | None]]:
    return [
        (cells.metric(each), each.baseline.mean, each.candidate.mean, each.baseline.stddev)
        for each in cells.readable(given)
        if each.baseline and each.candidate
    ]


def test_times_of_one_metric_have_the_unit_of_the_largest() -> None:
    assert shown(cell("fsync_p99", 17112760, 400, "us"), cell("fsync_p99", 2000, 1000, "us")) == [
        ("fsync_p99 (s)", 17.11276, 0.0004, pytest.approx(0.1711276)),
        ("fsync_p99 (s)", 0.002, 0.001, pytest.approx(0.00002)),
    ]


def test_name_has_no_other_unit_of_time_at_its_end() -> None:
    assert [name for name, *_ in shown(cell("wait_p99_us", 3120, 3000, "us"), cell("wait_p50_us", 41, 40, "us"))] == [
        "wait_p99 (ms)",
        "wait_p50_us (us)",
    ]


def test_other_units_and_changes_in_the_unit_stay() -> None:
    given = [cell("bandwidth", 123456, 123457, "MiB/s"), cell("delay", 5000, 6000, "us", Scale.DIFFERENCE)]
    assert cells.readable(given) == given


def test_text_of_a_report_has_readable_times() -> None:
    report = measured()
    (target,) = report.targets
    changed = [each.model_copy(update={"unit": "us", "baseline": ArmSummary(mean=17112760, stddev=99, n=10),
                                       "candidate": ArmSummary(mean=15112760, stddev=99, n=10)})
               if each.metric == "bandwidth" else each for each in target.comparisons]  # fmt: skip
    report = report.model_copy(update={"targets": [target.model_copy(update={"comparisons": changed})]})
    text = render_text(report)
    assert "17112760" not in text
    assert "17.11" in text
