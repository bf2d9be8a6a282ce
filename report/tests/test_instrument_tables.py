"""Texts of an instrumented device: where counts come from, noise floor, and what counts do not show."""

from __future__ import annotations

import pytest
from instrument_examples import instrumented
from report_examples import improvement

from wqlab_contracts import instrument
from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import Verdict
from wqlab_report.content import instrument_tables
from wqlab_report.document.brief_target import counted
from wqlab_report.writers.html import render_html
from wqlab_report.writers.junit import render_junit
from wqlab_report.writers.markdown import render_markdown
from wqlab_report.writers.mmtests import render_mmtests
from wqlab_report.writers.text import lines_of, render_text

FORMATS = (render_text, render_markdown, render_html, render_junit, render_mmtests)


def test_section_for_the_list_has_at_most_ten_lines() -> None:
    (target,) = instrumented().targets
    cell = target.instrument[0]
    many = [cell.model_copy(update={"setting": f"scope={number}"}) for number in range(9)]
    for cells in ([cell], many):
        lines = lines_of(counted(target.model_copy(update={"instrument": cells})))
        assert 4 < len(lines) <= 10
        assert max(map(len, lines)) <= 78
        assert lines[0] == "Where it comes from (counts per fsync, means of 6 seeds):"
    assert counted(target.model_copy(update={"instrument": []})) == []


@pytest.mark.parametrize("render", FORMATS)
@pytest.mark.parametrize(("floors", "text"), [(False, "noise floor not measured"), (True, "noise floor 0.031 %")])
def test_noise_floor_stands_beside_the_verdict_in_every_format(render, floors: bool, text: str) -> None:
    shown = " ".join(render(instrumented(floors=floors)).split())
    assert text in shown
    assert "counts, not times" in shown


@pytest.mark.parametrize("render", FORMATS)
def test_counts_are_never_called_times(render) -> None:
    shown = render(instrumented()).lower().replace("speedscope", "")
    for word in ("faster", "slower", "speed"):
        assert word not in shown


def test_what_counts_do_not_show_is_said_in_a_mail() -> None:
    assert "These are counts, not times: they show no contention, prefetch or bandwidth." in render_text(instrumented())


@pytest.mark.parametrize("render", [render_markdown, render_html])
def test_what_counts_do_not_show_is_said(render) -> None:
    shown = " ".join(render(instrumented()).split())
    for part in ("do not show contention", "prefetch or bandwidth", "one instruction a cycle"):
        assert part in shown


def test_identical_kernels_are_the_same_without_intervals() -> None:
    report = instrumented(control=True)
    (target,) = report.targets
    assert target.verdict is Verdict.EQUIVALENT
    assert {cell.verdict for cell in target.comparisons if cell.role != "explanatory"} == {Verdict.EQUIVALENT}
    text = " ".join(render_text(report).split())
    assert "exactly the same count with both kernels in each of 6 seeds" in text
    assert "no function and no cache line differs between the kernels under 6 seeds" in text
    assert "nan" not in text and "inf," not in text


def test_other_reports_have_no_such_section() -> None:
    report: Report = improvement()
    text = render_text(report)
    assert "Where it comes from" not in text and "noise floor" not in text
    assert instrument_tables.headline(report.targets[0]) == report.targets[0].headline


def test_noise_note_says_what_is_missing() -> None:
    (target,) = instrumented(floors=True).targets
    assert instrument_tables.noise_note(target).endswith("2026-03-01. Not measured for 3 comparisons.")


@pytest.mark.parametrize("render", [render_markdown, render_html])
def test_counts_by_subsystem_tell_kernel_and_user_space_apart(render) -> None:
    (target,) = instrumented().targets
    (found,) = target.instrument
    rows = {row[0]: row[1:] for row in instrument_tables.subsystem_rows(found)}
    assert [*rows][:3] == ["whole kernel", "user space", "kernel/workqueue.c"]
    assert [*rows][-1] == "other subsystems" and "source not known" in rows
    assert all(len(row) + 1 == len(instrument_tables.subsystem_header(found)) for row in rows.values())
    shown = render(instrumented()).replace("<wbr>", "")
    for name, row in rows.items():
        assert name in shown
        assert row[0] in shown and row[3] in shown
    assert instrument.OTHER not in shown
    assert "add up to the whole kernel" in shown


def test_data_of_several_cache_lines_is_said_to_be_so() -> None:
    for render in (render_markdown, render_html):
        shown = render(instrumented())
        assert "pool_workqueue cache + 0x80 (up to 4 lines)" in unescape(shown)
        assert "Lines of data with one name are summed" in shown
    (target,) = instrumented().targets
    (found,) = target.instrument
    lines = [line.model_copy(update={"addresses": 1}) for line in found.lines]
    assert "with one name" not in instrument_tables.cell_note(found.model_copy(update={"lines": lines}))


def test_cell_without_counts_has_no_table_by_subsystem() -> None:
    report = instrumented()
    (target,) = report.targets
    (found,) = target.instrument
    empty = found.model_copy(update={"kernel": None, "subsystems": []})
    assert instrument_tables.subsystem_rows(empty) == []
    page = render_html(report.model_copy(update={"targets": [target.model_copy(update={"instrument": [empty]})]}))
    assert "whole kernel" not in page


def unescape(text: str) -> str:
    """Remove line-break hints and the backslashes of Markdown."""
    return text.replace("<wbr>", "").replace("\\", "")
