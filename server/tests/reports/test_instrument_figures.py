"""Flame graphs and heat map of an instrumented device."""

from __future__ import annotations

from xml.etree import ElementTree as xml

import pytest

from wqlab_contracts.api.instrument import InstrumentCell
from wqlab_contracts.enums import Arm
from wqlab_contracts.instrument import OTHER
from wqlab_server.reports.instrument_cells import instrument_cells
from wqlab_server.reports.render.html import render_html
from wqlab_server.reports.render.instrument_figures import instrument_figures, style, tree

from . import instrument_examples as examples


def cell(*arms: Arm) -> InstrumentCell:
    (found,) = instrument_cells(examples.PLAN, [""], examples.files(arms or tuple(Arm)))
    return found


def boxes(svg: str, name: str) -> list[xml.Element]:
    """Return the rectangles of a class."""
    return [each for each in xml.fromstring(svg).iter("rect") if name in each.get("class", "").split()]


@pytest.mark.parametrize("instructions", [True, False])
def test_boxes_add_up_to_the_total(instructions: bool) -> None:
    found = cell()
    root = tree(found, instructions=instructions)
    total = found.totals[Arm.BASELINE]
    assert root.before == pytest.approx(total.instructions if instructions else total.transfers, rel=1e-3)
    assert root.parts["kernel"].parts["kernel/workqueue.c"].parts.keys() >= {"flush_workqueue_prep_pwqs"}
    assert root.parts[OTHER].parts == {}


def test_function_is_coloured_only_if_every_seed_agrees() -> None:
    root = tree(cell(), instructions=False)
    file = root.parts["kernel"].parts["kernel/workqueue.c"]
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
    bad = target.instrument[0].model_copy(update={"functions": [function], "changed": [function]})
    page = render_html(report.model_copy(update={"targets": [target.model_copy(update={"instrument": [bad]})]}))
    assert "<script" not in page and "\x1b" not in page
