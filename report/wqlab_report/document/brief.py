"""What a mail says: at most 60 lines, the verdict first, with a fixed limit for each section.

A mail is read on a terminal among a hundred others. It has the verdicts, one table for each target, what differs
between the kernels' environments, the failure, and how to reproduce; everything else is behind the link.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from wqlab_comparison import words
from wqlab_contracts.api.report import Report
from wqlab_contracts.api.sweeps import SweepReport
from wqlab_contracts.enums import BETWEEN, Outcome, SubmissionState
from wqlab_contracts.messages import TakenThread

from ..content import failures, ladder_tables, shared_text, sweep_tables, system_text, thread_text
from ..units import readable
from . import brief_target
from .blocks import (
    Block,
    Bullets,
    Commands,
    Excerpt,
    Link,
    Paragraph,
    Part,
    Section,
    Style,
    Table,
    Verdicts,
)
from .shell import workload
from .verdicts import not_finished, of_submission, of_target

VERDICT_LINES = 12
"""Most lines of the verdicts above everything else."""
CONFIGURATION_LINES = 4
EXCERPT_LINES = 20
"""Most lines of the excerpt of the submission's failure."""
WARNING_LINES = 6
ATTEMPT_LINES = 8
SWEEP_TABLES = 2
"""Curves of a sweep with a table; of the others the sentence is enough."""


@dataclass(frozen=True)
class Brief:
    """A mail."""

    top: Sequence[Block]
    sections: Sequence[Section]
    """The most important first. What does not fit is left out."""
    end: Sequence[Block]
    complete: bool
    """False: some parts are behind the link, however much room there is."""
    more: Paragraph
    """The last line of a mail that leaves something out."""


def brief(report: Report) -> Brief:
    """Return what a mail says of a report."""
    report = readable(report)
    shown = [target for target in failures.by_severity(report.targets) if failures.is_shown(report, target)]
    sections = [*_main_failure(report), *_configuration(report)]
    if report.sweep is not None:
        sections.append(_sweep(report.sweep))
        sections += [each for target in shown for each in brief_target.of_sweep(report, target)]
    else:
        limits = brief_target.limits_of(shown)
        sections += [brief_target.section(report, target, limits) for target in shown]
    sections += [*_builds(report), *_attempts(report)]
    if len(shown) == 1 and report.sweep is None:
        sections += brief_target.waits(shown[0])
    return Brief(
        top=[*_verdicts(report), Paragraph(""), *_head(report)],
        sections=sections,
        end=_reproduce(report),
        complete=len(shown) < 2 or report.sweep is not None,
        more=Paragraph(("More, and what was left out here: ", Link(shared_text.page(report)))),
    )


def _verdicts(report: Report) -> list[Block]:
    """Return the submission's failure and the targets' verdicts, the most severe first."""
    others = failures.by_severity(failures.others(report))
    items = of_submission(failures.main_failure(report))
    for target in others:
        ladder = [f"{ladder_tables.HEADING.lower()}: {target.ladder.sentence}"] if target.ladder else []
        items.append(of_target(target, ladder))
    counted = Counter(words.VERDICT[target.verdict] for target in others)
    summary = ", ".join(f"{name} {number}" for name, number in counted.items())
    more = f"... {{n}} more; of all {len(others)} targets: {summary}"
    found = Verdicts(items, VERDICT_LINES, more) if items else Paragraph("No target was measured.")
    return [*not_finished(report), found]


def _head(report: Report) -> list[Block]:
    submission = report.submission
    title = submission.title or ("settings study" if shared_text.is_study(report) else "submission")
    apply = submission.apply
    release = f" ({apply.release})" if apply.release else ""
    base = f"base {apply.base_commit[:12]}{release}" if apply.base_commit else ""
    checked = shared_text.checkpatch_summary(apply) if failures.applies_checkpatch(report) else ""
    return [
        Paragraph(title, lines=2),
        Paragraph(shared_text.joined([shared_text.head(report), base]), lines=3),
        *([Paragraph(f"checkpatch of the base tree: {checked}", lines=2)] if checked else []),
        *(_thread(apply.thread) if apply.thread is not None else []),
        Paragraph((Link(shared_text.page(report)),)),
    ]


def _thread(thread: TakenThread) -> list[Block]:
    """Return which mails of an archive were taken, and the page of the first one."""
    return [
        Paragraph(f"series: {thread_text.origin(thread)}: {thread_text.mails(thread)}", lines=2),
        Bullets([(Link(thread.url),)], mark="  "),
        *(Paragraph(f"note: {note}", lines=2) for note in thread.notes[:3]),
    ]


def _main_failure(report: Report) -> list[Section]:
    main = failures.main_failure(report)
    if main is None:
        return []
    blocks: list[Block] = []
    if main.places:
        blocks += [Paragraph("Where:"), Bullets(main.places, 4, 2, "and {n} more place{s}")]
    parts = [Part([*blocks, Paragraph(f"What to do: {main.advice}", lines=3)])]
    if main.excerpt:
        parts.append(Part([Excerpt(main.excerpt, EXCERPT_LINES)]))
    return [Section(parts)]


def _configuration(report: Report) -> list[Section]:
    """Return the options that differ between the kernels, or that they are the same or unknown."""
    if report.config_diff:
        text = f"Configuration DIFFERS, baseline -> candidate: {'; '.join(report.config_diff)}"
        return [Section([Part([Paragraph(text, CONFIGURATION_LINES)])])]
    if len({build.arm for build in report.submission.builds if build.outcome is Outcome.PASSED}) < 2:
        return []
    return [Section([Part([Paragraph(f"Configuration: {system_text.configuration_note(report)}", lines=2)])])]


def _sweep(sweep: SweepReport) -> Section:
    """Return where the verdicts change over the topologies of a sweep, with the points of the first curves."""
    parts = [Part([Paragraph(f"{sweep_tables.title(sweep)}:", lines=2)])]
    for number, curve in enumerate(sweep.curves[:SWEEP_TABLES]):
        parts.append(Part([Bullets([sweep_tables.sentence(curve, sweep)], each=3)], apart=number > 0))
        points = Table(sweep_tables.header(sweep), sweep_tables.rows(curve), left=(4,))
        reasons = Bullets(sweep_tables.reasons(curve, sweep), brief_target.LIST_LINES, 2, mark="  ")
        parts.append(Part([points, reasons]))
    if others := [sweep_tables.sentence(curve, sweep) for curve in sweep.curves[SWEEP_TABLES:]]:
        parts.append(Part([Bullets(others, brief_target.LIST_LINES, 3)]))
    note = Paragraph(sweep_tables.NOTE if sweep.curves else sweep_tables.NO_FIGURES, 3, Style.NOTE)
    return Section([*parts, Part([note], apart=bool(sweep.curves))])


def _builds(report: Report) -> list[Section]:
    """Return the builds' failures that are not the submission's, and their new warnings."""
    main, sections = report.submission.failure, list[Section]()
    for build in shared_text.kernels(report):
        if build.arm in BETWEEN:  # the ladder has it
            continue
        name = f"{build.arm or 'kernel'} ({build.recipe}, {build.arch})"
        if build.failure and not (main and failures.is_same(build.failure, main)):
            title = Paragraph(f"BUILD FAILED: {name}: {build.failure.kind}: {build.failure.summary}", lines=3)
            excerpt = Excerpt(build.failure.excerpt, brief_target.EXCERPT_LINES)
            sections.append(Section([Part([title]), Part([excerpt], apart=False)]))
        if build.new_warnings:
            number = words.count(len(build.new_warnings), "warning")
            title = Paragraph(f"{number} of the {build.arm or 'kernel'} that the baseline does not have:")
            found = [f"{each.where}: {each.text} {each.option}" for each in build.new_warnings]
            sections.append(Section([Part([title, Bullets(found, WARNING_LINES, 2)])]))
    return sections


def _attempts(report: Report) -> list[Section]:
    found = Bullets(failures.attempt_sentences(report), ATTEMPT_LINES, 3)
    title = Paragraph(f"{failures.attempts_title(report)}:")
    return [Section([Part([title, found])])] if found.items else []


def _reproduce(report: Report) -> list[Block]:
    """Return how to check the verdicts and to measure again."""
    number = report.submission.id
    if report.submission.state is not SubmissionState.FINISHED or not failures.applies_rebuilding(report):
        return []
    if shared_text.is_local(report):
        return [
            Paragraph(""),
            Paragraph("To boot the kernels once more, without wqlab, and to compute the verdicts again:"),
            Commands([f"sh {shared_text.folder(report)}/repro.sh", *shared_text.recompute_commands(report)]),
        ]
    commands = [
        f"wqlab bundle {number} -o {number}.zip",
        f"wqlab replay {number}.zip          # the verdicts again, offline",
        f"wqlab replay {number}.zip --run    # the measurements again, in another lab",
        *workload(report.targets),
    ]
    return [
        Paragraph(""),
        Paragraph("To reproduce (how to build the kernels is behind the link):"),
        Commands(commands),
    ]
