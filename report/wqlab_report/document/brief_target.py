"""What a mail says of a target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from wqlab_comparison import words
from wqlab_comparison.differences import NOT_CAUSES
from wqlab_contracts.api.report import Comparison, EnvironmentDifference, Report, TargetReport

from ..content import (
    explanation_text,
    failures,
    instrument_tables,
    ladder_tables,
    model_text,
    shared_text,
    system_text,
    wait_tables,
)
from . import brief_table
from .blocks import Block, Bullets, Excerpt, Link, Paragraph, Part, Section, Style, Table, Text

EXCERPT_LINES = 12
LIST_LINES = 6
"""Most lines of a list that is not as important as its section."""
LADDER_ROWS = 10
COUNTED_LINES = 9
"""Most lines of where counts come from, under the title."""
SUBJECT = 1
"""Column of the ladder with the patches' subjects."""
CAVEAT = "Counts are evidence here; the emulated clock is none, so speed has no verdict."
COUNTS_CAVEAT = "These are counts, not times: they show no contention, prefetch or bandwidth."
SYSTEM_FACTS = {"kernel", "CPU model", "preemption", "HZ", "clock", "mitigations", "governor", "SMT", "wq scope"}
"""Facts that decide whether a reader's own system is comparable; the page has all."""


@dataclass(frozen=True)
class TargetLimits:
    """How much a mail says of each target."""

    rows: int
    """Most rows of the table."""
    reasons: int
    """Most lines of the reasons of verdicts."""
    differences: int
    """Most lines of what differs between the kernels' environments."""
    system: bool
    """True: also its system."""
    details: bool
    """True: also its topology, and what explains its figures."""


ONE_TARGET = TargetLimits(rows=8, reasons=5, differences=8, system=True, details=True)
COUNTED_TARGET = replace(ONE_TARGET, rows=3, reasons=3)
"""Limits of the only target on an instrumented device: a mail also says where its counts come from."""
MODELLED_TARGET = replace(ONE_TARGET, rows=5, reasons=3)
"""Limits of the only target on a modelled device: beside the same it has figures of the plan."""
WALKED_TARGET = replace(ONE_TARGET, system=False)
"""Limits of the only target with a walk, whose patches are a table of their own."""
TWO_TARGETS = TargetLimits(rows=4, reasons=3, differences=4, system=False, details=False)
MORE_TARGETS = replace(TWO_TARGETS, rows=2, reasons=2, differences=2)


def limits_of(shown: Sequence[TargetReport]) -> TargetLimits:
    """Return the limits of each of the targets that a mail shows."""
    if len(shown) == 1:
        (only,) = shown
        if only.plan.is_modelled:
            return MODELLED_TARGET
        return COUNTED_TARGET if only.plan.is_instrumented else WALKED_TARGET if only.ladder else ONE_TARGET
    return TWO_TARGETS if len(shown) == 2 else MORE_TARGETS


def section(report: Report, target: TargetReport, limits: TargetLimits) -> Section:
    """Return the parts of a target under its heading."""
    compared = failures.comparisons(report, target)
    main = failures.main_failure(report)
    figures = brief_table.blocks(compared, limits.rows)
    if not figures and not (main and main.target is target):
        figures = [Paragraph("No figures.")]
    left_out = brief_table.left_out(target, compared) if limits.details else ""
    reasons = brief_table.reasons(compared)
    caveat = _caveat(report, target) if compared else ""
    parts = [
        Part([_place(target) if limits.details else _short_place(target)]),
        *_differences(target, limits.differences),
        *(_system(target) if limits.system else []),
        *_close(Bullets(target.ran.sentences, LIST_LINES, 3, mark="Ran: ") if target.ran else None),
        *_ladder(target),
        Part(figures),
        *_close(Paragraph(left_out, lines=2) if left_out else None),
        *_close(Bullets(reasons, limits.reasons, min(3, limits.reasons - 1), "and {n} more reason{s}")),
        *_close(Paragraph(caveat, style=Style.NOTE) if caveat else None),
        *_findings(failures.other_findings(report, target)),
        *(_details(target, compared) if limits.details else []),
    ]
    return Section([each for each in parts if each.blocks])


def of_sweep(report: Report, target: TargetReport) -> list[Section]:
    """Return what is special in one target of a sweep, which has the figures."""
    found = failures.other_findings(report, target)
    if not _named(target) and not found:
        return []
    return [Section([Part([_short_place(target)]), *_differences(target, TWO_TARGETS.differences), *_findings(found)])]


def waits(target: TargetReport) -> list[Section]:
    """Return how long work items waited: of the first cell the busiest functions that differ."""
    cell = next((cell for cell in target.waits if cell.works), None)
    if cell is None:
        return []
    values_only = "; emulated, times are values only" if target.emulated else ""
    blocks: list[Block] = [
        Paragraph(f"{wait_tables.HEADING} (traced repetitions):"),
        *([Paragraph(f"{wait_tables.title(cell)}:")] if len(target.waits) > 1 else []),
        Table(wait_tables.brief_header(target), wait_tables.brief_rows(cell), left=(0, 1)),
        Paragraph(f"{wait_tables.BRIEF_NOTE}{values_only}.", style=Style.NOTE),
    ]
    return [Section([Part(blocks)])]


def counted(target: TargetReport) -> list[Block]:
    """Return where counts come from: whole sentences, the cell with the largest change first."""
    cells = instrument_tables.by_change(target)
    if not cells:
        return []
    sentences = [
        f"{instrument_tables.where(cell)}: {sentence}" if len(cells) > 1 else sentence
        for number, cell in enumerate(cells)
        for sentence in (cell.sentences if number == 0 else cell.sentences[:1])
    ]
    more = "The page of this report has the rest."
    return [
        Paragraph(f"{instrument_tables.HEADING} ({instrument_tables.basis(cells[0])}):"),
        Bullets(sentences, COUNTED_LINES, more=more),
    ]


def _close(*blocks: Block | None) -> list[Part]:
    """Return a part without an empty line above it; none if there is nothing to say."""
    found = [each for each in blocks if each is not None and not (isinstance(each, Bullets) and not each.items)]
    return [Part(found, apart=False)] if found else []


def _place(target: TargetReport) -> Paragraph:
    """Return where the target was measured, on what, how often, and with which loss."""
    boots = "" if target.byte_identical else shared_text.repetitions(target)
    parts = [model_text.costs(target), system_text.platform(target).topology, shared_text.block_counts(target), boots]
    return Paragraph(f"{failures.name(target)}, {_device(target)}: {'; '.join(filter(None, parts))}", lines=5)


def _short_place(target: TargetReport) -> Paragraph:
    """Return where the target was measured, and how often."""
    blocks = f"{target.blocks_completed} of {words.count(target.blocks_planned, 'block')}"
    parts = [f"{failures.name(target)}, {_device(target)}", model_text.costs(target), blocks]
    return Paragraph("; ".join(filter(None, parts)), lines=2)


def _device(target: TargetReport) -> str:
    return f"device {target.environment.device}" if target.environment else "no device"


def _differences(target: TargetReport, limit: int) -> list[Part]:
    """Return the environment's differences between the kernels, configuration options last and together."""
    lines = system_text.cmdlines(target)
    found = [f"{title}: {line}" for title, line in lines.items()] if len(lines) > 1 else []
    options = [each for each in _named(target) if each.name.startswith("CONFIG_")]
    found += [f"{each.name}: {system_text.per_arm(each)}" for each in _named(target) if each not in options]
    if options:
        values = "; ".join(f"{each.name} {each.baseline} -> {each.candidate}" for each in options)
        found.append(f"{words.count(len(options), 'configuration option')}: {values}")
    shown = [f"DIFFERS: {each}" for each in found]
    return _close(Bullets(shown, limit, 3, "and {n} more difference{s} behind the link", mark="  "))


def _named(target: TargetReport) -> Sequence[EnvironmentDifference]:
    return target.environment.differences if target.environment else []


def _system(target: TargetReport) -> list[Part]:
    """Return how the topology differs from the declared one, and the facts that make systems comparable."""
    mismatch = system_text.platform(target).mismatch
    facts = "; ".join(f"{name} {value}" for name, value in system_text.system(target) if name in SYSTEM_FACTS)
    return [
        *_close(Paragraph(f"Topology: {mismatch}", lines=2) if mismatch else None),
        *_close(Paragraph(f"System: {facts}", lines=3) if facts else None),
    ]


def _ladder(target: TargetReport) -> list[Part]:
    """Return the patches of a walk one by one, and the logs of those that do not build or run."""
    ladder = target.ladder
    if ladder is None:
        return []
    header, rows, left = ladder_tables.brief(target, LADDER_ROWS)
    of = ladder_tables.what(target)
    more = f"and {left} other patch{'' if left == 1 else 'es'} behind the link"
    patches: list[Block] = [
        Paragraph(f"{ladder_tables.title(ladder)}{f'; {of}' if of else ''}:"),
        Table(header, rows, left=(0, SUBJECT, len(header) - 1), shortened=SUBJECT),
        *([Paragraph(more)] if left else []),
    ]
    parts = [Part(patches)]
    failed = ladder_tables.failures(ladder)
    for sentence, excerpt in failed[:1]:
        parts.append(Part([Bullets([sentence], each=3), Excerpt(excerpt, LIST_LINES)]))
    others = Bullets([sentence for sentence, _ in failed[1:]], LIST_LINES, 3, "and {n} more of the patches")
    return [*parts, *_close(others), *_close(Paragraph(ladder_tables.FAMILY, 3, Style.NOTE))]


def _caveat(report: Report, target: TargetReport) -> Text:
    if target.plan.is_modelled:
        return f"{model_text.CANNOT_TELL}: ", Link(model_text.page(report))
    if target.plan.is_instrumented:
        return COUNTS_CAVEAT
    return CAVEAT if shared_text.has_values_only(target) else ""


def _findings(groups: Sequence[failures.FindingGroup]) -> list[Part]:
    """Return the first finding with its excerpt, and the titles of the others."""
    first = [
        Part([Paragraph(group.title, lines=3), Excerpt(group.finding.excerpt, EXCERPT_LINES)]) for group in groups[:1]
    ]
    others = Bullets([group.title for group in groups[1:]], LIST_LINES, 3, "and {n} more finding{s}", mark="")
    return [*first, *([Part([others])] if others.items else [])]


def _details(target: TargetReport, compared: Sequence[Comparison]) -> Iterable[Part]:
    """Return what explains the figures of a target, or says how far to trust them."""
    crossings = [sentence for curve in target.curves for sentence in curve.says]
    curves = _close(Bullets(crossings, LIST_LINES, 2))
    if not compared:
        return curves
    records = Bullets(shared_text.canaries(target), LIST_LINES, 3, "and {n} more device{s}", mark="")
    return [*_close(records), *curves, Part(counted(target)), Part(_explanation(target))]


def _explanation(target: TargetReport) -> list[Block]:
    """Return what else differs beside the primary metrics. An instrumented device has it in where counts come from."""
    explanation = target.explanation
    if explanation is None or target.plan.is_instrumented:
        return []
    if not explanation.comparisons:
        return [Paragraph(f"{explanation_text.HEADING}: not recorded: {explanation.reason}")]
    blocks: list[Block] = []
    for each in explanation.comparisons:
        place = f", {explanation_text.where(each)}" if len(explanation.comparisons) > 1 else ""
        blocks.append(Paragraph(f"{explanation_text.HEADING} ({explanation_text.basis(each)}{place}):"))
        blocks.append(Bullets(explanation_text.sentences(each)))
    return [*blocks, Paragraph(NOT_CAUSES, style=Style.NOTE)]
