"""Consoles in `cases/*.json`, reduced from public logs: their reports, and what is charged to the kernel.

`expected` names for each report its kind, fatality, title, first and last line (0-based), and parts of its excerpt;
whether the first two reports are one defect; which kinds count against the kernel under test.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wqlab_comparison.target import failures_against
from wqlab_contracts.api.runs import FindingView
from wqlab_contracts.consoles.detect import Detector, Report
from wqlab_contracts.enums import Arm
from wqlab_contracts.keys import without_reporting
from wqlab_contracts.messages import BootKey, Finding
from wqlab_worker.backends.console_tap import ConsoleTap, Wakeup
from wqlab_worker.backends.diagnose_console import hardware_errors

CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))
KEY = BootKey(block=0, position=0, arm=Arm.CANDIDATE, attempt=0)


class Sink:
    """Event sink that keeps the findings."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def event(self, event: Any) -> None:
        self.findings.append(event)

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        pass


def console_of(case: dict[str, Any]) -> bytes:
    end = b"\r\n" if case.get("crlf") else b"\n"
    return b"".join(line.encode() + end for line in case["lines"])


def read_by_tap(console: bytes) -> tuple[ConsoleTap, list[FindingView]]:
    """Return the tap after a variant's boot with this console, and its findings as the comparison gets them."""
    sink = Sink()
    tap = ConsoleTap(None, sink, Wakeup())  # type: ignore[arg-type]
    tap.begin_boot(KEY)
    tap.begin_variant()
    tap.feed(console)
    tap.end_boot()
    views = [
        FindingView(
            arm=Arm.CANDIDATE,
            block=0,
            attempt=0,
            **{name: getattr(each, name) for name in ("kind", "title", "excerpt", "console_offset", "fatal", "defect")},
            stack=each.stack,
        )
        for each in sink.findings
    ]
    return tap, views


def detected(console: bytes) -> list[Report]:
    detector = Detector()
    return [each for each in [*detector.feed(console), *detector.flush()] if isinstance(each, Report)]


def difference(report: Report, expected: dict[str, Any], lines: list[str]) -> str:
    """Return how a report differs from what is expected; empty if it does not."""
    kinds = expected["kind"] if isinstance(expected["kind"], list) else [expected["kind"]]
    found = report.excerpt.split("\n")
    innermost = next((frame.function for frame in without_reporting(report.stack)), "")
    checks = {
        f"kind {report.kind.value}": report.kind.value in kinds,
        f"fatal {report.fatal}": report.fatal is expected.get("fatal", report.fatal),
        f"title {report.title}": report.title == expected.get("title", report.title)
        and expected.get("title_contains", "") in report.title,
        f"first {found[0]}": "first" not in expected or found[0].strip() == lines[expected["first"]].strip(),
        f"last {found[-1]}": "last" not in expected or found[-1].strip() == lines[expected["last"]].strip(),
        f"hardware {report.of_hardware}": report.of_hardware is expected.get("of_hardware", report.of_hardware),
        f"top {innermost}": innermost == expected.get("top", innermost),
    }
    problems = [text for text, holds in checks.items() if not holds]
    problems += [f"lacks {part}" for part in expected.get("contains", ()) if part not in report.excerpt]
    problems += [f"has {part}" for part in expected.get("excludes", ()) if part in report.excerpt]
    return "; ".join(problems)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_console(path: Path) -> None:
    case = json.loads(path.read_text())
    console, expected = console_of(case), case["expected"]
    reports = detected(console)
    if "reports" in expected:
        assert len(reports) == len(expected["reports"]), [(each.kind.value, each.title) for each in reports]
        wanted = list(expected["reports"])
        for report in reports:
            matching = [each for each in wanted if not difference(report, each, case["lines"])]
            each = matching[0] if expected.get("any_order") and matching else wanted[0]
            assert not (text := difference(report, each, case["lines"])), text
            wanted.remove(each)
    if "same" in expected:
        assert (reports[0].defect == reports[1].defect) is expected["same"], [each.defect for each in reports[:2]]
    if "trace_of_first" in expected:
        assert expected["trace_of_first"] in [frame.function for frame in reports[0].stack]
    if "hardware_errors" in expected:
        assert bool(hardware_errors(console)) is expected["hardware_errors"]
    tap, findings = read_by_tap(console)
    accused = [each.kind.value for each in failures_against(findings, emulated=False)]
    assert "accused" not in expected or accused == expected["accused"]
    assert "accused_one" not in expected or (len(accused) == 1) is expected["accused_one"]
    assert "fatal_contains" not in expected or (tap.fatal and expected["fatal_contains"] in tap.fatal.title)
