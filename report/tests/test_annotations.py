"""Annotations of a diff: which findings have a line, and the formats of GitHub and GitLab."""

from __future__ import annotations

import json

import pytest
from failed_examples import FAILED
from report_examples import improvement, panic
from report_support import HOSTILE

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import Arm
from wqlab_contracts.messages import CheckpatchFinding, CompilerWarning
from wqlab_report.writers.annotations import Annotation, Level, annotations_of, render_github, render_gitlab


def found(report: Report) -> list[tuple[Level, str, int, str]]:
    return [(each.level, each.path, each.line, each.title) for each in annotations_of(report)]


def test_new_warnings_and_checkpatch_are_annotated() -> None:
    assert found(improvement()) == [
        (Level.WARNING, "kernel/workqueue.c", 3839, "compiler warning"),
        (Level.NOTICE, "workqueue.c", 3871, "checkpatch"),
    ]


def test_compiler_errors_of_the_candidate_are_annotated() -> None:
    assert found(FAILED["does-not-compile"]())[0] == (Level.ERROR, "kernel/workqueue.c", 3871, "compiler error")


def test_a_kernel_report_is_at_the_first_changed_file_of_its_trace() -> None:
    assert found(panic())[0] == (Level.ERROR, "kernel/workqueue.c", 3871, "oops")
    report = panic()
    apply = report.submission.apply.model_copy(update={"patches": []})
    elsewhere = report.model_copy(update={"submission": report.submission.model_copy(update={"apply": apply})})
    assert found(elsewhere) == [], "the series changes none of its files"


def test_what_the_baseline_reports_is_not_the_series() -> None:
    report = panic()
    one = report.targets[0]
    findings = [each.model_copy(update={"arm": Arm.BASELINE}) for each in one.findings]
    of_both = report.model_copy(update={"targets": [one.model_copy(update={"findings": findings})]})
    assert found(of_both) == []


def test_findings_without_a_line_are_left_out() -> None:
    report = improvement()
    where = [
        CheckpatchFinding(severity="error", text="x", where=place) for place in ("0001-x.patch", "a.c:0", "", "a:b")
    ]
    builds = [
        each.model_copy(update={"new_warnings": [CompilerWarning(where="cc1", text="x")]})
        for each in report.submission.builds
    ]
    apply = report.submission.apply.model_copy(update={"checkpatch": where})
    submission = report.submission.model_copy(update={"apply": apply, "builds": builds})
    assert annotations_of(report.model_copy(update={"submission": submission})) == []


@pytest.mark.parametrize(
    ("text", "escaped"), [("100 %, done", "100 %25, done"), ("a\r\nb", "a%0D%0Ab"), ("::error::x", "::error::x")]
)
def test_github_escapes_messages(text: str, escaped: str) -> None:
    one = Annotation(Level.ERROR, "a,b:c.c", 3, "t", text, 7)
    assert render_github([one]) == f"::error file=a%2Cb%3Ac.c,line=3,title=t,col=7::{escaped}\n"


def test_gitlab_takes_a_code_quality_report() -> None:
    (warning, notice) = json.loads(render_gitlab(annotations_of(improvement())))
    assert warning["severity"] == "minor" and notice["severity"] == "info"
    assert warning["location"] == {"path": "kernel/workqueue.c", "lines": {"begin": 3839}}
    assert warning.keys() == {"description", "check_name", "fingerprint", "severity", "location"}
    assert warning["fingerprint"] != notice["fingerprint"]
    assert json.loads(render_gitlab([])) == []


def test_a_series_writes_no_workflow_command_of_its_own() -> None:
    report = improvement()
    hostile = [CheckpatchFinding(severity="error", text=f"x\n::set-env name=A::b {HOSTILE}", where="a.c:1")]
    apply = report.submission.apply.model_copy(update={"checkpatch": hostile})
    submission = report.submission.model_copy(update={"apply": apply})
    text = render_github(annotations_of(report.model_copy(update={"submission": submission})))
    assert len(text.splitlines()) == 2
    assert [line.partition(" ")[0] for line in text.splitlines()] == ["::warning", "::warning"]
