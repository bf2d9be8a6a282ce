"""Sentences of a report about the lines and functions of a series that ran."""

from __future__ import annotations

from report_examples import improvement

from wqlab_contracts.api.ran import RanReport
from wqlab_contracts.enums import Arm, Outcome, Ran
from wqlab_contracts.messages import ApplyResult, ChangedLines, RanLines
from wqlab_contracts.traced_counts import Row, TracedTopic
from wqlab_report.parts.ran_report import ran_report
from wqlab_report.writers.html import render_html
from wqlab_report.writers.markdown import render_markdown
from wqlab_report.writers.text import render_text

FILE = "kernel/workqueue.c"
CHANGES = ApplyResult(
    outcome=Outcome.PASSED,
    touched=["f", "g", "h"],
    changed=[ChangedLines(file=FILE, function="f", arm=Arm.CANDIDATE, first=10, last=60)],
)


def lines(ran: Ran, *numbers: int, function: str = "f", arm: Arm = Arm.CANDIDATE, file: str = FILE) -> RanLines:
    return RanLines(file=file, function=function, arm=arm, ran=ran, lines=list(numbers))


def called(name: str, count: int) -> Row:
    return Row(scenario="", setting="", topic=TracedTopic.CALLED, name=name, count=count)


def test_lines_that_did_not_run_are_named_as_places() -> None:
    boot = [
        lines(Ran.MEASURED, *range(10, 20)),
        lines(Ran.OUTSIDE, 20, 21),
        lines(Ran.NEVER, 24, 25, 30, 60),
        lines(Ran.NEVER, 7, function="g", arm=Arm.BASELINE),
    ]
    found = ran_report([boot, boot], CHANGES, [])
    assert found is not None
    assert (found.measured, found.outside, found.never, found.not_exercised) == (10, 2, 5, "")
    assert found.sentences == [
        "the plan executed 10 of 17 changed lines with code; 2 of the others ran only while the kernel booted or the "
        f"plan prepared its runs; the figures say nothing about lines 24 to 30 of {FILE} (f), line 60 of {FILE} (f), "
        f"removed line 7 of {FILE} (g)"
    ]


def test_series_in_dead_code_has_the_reason_of_its_verdict() -> None:
    found = ran_report([[lines(Ran.NEVER, 12)]], CHANGES, [])
    assert found is not None
    assert found.not_exercised == "not exercised: the only changed line with code did not run"
    assert found.sentences[0].startswith("the plan executed 0 of 1 changed line with code; the figures")


def test_lines_of_modules_are_not_known() -> None:
    found = ran_report([[lines(Ran.UNKNOWN, 1, 2, file="fs/xfs/xfs_log.c")]], CHANGES, [])
    assert found is not None
    assert found.sentences == [
        "not part of the kernel's image, so that nothing is known of its lines: fs/xfs/xfs_log.c"
    ]


def test_function_ran_if_any_traced_boot_called_it_and_untraced_functions_are_named() -> None:
    rows = [called("f", 0), called("f", 3), called("g", 0), called("other", 5)]
    found = ran_report([[]], CHANGES, rows)
    assert found is not None
    assert found.functions == {"f": True, "g": False}
    assert found.sentences == [
        "1 of 2 changed functions ran in the traced boots; the figures say nothing about g",
        "not traced, because they are inlined or closed to tracers: h",
    ]


def test_report_has_no_lines_without_a_series_or_if_boots_report_none() -> None:
    assert ran_report([[], []], CHANGES, []) is None
    assert ran_report([[lines(Ran.NEVER, 1)]], None, []) is None


def test_every_format_says_which_changed_lines_ran() -> None:
    report = improvement()
    said = (
        "the plan executed 3 of 4 changed lines with code; the figures say nothing about line 9 of kernel/workqueue.c"
    )
    ran = RanReport(measured=3, never=1, sentences=[said])
    targets = [each.model_copy(update={"ran": ran}) for each in report.targets]
    changed = report.model_copy(update={"targets": targets})
    for render in (render_text, render_markdown, render_html):
        assert "executed 3 of 4 changed" in " ".join(render(changed).split())
