"""Flame graphs and heat map of an instrumented device."""

from __future__ import annotations

from xml.etree import ElementTree as xml

import instrument_examples as examples
import pytest

from wqlab_contracts.api.instrument import InstrumentCell
from wqlab_contracts.enums import PAIR, Arm
from wqlab_contracts.instrument import OTHER
from wqlab_report.figures.instrument_figures import Box, instrument_figures, style, tree
from wqlab_report.parts import instrument_largest
from wqlab_report.parts.instrument_cells import instrument_cells
from wqlab_report.writers.html import render_html


def cell(*arms: Arm) -> InstrumentCell:
    (found,) = instrument_cells(examples.PLAN, [""], examples.files(arms or tuple(PAIR)))
    return found


def boxes(svg: str, name: str) -> list[xml.Element]:
    """Return the rectangles of a class."""
    return [each for each in xml.fromstring(svg).iter("rect") if name in each.get("class", "").split()]


def names(root: Box) -> set[str]:
    """Return the names of all boxes."""
    return {root.name}.union(*map(names, root.parts.values()))


@pytest.mark.parametrize("instructions", [True, False])
def test_boxes_add_up_to_the_total(instructions: bool) -> None:
    found = cell()
    root = tree(found, instructions=instructions)
    total = found.totals[Arm.BASELINE]
    assert root.before == pytest.approx(total.instructions if instructions else total.transfers, rel=1e-3)
    assert root.parts["kernel/workqueue.c"].parts.keys() >= {"flush_workqueue_prep_pwqs"}
    assert root.parts["kernel/sched"].parts["kernel/sched/fair.c"].parts.keys() >= {"update_sd_lb_stats"}


def test_sums_of_functions_are_in_the_box_of_their_file() -> None:
    root = tree(cell(), instructions=True)
    log = root.parts["fs/xfs"].parts["fs/xfs/xfs_log.c"].parts
    assert log.keys() == {"other functions of this file"}
    assert root.parts["kernel/workqueue.c"].parts["other functions of this file"].change < 0
    # A file that is a subsystem of its own has one box, and the sum of several subsystems is in none.
    assert "kernel/workqueue.c" not in root.parts["kernel/workqueue.c"].parts
    assert root.parts["other functions"].parts == {}
    assert root.parts["source not known"].parts.keys() == {"(unknown)"}
    assert OTHER not in names(root)


def test_sum_of_files_is_in_the_box_of_its_subsystem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instrument_largest, "MAX_FUNCTIONS", 2)
    monkeypatch.setattr(instrument_largest, "MAX_FILES", 3)
    root = tree(cell(), instructions=True)
    assert "other files of this subsystem" in root.parts["kernel/sched"].parts


def test_function_is_coloured_only_if_every_seed_agrees() -> None:
    root = tree(cell(), instructions=False)
    file = root.parts["kernel/workqueue.c"]
    assert style(file.parts["flush_workqueue_prep_pwqs"].change) == "less d3"
    assert style(file.parts["process_one_work"].change) == "same"


@pytest.mark.parametrize(
    ("change", "name"), [(0.0, "same"), (0.019, "same"), (-0.02, "less d1"), (0.1, "more d2"), (-0.9, "less d3")]
)
def test_style_has_direction_and_strength(change: float, name: str) -> None:
    assert style(change) == name


def test_each_figure_has_a_description_and_a_table() -> None:
    (target,) = examples.instrumented().targets
    flame, transfers, heat = instrument_figures(target)
    for figure in (flame, transfers, heat):
        assert xml.fromstring(figure.svg).get("aria-label")
        assert figure.rows and all(len(row) == len(figure.header) for row in figure.rows)
    assert len(boxes(heat.svg, "level")) == len(boxes(heat.svg, "fewer")) == 16 * 15
    assert len(boxes(heat.svg, "domain")) == 2 * 2 * 4


def test_one_kernel_has_no_change() -> None:
    (target,) = examples.instrumented().targets
    one = target.model_copy(update={"instrument": [cell(Arm.BASELINE)]})
    flame, _, heat = instrument_figures(one)
    assert not boxes(flame.svg, "less") + boxes(flame.svg, "more") + boxes(heat.svg, "fewer")
    assert heat.header == ["from", "to", "baseline"]


def test_names_from_a_lab_are_escaped() -> None:
    report = examples.instrumented()
    (target,) = report.targets
    function = target.instrument[0].functions[0].model_copy(update={"name": "<script>\x1b[2J", "subsystem": "&lt;"})
    subsystem = target.instrument[0].subsystems[0].model_copy(update={"name": "<script>/_\x1b[2J"})
    lists = {"functions": [function], "changed": [function], "subsystems": [subsystem]}
    bad = target.instrument[0].model_copy(update=lists)
    page = render_html(report.model_copy(update={"targets": [target.model_copy(update={"instrument": [bad]})]}))
    assert "<script" not in page and "\x1b" not in page
