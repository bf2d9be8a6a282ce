"""How long work items waited, and where they started: from the tables of boots to the formats of a report."""

from __future__ import annotations

import pytest
from report_examples import improvement

from wqlab_contracts.api.report import Report
from wqlab_contracts.api.waits import WaitCell
from wqlab_contracts.enums import Arm
from wqlab_contracts.traced_counts import COLUMNS, Row, TracedTopic, write
from wqlab_report.content import wait_tables
from wqlab_report.document.brief_target import waits
from wqlab_report.parts.wait_cells import MAX_FUNCTIONS, wait_cells
from wqlab_report.writers.html import render_html
from wqlab_report.writers.text import LINES, render_text


def row(name: str, buckets: str, places: tuple[int, ...] = (), **more: object) -> Row:
    count = sum(int(bucket.split(":")[1]) for bucket in buckets.split(","))
    where = dict(zip(("on_cpu", "on_l3", "on_node", "off_node"), places, strict=False))
    own = {"scenario": "fsync", "setting": "", "topic": TracedTopic.QUEUED, "name": name, "count": count}
    return Row.model_validate({**own, "total_us": 9, "p99_us": 9, "buckets": buckets, **where, **more})


def note(text: str) -> Row:
    return Row(scenario="fsync", setting="", topic=TracedTopic.NOTE, name=text)


def table(*rows: Row) -> str:
    return write(rows)


def test_histograms_of_all_boots_are_added_up_before_percentiles_are_taken() -> None:
    """The upper ends of the medians' buckets are 8 and 1024 us in two boots, and 1024 us of both together."""
    first, second = row("xfs_end_io", "3:60,4:40"), row("xfs_end_io", "4:45,10:155")
    (cell,) = wait_cells([(Arm.BASELINE, table(first)), (Arm.BASELINE, table(second))])
    (work,) = cell.works
    assert cell.repetitions == {Arm.BASELINE: 2}
    assert (work.items, work.p50_us, work.p99_us) == (150, 1024, 1024)
    assert (work.same_cpu, work.same_l3, work.same_node) == (None, None, None)


def test_each_traced_repetition_of_a_boot_counts() -> None:
    (cell,) = wait_cells([(Arm.BASELINE, table(row("f", "3:60"), row("f", "4:30", repetition=4)))])
    assert cell.repetitions == {Arm.BASELINE: 2}
    assert [(work.items, work.p50_us, work.p99_us) for work in cell.works] == [(45, 8, 16)]


def test_each_share_includes_the_nearer_places() -> None:
    (cell,) = wait_cells([(Arm.CANDIDATE, table(row("f", "1:20", (5, 3, 8, 4))))])
    (work,) = cell.works
    assert (work.same_cpu, work.same_l3, work.same_node) == (25, 40, 80)
    assert wait_tables.rows(cell) == [["f", "candidate", "20", "<= 2", "<= 2", "25.0 %", "40.0 %", "80.0 %"]]
    assert wait_tables.header(improvement().targets[0])[-3:] == ["on its CPU", "in its L3", "on its node"]


def test_busiest_functions_of_both_kernels_come_first_and_the_others_are_counted() -> None:
    baseline = [row(f"f{number}", f"0:{10 + number}") for number in range(MAX_FUNCTIONS + 2)]
    (cell,) = wait_cells([(Arm.BASELINE, table(*baseline)), (Arm.CANDIDATE, table(row("f0", "0:1000")))])
    assert [(work.function, work.arm) for work in cell.works[:3]] == [
        ("f0", Arm.BASELINE),
        ("f0", Arm.CANDIDATE),
        (f"f{MAX_FUNCTIONS + 1}", Arm.BASELINE),
    ]
    assert wait_tables.cell_notes(cell) == ["2 less busy functions not shown."]


def test_kernel_without_histograms_leaves_a_note() -> None:
    lacks = note("the times from queueing to start of work items are not counted: this kernel has no such event")
    (cell,) = wait_cells([(Arm.BASELINE, table(row("f", "0:1"))), (Arm.CANDIDATE, table(lacks))])
    assert cell.repetitions == {Arm.BASELINE: 1}
    assert wait_tables.cell_notes(cell) == [f"Candidate: {lacks.name}."]
    (only,) = wait_cells([(Arm.CANDIDATE, table(lacks))])
    assert (only.works, only.notes) == ([], [f"candidate: {lacks.name}"])


@pytest.mark.parametrize(
    "text",
    [
        "rubbish",
        f"{','.join(COLUMNS)}\nfsync,,queued,f,1,1,1,0,99:1,,,,\n",
        f"{','.join(COLUMNS)}\nfsync,,queued,f,1,1,1,0,,,,,\n",
        "scenario,setting,topic,name,count,total_us,p99_us\nfsync,,queued,f,1,1,1\n",
    ],
)
def test_table_without_readable_histograms_does_not_affect_the_others(text: str) -> None:
    (cell,) = wait_cells([(Arm.BASELINE, text), (Arm.CANDIDATE, table(row("f", "0:1")))])
    assert cell.repetitions == {Arm.CANDIDATE: 1}


# --- formats ----------------------------------------------------------------------------------------------------------


def with_waits(cells: list[WaitCell], emulated: bool = True) -> Report:
    report = improvement()
    only = report.targets[0].model_copy(update={"waits": cells, "emulated": emulated})
    return report.model_copy(update={"targets": [only]})


def cells(scenarios: int = 1) -> list[WaitCell]:
    both = [
        (arm, table(*(row(f"xlog_work_{n}", f"4:{50 - n},9:1", (1, 0, 0, 0), scenario=f"s{at}") for n in range(4))))
        for arm in (Arm.BASELINE, Arm.CANDIDATE)
        for at in range(scenarios)
    ]
    return wait_cells(both)


def test_mail_has_the_busiest_functions_and_says_that_times_are_bounds() -> None:
    text = render_text(with_waits(cells()))
    assert "How long work items waited, and where they started (traced repetitions):" in text
    assert "xlog_work_1" in text and "xlog_work_2" not in text
    assert "p50, p99: upper ends of buckets; places: %; emulated, times are values only." in text
    assert "values only" not in str(waits(with_waits(cells(), emulated=False).targets[0]))
    assert len(text.splitlines()) <= LINES


def test_waits_take_no_lines_from_other_parts_of_a_mail() -> None:
    without = [line for line in render_text(with_waits([])).splitlines() if line.strip("-")]
    text = render_text(with_waits(cells(20))).splitlines()
    assert [line for line in text if line in without] == without


def test_page_has_a_collapsed_table_of_each_scenario() -> None:
    page = render_html(with_waits(cells(2)))
    assert "<summary>How long work items waited, and where they started (2)</summary>" in page
    assert "s0: the busiest work functions in 1 traced repetition of each kernel" in page
    assert wait_tables.EMULATED in page
    assert "How long work items waited" not in render_html(with_waits([]))
