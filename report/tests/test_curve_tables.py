"""Curves of a plan in text, Markdown and HTML."""

import re
from html.parser import HTMLParser

import pytest
from report_examples import study

from wqlab_comparison import curves
from wqlab_contracts.api.report import BootValue
from wqlab_contracts.enums import Arm
from wqlab_contracts.specs import Curve, Scenario
from wqlab_report.figures.figures import figures
from wqlab_report.writers.html import render_html
from wqlab_report.writers.markdown import render_markdown
from wqlab_report.writers.text import render_text

PLACES = {"ONE": 1.0, "EIGHT": 8.0, "ALL": 24.0}
SHARES = {"scope=system,strict=0": (25.0, 25.0, 60.0), "scope=cache,strict=0": (80.0, 82.0, 40.0)}


@pytest.fixture
def fan_out():
    """The settings study with a curve: scope=cache has the higher share up to eight issuers, the lower with 24."""
    report = study()
    (target, *_) = report.targets
    over = target.plan.metric("core_share").model_copy(update={"name": "issuers", "unit": "issuers"})
    plan = target.plan.model_copy(
        update={
            "scenarios": [Scenario(name=name, summary=name) for name in PLACES],
            "metrics": [*target.plan.metrics, over],
            "curve": Curve(over="issuers", metrics=["l3_share", "bandwidth"]),
        }
    )
    values = [
        BootValue(arm=Arm.BASELINE, block=block, scenario=scenario, setting=setting, metric=metric, value=value)
        for setting, shares in SHARES.items()
        for (scenario, x), share in zip(PLACES.items(), shares, strict=True)
        for block in range(6)
        for metric, value in (("issuers", x), ("l3_share", share + block / 8), ("bandwidth", 10.0 * x))
    ]
    drawn = target.model_copy(update={"plan": plan, "values": values, "curves": curves(plan, True, values)})
    return report.model_copy(update={"targets": [drawn]})


def test_text_has_the_crossing_and_leaves_the_table_to_the_page(fan_out):
    words = " ".join(render_text(fan_out).split())
    assert "* scope=system,strict=0 overtakes scope=cache,strict=0 between 8 and 24 issuers" in words
    assert "1 curve" in words
    assert "8 EIGHT" not in words


def test_markdown_has_the_curve_as_a_table(fan_out):
    text = render_markdown(fan_out)
    assert "overtakes" in text
    assert "no crossing is reported" in text
    assert re.search(r"^\| 24 \| ALL \| 60\.31 ±[\d.]+ \| 40\.31", text, re.MULTILINE)


def test_html_draws_a_line_per_setting_and_shades_the_crossing(fan_out):
    (figure,) = [each for each in figures(fan_out.targets[0]) if each.title.endswith("over issuers")]
    assert figure.svg.count("<polyline") == 2
    assert figure.svg.count('class="crossing"') == 1
    assert "NaN" not in figure.svg
    assert [row[:2] for row in figure.rows] == [["1", "ONE"], ["8", "EIGHT"], ["24", "ALL"]]
    page = render_html(fan_out)
    HTMLParser().feed(page)
    assert figure.title in page
    assert "no crossing is reported" in page


def test_report_without_curve_does_not_mention_one():
    report = study()
    assert not any(target.curves for target in report.targets)
    for render in (render_text, render_markdown, render_html):
        assert "crossing" not in render(report).replace(".crossing", "")
