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


def six(baseline: list[Row], candidate: list[Row], *, times: bool = True) -> list[WaitCell]:
    """Return the cells of six blocks whose boots have these rows, with counts that vary by some events."""

    def varied(rows: list[Row], more: int) -> str:
        changed = [each.model_copy(update={"count": each.count + more}) if each.count else each for each in rows]
        return table(*changed)

    tables = [
        (arm, block, varied(rows, block * step))
        for block in range(6)
        for arm, rows, step in ((Arm.BASELINE, baseline, 2), (Arm.CANDIDATE, candidate, 4))
    ]
    return wait_cells(tables, times=times)


def test_histograms_of_all_boots_are_added_up_before_percentiles_are_taken() -> None:
    """The upper ends of the medians' buckets are 8 and 1024 us in single boots, and 1024 us of all together."""
    boots = [row("f", "3:160,4:40"), row("f", "4:45,10:555")] * 3
    tables = [(Arm.BASELINE, block, table(each)) for block, each in enumerate(boots)]
    tables += [(Arm.CANDIDATE, block, table(row("f", "2:9000"))) for block in range(6)]
    (cell,) = wait_cells(tables, times=False)
    work = next(work for work in cell.works if work.arm is Arm.BASELINE)
    assert cell.repetitions == {Arm.BASELINE: 6, Arm.CANDIDATE: 6}
    assert (work.items, work.p50_us, work.p99_us) == (400, 1024, 1024)
    assert (work.same_cpu, work.same_l3, work.same_node) == (None, None, None)


def test_each_traced_repetition_of_a_boot_counts() -> None:
    (cell,) = six([row("f", "3:200"), row("f", "4:400", repetition=4)], [row("f", "3:3000")])
    assert cell.repetitions == {Arm.BASELINE: 12, Arm.CANDIDATE: 6}
    assert [work.p50_us for work in cell.works] == [16, 8]


def test_each_share_includes_the_nearer_places() -> None:
    (cell,) = six([row("f", "1:200", (50, 30, 80, 40))], [row("f", "1:900", (225, 135, 360, 180))])
    for work in cell.works:
        assert (work.same_cpu, work.same_l3, work.same_node) == (25, 40, 80)
    assert wait_tables.rows(cell)[0][4:] == ["<= 2 us", "25.0 %", "40.0 %", "80.0 %"]
    assert wait_tables.header(improvement().targets[0])[-3:] == ["on its CPU", "in its L3", "on its node"]


def test_only_functions_that_differ_are_shown_the_busiest_first() -> None:
    baseline = [row("vmstat_update", "0:300"), *(row(f"f{number}", f"0:{500 + number}") for number in range(8))]
    candidate = [row("vmstat_update", "0:300"), *(row(f"f{number}", f"0:{5000 + number}") for number in range(8))]
    (cell,) = six(baseline, candidate)
    shown = [work.function for work in cell.works if work.arm is Arm.BASELINE]
    assert len(shown) == MAX_FUNCTIONS
    assert (shown[0], "vmstat_update" in shown) == ("f7", False)
    assert wait_tables.cell_notes(cell) == ["3 other functions not shown."]


def test_equal_kernels_have_no_table() -> None:
    rows = [row(f"f{number}", f"0:{300 + number}") for number in range(9)]
    assert six(rows, rows) == []
    assert six(rows, [])[:1] == [], "a side without counts is no difference"


def test_place_alone_is_a_difference() -> None:
    (cell,) = six([row("f", "1:1000", (900, 0, 100, 0))], [row("f", "1:1000", (300, 0, 700, 0))])
    assert [round(work.same_cpu or 0) for work in cell.works] == [90, 30]


def test_times_differ_only_where_they_are_evidence() -> None:
    slow, fast = row("f", "9:1000", total_us=500_000), row("f", "5:1000", total_us=30_000)
    assert len(six([slow], [fast])) == 1
    assert six([slow], [fast], times=False) == []


def test_kernel_without_histograms_leaves_a_note() -> None:
    lacks = note("the times from queueing to start of work items are not counted: this kernel has no such event")
    (cell,) = six([row("f", "0:1")], [lacks])
    assert cell.repetitions == {Arm.BASELINE: 6}
    assert (cell.works, wait_tables.cell_notes(cell)) == ([], [f"Candidate: {lacks.name}."])


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
    tables = [(Arm.BASELINE, block, table(row("f", "0:500"))) for block in range(6)]
    tables += [(Arm.CANDIDATE, block, table(row("f", f"0:{5000 + block}"))) for block in range(6)]
    (cell,) = wait_cells([*tables, (Arm.CANDIDATE, 6, text)], times=False)
    assert cell.repetitions == {Arm.BASELINE: 6, Arm.CANDIDATE: 6}


# --- formats ----------------------------------------------------------------------------------------------------------


def with_waits(cells: list[WaitCell], emulated: bool = True) -> Report:
    report = improvement()
    only = report.targets[0].model_copy(update={"waits": cells, "emulated": emulated})
    return report.model_copy(update={"targets": [only]})


def cells(scenarios: int = 1) -> list[WaitCell]:
    def rows(factor: int) -> list[Row]:
        return [
            row(f"xlog_work_{n}", f"4:{(200 - n) * factor},9:1", (1, 0, 0, 0), scenario=f"s{at}")
            for n in range(4)
            for at in range(scenarios)
        ]

    return six(rows(1), rows(9))


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
    assert "s0: work functions that differ, in 6 traced repetitions of each kernel" in page
    assert wait_tables.EMULATED in page
    assert "How long work items waited" not in render_html(with_waits([]))
