"""Heat map of an instrumented device."""

from __future__ import annotations

from xml.etree import ElementTree as xml

import instrument_examples as examples

from wqlab_contracts.api.instrument import InstrumentCell
from wqlab_contracts.enums import PAIR, Arm
from wqlab_report.figures.instrument_figures import instrument_figures
from wqlab_report.parts.instrument_cells import instrument_cells
from wqlab_report.writers.html import render_html


def cell(*arms: Arm) -> InstrumentCell:
    (found,) = instrument_cells(examples.PLAN, [""], examples.files(arms or tuple(PAIR)))
    return found


def boxes(svg: str, name: str) -> list[xml.Element]:
    """Return the rectangles of a class."""
    return [each for each in xml.fromstring(svg).iter("rect") if name in each.get("class", "").split()]


def test_heat_map_has_a_description_and_a_table() -> None:
    (target,) = examples.instrumented().targets
    (heat,) = instrument_figures(target)
    assert xml.fromstring(heat.svg).get("aria-label")
    assert heat.rows and all(len(row) == len(heat.header) for row in heat.rows)
    assert len(boxes(heat.svg, "level")) == len(boxes(heat.svg, "fewer")) == 16 * 15
    assert len(boxes(heat.svg, "domain")) == 2 * 2 * 4


def test_one_kernel_has_no_change() -> None:
    (target,) = examples.instrumented().targets
    one = target.model_copy(update={"instrument": [cell(Arm.BASELINE)]})
    (heat,) = instrument_figures(one)
    assert not boxes(heat.svg, "fewer")
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
