"""The report as plain text for a mailing list: at most 78 columns, the verdict first, in words."""

from __future__ import annotations

from wqlab_comparison import tables, words
from wqlab_contracts.api.report import Report, TargetReport
from wqlab_contracts.api.submissions import BuildView, FindingView
from wqlab_contracts.enums import SubmissionState, Verdict

from . import curves, facts
from .shell import shell_lines

EXCERPT_LINES = 24
CHECKPATCH_LINES = 10
INDENT = "    "
_NAMES = 12
"""Columns of the names of facts."""


def render_text(report: Report) -> str:
    """At most 78 columns, except what a cut would spoil: console text behind `| `, URLs, a command's longest words."""
    lines = [
        *_summary(report),
        *(line for index, target in enumerate(report.targets, 1) for line in _target(index, target)),
        *_attempts(report),
        *_kernels(report),
        *_checkpatch(report),
        *_closing(report),
    ]
    return "\n".join(tables.printable(line.rstrip()) for line in lines) + "\n"


# --- parts --------------------------------------------------------------------------------------------------------


def _summary(report: Report) -> list[str]:
    submission = report.submission
    title = submission.title or ("settings study" if facts.is_study(report) else "submission")
    lines = [*_heading(title, "=")[:-1], *tables.wrapped(facts.head(report), indent="  "), facts.address(report), ""]
    if submission.state is not SubmissionState.FINISHED:
        lines += [f"NOT FINISHED ({submission.state.value}): what follows is what there is so far.", ""]
    if submission.failure:
        lines += _failure("The submission failed", submission.failure.kind.value, submission.failure.summary)
        lines += _quoted(submission.failure.excerpt)
        lines += [*tables.wrapped(submission.failure.advice, "  "), ""] if submission.failure.advice else [""]
    for target in report.targets:
        lines += tables.verdict_lines(_name(target), target.verdict, target.headline)
    return [*lines, ""] if report.targets else lines


def _target(index: int, target: TargetReport) -> list[str]:
    platform = facts.platform(target)
    device = target.environment.device if target.environment else "none"
    lines = [*_heading(f"{index}. {_name(target)}"), *_field("device", facts.joined([device, target.device_summary]))]
    lines += _field("topology", platform.topology)
    lines += _field("", platform.mismatch) if platform.mismatch else []
    lines += _field("blocks", facts.discards(target))
    lines += _field("per boot", facts.repetitions(target))
    lines += [line for name, value in facts.system(target) for line in _field(name, value)]
    scenarios = {scenario.name: scenario.summary for scenario in target.plan.scenarios}
    parts = [tables.kernel_tables(target.comparisons), tables.setting_tables(target.comparisons, scenarios)]
    for part in parts:
        lines += ["", *part] if part else []
    lines += [] if any(parts) else ["", "No figures."]
    lines += _curves(target)
    if facts.has_values_only(target):
        lines += ["", *tables.wrapped(facts.NOT_EVIDENCE)]
    reasons = tables.notes(target.comparisons)
    lines += ["", "Why:", *reasons] if reasons else []
    meanings = facts.meanings(target)
    lines += ["", "What is judged:"] if meanings else []
    lines += [line for name, summary in meanings for line in tables.wrapped(f"{name}: {summary}", "* ")]
    lines += _findings(target.findings)
    lines += _published(target)
    lines += _commands(target)
    return [*lines, ""]


def _curves(target: TargetReport) -> list[str]:
    lines: list[str] = []
    for curve in target.curves:
        knobs = f"; columns are {knobs}" if (knobs := curves.knobs(curve)) else ""
        lines += ["", *tables.wrapped(f"{curves.title(target, curve)}{knobs}:", indent="  ")]
        rows = [[f"{x} {scenario}", *figures] for x, scenario, *figures in curves.rows(curve)]
        lines += tables.fitted([curve.over, *curves.header(curve)[2:]], rows)
        lines += [line for said in curve.says for line in tables.wrapped(said, "* ")]
    said = curves.not_drawn(target)
    return [*lines, "", *tables.wrapped(said)] if said else lines


def _findings(findings: list[FindingView]) -> list[str]:
    lines: list[str] = []
    for finding in findings:
        kind = finding.kind.value.replace("_", " ").upper()
        lines += [
            "",
            *tables.wrapped(f"{kind} on {facts.place(finding)}: {finding.title}", indent="  "),
            *_quoted(finding.excerpt),
        ]
    return lines


def _published(target: TargetReport) -> list[str]:
    found = facts.published(target)
    several = len({row.reference.kernel for row in found}) > 1
    rows = [
        [f"{row.name} ({row.reference.kernel})" if several else row.name, row.published, row.measured] for row in found
    ]
    if not rows:
        return []
    lines = ["", *tables.wrapped("Published figures, OTHER KERNEL, OTHER MACHINE; never part of a verdict:")]
    lines += tables.fitted(["", "published", "measured here"], rows)
    figures = [row.reference for row in found]
    sources = dict.fromkeys(f"{figure.kernel} on {figure.machine}: {figure.source}" for figure in figures)
    return [*lines, *(line for source in sources for line in tables.wrapped(source, "  "))]


def _commands(target: TargetReport) -> list[str]:
    lines: list[str] = []
    for scenario, command in target.environment.commands.items() if target.environment else ():
        lines += ["", *tables.wrapped(f"{scenario} ran:", indent="  "), *shell_lines(command, INDENT)]
    for title, line in facts.cmdlines(target).items():
        lines += ["", f"{title}:", *tables.wrapped(line, INDENT)]
    return lines


def _attempts(report: Report) -> list[str]:
    if not report.attempts:
        return []
    lines = [*_heading("Attempts that failed, all of them")]
    for attempt in report.attempts:
        lines += tables.wrapped(f"{facts.where(attempt)}: {attempt.failure.kind}: {attempt.failure.summary}", "* ")
        if attempt.failure.advice:
            lines += tables.wrapped(attempt.failure.advice, "  ")
    return [*lines, ""]


def _kernels(report: Report) -> list[str]:
    apply, builds = report.submission.apply, facts.kernels(report)
    lines = _heading("Kernels")
    if apply.base_commit:
        release = f" ({apply.release})" if apply.release else ""
        lines += _field("base", f"{report.submission.tree} {apply.base_commit[:12]}{release}")
    for patch in apply.patches:
        lines += _field("patch", f"{patch.subject} [{patch.author}] +{patch.insertions} -{patch.deletions}")
    for build in builds:
        lines += _build(build)
    for compiler in facts.compilers(builds):
        lines += _field("compiler", compiler)
    if report.config_sha256:
        lines += ["config       sha256", f"{INDENT}{report.config_sha256}"]
    if report.config_diff:
        lines += ["  configuration options that differ, baseline -> candidate:"]
        lines += [line for option in report.config_diff for line in tables.wrapped(option, INDENT)]
    elif len(builds) > 1:
        lines += _field("", "the same options in both kernels")
    for reproducer in facts.reproducers(report):
        lines += ["", *tables.wrapped(reproducer.needs), *shell_lines(reproducer.command, INDENT)]
    return [*lines, ""]


def _build(build: BuildView) -> list[str]:
    lines = _field(str(build.arm or "kernel"), facts.built(build))
    lines += _field("", f"tree {build.tree_oid}")
    lines += _field("", f"build-id {build.build_id_gnu}") if build.build_id_gnu else []
    if build.failure:
        lines += [
            *tables.wrapped(f"{build.failure.kind}: {build.failure.summary}", "  "),
            *_quoted(build.failure.excerpt),
        ]
    if build.new_warnings:
        lines += [f"  {words.count(len(build.new_warnings), 'warning')} that the baseline does not have:"]
        for warning in build.new_warnings:
            lines += tables.wrapped(f"{warning.where}: {warning.text} {warning.option}", INDENT)
    return lines


def _checkpatch(report: Report) -> list[str]:
    if facts.is_study(report):
        return []
    found = report.submission.apply.checkpatch
    totals = {kind: sum(one.severity == kind for one in found) for kind in ("error", "warning", "check")}
    summary = ", ".join(words.count(number, kind) for kind, number in totals.items() if number) or "clean"
    lines = [*_heading("checkpatch (the base tree's)"), summary]
    for one in found[:CHECKPATCH_LINES]:
        lines += tables.wrapped(f"{one.severity.upper()}: {one.text}" + (f" ({one.where})" if one.where else ""), "* ")
    if len(found) > CHECKPATCH_LINES:
        lines += [f"* and {len(found) - CHECKPATCH_LINES} more"]
    return [*lines, ""]


def _closing(report: Report) -> list[str]:
    lines = [*_heading("Method"), *tables.wrapped(report.method)]
    commands = facts.recomputing(report)
    if commands:
        lines += ["", "To compute the verdicts again from every sample:"]
        lines += [line for command in commands for line in shell_lines(command, INDENT)]
    return lines


# --- pieces -------------------------------------------------------------------------------------------------------


def _name(target: TargetReport) -> str:
    return f"{target.plan.name} on {target.device_type}{' (emulated)' if target.emulated else ''}"


def _heading(title: str, rule: str = "-") -> list[str]:
    lines = tables.wrapped(title, indent="  ")
    return [*lines, rule * max(map(len, lines), default=0), ""]


def _field(name: str, text: str) -> list[str]:
    """A name in a column of its own, its text wrapped beside it."""
    lines = tables.wrapped(text, width=tables.WIDTH - _NAMES - 1) or [""]
    return [f"{'' if index else name:<{_NAMES}} {line}" for index, line in enumerate(lines)]


def _failure(what: str, kind: str, summary: str) -> list[str]:
    return tables.wrapped(f"{words.VERDICT[Verdict.FAILED]}: {what} ({kind}): {summary}", indent="  ")


def _quoted(excerpt: str) -> list[str]:
    return [f"| {line}" for line in facts.lines_of(excerpt, EXCERPT_LINES)]
