"""Render the report as JUnit XML.

There is one test case per device type, scenario, setting and primary metric; on an emulated device, the primary metrics
of real hardware are included as skipped (no evidence). Regressions and failures of the kernel are `failure`; errors of
the lab or of the request are `error`; inconclusive, no evidence and unsupported are `skipped`, with the reason, and so
is everything modelled, whatever its verdict: it is no finding. The
type of a skipped case is the cause of the missing figure (`NotMeasuredCause`), if one is missing, else the verdict.
"""

from __future__ import annotations

from xml.etree import ElementTree as xml

from wqlab_comparison.words import VERDICT, ci, effect, tests
from wqlab_contracts.api.report import Comparison, Report, TargetReport
from wqlab_contracts.enums import ErrorKind, Evidence, Question, Role, Verdict
from wqlab_contracts.messages import Failure

from ..content import failures, instrument_tables, shared_text
from ..plain_text import printable

SURVIVAL = "kernels boot and survive"
"""Name of a target's test case that a failure of its run or kernels fails; its other cases are then skipped."""
_SKIPPED = frozenset({Verdict.INCONCLUSIVE, Verdict.WITHHELD, Verdict.NO_EVIDENCE, Verdict.UNSUPPORTED})


def render_junit(report: Report) -> str:
    """Render JUnit XML that is valid against the schema of Jenkins' xunit plugin."""
    root = xml.Element("testsuites", name=_text(f"wqlab submission {report.submission.id}"))
    for target in report.targets:
        root.append(_suite(report, target))
    main = failures.main_failure(report)
    if not report.targets or (main and main.target is None):
        suite = xml.SubElement(root, "testsuite", name="submission", timestamp=_when(report))
        case = xml.SubElement(suite, "testcase", classname="wqlab", name="submission", time="0")
        if main:
            _add_main_failure(case, main)
        _count(suite)
    totals = {name: sum(int(suite.get(name, "0")) for suite in root) for name in ("tests", "failures", "errors")}
    root.attrib.update({name: str(number) for name, number in totals.items()})
    xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + xml.tostring(root, encoding="unicode") + "\n"


def _suite(report: Report, target: TargetReport) -> xml.Element:
    name = _text(f"{target.plan.name}@{target.device_type}")
    suite = xml.Element("testsuite", name=name, timestamp=_when(report))
    on_hardware = {metric.name for metric in target.plan.metrics if metric.role_hardware is Role.PRIMARY}
    cases = [
        cell
        for cell in target.comparisons
        if cell.role is Role.PRIMARY or (cell.evidence is Evidence.NONE and cell.metric in on_hardware)
    ]
    for cell in cases:
        _case(suite, cell, target, shown=bool(failures.comparisons(report, target)))
    boots = xml.SubElement(suite, "testcase", classname=name, name=SURVIVAL, time="0")
    main = failures.main_failure(report)
    if main and main.target is target:
        _add_main_failure(boots, main)
    elif target.failure and report.submission.failure and failures.is_same(target.failure, report.submission.failure):
        _add(boots, "skipped", "not run: see the failure of the submission", "failed", "")
    elif target.failure:
        _add_failure(boots, target.failure)
    elif target.verdict is Verdict.FAILED:
        _add(boots, "failure", target.headline, "failed", "\n".join(finding.excerpt for finding in target.findings))
    elif not target.blocks_completed:
        reason = target.headline if target.byte_identical else "no block is completed"
        _add(boots, "skipped", reason, "not booted", "")
    _count(suite)
    if target.verdict is not Verdict.FAILED:
        out = xml.SubElement(suite, "system-out")
        lines = [f"{VERDICT[target.verdict]}: {instrument_tables.headline(target)}", *shared_text.canaries(target)]
        out.text = "\n".join(map(_text, lines))
    return suite


def _case(suite: xml.Element, cell: Comparison, target: TargetReport, *, shown: bool) -> None:
    parts = [cell.scenario, cell.setting, cell.metric]
    if cell.question is Question.SETTING:
        parts.append(f"vs {cell.reference} on {cell.kernel}")
    case = xml.SubElement(
        suite,
        "testcase",
        classname=_text(f"{cell.plan}@{cell.device_type}"),
        name=_text(" ".join(part for part in parts if part)),
        time="0",
    )
    floor = instrument_tables.noise_floor(target, cell)
    figures = ", ".join(part for part in (effect(cell), ci(cell), tests(cell), floor) if part)
    message = f"{VERDICT[cell.verdict]}: {cell.reason}" if cell.verdict else cell.reason
    if cell.evidence is Evidence.MODELLED and shown and cell.verdict is not Verdict.FAILED:
        _add(case, "skipped", f"modelled, no finding: {message}", "modelled", figures)
    elif cell.verdict is Verdict.REGRESSION and cell.question is Question.KERNEL:
        _add(case, "failure", message, "regression", figures)
    elif not shown or (cell.verdict is Verdict.FAILED and target.verdict is Verdict.FAILED):
        _add(case, "skipped", f"not measured: see {SURVIVAL}", "failed", "")
    elif cell.verdict is Verdict.FAILED:
        kind = target.failure.kind if target.failure else ErrorKind.KERNEL
        _add(case, _tag(kind), message, str(kind), figures)
    elif cell.verdict is None or cell.verdict in _SKIPPED:
        _add(case, "skipped", message, cell.not_measured or cell.verdict or "no verdict", "")
    else:
        means = [arm.mean for arm in (cell.baseline, cell.candidate) if arm is not None]
        out = xml.SubElement(case, "system-out")
        out.text = _text(f"{message}; {' and '.join(f'{mean:.6g}' for mean in means)} {cell.unit}; {figures}")


def _add_main_failure(case: xml.Element, main: failures.MainFailure) -> None:
    places = [f"where: {place}" for place in main.places]
    body = "\n".join([*places, *filter(None, [main.excerpt]), f"What to do: {main.advice}"])
    _add(case, _tag(main.kind), f"{main.kind}: {main.summary}", str(main.kind), body)


def _add_failure(case: xml.Element, failure: Failure) -> None:
    _add(case, _tag(failure.kind), f"{failure.kind}: {failure.summary}", str(failure.kind), failure.excerpt)


def _tag(kind: ErrorKind) -> str:
    return "failure" if kind is ErrorKind.KERNEL else "error"


def _add(case: xml.Element, tag: str, message: str, kind: str, body: str) -> None:
    element = xml.SubElement(case, tag, message=_text(message), type=_text(kind))
    if body:
        element.text = "\n".join(map(_text, body.splitlines()))


def _count(suite: xml.Element) -> None:
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("time", "0")


def _when(report: Report) -> str:
    return report.generated_at.strftime("%Y-%m-%dT%H:%M:%S")


def _text(text: str) -> str:
    """Return the text without characters that XML 1.0 forbids or that control a terminal."""
    return printable(text)
