"""Render the report as plain text for a mailing list: at most 60 lines of 78 columns, the verdict first.

A mail is read on a terminal among a hundred others. It has the verdicts, one table for each topology, what differs
between the kernels' environments, the failure, and how to reproduce; everything else is behind the link.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from wqlab_comparison import tables, words
from wqlab_contracts.api.report import Comparison, EnvironmentDifference, Report, TargetReport
from wqlab_contracts.api.sweeps import SweepReport
from wqlab_contracts.enums import BETWEEN, Outcome, SubmissionState, Verdict
from wqlab_contracts.excerpts import shorten_lines
from wqlab_contracts.messages import TakenThread

from ..content import (
    explanation_text,
    failures,
    instrument_tables,
    ladder_tables,
    shared_text,
    sweep_tables,
    system_text,
    thread_text,
    wait_tables,
)
from . import text_table
from .fitting import Section, fit, listed, wrapped
from .shell import shell_lines

LINES = 60
"""Most lines of the text."""
VERDICT_LINES = 12
"""Most lines of the verdicts above everything else."""
CONFIGURATION_LINES = 4
EXCERPT_LINES, SHORT_EXCERPT_LINES = 20, 12
"""Most lines of the excerpt of the submission's failure, and of another one."""
WARNING_LINES = 6
ATTEMPT_LINES = 8
LIST_LINES = 6
"""Most lines of any other list."""
SWEEP_TABLES = 2
"""Curves of a sweep with a table; of the others the sentence is enough."""
LADDER_ROWS = 10
CAVEAT = "Counts are evidence here; the emulated clock is none, so speed has no verdict."
COUNTS_CAVEAT = "These are counts, not times: they show no contention, prefetch or bandwidth."
SYSTEM_FACTS = {"kernel", "CPU model", "preemption", "HZ", "clock", "mitigations", "governor", "SMT", "wq scope"}
"""Facts that decide whether a reader's own system is comparable; the page has all."""
INDENT = "    "


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
WALKED_TARGET = replace(ONE_TARGET, system=False)
"""Limits of the only target with a walk, whose patches are a table of their own."""
TWO_TARGETS = TargetLimits(rows=4, reasons=3, differences=4, system=False, details=False)
MORE_TARGETS = replace(TWO_TARGETS, rows=2, reasons=2, differences=2)


def render_text(report: Report, most: int = LINES) -> str:
    """Render at most `most` lines of 78 columns, except for console lines, URLs and long command words."""
    top, end = [*_verdicts(report), "", *_head(report)], _reproduce(report)
    more = f"More, and what was left out here: {shared_text.address(report)}"
    shown = [target for target in failures.by_severity(report.targets) if failures.is_shown(report, target)]
    room = most - len(top) - len(end)
    sections = _sections(report, shown)
    middle, fits = fit(sections, room)
    if not fits or (len(shown) > 1 and report.sweep is None):  # several targets are shown without details
        middle, _ = fit(sections, room - 1)
        end = [*end, more]
    lines = [*top, *middle, *end]
    return "\n".join(tables.printable(line.rstrip()) for line in lines) + "\n"


# --- verdicts and head --------------------------------------------------------------------------------------------


def _verdicts(report: Report) -> list[str]:
    """Return the submission's failure and the targets' verdicts, the most severe first."""
    main, items = failures.main_failure(report), []
    if main is not None:
        label = f"{words.VERDICT[Verdict.FAILED]} ({main.kind.value})"
        items.append(wrapped(f"{label}: {main.summary}", 5, indent="  "))
    others = failures.by_severity(failures.others(report))
    items += [_verdict(target) for target in others]
    if not items:
        items.append(["No target was measured."])
    if report.submission.state is not SubmissionState.FINISHED:
        state = report.submission.state.value
        items.insert(0, [f"NOT FINISHED ({state}): this report shows the results so far."])
    counted = Counter(words.VERDICT[target.verdict] for target in others)
    summary = ", ".join(f"{name} {number}" for name, number in counted.items())
    return listed(items, VERDICT_LINES, f"... {{n}} more; of all {len(others)} targets: {summary}"[:78])


def _verdict(target: TargetReport) -> list[str]:
    name = f"{failures.name(target)}: {words.VERDICT[target.verdict].upper()}"
    ladder = f"{ladder_tables.HEADING.lower()}: {target.ladder.sentence}" if target.ladder else ""
    return [
        *wrapped(name, 2, indent="  "),
        *wrapped(instrument_tables.headline(target), 3, "  "),
        *(wrapped(ladder, 3, "  ") if ladder else []),
    ]


def _head(report: Report) -> list[str]:
    submission = report.submission
    title = submission.title or ("settings study" if shared_text.is_study(report) else "submission")
    apply = submission.apply
    release = f" ({apply.release})" if apply.release else ""
    base = f"base {apply.base_commit[:12]}{release}" if apply.base_commit else ""
    checked = shared_text.checkpatch_summary(apply) if failures.applies_checkpatch(report) else ""
    return [
        *wrapped(title, 2, indent="  "),
        *wrapped(shared_text.joined([shared_text.head(report), base]), 3, indent="  "),
        *(wrapped(f"checkpatch of the base tree: {checked}", 2, indent="  ") if checked else []),
        *(_thread(apply.thread) if apply.thread is not None else []),
        shared_text.address(report),
    ]


def _thread(thread: TakenThread) -> list[str]:
    """Return which mails of an archive were taken, and the page of the first one."""
    taken = f"series: {thread_text.origin(thread)}: {thread_text.mails(thread)}"
    notes = [line for note in thread.notes[:3] for line in wrapped(f"note: {note}", 2, indent="  ")]
    return [*wrapped(taken, 2, indent="  "), f"  {thread.url}", *notes]


# --- middle -------------------------------------------------------------------------------------------------------


def _sections(report: Report, shown: Sequence[TargetReport]) -> list[Section]:
    """Return the sections between head and end, the most important first, each of its parts within its limit."""
    sections = [_main_failure(report), _configuration(report)]
    if report.sweep is not None:
        sections.append(_sweep(report.sweep))
        sections += [_target_of_sweep(report, target) for target in shown]
    else:
        sections += [_target(report, target, _limits(shown)) for target in shown]
    sections += [*_builds(report), _attempts(report)]
    if len(shown) == 1 and report.sweep is None:
        sections.append([_spaced(wait_tables.text_lines(shown[0]))])
    return sections


def _limits(shown: Sequence[TargetReport]) -> TargetLimits:
    if len(shown) == 1:
        (only,) = shown
        return COUNTED_TARGET if only.plan.is_instrumented else WALKED_TARGET if only.ladder else ONE_TARGET
    return TWO_TARGETS if len(shown) == 2 else MORE_TARGETS


def _spaced(lines: Sequence[str]) -> list[str]:
    """Return the lines under an empty one; nothing if there are none."""
    return ["", *lines] if lines else []


def _main_failure(report: Report) -> Section:
    main = failures.main_failure(report)
    if main is None:
        return []
    places = listed([wrapped(place, 2, "* ") for place in main.places], 4, "* and {n} more places")
    where = ["", *(["Where:"] if places else []), *places]
    return [
        [*where, *wrapped(f"What to do: {main.advice}", 3, indent="  ")],
        _spaced(_excerpt(main.excerpt, EXCERPT_LINES)),
    ]


def _configuration(report: Report) -> Section:
    """Return the options that differ between the kernels, or that they are the same or unknown."""
    if report.config_diff:
        text = f"Configuration DIFFERS, baseline -> candidate: {'; '.join(report.config_diff)}"
        return [_spaced(wrapped(text, CONFIGURATION_LINES, indent="  "))]
    if len({build.arm for build in report.submission.builds if build.outcome is Outcome.PASSED}) < 2:
        return []
    return [_spaced(wrapped(f"Configuration: {system_text.configuration_note(report)}", 2, indent="  "))]


def _sweep(sweep: SweepReport) -> Section:
    """Return where the verdicts change over the topologies of a sweep, with the points of the first curves."""
    section = [_spaced(wrapped(f"{sweep_tables.title(sweep)}:", 2, indent="  "))]
    for curve in sweep.curves[:SWEEP_TABLES]:
        points = tables.fitted(sweep_tables.header(sweep), sweep_tables.rows(curve), (4,))
        reasons = [line for each in sweep_tables.reasons(curve, sweep) for line in wrapped(each, 2, "  ")]
        sentence = wrapped(sweep_tables.sentence(curve, sweep), 3, "* ")
        section += [sentence, ["", *points, *reasons[:LIST_LINES], ""]]
    sentences = [wrapped(sweep_tables.sentence(curve, sweep), 3, "* ") for curve in sweep.curves[SWEEP_TABLES:]]
    section.append(listed(sentences, LIST_LINES, "* and {n} more"))
    return [*section, wrapped(sweep_tables.NOTE if sweep.curves else sweep_tables.NO_FIGURES, 3)]


def _target_of_sweep(report: Report, target: TargetReport) -> Section:
    """Return what is special in one target of a sweep, which has the figures."""
    found = failures.other_findings(report, target)
    if not _named(target) and not found:
        return []
    return [_spaced(_short_place(target)), _differences(target, TWO_TARGETS.differences), *_findings(found)]


def _target(report: Report, target: TargetReport, limits: TargetLimits) -> Section:
    """Return the parts of a target under its heading."""
    compared = failures.comparisons(report, target)
    main = failures.main_failure(report)
    figures = text_table.lines(compared, limits.rows)
    if not figures and not (main and main.target is target):
        figures = ["No figures."]
    reasons = [wrapped(reason, min(3, limits.reasons - 1), "* ") for reason in text_table.reasons(compared)]
    return [
        _spaced(_place(target) if limits.details else _short_place(target)),
        _differences(target, limits.differences),
        *(_system(target) if limits.system else []),
        *_ladder(target),
        _spaced(figures),
        wrapped(text_table.left_out(target, compared), 2, indent="  ") if limits.details else [],
        listed(reasons, limits.reasons, "* and {n} more reasons"),
        _caveat(target) if compared else [],
        *_findings(failures.other_findings(report, target)),
        *(_details(target, compared) if limits.details else []),
    ]


def _system(target: TargetReport) -> Section:
    """Return how the topology differs from the declared one, and the facts that make systems comparable."""
    mismatch = system_text.platform(target).mismatch
    facts = "; ".join(f"{name} {value}" for name, value in system_text.system(target) if name in SYSTEM_FACTS)
    return [
        wrapped(f"Topology: {mismatch}", 2, indent="  ") if mismatch else [],
        wrapped(f"System: {facts}", 3, indent="  ") if facts else [],
    ]


def _details(target: TargetReport, compared: Sequence[Comparison]) -> Section:
    """Return what explains the figures of a target, or says how far to trust them."""
    sentences = [wrapped(each, 2, "* ") for curve in target.curves for each in curve.says]
    curves = listed(sentences, LIST_LINES, "* and {n} more")
    if not compared:
        return [curves]
    records = [wrapped(each, 3, indent="  ") for each in shared_text.canaries(target)]
    return [
        listed(records, LIST_LINES, "and {n} more devices"),
        curves,
        _spaced(instrument_tables.text_lines(target)),
        _spaced(explanation_text.text_lines(target)),
    ]


def _ladder(target: TargetReport) -> Section:
    """Return the patches of a walk one by one, and the logs of those that do not build or run."""
    if target.ladder is None:
        return []
    failed = [
        (wrapped(sentence, 3, "* "), _excerpt(excerpt, LIST_LINES))
        for sentence, excerpt in ladder_tables.failures(target.ladder)
    ]
    return [
        _spaced(ladder_tables.text_lines(target, LADDER_ROWS)),
        *(["", *title, *excerpt] for title, excerpt in failed[:1]),
        listed([title for title, _ in failed[1:]], LIST_LINES, "* and {n} more patches"),
        wrapped(ladder_tables.FAMILY, 3),
    ]


def _caveat(target: TargetReport) -> list[str]:
    if target.plan.is_instrumented:
        return [COUNTS_CAVEAT]
    return [CAVEAT] if shared_text.has_values_only(target) else []


def _place(target: TargetReport) -> list[str]:
    """Return where the target was measured, on what, how often, and with which loss."""
    boots = "" if target.byte_identical else shared_text.repetitions(target)
    parts = [system_text.platform(target).topology, shared_text.block_counts(target), boots]
    return wrapped(f"{failures.name(target)}, {_device(target)}: {'; '.join(filter(None, parts))}", 5, indent="  ")


def _short_place(target: TargetReport) -> list[str]:
    """Return where the target was measured, and how often."""
    blocks = f"{target.blocks_completed} of {words.count(target.blocks_planned, 'block')}"
    return wrapped(f"{failures.name(target)}, {_device(target)}; {blocks}", 2, indent="  ")


def _device(target: TargetReport) -> str:
    return f"device {target.environment.device}" if target.environment else "no device"


def _differences(target: TargetReport, limit: int) -> list[str]:
    """Return the environment's differences between the kernels, configuration options last and together."""
    lines = system_text.cmdlines(target)
    found = [f"{title}: {line}" for title, line in lines.items()] if len(lines) > 1 else []
    options = [each for each in _named(target) if each.name.startswith("CONFIG_")]
    found += [f"{each.name}: {system_text.per_arm(each)}" for each in _named(target) if each not in options]
    if options:
        values = "; ".join(f"{each.name} {each.baseline} -> {each.candidate}" for each in options)
        found.append(f"{words.count(len(options), 'configuration option')}: {values}")
    shown = [wrapped(f"DIFFERS: {each}", 3, "  ", "    ") for each in found]
    return listed(shown, limit, "  and {n} more differences behind the link")


def _named(target: TargetReport) -> Sequence[EnvironmentDifference]:
    return target.environment.differences if target.environment else []


def _findings(groups: Sequence[failures.FindingGroup]) -> Section:
    """Return the first finding with its excerpt, and the titles of the others."""
    titles = [
        wrapped(f"{shared_text.kind(group.finding)} on {group.place}: {group.finding.title}", 3, indent="  ")
        for group in groups
    ]
    excerpts = [_excerpt(group.finding.excerpt, SHORT_EXCERPT_LINES) for group in groups[:1]]
    first = [["", *title, *excerpt] for title, excerpt in zip(titles, excerpts, strict=False)]
    return [*first, _spaced(listed(titles[1:], LIST_LINES, "and {n} more findings"))]


def _builds(report: Report) -> list[Section]:
    """Return the builds' failures that are not the submission's, and their new warnings."""
    main, sections = report.submission.failure, list[Section]()
    for build in shared_text.kernels(report):
        if build.arm in BETWEEN:  # the ladder has it
            continue
        name = f"{build.arm or 'kernel'} ({build.recipe}, {build.arch})"
        if build.failure and not (main and failures.is_same(build.failure, main)):
            title = wrapped(f"BUILD FAILED: {name}: {build.failure.kind}: {build.failure.summary}", 3, indent="  ")
            sections.append([_spaced(title), _excerpt(build.failure.excerpt, SHORT_EXCERPT_LINES)])
        if build.new_warnings:
            number = words.count(len(build.new_warnings), "warning")
            found = [wrapped(f"{each.where}: {each.text} {each.option}", 2, "* ") for each in build.new_warnings]
            title = [f"{number} of the {build.arm or 'kernel'} that the baseline does not have:"]
            sections.append([_spaced([*title, *listed(found, WARNING_LINES, "* and {n} more")])])
    return sections


def _attempts(report: Report) -> Section:
    groups = failures.other_attempts(report)
    if not groups:
        return []
    title = f"{'Other failed' if report.submission.failure else 'Failed'} attempts:"
    found = [
        wrapped(f"{'; '.join(group.places)}: {group.failure.kind}: {group.failure.summary}", 3, "* ")
        for group in groups
    ]
    return [["", title, *listed(found, ATTEMPT_LINES, "* and {n} more")]]


# --- end ----------------------------------------------------------------------------------------------------------


def _reproduce(report: Report) -> list[str]:
    """Return how to check the verdicts and to measure again."""
    number = report.submission.id
    if report.submission.state is not SubmissionState.FINISHED or not failures.applies_rebuilding(report):
        return []
    commands = [
        f"wqlab bundle {number} -o {number}.zip",
        f"wqlab replay {number}.zip          # the verdicts again, offline",
    ]
    commands.append(f"wqlab replay {number}.zip --run    # the measurements again, in another lab")
    workload = [
        line
        for target in report.targets[:1]
        for command in list(target.environment.commands.values() if target.environment else ())[:1]
        for line in _short_command(command)
    ]
    return [
        "",
        "To reproduce (how to build the kernels is behind the link):",
        *(f"{INDENT}{each}" for each in commands),
        *workload,
    ]


def _short_command(command: str) -> list[str]:
    lines = shell_lines(command, INDENT)
    return lines if len(lines) <= 6 else []


def _excerpt(excerpt: str, limit: int) -> list[str]:
    return [f"| {line}" for line in shorten_lines(excerpt.splitlines(), limit)]
