"""Render the report as Markdown for a merge request. All input is escaped, so that it cannot format or link."""

from __future__ import annotations

import re

from wqlab_comparison import words
from wqlab_comparison.differences import NOT_CAUSES
from wqlab_comparison.reasons import reasons
from wqlab_comparison.tables import NOTHING, printable
from wqlab_contracts.api.report import ArmSummary, Comparison, Report, TargetReport
from wqlab_contracts.enums import Question, Role, SubmissionState
from wqlab_contracts.excerpts import shorten_lines

from ..content import (
    curve_tables,
    explanation_text,
    failures,
    instrument_tables,
    ladder_tables,
    shared_text,
    sweep_tables,
    system_text,
    thread_text,
)
from .shell import shell_lines

EXCERPT_LINES = 20
MAIN_EXCERPT_LINES = 60
"""Lines of the excerpt of the submission's failure: a whole oops."""
CHECKPATCH_LINES = 10


def render_markdown(report: Report) -> str:
    submission = report.submission
    lines = [f"## {_safe(submission.title or 'wqlab')}", ""]
    lines += [f"{_safe(shared_text.head(report))}, `{_code(shared_text.address(report))}`", ""]
    if submission.state is not SubmissionState.FINISHED:
        lines += [f"**Not finished ({submission.state.value})**: this report shows the results so far.", ""]
    main = failures.main_failure(report)
    lines += _main_failure(main) if main else []
    if others := failures.others(report):
        lines += ["| plan on device type | verdict | main result |", "|---|---|---|"]
        for target in others:
            headline = _safe(instrument_tables.headline(target))
            lines.append(_row(_name(target), f"**{words.VERDICT[target.verdict].upper()}**", headline))
    lines += _sweep(report)
    for target in report.targets:
        lines += ["", *_target(target, report)] if failures.is_shown(report, target) else []
    if groups := failures.other_attempts(report):
        lines += ["", f"### {'Other failed attempts' if main else 'Failed attempts (all)'}", ""]
        for group in groups:
            lines.append(
                f"- {_safe('; '.join(group.places))}: **{group.failure.kind}**: {_safe(group.failure.summary)}"
            )
    lines += ["", *_kernels(report)]
    if failures.applies_method(report):
        lines += ["", f"<sub>{_safe(report.method)}</sub>"]
        lines += ["", f"<sub>How far to trust a verdict: `{_code(shared_text.trust(report))}`</sub>"]
        commands = shared_text.recompute_commands(report)
        lines += (
            ["", "To recompute the verdicts from all samples:", "", *_fenced("\n".join(commands))] if commands else []
        )
    return "\n".join(lines) + "\n"


def _main_failure(main: failures.MainFailure) -> list[str]:
    lines = [f"**FAILED** ({main.kind}): {_safe(main.summary)}", ""]
    lines += [*(f"- where: {_safe(place)}" for place in main.places), ""] if main.places else []
    return [*lines, *_fenced(main.excerpt, MAIN_EXCERPT_LINES), f"What to do: {_safe(main.advice)}", ""]


def _sweep(report: Report) -> list[str]:
    sweep = report.sweep
    if sweep is None:
        return []
    lines = ["", f"### {_safe(sweep_tables.title(sweep))}", ""]
    header = sweep_tables.header(sweep)
    for number, curve in enumerate(sweep.curves):
        lines += [f"- {_safe(sweep_tables.name(curve, sweep))}: **{_safe(curve.sentence)}**"]
        if number < sweep_tables.TABLES:
            lines += ["", _row(*map(_safe, header)), "|---" * len(header) + "|"]
            lines += [_row(*map(_safe, row)) for row in sweep_tables.rows(curve)]
            missing = sweep_tables.reasons(curve, sweep)
            lines += ["", *(f"  - {_safe(reason)}" for reason in missing)] if missing else []
            lines += [""]
    return [*lines, f"_{_safe(sweep_tables.NOTE if sweep.curves else sweep_tables.NO_FIGURES)}_"]


def _ladder(target: TargetReport) -> list[str]:
    """Return the patches of a walk one by one."""
    ladder = target.ladder
    if ladder is None:
        return []
    lines = ["", f"**{_safe(ladder_tables.HEADING)}: {_safe(ladder.sentence)}**", ""]
    lines += [_row(*ladder_tables.header()), "|---|---|---|---|---|"]
    lines += [_row(*map(_safe, row)) for row in ladder_tables.rows(target)]
    lines += ["", *(f"- {_safe(each)}" for each in ladder_tables.reasons(ladder))]
    for sentence, excerpt in ladder_tables.failures(ladder):
        lines += [f"- {_safe(sentence)}", "", *_fenced(excerpt)]
    of = ladder_tables.what(target)
    return [*lines, f"_{_safe(ladder_tables.title(ladder))}{f'; {_safe(of)}' if of else ''}. {ladder_tables.FAMILY}_"]


def _target(target: TargetReport, report: Report) -> list[str]:
    comparisons = failures.comparisons(report, target)
    device = system_text.platform(target)
    lines = [f"### {_name(target)}", "", f"{_safe(device.topology)}; {shared_text.block_counts(target)}"]
    lines[-1] += "" if target.byte_identical else f"; per boot: {shared_text.repetitions(target)}"
    lines += _differences(target)
    system = [f"{name} {value}" for name, value in system_text.system(target)]
    lines += ["", _safe("; ".join(system))] if system else []
    lines += _ladder(target)
    judged = [cell for cell in comparisons if words.is_evidence(cell) and cell.role is not Role.EXPLANATORY]
    for question in Question:
        cells = [cell for cell in judged if cell.question is question]
        if cells:
            second = "candidate" if question is Question.KERNEL else "setting"
            first = "baseline" if question is Question.KERNEL else "reference"
            lines += [
                "",
                f"| | {first} | {second} | change | 95 % interval | n | verdict |",
                "|---|---|---|---|---|---|---|",
            ]
            lines += [_judged_row(target, cell) for cell in cells]
    lines += _instrument(target) if comparisons else []
    lines += _explanation(target) if comparisons else []
    lines += _curves(target)
    values = [cell for cell in comparisons if not words.is_evidence(cell)]
    if values:
        lines += [
            "",
            f"_{shared_text.NOT_EVIDENCE}_",
            "",
            "| no evidence, values only | | | unit |",
            "|---|---|---|---|",
        ]
        lines += [_row(_cell_name(c), _mean(c.baseline), _mean(c.candidate), _safe(c.unit)) for c in values]
    verdict_reasons = reasons(comparisons)
    lines += ["", *(f"- {_safe(reason)}" for reason in verdict_reasons)] if verdict_reasons else []
    lines += [line for each in shared_text.canaries(target) if comparisons for line in ("", f"_{_safe(each)}_")]
    meanings = shared_text.meanings(target) if comparisons else []
    lines += ["", "Metrics with a verdict:", ""] if meanings else []
    lines += [f"- {_safe(name)}: {_safe(summary)}" for name, summary in meanings]
    for group in failures.other_findings(report, target):
        lines += ["", f"**{shared_text.kind(group.finding)}** on {group.place}: {_safe(group.finding.title)}", ""]
        lines += _fenced(group.finding.excerpt)
    commands = target.environment.commands.items() if target.environment else ()
    for scenario, command in commands:
        lines += ["", f"Command of {_safe(scenario)}:", "", *_fenced("\n".join(shell_lines(command)))]
    for title, cmdline in system_text.cmdlines(target).items():
        lines += ["", f"{title}:", "", *_fenced(cmdline)]
    return lines


def _explanation(target: TargetReport) -> list[str]:
    explanation = target.explanation
    if explanation is None or target.plan.is_instrumented:
        return []
    if not explanation.comparisons:
        return ["", f"{explanation_text.HEADING}: not recorded: {_safe(explanation.reason)}"]
    lines: list[str] = []
    for each in explanation.comparisons:
        title = f"{explanation_text.HEADING}: {explanation_text.where(each)} ({explanation_text.basis(each)})"
        lines += ["", f"**{_safe(title)}**", ""]
        lines += [f"- {_safe(sentence)}" for sentence in explanation_text.sentences(each)]
        lines += [f"- {_safe(note)}" for note in each.notes]
    return [*lines, "", f"_{NOT_CAUSES}_"]


def _instrument(target: TargetReport) -> list[str]:
    if not target.plan.is_instrumented:
        return []
    note = instrument_tables.noise_note(target)
    lines = ["", f"_{_safe(note)}_"] if note else []
    for cell in target.instrument:
        lines += ["", f"**{_safe(instrument_tables.HEADING)}: {_safe(instrument_tables.where(cell))}**", ""]
        lines += [f"- {_safe(sentence)}" for sentence in cell.sentences]
        for header, rows in (
            (instrument_tables.subsystem_header(cell), instrument_tables.subsystem_rows(cell)),
            (instrument_tables.function_header(cell), instrument_tables.function_rows(cell)),
            (instrument_tables.pair_header(cell), instrument_tables.pair_rows(cell)),
            (instrument_tables.line_header(cell), instrument_tables.line_rows(cell)),
        ):
            if rows:
                lines += ["", _row(*map(_safe, header)), "|---" * len(header) + "|"]
                lines += [_row(*map(_safe, row)) for row in rows]
        lines += ["", f"_{_safe(instrument_tables.cell_note(cell))}_"]
    return [*lines, "", f"_{_safe(instrument_tables.EVIDENCE)}_"]


def _differences(target: TargetReport) -> list[str]:
    found = system_text.differences(target)
    if not found:
        return []
    rows = [_row(*map(_safe, (each.name, each.baseline, each.candidate))) for each in found]
    more = system_text.differences_left_out(target)
    return ["", "| environment differs | baseline | candidate |", "|---|---|---|", *rows, *(["", more] if more else [])]


def _curves(target: TargetReport) -> list[str]:
    lines: list[str] = []
    for curve in target.curves:
        header = [curve.over, "scenario", *(line.setting for line in curve.lines)]
        lines += ["", f"**{_safe(curve_tables.title(target, curve))}**", "", _row(*map(_safe, header))]
        lines += ["|---" * len(header) + "|", *(_row(*map(_safe, row)) for row in curve_tables.rows(curve))]
        lines += ["", *(f"- {_safe(sentence)}" for sentence in curve.says)]
    note = curve_tables.omission_note(target)
    return [*lines, "", f"_{_safe(note)}_"] if note else lines


def _judged_row(target: TargetReport, cell: Comparison) -> str:
    verdict = f"**{words.VERDICT[cell.verdict]}**" if cell.verdict else NOTHING
    if floor := instrument_tables.noise_floor(target, cell):
        verdict += f", {floor}"
    n = str(cell.candidate.n) if cell.candidate else "0"
    interval = words.interval(cell)
    return _row(
        _cell_name(cell),
        _spread(cell, cell.baseline),
        _spread(cell, cell.candidate),
        words.effect(cell) or words.cause(cell),
        interval,
        n,
        verdict,
    )


def _kernels(report: Report) -> list[str]:
    lines: list[str] = []
    apply = report.submission.apply
    if apply.base_commit:
        lines.append(f"- base {_safe(report.submission.tree)} `{_code(apply.base_commit)}`")
    if apply.thread is not None:
        lines.append(f"- series {_safe(thread_text.origin(apply.thread))}: {_safe(thread_text.mails(apply.thread))}")
        lines += [f"  - {mail.role} <{mail.url}>" for mail in apply.thread.mails]
        lines += [f"  - {_safe(text)}" for text in (*thread_text.trailers(apply.thread), *apply.thread.notes)]
    builds = shared_text.kernels(report)
    for build in builds:
        repeated = (
            build.failure and report.submission.failure and failures.is_same(build.failure, report.submission.failure)
        )
        failed = f": {_safe(build.failure.summary)}" if build.failure and not repeated else ""
        lines.append(f"- {build.arm or 'kernel'}: {_safe(shared_text.describe_build(build))}{failed}")
        for warning in build.new_warnings:
            lines.append(f"  - new warning: `{_code(warning.where)}` {_safe(warning.text)}")
    lines += [f"- compiler: {_safe(compiler)}" for compiler in shared_text.compilers(builds)]
    if report.config_sha256:
        lines.append(f"- configuration sha256 `{_code(report.config_sha256)}`")
    lines += [f"  - `{_code(line)}`" for line in report.config_diff]
    if len(builds) > 1 and (note := system_text.configuration_note(report)):
        lines.append(f"  - {note}")
    found = report.submission.apply.checkpatch
    if failures.applies_checkpatch(report):
        lines.append(f"- checkpatch: {_safe(shared_text.checkpatch_summary(report.submission.apply))}")
        lines += [f"  - {one.severity}: {_safe(one.text)}" for one in found[:CHECKPATCH_LINES]]
        more = len(found) - CHECKPATCH_LINES
        lines += [f"  - and {more} more, which the other formats list"] if more > 0 else []
    for reproducer in shared_text.reproducers(report) if failures.applies_rebuilding(report) else ():
        command = "\n".join(shell_lines(reproducer.command))
        lines += ["", _safe(reproducer.needs), "", *_fenced(command)]
    if deleted := shared_text.deleted_files(report):
        lines += ["", _safe(deleted)]
    return ["### Kernels", "", *lines] if lines else []


def _name(target: TargetReport) -> str:
    return _safe(failures.name(target))


def _cell_name(cell: Comparison) -> str:
    return _safe(" ".join(part for part in (cell.scenario, cell.setting, cell.metric) if part))


def _mean(arm: ArmSummary | None) -> str:
    return NOTHING if arm is None else words.number(arm.mean)


def _spread(cell: Comparison, arm: ArmSummary | None) -> str:
    return NOTHING if arm is None else words.figure(arm, cell.exact)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _safe(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]()#!|<>~&@]|:(?=//))", r"\\\1", printable(text))


def _code(text: str) -> str:
    return printable(text).replace("`", "'")


def _fenced(text: str, limit: int = EXCERPT_LINES) -> list[str]:
    """Return a code block with a fence that is longer than any run of backticks in the text."""
    body = [printable(line) for line in shorten_lines(text.splitlines(), limit)]
    fence = "`" * max(3, 1 + max((len(run) for line in body for run in re.findall("`+", line)), default=0))
    return [fence, *body, fence, ""] if body else []
