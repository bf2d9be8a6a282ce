"""What a page or a comment says of a report."""

from __future__ import annotations

from wqlab_comparison import words
from wqlab_contracts.api.report import Report
from wqlab_contracts.api.sweeps import SweepReport

from ..content import failures, shared_text, sweep_tables, system_text, thread_text
from ..figures.sweep_figures import sweep_figures
from ..units import readable
from . import full_target
from .blocks import (
    Block,
    Box,
    Bullets,
    Code,
    Commands,
    Drawing,
    Excerpt,
    Heading,
    Link,
    Paragraph,
    Part,
    Section,
    Style,
    Table,
    Text,
    Verdicts,
)
from .shell import shell_lines
from .verdicts import not_finished, of_submission, of_target

EXCERPT_LINES = 60
"""Most lines of the excerpt of the submission's failure in a comment: a whole oops."""
CHECKPATCH_LINES = 10
"""Most findings of checkpatch in a comment."""


def full(report: Report) -> list[Section]:
    """Return the sections of the whole report."""
    report = readable(report)
    shown = [target for target in report.targets if failures.is_shown(report, target)]
    attempts = failures.attempt_sentences(report)
    sections = [
        _summary(report),
        *([_sweep(report, report.sweep)] if report.sweep is not None else []),
        *(full_target.section(report, target) for target in shown),
        *([_section(failures.attempts_title(report), [Bullets(attempts)])] if attempts else []),
        _kernels(report),
        _method(report),
    ]
    return [section for section in sections if section.parts]


def _section(title: str, blocks: list[Block], anchor: str = "") -> Section:
    return Section([Part([block]) for block in blocks], title, anchor)


def _summary(report: Report) -> Section:
    """Return the head, the submission's failure and the targets' verdicts."""
    submission = report.submission
    blocks: list[Block] = [Paragraph((f"{shared_text.head(report)}, ", Code(shared_text.page(report))))]
    blocks += not_finished(report, "Not finished", Style.STRONG)
    if (main := failures.main_failure(report)) is not None:
        blocks.append(_main_failure(main))
    if others := failures.others(report):
        anchors = [full_target.anchor(each) if failures.is_shown(report, each) else "" for each in others]
        blocks.append(Verdicts([of_target(each, anchor=at) for each, at in zip(others, anchors, strict=True)]))
    return _section(submission.title or "wqlab", blocks)


def _main_failure(main: failures.MainFailure) -> Block:
    blocks: list[Block] = [Verdicts(of_submission(main))]
    blocks += [Bullets([f"where: {place}" for place in main.places])] if main.places else []
    blocks += [Excerpt(main.excerpt, EXCERPT_LINES)] if main.excerpt else []
    return Box("failure", [*blocks, Paragraph(f"What to do: {main.advice}")])


def _sweep(report: Report, sweep: SweepReport) -> Section:
    """Return the curves of a sweep: as figures, or the first ones as tables."""
    blocks: list[Block] = []
    tables: list[Block] = []
    for number, curve in enumerate(sweep.curves):
        blocks.append(Paragraph(sweep_tables.sentence(curve, sweep), style=Style.STRONG))
        name = sweep_tables.name(curve, sweep)
        if reasons := [f"{name}, {reason}" for reason in sweep_tables.reasons(curve, sweep)]:
            blocks.append(Bullets(reasons))
        if number < sweep_tables.TABLES:
            tables += [Heading(name), Table(sweep_tables.header(sweep), sweep_tables.rows(curve), left=(0, 4))]
    blocks.append(Drawing(lambda: sweep_figures(report), tables))
    blocks.append(Paragraph(sweep_tables.NOTE if sweep.curves else sweep_tables.NO_FIGURES, style=Style.NOTE))
    return _section(sweep_tables.title(sweep), blocks, "sweep")


def _kernels(report: Report) -> Section:
    """Return what was built from which sources, and how to build it again."""
    items = [*_sources(report), *_built(report), *_configuration(report), *_checkpatch(report)]
    blocks: list[Block] = [Bullets(items)] if items else []
    blocks += _failed_builds(report)
    for reproducer in shared_text.reproducers(report) if failures.applies_rebuilding(report) else ():
        blocks += [Paragraph(reproducer.needs), Commands(shell_lines(reproducer.command))]
    if deleted := shared_text.deleted_files(report):
        blocks.append(Paragraph(deleted))
    return _section("Kernels", blocks)


def _sources(report: Report) -> list[Text | Bullets]:
    apply = report.submission.apply
    items: list[Text | Bullets] = []
    if apply.base_commit:
        release = f" {apply.release}" if apply.release else ""
        items.append((f"base {report.submission.tree} ", Code(apply.base_commit), release))
    if (thread := apply.thread) is not None:
        items.append(f"series {thread_text.origin(thread)}: {thread_text.mails(thread)}")
        mails: list[Text] = [(f"{mail.role} ", Link(mail.url, mail.subject)) for mail in thread.mails]
        items.append(Bullets([*mails, *thread_text.trailers(thread), *thread.notes]))
    for patch in apply.patches:
        size = f"{words.count(patch.insertions, 'insertion')}, {words.count(patch.deletions, 'deletion')}"
        author = patch.author.partition(" <")[0]  # a comment must not spread addresses
        items.append(f"patch {patch.subject} ({author}, {size})")
    return items


def _built(report: Report) -> list[Text | Bullets]:
    builds = shared_text.kernels(report)
    items: list[Text | Bullets] = []
    for build in builds:
        items.append(f"{build.arm or 'kernel'}: {shared_text.describe_build(build)}")
        below: list[Text] = [("tree ", Code(build.tree_oid))] if build.tree_oid else []
        below += [("build-id ", Code(build.build_id_gnu))] if build.build_id_gnu else []
        below += [
            ("new warning: ", Code(each.where), f" {each.text} {each.option}".rstrip()) for each in build.new_warnings
        ]
        items += [Bullets(below)] if below else []
    return [*items, *(f"compiler: {compiler}" for compiler in shared_text.compilers(builds))]


def _failed_builds(report: Report) -> list[Block]:
    """Return the builds' failures that are not the submission's."""
    main, blocks = report.submission.failure, list[Block]()
    for build in shared_text.kernels(report):
        if build.failure and not (main and failures.is_same(build.failure, main)):
            title = Heading(f"{build.arm or 'kernel'}: BUILD FAILED: {build.failure.summary}")
            excerpt = [Excerpt(build.failure.excerpt)] if build.failure.excerpt else []
            blocks.append(Box("finding", [title, *excerpt]))
    return blocks


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
    items: list[Text | Bullets] = [
        f"checkpatch of the base tree: {shared_text.checkpatch_summary(report.submission.apply)}"
    ]
    if found:
        items.append(Bullets([f"{one.severity}: {one.text} {one.where}" for one in found], few=CHECKPATCH_LINES))
    return items


def _method(report: Report) -> Section:
    if not failures.applies_method(report):
        return Section([])
    blocks: list[Block] = [Paragraph(report.method, style=Style.NOTE)]
    if not shared_text.is_local(report):
        trust = Link(shared_text.trust(report), "How far to trust a verdict")
        blocks.append(Paragraph((trust, ": measured false claims, smallest effects and boots saved.")))
    if commands := shared_text.recompute_commands(report):
        blocks += [Paragraph("To recompute the verdicts from all samples:"), Commands(commands)]
    return _section("Method", blocks)
