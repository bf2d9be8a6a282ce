"""What A/A comparisons have shown of the device, in every format of a report."""

from __future__ import annotations

from datetime import UTC, datetime
from xml.etree import ElementTree as xml

import pytest
from report_examples import improvement, study

from wqlab_contracts.api.canaries import CanaryRecord, FalsePositiveRate
from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import CanaryKind
from wqlab_report.writers.first_screen import first_screen
from wqlab_report.writers.html import render_html
from wqlab_report.writers.junit import render_junit
from wqlab_report.writers.markdown import render_markdown
from wqlab_report.writers.text import render_text

LINE = "On xeon-2s-1, 412 A/A comparisons of xfs-fsync: 11 called different, 2.7 % (95 % interval 1.5 to 4.7 %)"


def with_record(report: Report) -> Report:
    """Return the report with a record of the device of its first target."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    rate = FalsePositiveRate(
        comparisons=412, called_different=11, constant=0, rate=0.0267, rate_low=0.015, rate_high=0.047
    )
    record = CanaryRecord(
        device="xeon-2s-1", device_type="xeon-2s", plan="xfs-fsync", kind=CanaryKind.SAME_KERNEL, canaries=60,
        since=at, until=at, false_positives=rate, metrics=[], line=LINE,
    )  # fmt: skip
    first, *others = report.targets
    return report.model_copy(update={"targets": [first.model_copy(update={"canaries": [record]}), *others]})


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html])
def test_record_is_one_sentence_of_the_report(render) -> None:  # type: ignore[no-untyped-def]
    text = " ".join(render(with_record(improvement())).split())
    assert text.count("412 A/A comparisons of xfs-fsync: 11 called different, 2.7 %") == 1
    assert "A/A" not in render(improvement()), "no device is praised without a record"


def test_first_screen_states_the_measured_error_rate() -> None:
    assert "2.7 % of 412 comparisons of equal kernels on this device called different" in first_screen(
        with_record(improvement())
    )
    assert "is not measured yet" in first_screen(improvement())


def test_record_is_in_the_output_of_the_suite() -> None:
    root = xml.fromstring(render_junit(with_record(improvement())))
    outputs = [out.text or "" for out in root.iter("system-out")]
    assert sum(f"{LINE}." in text for text in outputs) == 1


def test_json_has_the_record() -> None:
    report = with_record(improvement())
    assert Report.model_validate_json(report.model_dump_json()).targets[0].canaries[0].line == LINE


def test_comparison_of_settings_has_no_record_of_kernels() -> None:
    assert "A/A" not in render_text(with_record(study()))
