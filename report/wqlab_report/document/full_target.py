"""What a page or a comment says of a target."""

from __future__ import annotations

from collections.abc import Sequence

from wqlab_comparison import words
from wqlab_comparison.differences import NOT_CAUSES
from wqlab_comparison.reasons import reasons
from wqlab_comparison.tables import NOTHING
from wqlab_contracts.api.report import ArmSummary, Comparison, Report, TargetReport
from wqlab_contracts.enums import Question, Role

from ..content import (
    curve_tables,
    explanation_text,
    failures,
    instrument_tables,
    ladder_tables,
    shared_text,
    system_text,
)
from .blocks import Badge, Block, Bullets, Commands, Excerpt, Paragraph, Part, Section, Style, Table
from .shell import shell_lines

EXCERPT_LINES = 20


def section(report: Report, target: TargetReport) -> Section:
    """Return everything about a target."""
    compared = failures.comparisons(report, target)
    blocks = [*_place(target), *_ladder(target), *_figures(target, compared)]
    if compared:
        blocks += [*_counted(target), *_explanation(target)]
    blocks += [*_curves(target), *_values(compared)]
    if why := reasons(compared):
        blocks.append(Bullets(why))
    if compared:
        blocks += [Paragraph(each, style=Style.NOTE) for each in shared_text.canaries(target)]
        blocks += _meanings(target)
    blocks += [*_findings(report, target), *_run(target)]
    return Section([Part([block]) for block in blocks], failures.name(target))


def _place(target: TargetReport) -> list[Block]:
    """Return where the target was measured, and what differed there between the kernels."""
    place = f"{system_text.platform(target).topology}; {shared_text.block_counts(target)}"
    place += "" if target.byte_identical else f"; per boot: {shared_text.repetitions(target)}"
    blocks: list[Block] = [Paragraph(place)]
    if differences := system_text.differences(target):
        rows = [[each.name, each.baseline, each.candidate] for each in differences]
        blocks.append(Table(["environment differs", "baseline", "candidate"], rows, left=(0, 1, 2)))
    if more := system_text.differences_left_out(target):
        blocks.append(Paragraph(more))
    if system := system_text.system(target):
        blocks.append(Paragraph("; ".join(f"{name} {value}" for name, value in system)))
    return blocks


def _ladder(target: TargetReport) -> list[Block]:
    """Return the patches of a walk one by one."""
    ladder = target.ladder
    if ladder is None:
        return []
    blocks: list[Block] = [
        Paragraph(f"{ladder_tables.HEADING}: {ladder.sentence}", style=Style.STRONG),
        Table(ladder_tables.header(), ladder_tables.rows(target), left=(0, 1, 4), shortened=1),
    ]
    if why := ladder_tables.reasons(ladder):
        blocks.append(Bullets(why))
    for sentence, excerpt in ladder_tables.failures(ladder):
        blocks += [Bullets([sentence]), Excerpt(excerpt, EXCERPT_LINES)]
    of = ladder_tables.what(target)
    note = f"{ladder_tables.title(ladder)}{f'; {of}' if of else ''}. {ladder_tables.FAMILY}"
    return [*blocks, Paragraph(note, style=Style.NOTE)]


def _figures(target: TargetReport, compared: Sequence[Comparison]) -> list[Block]:
    """Return a table with the comparisons of kernels, and one with those of settings."""
    judged = [cell for cell in compared if words.is_evidence(cell) and cell.role is not Role.EXPLANATORY]
    blocks: list[Block] = []
    for question in Question:
        cells = [cell for cell in judged if cell.question is question]
        if cells:
            sides = ["baseline", "candidate"] if question is Question.KERNEL else ["reference", "setting"]
            header = ["", *sides, "change", "95 % interval", "n", "verdict"]
            blocks.append(Table(header, [_row(target, cell) for cell in cells], left=(0, 6)))
    return blocks


def _row(target: TargetReport, cell: Comparison) -> list[str | Badge]:
    return [
        _name(cell),
        _spread(cell, cell.baseline),
        _spread(cell, cell.candidate),
        words.effect(cell) or words.cause(cell),
        words.interval(cell),
        f"{cell.candidate.n if cell.candidate else 0}",
        Badge(cell.verdict, instrument_tables.noise_floor(target, cell)),
    ]


def _counted(target: TargetReport) -> list[Block]:
    """Return where the counts of an instrumented device come from."""
    if not target.plan.is_instrumented:
        return []
    note = instrument_tables.noise_note(target)
    blocks: list[Block] = [Paragraph(note, style=Style.NOTE)] if note else []
    for cell in target.instrument:
        title = f"{instrument_tables.HEADING}: {instrument_tables.where(cell)}"
        blocks.append(Paragraph(title, style=Style.STRONG))
        blocks += [Bullets(cell.sentences)] if cell.sentences else []
        for header, rows in instrument_tables.tables_of(cell):
            blocks += [Table(header, rows)] if rows else []
        blocks.append(Paragraph(instrument_tables.cell_note(cell), style=Style.NOTE))
    return [*blocks, Paragraph(instrument_tables.EVIDENCE, style=Style.NOTE)]


def _explanation(target: TargetReport) -> list[Block]:
    """Return what else differs. An instrumented device has it in where its counts come from."""
    explanation = target.explanation
    if explanation is None or target.plan.is_instrumented:
        return []
    if not explanation.comparisons:
        return [Paragraph(f"{explanation_text.HEADING}: not recorded: {explanation.reason}")]
    blocks: list[Block] = []
    for each in explanation.comparisons:
        title = f"{explanation_text.HEADING}: {explanation_text.where(each)} ({explanation_text.basis(each)})"
        blocks.append(Paragraph(title, style=Style.STRONG))
        blocks.append(Bullets([*explanation_text.sentences(each), *each.notes]))
    return [*blocks, Paragraph(NOT_CAUSES, style=Style.NOTE)]


def _curves(target: TargetReport) -> list[Block]:
    blocks: list[Block] = []
    for curve in target.curves:
        header = [curve.over, "scenario", *(line.setting for line in curve.lines)]
        blocks.append(Paragraph(curve_tables.title(target, curve), style=Style.STRONG))
        blocks.append(Table(header, curve_tables.rows(curve), left=(1,)))
        blocks += [Bullets(curve.says)] if curve.says else []
    note = curve_tables.omission_note(target)
    return [*blocks, Paragraph(note, style=Style.NOTE)] if note else blocks


def _values(compared: Sequence[Comparison]) -> list[Block]:
    values = [cell for cell in compared if not words.is_evidence(cell)]
    if not values:
        return []
    header = ["no evidence, values only", "baseline or reference", "candidate or setting", "unit"]
    rows = [[_name(cell), _mean(cell.baseline), _mean(cell.candidate), cell.unit] for cell in values]
    return [Paragraph(shared_text.NOT_EVIDENCE, style=Style.NOTE), Table(header, rows, left=(0, 3))]


def _meanings(target: TargetReport) -> list[Block]:
    found = [f"{name}: {summary}" for name, summary in shared_text.meanings(target)]
    return [Paragraph("Metrics with a verdict:"), Bullets(found)] if found else []


def _findings(report: Report, target: TargetReport) -> list[Block]:
    blocks: list[Block] = []
    for group in failures.other_findings(report, target):
        title = f"{shared_text.kind(group.finding)} on {group.place}: {group.finding.title}"
        blocks.append(Paragraph(title, style=Style.STRONG))
        blocks += [Excerpt(group.finding.excerpt, EXCERPT_LINES)] if group.finding.excerpt else []
    return blocks


def _run(target: TargetReport) -> list[Block]:
    """Return the commands of the scenarios, and the kernels' command lines."""
    blocks: list[Block] = []
    for scenario, command in (target.environment.commands if target.environment else {}).items():
        blocks += [Paragraph(f"Command of {scenario}:"), Commands(shell_lines(command))]
    for title, cmdline in system_text.cmdlines(target).items():
        blocks += [Paragraph(f"{title}:"), Commands([cmdline])]
    return blocks


def _name(cell: Comparison) -> str:
    return " ".join(part for part in (cell.scenario, cell.setting, cell.metric) if part)


def _mean(arm: ArmSummary | None) -> str:
    return NOTHING if arm is None else words.number(arm.mean)


def _spread(cell: Comparison, arm: ArmSummary | None) -> str:
    return NOTHING if arm is None else words.figure(arm, cell.exact)
