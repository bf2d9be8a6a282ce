"""Sweeps in reports: points from targets, and all formats."""

from __future__ import annotations

import itertools
import re

import pytest
from instrument_examples import instrumented
from sweep_examples import SWEEP, swept

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import SubmissionState, Verdict
from wqlab_report.figures.sweep_figures import sweep_figures
from wqlab_report.parts.sweep import TRANSFERS, sweep_report
from wqlab_report.writers.html import render_html
from wqlab_report.writers.markdown import render_markdown
from wqlab_report.writers.text import render_text

PRIMARY = "kernel_instructions_per_op"
CROSSOVER = "better from 4 L3 domains up, the same below"


def test_points_are_those_of_the_targets_in_order_of_the_topology() -> None:
    report = swept()
    assert report.sweep is not None
    assert report.sweep.title == "1, 2, 4 and 8 L3 domains; 16 CPUs, 1 NUMA node"
    assert [curve.metric for curve in report.sweep.curves] == [PRIMARY, TRANSFERS], "judged, with a better direction"
    curve = report.sweep.curves[0]
    assert curve.sentence == CROSSOVER
    for point, target in zip(curve.points, report.targets, strict=True):
        (comparison,) = [each for each in target.comparisons if each.metric == PRIMARY]
        assert (point.value, point.device_type) == (target.declared_topology.l3_domains, target.device_type)
        assert (point.verdict, point.effect, point.ci95) == (comparison.verdict, comparison.effect, comparison.ci95)
        assert point.seeds == 6
    assert [point.noise_floor for point in curve.points] == [None, None, 0.031, None]


def test_order_of_targets_does_not_matter() -> None:
    report = swept()
    assert sweep_report(SWEEP, report.targets[::-1]) == report.sweep


def test_submission_without_a_sweep_has_none() -> None:
    assert sweep_report(None, instrumented().targets) is None
    assert "weep" not in render_text(instrumented())
    assert 'id="sweep"' not in render_html(instrumented())


def test_failed_kernel_is_a_failed_point_and_a_lost_device_is_not_measured() -> None:
    report = swept(broken=8, lost=2)
    assert report.sweep is not None
    curve = report.sweep.curves[0]
    assert [point.verdict for point in curve.points] == [
        Verdict.EQUIVALENT, None, Verdict.IMPROVEMENT, Verdict.FAILED,
    ]  # fmt: skip
    assert curve.sentence == (
        "no clear crossover: better at 4 L3 domains, the same at 1, failed at 8, not measured at 2"
    )
    assert curve.points[1].reason == "infrastructure: the emulator ended with signal 9"
    assert "panic" in curve.points[3].reason
    text = render_text(report)
    assert "L3 domains 2: infrastructure: the emulator ended with signal 9" in text
    assert re.search(r"^ +8 .*FAILED", text, re.MULTILINE)


def test_failed_candidate_is_a_failed_point_whatever_figures_it_has() -> None:
    report = swept()
    worst = report.targets[3].model_copy(update={"verdict": Verdict.FAILED, "headline": "the candidate showed a panic"})
    found = sweep_report(SWEEP, [*report.targets[:3], worst])
    assert found is not None
    assert (found.curves[0].points[3].verdict, found.curves[0].points[3].effect) == (Verdict.FAILED, None)
    assert "failed at 8" in found.curves[0].sentence


def test_unfinished_points_are_not_measured() -> None:
    report = swept()
    open_ = report.targets[2].model_copy(update={"comparisons": [], "outcome": None, "verdict": Verdict.INCONCLUSIVE})
    found = sweep_report(SWEEP, [*report.targets[:2], open_, report.targets[3]])
    assert found is not None
    assert found.curves[0].points[2].reason == "not finished"
    assert found.curves[0].sentence == "better from 8 L3 domains up, the same up to 2; not measured at 4"


def test_sweep_without_any_figure_says_so() -> None:
    report = swept()
    empty = [each.model_copy(update={"comparisons": [], "outcome": None}) for each in report.targets]
    unfinished = report.submission.model_copy(update={"state": SubmissionState.RUNNING, "outcome": None})
    changed = report.model_copy(
        update={"targets": empty, "sweep": sweep_report(SWEEP, empty), "submission": unfinished}
    )
    for render in (render_text, render_markdown, render_html):
        assert "No point has a figure yet." in render(changed)


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html])
def test_formats_have_sentence_points_and_noise_floor(render) -> None:
    page = " ".join(render(swept()).replace("\\", "").split())
    assert "Sweep: 1, 2, 4 and 8 L3 domains; 16 CPUs, 1 NUMA node" in page
    assert CROSSOVER in page
    for text in ("-1.89 %", "[-1.92, -1.87]", "0.031 %", "below threshold"):
        assert text in page


def test_json_keeps_the_sweep() -> None:
    report = swept(broken=1)
    assert Report.model_validate_json(report.model_dump_json()) == report


def test_figure_has_a_mark_and_an_interval_per_point() -> None:
    first, second = sweep_figures(swept())
    assert first.svg.count('class="mark ') == 4
    assert first.svg.count('class="interval ') == 3 * 4, "a line and two caps for each interval"
    assert second.svg.count('class="interval ') == 3 * 3, "a count that is the same under each seed has no interval"
    places = [float(x) for x in re.findall(r'<text x="([\d.]+)" y="200.0" class="tick">\d', first.svg)]
    steps = {round(b - a, 1) for a, b in itertools.pairwise(places)}
    assert len(places) == 4
    assert max(steps) - min(steps) < 0.2, "the axis is ordinal"
    assert "threshold of 0.2 %" in first.note


def test_figure_names_points_without_an_effect() -> None:
    first, _ = sweep_figures(swept(broken=8, lost=2))
    assert first.svg.count('class="mark ') == 2
    assert ">FAILED<" in first.svg
    assert ">not measured<" in first.svg
