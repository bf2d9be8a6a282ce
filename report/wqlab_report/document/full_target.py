"""What a page or a comment says of a target."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from wqlab_comparison import words
from wqlab_comparison.differences import NOT_CAUSES
from wqlab_comparison.reasons import reasons
from wqlab_contracts.api.report import ArmSummary, Comparison, Report, TargetReport
from wqlab_contracts.enums import Question

from ..content import (
    cells,
    curve_tables,
    explanation_text,
    failures,
    instrument_tables,
    ladder_tables,
    model_text,
    shared_text,
    system_text,
    wait_tables,
)
from ..figures.figures import figures
from ..figures.instrument_figures import instrument_figures
from ..figures.workqueue_figures import workqueue_figures
from ..plain_text import NOTHING
from .blocks import (
    Badge,
    Block,
    Box,
    Bullets,
    Commands,
    Drawing,
    Excerpt,
    Facts,
    Fold,
    Heading,
    Link,
    Paragraph,
    Part,
    Section,
    Style,
    Table,
    Text,
)
from .shell import shell_lines

TITLES = {
    Question.KERNEL: "Candidate against baseline",
    Question.SETTING: "Settings against the reference setting",
}
SIDES = ["baseline or reference", "candidate or setting"]


def anchor(target: TargetReport) -> str:
    return f"run-{target.run_id}"


def section(report: Report, target: TargetReport) -> Section:
    """Return everything about a target."""
    compared = failures.comparisons(report, target)
    blocks = [*_place(report, target), *_ladder(target), *_figures(target, compared), *_counted(target, compared)]
    blocks += [*_curves(target), *_recorded(target), *_without_verdict(compared)]
    if compared:
        blocks += _explanation(target)
    if why := reasons(compared):
        blocks += [Heading("Reasons"), Bullets(why)]
    if compared and (meanings := shared_text.meanings(target)):
        blocks += [Heading("Metrics with a verdict"), Bullets([f"{name}: {summary}" for name, summary in meanings])]
    blocks += [*_published(target), *_findings(report, target), *_run(target)]
    return Section([Part([block]) for block in blocks], failures.name(target), anchor(target))


def _place(report: Report, target: TargetReport) -> list[Block]:
    """Return where the target was measured, and what differed there between the kernels."""
    platform = system_text.platform(target)
    device = target.environment.device if target.environment else "none"
    facts: list[tuple[str, Text]] = [
        ("device", shared_text.joined([device, target.device_summary])),
        ("topology", "; ".join(filter(None, [platform.topology, platform.mismatch]))),
        ("blocks", shared_text.block_counts(target)),
    ]
    if costs := model_text.costs(target):
        facts.append(("figures", (f"{costs}. {model_text.CANNOT_TELL}: ", Link(model_text.page(report), "more"))))
    facts += [] if target.byte_identical else [("per boot", shared_text.repetitions(target))]
    facts += [("what ran", "; ".join(target.ran.sentences))] if target.ran else []
    blocks: list[Block] = [Facts(facts)]
    if differences := system_text.differences(target):
        rows = [[each.name, each.baseline, each.candidate] for each in differences]
        blocks.append(Table(["environment differs", "baseline", "candidate"], rows, left=(0, 1, 2)))
    if more := system_text.differences_left_out(target):
        blocks.append(Paragraph(more))
    if system := system_text.system(target):
        blocks.append(Facts(system))
    if target.environment and target.environment.facts:
        facts = sorted(target.environment.facts.items())
        blocks.append(Fold("All facts that the boots reported", [Facts(facts, wide=True)]))
    return blocks


def _ladder(target: TargetReport) -> list[Block]:
    """Return the patches of a walk one by one."""
    ladder = target.ladder
    if ladder is None:
        return []
    rows: list[list[str | Badge]] = [
        [*row[:-1], Badge(verdict, share)]
        for row, (verdict, share) in zip(ladder_tables.rows(target), ladder_tables.verdicts(target), strict=True)
    ]
    blocks: list[Block] = [
        Heading(f"{ladder_tables.HEADING}: {ladder.sentence}"),
        Table(ladder_tables.header(), rows, left=(0, 1, 4), shortened=1),
    ]
    if why := ladder_tables.reasons(ladder):
        blocks.append(Bullets(why))
    for sentence, excerpt in ladder_tables.failures(ladder):
        blocks += [Bullets([sentence]), *([Excerpt(excerpt)] if excerpt else [])]
    of = ladder_tables.what(target)
    note = f"{ladder_tables.title(ladder)}{f'; {of}' if of else ''}. {ladder_tables.FAMILY}"
    return [*blocks, Paragraph(note, style=Style.NOTE)]


def _figures(target: TargetReport, compared: Sequence[Comparison]) -> list[Block]:
    """Return a table with the comparisons of kernels, and one with those of settings, with their figures."""
    judged = cells.judged(compared)
    blocks: list[Block] = []
    for question, title in TITLES.items():
        asked = [cell for cell in judged if cell.question is question]
        if not asked:
            continue
        counted = ["noise floor", "seeds"] if target.plan.is_instrumented else ["boots"]
        header = ["", "verdict", *cells.sides(question), "unit", "change", "95 % interval", *counted]
        several = len({cell.kernel for cell in asked}) > 1
        rows = [_row(target, cell, several=several) for cell in asked]
        blocks += [Heading(title), Table(header, rows, left=(0, 1, 4))]
    if compared:
        blocks += [Paragraph(each, style=Style.NOTE) for each in shared_text.canaries(target)]
        blocks.append(Drawing(partial(figures, target)))
    return blocks


def _row(target: TargetReport, cell: Comparison, *, several: bool) -> list[str | Badge]:
    floor = instrument_tables.noise_floor(target, cell).removeprefix("noise floor ")
    return [
        f"{cells.name(cell)} ({cell.kernel})" if several and cell.kernel else cells.name(cell),
        Badge(cell.verdict),
        _spread(cell, cell.baseline),
        _spread(cell, cell.candidate),
        cell.unit,
        words.effect(cell) or words.cause(cell),
        words.interval(cell),
        *([floor] if target.plan.is_instrumented else []),
        f"{cell.candidate.n if cell.candidate else 0}",
    ]


def _counted(target: TargetReport, compared: Sequence[Comparison]) -> list[Block]:
    """Return where the counts of an instrumented device come from."""
    if not target.plan.is_instrumented:
        return []
    blocks: list[Block] = []
    for cell in target.instrument:
        blocks.append(Heading(f"{instrument_tables.HEADING}: {instrument_tables.where(cell)}"))
        blocks += [Bullets(cell.sentences)] if cell.sentences else []
        for header, rows in instrument_tables.tables_of(cell):
            left = [number for number, name in enumerate(header) if number == 0 or name in instrument_tables.TEXTS]
            blocks += [Table(header, rows, left)] if rows else []
        blocks.append(Paragraph(instrument_tables.cell_note(cell), style=Style.NOTE))
    blocks.append(Drawing(partial(instrument_figures, target)))
    if compared:
        evidence = instrument_tables.BESIDE_A_MODEL if target.plan.is_modelled else instrument_tables.EVIDENCE
        notes = [instrument_tables.noise_note(target), evidence]
        blocks += [Paragraph(note, style=Style.NOTE) for note in notes if note]
    return blocks


def _curves(target: TargetReport) -> list[Block]:
    """Return the curves of a plan; a page has them as figures."""
    tables: list[Block] = []
    for curve in target.curves:
        tables += [
            Heading(curve_tables.title(target, curve)),
            Table(curve_tables.header(curve), curve_tables.rows(curve), left=(1,)),
            *([Bullets(curve.says)] if curve.says else []),
        ]
    blocks: list[Block] = [Drawing(list, tables)] if tables else []
    note = curve_tables.omission_note(target)
    return [*blocks, Paragraph(note, style=Style.NOTE)] if note else blocks


def _recorded(target: TargetReport) -> list[Block]:
    """Return what traced repetitions recorded of workqueues and their work items."""
    blocks: list[Block] = []
    if target.workqueues:
        title = f"Workqueues over time ({len(target.workqueues)})"
        blocks.append(Fold(title, [Drawing(partial(workqueue_figures, target))]))
    if target.waits:
        tables: list[Block] = []
        for cell in target.waits:
            if cell.works:
                rows = wait_tables.rows(cell)
                tables += [Paragraph(wait_tables.title(cell)), Table(wait_tables.header(target), rows, left=(0, 1))]
            place = "" if cell.works else f"{cell.scenario} {cell.setting}: "
            tables += [Paragraph(f"{place}{note}", style=Style.NOTE) for note in wait_tables.cell_notes(cell)]
        note = Paragraph(wait_tables.note(target), style=Style.NOTE)
        blocks.append(Fold(f"{wait_tables.HEADING} ({len(target.waits)})", [*tables, note]))
    return blocks


def _without_verdict(compared: Sequence[Comparison]) -> list[Block]:
    """Return the figures that explain others, and those that are no evidence."""
    blocks: list[Block] = []
    if explanatory := [cell for cell in cells.explanatory(compared) if cell.candidate]:
        rows = [
            [cells.name(cell), _spread(cell, cell.baseline), _spread(cell, cell.candidate), cell.unit]
            for cell in explanatory
        ]
        blocks += [Heading("Explanatory, no verdict"), Table(["", *SIDES, "unit"], rows, left=(0, 3))]
    if values := cells.values_only(compared):
        rows = [[cells.name(cell), _mean(cell.baseline), _mean(cell.candidate), cell.unit] for cell in values]
        blocks += [
            Heading("No evidence, values only"),
            Paragraph(shared_text.NOT_EVIDENCE, style=Style.NOTE),
            Table(["", *SIDES, "unit"], rows, left=(0, 3)),
        ]
    return blocks


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
        blocks += [Heading(title), Bullets([*explanation_text.sentences(each), *each.notes])]
    return [*blocks, Paragraph(NOT_CAUSES, style=Style.NOTE)]


def _published(target: TargetReport) -> list[Block]:
    rows = [
        [
            each.name,
            each.published,
            each.measured,
            f"{each.reference.kernel} on {each.reference.machine}: {each.reference.source}",
        ]
        for each in shared_text.published(target)
    ]
    if not rows:
        return []
    title = "Published figures, from another kernel and machine; never part of a verdict"
    return [Fold(title, [Table(["", "published", "measured here", "source"], rows, left=(0, 3))])]


def _findings(report: Report, target: TargetReport) -> list[Block]:
    blocks: list[Block] = []
    for group in failures.other_findings(report, target):
        excerpt = [Excerpt(group.finding.excerpt)] if group.finding.excerpt else []
        blocks.append(Box("finding", [Heading(group.title), *excerpt]))
    return blocks


def _run(target: TargetReport) -> list[Block]:
    """Return the commands of the scenarios, and the kernels' command lines."""
    blocks: list[Block] = []
    for scenario, command in (target.environment.commands if target.environment else {}).items():
        blocks += [Heading(f"Command of {scenario}"), Commands(shell_lines(command))]
    for title, cmdline in system_text.cmdlines(target).items():
        blocks += [Heading(title), Excerpt(cmdline)]
    return blocks


def _mean(arm: ArmSummary | None) -> str:
    return NOTHING if arm is None else words.number(arm.mean)


def _spread(cell: Comparison, arm: ArmSummary | None) -> str:
    return NOTHING if arm is None else words.figure(arm, cell.exact)
