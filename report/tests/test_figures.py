"""Figures of the HTML page."""

from __future__ import annotations

from report_examples import study
from report_support import with_bandwidth

from wqlab_contracts.enums import Role
from wqlab_report.writers.html import render_html

LOW, HIGH = 4321.25, 8765.75


def test_figures_without_evidence_are_not_drawn():
    page = render_html(with_bandwidth([LOW] * 3, [HIGH] * 3))
    assert "4321.25" in page
    assert "<svg" not in page


def test_every_primary_metric_has_a_figure_and_a_table():
    page = render_html(study())
    primaries = {(c.scenario, c.metric) for c in study().targets[0].comparisons if c.role is Role.PRIMARY}
    for scenario, metric in primaries:
        assert f"{scenario}: {metric} of every boot" in page
    assert page.count("<svg") - 1 == page.count("<figure>") == page.count('<div class="figure">')
    assert 'class="report-boots"' in page.split("<svg")[0], "the first drawing is that of the deciding comparison"
    assert "improvement" in page.split("<svg")[2]
