"""Reports with hostile or special input, and helpers to check rendered reports."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from xml.etree import ElementTree as xml

from report_examples import improvement, panic
from report_parts import XEON, XFS, samples, target, xeon

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import PAIR, Arm, ErrorKind
from wqlab_contracts.messages import Failure
from wqlab_report.formats import render_json
from wqlab_report.writers.html import render_html
from wqlab_report.writers.junit import render_junit
from wqlab_report.writers.markdown import render_markdown
from wqlab_report.writers.mmtests import render_mmtests
from wqlab_report.writers.text import render_text

RENDERERS = {
    "text": render_text,
    "markdown": render_markdown,
    "html": render_html,
    "junit": render_junit,
    "mmtests": render_mmtests,
    "json": render_json,
}


def one_word(line: str) -> bool:
    """Return True if a line of a command is one word, or an option `-x` with its value."""
    try:
        return len(shlex.split(line.removesuffix("\\"))) <= 2
    except ValueError:
        return False


def with_bandwidth(baseline: list[float], candidate: list[float]) -> Report:
    """Return the improvement report with only bandwidth, as measured on an emulated device."""
    cells = {
        ("fsync", "", "bandwidth", Arm.BASELINE): baseline,
        ("fsync", "", "bandwidth", Arm.CANDIDATE): candidate,
    }
    one = target(
        11, XFS, "xeon-2s", samples(XFS, "xeon-2s", cells), [""], list(PAIR), xeon(), XEON, (3, 3), {"fsync": "fio"}
    )
    return improvement().model_copy(update={"targets": [one]})


HOSTILE = (
    "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\x1b]0;owned\x07\u202e]]> "
    "`code` **bold** [a](javascript:x) | cell\r\nxfs-fsync on xeon-2s: IMPROVEMENT\x00 &amp; {{ 7*7 }}"
)


def hostile() -> Report:
    """Return a report with HOSTILE in every text that comes from outside."""
    report = panic()
    one = report.targets[0]
    assert one.environment
    findings = [finding.model_copy(update={"title": HOSTILE, "excerpt": HOSTILE}) for finding in one.findings]
    environment = one.environment.model_copy(
        update={"facts": {HOSTILE: HOSTILE}, "commands": {HOSTILE: HOSTILE}, "cmdline": {Arm.BASELINE: HOSTILE}}
    )
    failure = Failure(kind=ErrorKind.KERNEL, summary=HOSTILE, excerpt=HOSTILE, advice=HOSTILE)
    builds = [
        build.model_copy(update={"compiler": HOSTILE, "reproducer": HOSTILE, "failure": failure})
        for build in report.submission.builds
    ]
    submission = report.submission.model_copy(update={"title": HOSTILE, "failure": failure, "builds": builds})
    attempts = [attempt.model_copy(update={"failure": failure, "device": HOSTILE}) for attempt in report.attempts]
    comparisons = [cell.model_copy(update={"reason": HOSTILE}) for cell in one.comparisons]
    bad = one.model_copy(
        update={
            "findings": findings,
            "environment": environment,
            "headline": HOSTILE,
            "failure": failure,
            "comparisons": comparisons,
        }
    )
    return report.model_copy(
        update={"submission": submission, "targets": [bad], "attempts": attempts, "config_diff": [HOSTILE]}
    )


@dataclass
class Junit:
    """Parsed JUnit XML."""

    root: xml.Element

    def case(self, name: str) -> xml.Element:
        return next(case for case in self.root.iter("testcase") if name in case.get("name", ""))


def junit(report: Report) -> Junit:
    return Junit(xml.fromstring(render_junit(report)))
