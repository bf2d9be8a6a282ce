"""Collapsed stacks: frames by place in the source, sums of counts, and names that cannot add frames."""

from __future__ import annotations

import re
from collections import Counter

import instrument_examples as examples
import pytest
from report_parts import report as empty

from wqlab_contracts.api.instrument import InstrumentCell
from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import PAIR, Arm
from wqlab_report.formats import NotAvailable, ReportFormat, render
from wqlab_report.parts import instrument_largest
from wqlab_report.parts.instrument_cells import instrument_cells
from wqlab_report.writers.kcidb import Sender
from wqlab_report.writers.profile import SAMPLES, render_profile

LINE = re.compile(r"([^;\n]+(?:;[^;\n]+)+) ([1-9][0-9]*)")


def profiled(cell: InstrumentCell) -> list[tuple[list[str], int]]:
    """Return frames and count of each line of a report with this cell."""
    report = examples.instrumented()
    one = report.targets[0].model_copy(update={"instrument": [cell]})
    return parse(report.model_copy(update={"targets": [one]}))


def parse(report: Report) -> list[tuple[list[str], int]]:
    found = [LINE.fullmatch(line) for line in render_profile(report).splitlines()]
    assert found and all(found)
    return [(match[1].split(";"), int(match[2])) for match in found if match is not None]


def counted(*arms: Arm) -> InstrumentCell:
    (found,) = instrument_cells(examples.PLAN, [""], examples.files(arms or tuple(PAIR)))
    return found


@pytest.mark.parametrize("what", ["instructions", "transfers"])
def test_counts_of_a_kernel_add_up_to_its_total_in_the_unit_of_both(what: str) -> None:
    cell = counted()
    sums: Counter[str] = Counter()
    for frames, samples in profiled(cell):
        if what in frames[1]:
            sums[frames[2]] += samples
    totals = {arm: getattr(each, what) for arm, each in cell.totals.items()}
    for arm, total in totals.items():
        assert sums[arm] == pytest.approx(SAMPLES * total / max(totals.values()), abs=len(cell.functions))


def test_frames_are_places_of_the_source() -> None:
    frames = [each for each, _ in profiled(counted())]
    assert all(each[0].startswith("xfs-fsync@") and each[2] in {"baseline", "candidate"} for each in frames)
    places = {tuple(each[3:]) for each in frames}
    assert ("kernel/sched", "kernel/sched/fair.c", "update_sd_lb_stats") in places
    assert ("kernel/workqueue.c", "flush_workqueue_prep_pwqs") in places, "a file that is a subsystem is one frame"
    assert ("fs/xfs", "fs/xfs/xfs_log.c", "other functions of this file") in places
    assert ("source not known", "(unknown)") in places and ("other functions",) in places


def test_sum_of_files_is_below_its_subsystem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instrument_largest, "MAX_FUNCTIONS", 2)
    monkeypatch.setattr(instrument_largest, "MAX_FILES", 3)
    assert ["kernel/sched", "other files of this subsystem"] in [each[3:] for each, _ in profiled(counted())]


def test_one_kernel_is_profiled_and_nothing_counted_is_empty() -> None:
    assert {frames[2] for frames, _ in profiled(counted(Arm.BASELINE))} == {"baseline"}
    nothing = empty(1, "s", [], True, [])
    assert render_profile(nothing) == ""
    with pytest.raises(NotAvailable, match="submission 1 has no counts"):
        render(nothing, ReportFormat.PROFILE, Sender(origin="lab", public=False))


def test_names_from_a_lab_cannot_forge_frames() -> None:
    cell = counted()
    bad = cell.functions[0].model_copy(update={"name": "a;b 7\nc\x1b[2J", "subsystem": "x;y"})
    names = {part for frames, _ in profiled(cell.model_copy(update={"functions": [bad]})) for part in frames}
    assert any(name.startswith("a,b 7") for name in names) and "x,y" in names
