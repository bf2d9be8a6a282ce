"""Tables in MMTests' layout: signs, and marks of significance that follow the verdict."""

import re

import pytest
from report_examples import improvement, panic, study
from report_parts import XFS
from sweep_examples import swept

from wqlab_contracts.api.report import ArmSummary, BootValue, Comparison, Report
from wqlab_contracts.enums import Arm, Evidence, Question, Scale, Verdict
from wqlab_contracts.specs import TestPlan
from wqlab_report.writers.mmtests import render_mmtests

PLAN = TestPlan.model_validate(
    {
        **XFS.model_dump(by_alias=True),
        "name": "netperf-stream",
        "metrics": [
            {
                "name": name,
                "summary": "-",
                "unit": unit,
                "scale": "ratio",
                "direction": direction,
                "class": "performance",
                "taken_from": "untraced",
                "role_hardware": role,
            }
            for name, unit, direction, role in (
                ("send", "Mbit/s", "higher_is_better", "primary"),
                ("wait", "us", "lower_is_better", "secondary"),
                ("busy", "%", "none", "secondary"),
                ("switches", "1/s", "none", "explanatory"),
                ("moves", "1/s", "lower_is_better", "secondary"),
                ("visits", "1/s", "none", "secondary"),
            )
        ],
    }
)


def cell(scenario: str, metric: str, verdict: Verdict | None, **more: object) -> Comparison:
    facts = PLAN.metric(metric)
    values = {
        "plan": PLAN.name,
        "device_type": "xeon-2s",
        "scenario": scenario,
        "setting": "",
        "question": Question.KERNEL,
        "reference": "baseline",
        "metric": metric,
        "unit": facts.unit,
        "scale": Scale.RATIO,
        "direction": facts.direction,
        "role": facts.role(False),
        "evidence": Evidence.PERFORMANCE,
        "baseline": ArmSummary(mean=1, stddev=None, n=2),
        "candidate": ArmSummary(mean=1, stddev=None, n=2),
        "verdict": verdict,
    }
    return Comparison.model_validate(values | more)


def boots(scenario: str, metric: str, arm: Arm, *values: float | None, setting: str = "") -> list[BootValue]:
    return [
        BootValue(arm=arm, block=block, scenario=scenario, setting=setting, metric=metric, value=value)
        for block, value in enumerate(values)
        if value is not None
    ]


def on_hardware(cells: list[Comparison], values: list[BootValue]) -> Report:
    report = improvement()
    update = {"plan": PLAN, "emulated": False, "comparisons": cells, "values": values}
    return report.model_copy(update={"targets": [report.targets[0].model_copy(update=update)]})


def rows(report: Report) -> list[str]:
    table, _, _ = render_mmtests(report).partition("Hmean is the harmonic mean")
    return [line for line in table.splitlines() if line.split(" ")[0] in {"Hmean", "Amean", "Stddev"}]


def test_published_row_is_reproduced() -> None:
    """Hmean send-64 211.25 (0.00%) 228.61 * 8.22%* of the mail on wakelists, in MMTests' columns."""
    cells = [cell("64", "send", Verdict.IMPROVEMENT), cell("128", "send", Verdict.INCONCLUSIVE)]
    values = [
        *boots("64", "send", Arm.BASELINE, 211.25, 211.25),
        *boots("64", "send", Arm.CANDIDATE, 228.61, 228.61),
        *boots("128", "send", Arm.BASELINE, 413.49, 413.49),
        *boots("128", "send", Arm.CANDIDATE, 458.0, 458.0),
    ]
    text = render_mmtests(on_hardware(cells, values))
    assert text.splitlines()[4:11] == [
        "                              6.12.117               6.12.117",
        "                              baseline              candidate",
        "Hmean  send-64       211.25 (   0.00%)      228.61 *   8.22%*",
        "Hmean  send-128      413.49 (   0.00%)      458.00 (  10.76%)",
        "Stddev send-64         0.00 (   0.00%)        0.00 (   0.00%)",
        "Stddev send-128        0.00 (   0.00%)        0.00 (   0.00%)",
        "",
    ]


def test_rates_have_a_harmonic_mean_and_times_an_arithmetic_one() -> None:
    cells = [cell("a", "send", Verdict.EQUIVALENT), cell("a", "wait", Verdict.REGRESSION)]
    values = [
        *boots("a", "send", Arm.BASELINE, 100.0, 300.0),
        *boots("a", "send", Arm.CANDIDATE, 100.0, 100.0),
        *boots("a", "wait", Arm.BASELINE, 10.0, 30.0),
        *boots("a", "wait", Arm.CANDIDATE, 22.0, 22.0),
    ]
    assert rows(on_hardware(cells, values)) == [
        "Hmean  send-a      150.00 (   0.00%)      100.00 ( -33.33%)",
        "Amean  wait-a       20.00 (   0.00%)       22.00 * -10.00%*",
        "Stddev send-a      141.42 (   0.00%)        0.00 ( 100.00%)",
        "Stddev wait-a       14.14 (   0.00%)        0.00 ( 100.00%)",
    ]


def test_rates_where_lower_is_better_have_an_arithmetic_mean() -> None:
    """A single boot with 0 would make a harmonic mean 0."""
    cells = [cell("a", "moves", Verdict.IMPROVEMENT), cell("a", "visits", None)]
    values = [
        *boots("a", "moves", Arm.BASELINE, 60.0, 62.0, 66.0, 70.0, 64.0, 58.0),
        *boots("a", "moves", Arm.CANDIDATE, 6.0, 7.0, 0.0, 5.0, 6.0, 7.0),
        *boots("a", "visits", Arm.BASELINE, 1.0, 3.0),
        *boots("a", "visits", Arm.CANDIDATE, 0.0, 3.0),
    ]
    moves, visits, *_ = rows(on_hardware(cells, values))
    assert moves == "Amean  moves-a        63.33 (   0.00%)        5.17 *  91.84%*"
    assert visits.split() == ["Amean", "visits-a", "2.00", "1.50"]


@pytest.mark.parametrize("verdict", [*Verdict, None])
def test_only_a_significant_verdict_is_marked(verdict: Verdict | None) -> None:
    values = [*boots("a", "send", Arm.BASELINE, 1.0, 1.0), *boots("a", "send", Arm.CANDIDATE, 9.0, 9.0)]
    (row, _) = rows(on_hardware([cell("a", "send", verdict)], values))
    significant = verdict in {Verdict.IMPROVEMENT, Verdict.REGRESSION, Verdict.BELOW_THRESHOLD}
    assert row.endswith("* 800.00%*" if significant else "( 800.00%)")


def test_no_percentage_without_direction_or_base() -> None:
    cells = [cell("a", "busy", None), cell("b", "send", Verdict.INCONCLUSIVE)]
    values = [
        *boots("a", "busy", Arm.BASELINE, 50.0),
        *boots("a", "busy", Arm.CANDIDATE, 60.0),
        *boots("b", "send", Arm.BASELINE, 0.0),
        *boots("b", "send", Arm.CANDIDATE, 5.0),
    ]
    assert rows(on_hardware(cells, values)) == [
        "Amean busy-a       50.00                  60.00",
        "Hmean send-b        0.00 (   0.00%)        5.00",
    ]


def test_explanatory_metrics_are_left_out() -> None:
    cells = [cell("a", "switches", None)]
    values = [*boots("a", "switches", Arm.BASELINE, 1.0), *boots("a", "switches", Arm.CANDIDATE, 2.0)]
    assert rows(on_hardware(cells, values)) == []


def test_incomplete_block_is_in_neither_mean() -> None:
    values = [
        *boots("a", "wait", Arm.BASELINE, 10.0, 99.0, 10.0),
        *boots("a", "wait", Arm.CANDIDATE, 20.0, None, 20.0),
    ]
    (row, _) = rows(on_hardware([cell("a", "wait", Verdict.INCONCLUSIVE)], values))
    assert row == "Amean  wait-a       10.00 (   0.00%)       20.00 (-100.00%)"


def test_small_figures_get_more_decimals() -> None:
    values = [*boots("a", "wait", Arm.BASELINE, 0.0125), *boots("a", "wait", Arm.CANDIDATE, 0.0025)]
    (row,) = rows(on_hardware([cell("a", "wait", Verdict.INCONCLUSIVE)], values))
    assert row == "Amean wait-a     0.01250 (   0.00%)     0.00250 (  80.00%)"


def test_settings_are_shown_beside_their_reference() -> None:
    study = {"question": Question.SETTING, "reference": "scope=system", "kernel": Arm.BASELINE}
    cells = [
        cell("a", "send", Verdict.IMPROVEMENT, setting="scope=cache", **study),
        cell("a", "send", Verdict.UNSUPPORTED, setting="scope=smt", candidate=None, **study),
    ]
    values = [
        *boots("a", "send", Arm.BASELINE, 10.0, 10.0, setting="scope=system"),
        *boots("a", "send", Arm.BASELINE, 20.0, 20.0, setting="scope=cache"),
    ]
    text = render_mmtests(on_hardware(cells, values))
    assert "Settings on the baseline kernel" in text
    assert "           scope=system            scope=cache              scope=smt" in text
    assert "Hmean  send-a       10.00 (   0.00%)       20.00 * 100.00%*         n/a" in text


def test_each_target_has_its_verdict_and_a_table() -> None:
    text = render_mmtests(swept())
    headings = [line.split()[2] for line in text.splitlines() if line.startswith("xfs-fsync on ")]
    assert headings == [f"instrumented-16c-{domains}l3-1n" for domains in (1, 2, 4, 8)]
    across = [line for line in text.splitlines() if line.startswith("Amean  transfers_across_l3_per_op-fsync")]
    assert [re.findall(r"\* +(\S+)\*", line) for line in across] == [[], ["1.99%"], ["41.00%"], ["62.00%"]]
    assert text.count("Hmean is the harmonic mean") == 1


def test_study_has_a_column_for_each_setting() -> None:
    text = render_mmtests(study())
    assert text.count("Settings on the baseline kernel") == 1
    (shares,) = [line for line in text.splitlines() if line.startswith("Amean  l3_share-HIGH")]
    assert " ".join(shares.split()) == "Amean l3_share-HIGH 24.62 ( 0.00%) 84.26 * 242.17%* 100.00 * 306.09%* n/a"
    (bandwidth,) = [line for line in text.splitlines() if line.startswith("Amean  bandwidth-LOW")]
    assert bandwidth.split() == ["Amean", "bandwidth-LOW", "59.52", "59.63", "55.48", "n/a"]


def test_failed_run_has_its_failure_and_no_table() -> None:
    text = render_mmtests(panic())
    assert text.startswith("FAILED (kernel): xfs-fsync on xeon-2s (emulated): the candidate showed oops\n")
    assert "mean" not in text
    assert text.endswith("\n\nhttp://127.0.0.1:8080/r/9\n")
