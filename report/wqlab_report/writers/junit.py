"""Write the checks of a report as JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as xml

from wqlab_contracts.api.report import Report

from ..document.checks import Check, Result, Suite, suites
from ..plain_text import printable

_COUNTS = {"failures": Result.FAILURE, "errors": Result.ERROR, "skipped": Result.SKIPPED}


def render_junit(report: Report) -> str:
    """Render JUnit XML that is valid against the schema of Jenkins' xunit plugin."""
    found = suites(report)
    root = xml.Element("testsuites", name=printable(f"wqlab submission {report.submission.id}"))
    root.extend(_suite(suite, report.generated_at.strftime("%Y-%m-%dT%H:%M:%S")) for suite in found)
    counts = _counts([check for suite in found for check in suite.checks])
    root.attrib.update({name: counts[name] for name in ("tests", "failures", "errors")})
    xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + xml.tostring(root, encoding="unicode") + "\n"


def _suite(suite: Suite, timestamp: str) -> xml.Element:
    element = xml.Element("testsuite", name=printable(suite.name), timestamp=timestamp)
    element.extend(map(_case, suite.checks))
    if suite.remarks:
        xml.SubElement(element, "system-out").text = "\n".join(map(printable, suite.remarks))
    element.attrib.update({**_counts(suite.checks), "time": "0"})
    return element


def _case(check: Check) -> xml.Element:
    case = xml.Element("testcase", classname=printable(check.group), name=printable(check.name), time="0")
    attributes = {} if check.result is Result.PASSED else {"message": check.message, "type": check.kind}
    if attributes or check.text:
        element = xml.SubElement(case, check.result, {name: printable(text) for name, text in attributes.items()})
        element.text = "\n".join(map(printable, check.text.splitlines())) or None
    return case


def _counts(checks: Sequence[Check]) -> dict[str, str]:
    numbers = {name: sum(check.result is result for check in checks) for name, result in _COUNTS.items()}
    return {name: str(number) for name, number in {"tests": len(checks), **numbers}.items()}
