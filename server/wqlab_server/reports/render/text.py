"""Render the report as plain text for a mailing list: at most 78 columns, verdicts first."""

from __future__ import annotations

from wqlab_comparison import tables, words
from wqlab_contracts.api.builds import BuildView
from wqlab_contracts.api.report import Report, TargetReport
from wqlab_contracts.enums import Outcome, SubmissionState, Verdict
from wqlab_contracts.excerpts import shorten_lines

from . import curve_tables, failures, instrument_tables, shared_text, sweep_tables, thread_text
from .shell import shell_lines

EXCERPT_LINES = 24
MAIN_EXCERPT_LINES = 60
"""Lines of the excerpt of the submission's failure: a whole oops."""
CHECKPATCH_LINES = 10
INDENT = "    "
_NAME_WIDTH = 12
"""Columns of the names in lists of facts."""


def render_text(report: Report) -> str:
    """Render at most 78 columns, except for text that must not be broken: console lines, URLs, long command words."""
    lines = [
        *_summary(report),
        *_sweep(report),
        *(
            line
            for index, target in enumerate(report.targets, 1)
            if failures.is_shown(report, target)
            for line in _target(index, target, report)
        ),
        *_attempts(report),
        *_kernels(report),
        *_checkpatch(report),
        *_closing(report),
    ]
    return "\n".join(tables.printable(line.rstrip()) for line in lines) + "\n"


# --- parts --------------------------------------------------------------------------------------------------------


def _summary(report: Report) -> list[str]:
    submission = report.submission
    title = submission.title or ("settings study" if shared_text.is_study(report) else "submission")
    lines = [
        *_heading(title, "=")[:-1],
        *tables.wrapped(shared_text.head(report), indent="  "),
        shared_text.address(report),
        "",
    ]
    if submission.state is not SubmissionState.FINISHED:
        lines += [f"NOT FINISHED ({submission.state.value}): this report shows the results so far.", ""]
    main = failures.main_failure(report)
    lines += _main_failure(main) if main else []
    others = failures.others(report)
    for target in others:
        lines += tables.verdict_lines(failures.name(target), target.verdict, instrument_tables.headline(target))
    return [*lines, ""] if others else lines


def _main_failure(main: failures.MainFailure) -> list[str]:
    label = f"{words.VERDICT[Verdict.FAILED]} ({main.kind.value})"
    lines = [*tables.wrapped(f"{label}: {main.summary}", indent="  "), ""]
    for number, place in enumerate(main.places):
        lines += _field("" if number else "where", place)
    lines += _quoted(main.excerpt, MAIN_EXCERPT_LINES)
    return [
        *lines,
        *([""] if main.places or main.excerpt else []),
        *tables.wrapped(f"What to do: {main.advice}", indent="  "),
        "",
    ]


def _sweep(report: Report) -> list[str]:
    """Return where the verdicts change over the topologies of a sweep, with the points of the first curves."""
    sweep = report.sweep
    if sweep is None:
        return []
    lines = _heading(sweep_tables.title(sweep))
    for number, curve in enumerate(sweep.curves):
        lines += tables.wrapped(sweep_tables.sentence(curve, sweep), "* ")
        if number < sweep_tables.TABLES:
            lines += ["", *tables.fitted(sweep_tables.header(sweep), sweep_tables.rows(curve), (4,))]
            lines += [line for each in sweep_tables.reasons(curve, sweep) for line in tables.wrapped(each, "  ")]
            lines += [""]
    return [*lines, *tables.wrapped(sweep_tables.NOTE if sweep.curves else sweep_tables.NO_FIGURES), ""]


def _target(index: int, target: TargetReport, report: Report) -> list[str]:
    platform = shared_text.platform(target)
    device = target.environment.device if target.environment else "none"
    lines = [
        *_heading(f"{index}. {failures.name(target)}"),
        *_field("device", shared_text.joined([device, target.device_summary])),
    ]
    lines += _field("topology", platform.topology)
    lines += _field("", platform.mismatch) if platform.mismatch else []
    lines += _field("blocks", shared_text.block_counts(target))
    lines += [] if target.byte_identical else _field("per boot", shared_text.repetitions(target))
    lines += _differences(target)
    lines += [line for name, value in shared_text.system(target) for line in _field(name, value)]
    scenarios = {scenario.name: scenario.summary for scenario in target.plan.scenarios}
    comparisons = failures.comparisons(report, target)
    parts = [tables.kernel_tables(comparisons), tables.setting_tables(comparisons, scenarios)]
    for part in parts:
        lines += ["", *part] if part else []
    main = failures.main_failure(report)
    lines += [] if any(parts) or (main and main.target is target) else ["", "No figures."]
    lines += _instrument(target) if comparisons else []
    lines += _curves(target)
    if comparisons and shared_text.has_values_only(target):
        lines += ["", *tables.wrapped(shared_text.NOT_EVIDENCE)]
    reasons = tables.notes(comparisons)
    lines += ["", "Reasons:", *reasons] if reasons else []
    meanings = shared_text.meanings(target) if comparisons else []
    lines += ["", "Metrics with a verdict:"] if meanings else []
    lines += [line for name, summary in meanings for line in tables.wrapped(f"{name}: {summary}", "* ")]
    lines += _findings(failures.other_findings(report, target))
    lines += _published(target)
    lines += _commands(target)
    return [*lines, ""]


def _instrument(target: TargetReport) -> list[str]:
    """Return what an instrumented device counted: noise floor, where the counts come from, what they do not show."""
    if not target.plan.is_instrumented:
        return []
    lines = []
    for part in (
        tables.wrapped(instrument_tables.noise_note(target)),
        instrument_tables.text_lines(target),
        tables.wrapped(instrument_tables.EVIDENCE),
    ):
        lines += ["", *part] if part else []
    return lines


def _differences(target: TargetReport) -> list[str]:
    """Return the environment's differences between the arms, one field each."""
    found = shared_text.differences(target)
    names = ["DIFFERS", *[""] * (len(found) - 1)]
    lines = [
        line
        for name, each in zip(names, found, strict=False)
        for line in _field(name, f"{each.name}: {shared_text.per_arm(each)}")
    ]
    more = shared_text.differences_left_out(target)
    return [*lines, *(_field("", more) if more else [])]


def _curves(target: TargetReport) -> list[str]:
    lines: list[str] = []
    for curve in target.curves:
        knobs = f"; columns are {knobs}" if (knobs := curve_tables.knobs(curve)) else ""
        lines += ["", *tables.wrapped(f"{curve_tables.title(target, curve)}{knobs}:", indent="  ")]
        rows = [[f"{x} {scenario}", *figures] for x, scenario, *figures in curve_tables.rows(curve)]
        lines += tables.fitted([curve.over, *curve_tables.header(curve)[2:]], rows)
        lines += [line for sentence in curve.says for line in tables.wrapped(sentence, "* ")]
    note = curve_tables.omission_note(target)
    return [*lines, "", *tables.wrapped(note)] if note else lines


def _findings(groups: list[failures.FindingGroup]) -> list[str]:
    lines: list[str] = []
    for group in groups:
        kind = group.finding.kind.value.replace("_", " ").upper()
        lines += [
            "",
            *tables.wrapped(f"{kind} on {group.place}: {group.finding.title}", indent="  "),
            *_quoted(group.finding.excerpt),
        ]
    return lines


def _published(target: TargetReport) -> list[str]:
    published = shared_text.published(target)
    several = len({row.reference.kernel for row in published}) > 1
    rows = [
        [f"{row.name} ({row.reference.kernel})" if several else row.name, row.published, row.measured]
        for row in published
    ]
    if not rows:
        return []
    lines = ["", *tables.wrapped("Published figures, from ANOTHER KERNEL AND MACHINE; never part of a verdict:")]
    lines += tables.fitted(["", "published", "measured here"], rows)
    figures = [row.reference for row in published]
    sources = dict.fromkeys(f"{figure.kernel} on {figure.machine}: {figure.source}" for figure in figures)
    return [*lines, *(line for source in sources for line in tables.wrapped(source, "  "))]


def _commands(target: TargetReport) -> list[str]:
    lines: list[str] = []
    for scenario, command in target.environment.commands.items() if target.environment else ():
        lines += ["", *tables.wrapped(f"Command of {scenario}:", indent="  "), *shell_lines(command, INDENT)]
    for title, line in shared_text.cmdlines(target).items():
        lines += ["", f"{title}:", *tables.wrapped(line, INDENT)]
    return lines


def _attempts(report: Report) -> list[str]:
    groups = failures.other_attempts(report)
    if not groups:
        return []
    lines = [*_heading("Other failed attempts" if report.submission.failure else "Failed attempts (all)")]
    for group in groups:
        place = "; ".join(group.places)
        lines += tables.wrapped(f"{place}: {group.failure.kind}: {group.failure.summary}", "* ")
        if group.failure.advice:
            lines += tables.wrapped(group.failure.advice, "  ")
    return [*lines, ""]


def _kernels(report: Report) -> list[str]:
    apply, builds = report.submission.apply, shared_text.kernels(report)
    lines: list[str] = []
    if apply.base_commit:
        release = f" ({apply.release})" if apply.release else ""
        lines += _field("base", f"{report.submission.tree} {apply.base_commit[:12]}{release}")
    if apply.thread is not None:
        lines += _field("series", thread_text.origin(apply.thread))
        lines.append(f"{INDENT}{tables.printable(apply.thread.url)}")
        lines += _field("mails", thread_text.mails(apply.thread))
        for text in (*thread_text.trailers(apply.thread), *apply.thread.notes):
            lines += _field("", text)
    for patch in apply.patches:
        lines += _field("patch", f"{patch.subject} [{patch.author}] +{patch.insertions} -{patch.deletions}")
    for build in builds:
        lines += _build(build, report)
    for compiler in shared_text.compilers(builds):
        lines += _field("compiler", compiler)
    if report.config_sha256:
        lines += ["config       sha256", f"{INDENT}{report.config_sha256}"]
    if report.config_diff:
        lines += ["  configuration options that differ, baseline -> candidate:"]
        lines += [line for option in report.config_diff for line in tables.wrapped(option, INDENT)]
    elif len({build.arm for build in builds if build.outcome is Outcome.PASSED}) > 1:
        lines += _field("", shared_text.configuration_note(report))
    for reproducer in shared_text.reproducers(report) if failures.applies_rebuilding(report) else ():
        lines += ["", *tables.wrapped(reproducer.needs), *shell_lines(reproducer.command, INDENT)]
    if deleted := shared_text.deleted_files(report):
        lines += ["", *tables.wrapped(deleted)]
    return [*_heading("Kernels"), *lines, ""] if lines else []


def _build(build: BuildView, report: Report) -> list[str]:
    lines = _field(str(build.arm or "kernel"), shared_text.describe_build(build))
    lines += _field("", f"tree {build.tree_oid}")
    lines += _field("", f"build-id {build.build_id_gnu}") if build.build_id_gnu else []
    main = report.submission.failure
    if build.failure and not (main and failures.is_same(build.failure, main)):
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
    if not failures.applies_checkpatch(report):
        return []
    found = report.submission.apply.checkpatch
    summary = shared_text.checkpatch_summary(report.submission.apply)
    lines = [*_heading("checkpatch (script of the base tree)"), *tables.wrapped(summary)]
    for one in found[:CHECKPATCH_LINES]:
        lines += tables.wrapped(f"{one.severity.upper()}: {one.text}" + (f" ({one.where})" if one.where else ""), "* ")
    if len(found) > CHECKPATCH_LINES:
        lines += [f"* and {len(found) - CHECKPATCH_LINES} more"]
    return [*lines, ""]


def _closing(report: Report) -> list[str]:
    if not failures.applies_method(report):
        return []
    lines = [*_heading("Method"), *tables.wrapped(report.method)]
    commands = shared_text.recompute_commands(report)
    if commands:
        lines += ["", "To recompute the verdicts from all samples:"]
        lines += [line for command in commands for line in shell_lines(command, INDENT)]
    return lines


# --- pieces -------------------------------------------------------------------------------------------------------


def _heading(title: str, rule: str = "-") -> list[str]:
    lines = tables.wrapped(title, indent="  ")
    return [*lines, rule * max(map(len, lines), default=0), ""]


def _field(name: str, text: str) -> list[str]:
    """Return a name in a column of its own, with its text wrapped beside it."""
    lines = tables.wrapped(text, width=tables.WIDTH - _NAME_WIDTH - 1) or [""]
    return [f"{'' if index else name:<{_NAME_WIDTH}} {line}" for index, line in enumerate(lines)]


def _quoted(excerpt: str, limit: int = EXCERPT_LINES) -> list[str]:
    return [f"| {line}" for line in shorten_lines(excerpt.splitlines(), limit)]
