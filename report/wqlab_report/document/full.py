"""What a page or a comment says of a report."""

from __future__ import annotations

from wqlab_comparison import words
from wqlab_contracts.api.report import Report
from wqlab_contracts.api.sweeps import SweepReport
from wqlab_contracts.enums import SubmissionState, Verdict

from ..content import failures, instrument_tables, shared_text, sweep_tables, system_text, thread_text
from . import full_target
from .blocks import (
    Block,
    Bullets,
    Code,
    Commands,
    Excerpt,
    Link,
    Paragraph,
    Part,
    Section,
    Stated,
    Style,
    Table,
    Text,
    Verdicts,
)
from .shell import shell_lines

EXCERPT_LINES = 60
"""Most lines of the excerpt of the submission's failure: a whole oops."""
CHECKPATCH_LINES = 10


def full(report: Report) -> list[Section]:
    """Return the sections of the whole report."""
    shown = [target for target in report.targets if failures.is_shown(report, target)]
    sections = [
        _summary(report),
        *([_sweep(report.sweep)] if report.sweep is not None else []),
        *(full_target.section(report, target) for target in shown),
        _attempts(report),
        _kernels(report),
        _method(report),
    ]
    return [section for section in sections if section.parts]


def _section(title: str, blocks: list[Block]) -> Section:
    return Section([Part([block]) for block in blocks], title)


def _summary(report: Report) -> Section:
    """Return the head, the submission's failure and the targets' verdicts."""
    submission = report.submission
    blocks: list[Block] = [Paragraph((f"{shared_text.head(report)}, ", Code(shared_text.address(report))))]
    if submission.state is not SubmissionState.FINISHED:
        text = f"Not finished ({submission.state.value}): this report shows the results so far."
        blocks.append(Paragraph(text, style=Style.STRONG))
    if (main := failures.main_failure(report)) is not None:
        verdict = f"{words.VERDICT[Verdict.FAILED]} ({main.kind.value})"
        blocks.append(Verdicts([Stated("", verdict, [main.summary])]))
        blocks += [Bullets([f"where: {place}" for place in main.places])] if main.places else []
        blocks += [Excerpt(main.excerpt, EXCERPT_LINES)] if main.excerpt else []
        blocks.append(Paragraph(f"What to do: {main.advice}"))
    if others := failures.others(report):
        blocks.append(
            Verdicts(
                [
                    Stated(failures.name(each), words.VERDICT[each.verdict].upper(), [instrument_tables.headline(each)])
                    for each in others
                ]
            )
        )
    return _section(submission.title or "wqlab", blocks)


def _sweep(sweep: SweepReport) -> Section:
    blocks: list[Block] = []
    for number, curve in enumerate(sweep.curves):
        blocks.append(Paragraph(sweep_tables.sentence(curve, sweep), style=Style.STRONG))
        if number < sweep_tables.TABLES:
            blocks.append(Table(sweep_tables.header(sweep), sweep_tables.rows(curve), left=(0, 4)))
            reasons = sweep_tables.reasons(curve, sweep)
            blocks += [Bullets(reasons)] if reasons else []
    blocks.append(Paragraph(sweep_tables.NOTE if sweep.curves else sweep_tables.NO_FIGURES, style=Style.NOTE))
    return _section(sweep_tables.title(sweep), blocks)


def _attempts(report: Report) -> Section:
    groups = failures.other_attempts(report)
    items = [f"{'; '.join(group.places)}: {group.failure.kind}: {group.failure.summary}" for group in groups]
    title = "Other failed attempts" if report.submission.failure else "Failed attempts (all)"
    return _section(title, [Bullets(items)] if items else [])


def _kernels(report: Report) -> Section:
    """Return what was built from which sources, and how to build it again."""
    items = [*_sources(report), *_built(report), *_configuration(report), *_checkpatch(report)]
    blocks: list[Block] = [Bullets(items)] if items else []
    for reproducer in shared_text.reproducers(report) if failures.applies_rebuilding(report) else ():
        blocks += [Paragraph(reproducer.needs), Commands(shell_lines(reproducer.command))]
    if deleted := shared_text.deleted_files(report):
        blocks.append(Paragraph(deleted))
    return _section("Kernels", blocks)


def _sources(report: Report) -> list[Text | Bullets]:
    apply = report.submission.apply
    items: list[Text | Bullets] = []
    if apply.base_commit:
        items.append((f"base {report.submission.tree} ", Code(apply.base_commit)))
    if (thread := apply.thread) is not None:
        items.append(f"series {thread_text.origin(thread)}: {thread_text.mails(thread)}")
        mails: list[Text] = [(f"{mail.role} ", Link(mail.url)) for mail in thread.mails]
        items.append(Bullets([*mails, *thread_text.trailers(thread), *thread.notes]))
    return items


def _built(report: Report) -> list[Text | Bullets]:
    main = report.submission.failure
    builds = shared_text.kernels(report)
    items: list[Text | Bullets] = []
    for build in builds:
        repeated = build.failure and main and failures.is_same(build.failure, main)
        failed = f": {build.failure.summary}" if build.failure and not repeated else ""
        items.append(f"{build.arm or 'kernel'}: {shared_text.describe_build(build)}{failed}")
        if build.new_warnings:
            items.append(Bullets([("new warning: ", Code(each.where), f" {each.text}") for each in build.new_warnings]))
    return [*items, *(f"compiler: {compiler}" for compiler in shared_text.compilers(builds))]


def _configuration(report: Report) -> list[Text | Bullets]:
    items: list[Text | Bullets] = []
    if report.config_sha256:
        items.append(("configuration sha256 ", Code(report.config_sha256)))
    note = system_text.configuration_note(report) if len(shared_text.kernels(report)) > 1 else ""
    options: list[Text] = [(Code(line),) for line in report.config_diff]
    options += [note] if note else []
    if options:
        items += [] if items else ["configuration"]
        items.append(Bullets(options))
    return items


def _checkpatch(report: Report) -> list[Text | Bullets]:
    if not failures.applies_checkpatch(report):
        return []
    found = report.submission.apply.checkpatch
    items: list[Text | Bullets] = [f"checkpatch: {shared_text.checkpatch_summary(report.submission.apply)}"]
    if found:
        listed = [f"{one.severity}: {one.text}" for one in found[:CHECKPATCH_LINES]]
        more = len(found) - CHECKPATCH_LINES
        items.append(Bullets([*listed, *([f"and {more} more, which the other formats list"] if more > 0 else [])]))
    return items


def _method(report: Report) -> Section:
    if not failures.applies_method(report):
        return Section([])
    trust = ("How far to trust a verdict: ", Code(shared_text.trust(report)))
    blocks: list[Block] = [Paragraph(report.method, style=Style.NOTE), Paragraph(trust, style=Style.NOTE)]
    if commands := shared_text.recompute_commands(report):
        blocks += [Paragraph("To recompute the verdicts from all samples:"), Commands(commands)]
    return _section("Method", blocks)
