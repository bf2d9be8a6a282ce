"""Exact counts of an instrumented device, from the submission to the report: the same again for the same seed.

Pages of such a report are looked at in test_pages_look.py.
"""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from playwright.sync_api import expect

from wqlab_contracts.enums import ArtifactKind, MetricClass

from .conftest import COUNTED_TARGET, EXAMPLE, INSTRUMENTED, NOOP, SERIES, Lab, MakePerson, comparisons, scenarios

pytestmark = pytest.mark.scenario
TOUCHED = "flush_workqueue_prep_pwqs"
"""A function that the patches of the example series change."""


@pytest.fixture(scope="module")
def report(lab: Lab, counted: int) -> dict[str, Any]:
    return lab.finish(counted)


def counts(lab: Lab, report: dict[str, Any], block: int) -> dict[tuple[str, str], str]:
    """Return the samples of a block as they were exported: (arm, metric) -> value."""
    [target] = report["targets"]
    rows = csv.DictReader(io.StringIO(lab.wqlab("samples", str(target["run_id"]))))
    return {(row["arm"], row["metric"]): row["value"] for row in rows if row["block"] == str(block)}


def test_report_has_only_counts(report: dict[str, Any]) -> None:
    [target] = report["targets"]
    assert target["outcome"] == "passed"
    assert target["blocks_completed"] == target["blocks_planned"] == 2
    assert {metric["class"] for metric in target["plan"]["metrics"]} == {MetricClass.INSTRUMENTED}
    [primary] = comparisons(report, metric="kernel_instructions_per_op")
    assert primary["verdict"] == "inconclusive", "two seeds are too few for a verdict"


def test_counts_change_in_the_function_that_the_series_changes(report: dict[str, Any]) -> None:
    assert comparisons(report, metric="touched_instructions_per_op")
    [cell] = report["targets"][0]["instrument"]
    assert cell["seeds"] == [0, 1]
    [function] = [function for function in cell["functions"] if function["name"] == TOUCHED]
    assert function["touched"] and function["file"] == "kernel/workqueue.c"
    assert function["per_op"]["candidate"]["instructions"] != function["per_op"]["baseline"]["instructions"]


def test_text_says_that_counts_are_not_times(lab: Lab, counted: int, report: dict[str, Any]) -> None:
    text = lab.wqlab("report", str(counted))
    assert f"xfs-fsync on {INSTRUMENTED} (instrumented)" in text
    assert "counts, not times" in " ".join(text.split())
    assert "MiB/s" not in text


def test_each_boot_keeps_its_profile(lab: Lab, report: dict[str, Any]) -> None:
    run = report["targets"][0]["run_id"]
    kept = [artifact.name for artifact in lab.client().run_artifacts(run)
            if artifact.kind is ArtifactKind.INSTRUMENT_PROFILE]  # fmt: skip
    assert len(kept) == len(set(kept)) == 4


@pytest.mark.nightly
def test_second_submission_has_the_same_counts(lab: Lab, report: dict[str, Any]) -> None:
    again = lab.finish(lab.submit("--mbox", str(EXAMPLE), *COUNTED_TARGET, "--blocks", "1"))
    first = counts(lab, report, block=0)
    assert {arm for arm, _ in first} == {"baseline", "candidate"}
    assert counts(lab, again, block=0) == first
    assert counts(lab, report, block=1) != first, "another seed"


@pytest.mark.nightly
def test_instructions_of_a_single_work_are_counted(lab: Lab) -> None:
    """Each work takes some hundred instructions of kernel/workqueue.c, and an unbound one moves more cache lines."""
    submission = lab.submit(
        *("--mbox", str(NOOP), "--target", f"work-latency@{INSTRUMENTED}", *scenarios("percpu", "bh", "unbound")),
        *("--blocks", "1"),
    )
    report = lab.finish(submission)
    moved = {
        each["scenario"]: each["baseline"]["mean"] for each in comparisons(report, metric="transfers_within_l3_per_op")
    }
    assert moved["unbound"] > moved["percpu"] > 0
    for cell in report["targets"][0]["instrument"]:
        workqueue = sum(
            function["per_op"]["baseline"]["instructions"]
            for function in cell["functions"]
            if function["file"] == "kernel/workqueue.c"
        )
        assert 200 < workqueue < 2000, cell["scenario"]


def test_page_shows_where_the_counts_come_from(person: MakePerson, counted: int, report: dict[str, Any]) -> None:
    reader = person()
    reader.open(f"/r/{counted}")
    page = reader.page
    expect(page.get_by_role("heading", name="Where it comes from")).to_be_visible()
    expect(page.get_by_role("table", name="functions that changed most")).to_contain_text("(user space)")
    expect(page.get_by_role("figure", name="fsync: cache lines that move from CPU to CPU")).to_be_visible()
    assert not reader.errors


def test_report_says_which_changed_lines_ran(lab: Lab, counted: int, report: dict[str, Any]) -> None:
    ran = report["targets"][0]["ran"]
    assert ran["measured"] > ran["never"]
    assert any(each["lines"] for each in ran["lines"]
               if each["function"] == TOUCHED and each["arm"] == "candidate" and each["ran"] == "measured")  # fmt: skip
    assert not ran["not_exercised"]
    text = " ".join(lab.wqlab("report", str(counted)).split())
    assert f"the plan executed {ran['measured']} of " in text
    assert "@@" in report["diff"]


@pytest.mark.nightly
def test_series_in_dead_code_is_not_exercised(lab: Lab) -> None:
    report = lab.finish(lab.submit("--mbox", str(SERIES / "dead-code.mbox"), *COUNTED_TARGET, "--blocks", "2"))
    [target] = report["targets"]
    assert target["verdict"] == "not_exercised"
    assert target["headline"].startswith("kernel_instructions_per_op: not exercised: none of the ")
    assert {each["verdict"] for each in comparisons(report, question="kernel") if each["role"] != "explanatory"} == {
        "not_exercised"
    }
    text = " ".join(lab.wqlab("report", str(report["submission"]["id"])).split())
    assert "NOT EXERCISED" in text
    assert "of kernel/workqueue.c (show_freezable_workqueues)" in text
