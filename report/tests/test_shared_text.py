"""Texts that all report formats share: published figures, topologies."""

from __future__ import annotations

from typing import Any

import pytest
from report_examples import panic, study
from report_parts import CRYPT, xeon

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import Arm, Evidence, Question
from wqlab_contracts.messages import CheckpatchFinding
from wqlab_report.content.shared_text import checkpatch_summary, published
from wqlab_report.content.system_text import topology
from wqlab_report.writers.html import render_html
from wqlab_report.writers.markdown import render_markdown
from wqlab_report.writers.text import render_text

SYSTEM, CACHE = "scope=system,strict=0", "scope=cache,strict=0"


def with_figures(*figures: dict[str, Any]) -> Report:
    report = study()
    figure = CRYPT.references[0]
    changed = [figure.model_copy(update={"mean": 12.5, "stddev": None, **each}) for each in figures]
    return report.model_copy(
        update={"targets": [target.model_copy(update={"references": changed}) for target in report.targets]}
    )


def test_published_change_is_shown_beside_the_measured_change() -> None:
    report = with_figures({"setting": CACHE, "relative_to": SYSTEM}, {"setting": SYSTEM, "relative_to": CACHE})
    rows = [(row.name, row.published, row.measured) for row in published(report.targets[0])]
    assert rows == [
        (f"HIGH {CACHE} bandwidth from {SYSTEM}", "+12.5 %", "+0.96 % (no evidence)"),
        (f"HIGH {SYSTEM} bandwidth from {CACHE}", "+12.5 %", "-0.9509 % (no evidence)"),
    ]
    text = render_html(report)
    assert "+12.5 %" in text and "+0.96 %" in text


def test_published_change_without_measured_base_is_left_out() -> None:
    report = with_figures({"setting": CACHE, "relative_to": "scope=numa,strict=0"})
    assert published(report.targets[0]) == []
    assert "Published" not in render_text(report), "its sources are not shown either"


@pytest.mark.parametrize(
    ("kernels", "measured"), [((Arm.BASELINE, Arm.CANDIDATE), "+100 %"), ((Arm.CANDIDATE,), "+50 %")]
)
def test_both_sides_of_a_change_are_of_one_kernel(kernels: tuple[Arm, ...], measured: str) -> None:
    """A setting that only one kernel knows must not be compared across kernels."""
    report = with_figures({"setting": CACHE, "relative_to": SYSTEM})
    [cell] = [
        each
        for each in report.targets[0].comparisons
        if (each.scenario, each.metric, each.setting, each.question) == ("HIGH", "bandwidth", CACHE, Question.SETTING)
    ]
    assert cell.baseline and cell.candidate
    means = {Arm.CANDIDATE: (4.0, 6.0), Arm.BASELINE: (1.0, 2.0)}
    cells = [
        cell.model_copy(
            update={
                "kernel": arm,
                "evidence": Evidence.MECHANISM,
                "baseline": cell.baseline.model_copy(update={"mean": system}),
                "candidate": cell.candidate.model_copy(update={"mean": cache}),
            }
        )
        for arm, (system, cache) in means.items()
        if arm in kernels
    ]
    [row] = published(report.targets[0].model_copy(update={"comparisons": cells}))
    assert row.measured == measured


def test_smt_siblings_follow_from_cpu_numbers():
    whole = xeon().model_copy(update={"core": [*range(16), *range(16)], "l3": 2 * ([0] * 8 + [1] * 8)})
    whole = whole.model_copy(update={"node": whole.l3, "package": whole.l3})
    assert topology(whole).endswith(", SMT siblings at +16")
    holes = whole.model_copy(update={"online": [*range(16), *range(20, 36)]})
    assert topology(holes).endswith(", SMT siblings at +20")


def test_checkpatch_that_did_not_run_is_not_clean() -> None:
    report = panic()
    apply = report.submission.apply.model_copy(
        update={"checkpatch": [], "checkpatch_skipped": "the series was not applied"}
    )
    assert checkpatch_summary(apply) == "not run, because the series was not applied"
    changed = report.model_copy(update={"submission": report.submission.model_copy(update={"apply": apply})})
    for text in (render_text(changed), render_markdown(changed)):
        assert "not run, because the series was not applied" in text
        assert "clean" not in text and "0 findings" not in text
    finding = CheckpatchFinding(severity="error", text="wrong")
    partly = apply.model_copy(update={"checkpatch": [finding], "checkpatch_skipped": "it exceeded its limit of time"})
    assert checkpatch_summary(partly) == "1 error; incomplete, because it exceeded its limit of time"
    assert checkpatch_summary(apply.model_copy(update={"checkpatch_skipped": ""})) == "clean"
