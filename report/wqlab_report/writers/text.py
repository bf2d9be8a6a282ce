"""Render the report as plain text for a mailing list: at most 60 lines of 78 columns, the verdict first.

A mail is read on a terminal among a hundred others. It has the verdicts, one table for each topology, what differs
between the kernels' environments, the failure, and how to reproduce; everything else is behind the link.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from wqlab_comparison import tables, words
from wqlab_contracts.api.report import Comparison, EnvironmentDifference, Report, TargetReport
from wqlab_contracts.enums import BETWEEN, VERDICT_ORDER, Outcome, SubmissionState, Verdict
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
from .fitting import Part, fit, listed, part, wrapped
from .shell import shell_lines

LINES = 60
"""Most lines of the text."""
VERDICT_LINES = 12
"""Most lines of the verdicts above everything else."""
PLACE_LINES, SHORT_PLACE_LINES = 5, 2
"""Most lines of the heading of a target, and of its short form without topology and repetitions."""
SIZES = (
    *((table, 8, PLACE_LINES) for table in (36, 24, 18, 14)),
    *((14, 5, PLACE_LINES), (14, 3, PLACE_LINES), (11, 3, PLACE_LINES), (9, 3, PLACE_LINES)),
    *((table, 3, SHORT_PLACE_LINES) for table in (14, 11, 9, 7, 5)),
)
"""Lines of each target's table, of its reasons and of its heading that are tried until everything fits. Reasons shorten
first: a table without rows says nothing, and the page has all reasons. If nothing fits, the first size with which every
target has its table is taken, else the last one, and what ranks lower is left out."""
RANKS = 10
"""Ranks of the parts of a target."""
TABLE_RANK = 1
"""Rank of a target's table among these. Its heading, and what differs between the kernels' environments, have 0."""
OPTIONAL_RANK = 1_000_000
"""Rank from which on parts take only the lines that all others leave."""
REASON_LINES = 8
EXCERPT_LINES = (30, 20, 12, 6)
SHORT_EXCERPT_LINES = (12, 6)
CAVEAT = "Counts are evidence here; the emulated clock is none, so speed has no verdict."
COUNTS_CAVEAT = "These are counts, not times: they show no contention, prefetch or bandwidth."
SYSTEM_FACTS = {"kernel", "CPU model", "preemption", "HZ", "clock", "mitigations", "governor", "SMT", "wq scope"}
"""Facts that decide whether a reader's own system is comparable; the page has all."""
INDENT = "    "
_ROOM_FOR_MORE = 1


def render_text(report: Report, most: int = LINES) -> str:
    """Render at most `most` lines of 78 columns, except for console lines, URLs and long command words."""
    top, end = [*_verdicts(report), "", *_head(report)], _reproduce(report)
    more = f"More, and what was left out here: {shared_text.address(report)}"
    room = most - len(top) - len(end) - _ROOM_FOR_MORE
    middle: list[str] | None = None
    for size in SIZES:
        fitted, reduced = fit(_parts(report, *size), room)
        if not reduced:
            middle = fitted
            break
        if middle is None and not any(each.section and each.rank % RANKS == TABLE_RANK for each in reduced):
            middle = fitted
    lines = [*top, *(fitted if middle is None else middle), *end, *([more] if reduced else [])]
    return "\n".join(tables.printable(line.rstrip()) for line in lines) + "\n"


# --- verdicts and head --------------------------------------------------------------------------------------------


def _verdicts(report: Report) -> list[str]:
    """Return the submission's failure and the targets' verdicts, the most severe first."""
    main, items = failures.main_failure(report), []
    if main is not None:
        label = f"{words.VERDICT[Verdict.FAILED]} ({main.kind.value})"
        items.append(wrapped(f"{label}: {main.summary}", 5, indent="  "))
    others = sorted(failures.others(report), key=lambda target: VERDICT_ORDER.index(target.verdict))
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


def _parts(report: Report, table_lines: int, reason_lines: int, place_lines: int) -> list[Part]:
    parts = [*_main_failure(report), *_configuration(report), *_sweep(report)]
    shown = [target for target in report.targets if failures.is_shown(report, target)]
    by_severity = sorted(shown, key=lambda target: VERDICT_ORDER.index(target.verdict))
    for target in shown:
        rank = RANKS * (by_severity.index(target) + 1)
        if report.sweep is None:
            section = _environment(target, rank, place_lines)
            section += _target(target, report, rank, table_lines, reason_lines)
            parts += [replace(each, section=str(target.run_id)) for each in section]
        elif _named(target) or failures.other_findings(report, target):  # the sweep has the figures
            parts += _environment(target, rank, place_lines)
            parts += _findings(failures.other_findings(report, target), rank + 2)
    return [*parts, *_builds(report), *_attempts(report)]


def _main_failure(report: Report) -> list[Part]:
    main = failures.main_failure(report)
    if main is None:
        return []
    places = listed([wrapped(place, 2, "* ") for place in main.places], 4, "* and {n} more places")
    excerpts = _excerpts(main.excerpt, EXCERPT_LINES)
    return [
        part(0, ["", *(["Where:"] if places else []), *places, *wrapped(f"What to do: {main.advice}", 3, indent="  ")]),
        part(1, *(["", *lines] for lines in excerpts)),
    ]


def _configuration(report: Report) -> list[Part]:
    """Return the options that differ between the kernels, or that they are the same or unknown."""
    if report.config_diff:
        options = "; ".join(report.config_diff)
        text = f"Configuration DIFFERS, baseline -> candidate: {options}"
        return [part(2, *(["", *wrapped(text, limit, indent="  ")] for limit in (6, 3, 2)))]
    if len({build.arm for build in report.submission.builds if build.outcome is Outcome.PASSED}) < 2:
        return []
    return [part(8, ["", *wrapped(f"Configuration: {system_text.configuration_note(report)}", 2, indent="  ")])]


def _sweep(report: Report) -> list[Part]:
    """Return where the verdicts change over the topologies of a sweep, with the points of the first curves."""
    sweep = report.sweep
    if sweep is None:
        return []
    parts = [part(2, ["", *wrapped(f"{sweep_tables.title(sweep)}:", 2, indent="  ")])]
    for number, curve in enumerate(sweep.curves):
        points = tables.fitted(sweep_tables.header(sweep), sweep_tables.rows(curve), (4,))
        sentence = wrapped(sweep_tables.sentence(curve, sweep), 3, "* ")
        reasons = [line for each in sweep_tables.reasons(curve, sweep) for line in wrapped(each, 2, "  ")]
        parts += [
            part(3, sentence),
            part(20 + number, ["", *points, *reasons, ""], ["", *points, ""])
            if number < sweep_tables.TABLES
            else part(9),
        ]
    return [*parts, part(4, wrapped(sweep_tables.NOTE if sweep.curves else sweep_tables.NO_FIGURES, 3))]


def _target(target: TargetReport, report: Report, rank: int, table_lines: int, reason_lines: int) -> list[Part]:
    """Return a target's parts under its heading. Those of rank `later` and higher come after the tables of all."""
    later = rank + RANKS * len(report.targets)
    compared = failures.comparisons(report, target)
    main = failures.main_failure(report)
    found = text_table.lines(target, compared, table_lines)
    none = [] if found or (main and main.target is target) else ["No figures."]
    reasons = [
        wrapped(reason, 2 if reason_lines < REASON_LINES else 8, "* ") for reason in text_table.reasons(compared)
    ]
    platform = system_text.platform(target)
    facts = "; ".join(f"{name} {value}" for name, value in system_text.system(target) if name in SYSTEM_FACTS)
    return [
        part(rank + 1, wrapped(f"Topology: {platform.mismatch}", 2, indent="  ") if platform.mismatch else []),
        part(later + 7, wrapped(f"System: {facts}", 3, indent="  ") if facts else []),
        *_ladder(target, rank),
        part(rank + 1, ["", *(found or none)] if found or none else []),
        part(later + 4, wrapped(text_table.left_out(target, compared), 2, indent="  ")),
        part(
            later + 3,
            *(listed(reasons, limit, "* and {n} more reasons") for limit in (8, 5, 3) if limit <= reason_lines),
        ),
        part(later + 2, _caveat(target) if compared else []),
        part(later + 4, [line for each in _canaries(target, compared) for line in wrapped(each, 3, indent="  ")]),
        part(later + 4, [line for curve in target.curves for each in curve.says for line in wrapped(each, 2, "* ")]),
        part(
            later + 5, ["", *counted] if (counted := instrument_tables.text_lines(target) if compared else []) else []
        ),
        part(later + 4, _explanation(target) if compared else []),
        _waits(target, OPTIONAL_RANK + rank),
        *_findings(failures.other_findings(report, target), rank + 2),
    ]


def _ladder(target: TargetReport, rank: int) -> list[Part]:
    """Return the patches of a walk one by one, and the logs of those that do not build or run."""
    if target.ladder is None:
        return []
    forms = [ladder_tables.text_lines(target, claims_only=claims_only) for claims_only in (False, True)]
    parts = [part(rank, *(["", *lines] for lines in forms))]
    for sentence, excerpt in ladder_tables.failures(target.ladder):
        title = wrapped(sentence, 3, "* ")
        parts.append(
            part(rank + 2, *(["", *title, *lines] for lines in _excerpts(excerpt, SHORT_EXCERPT_LINES)), title)
        )
    return [*parts, part(rank + 3, wrapped(ladder_tables.FAMILY, 3))]


def _explanation(target: TargetReport) -> list[str]:
    lines = explanation_text.text_lines(target)
    return ["", *lines] if lines else []


def _waits(target: TargetReport, rank: int) -> Part:
    """Return how long work items waited: of all scenarios and settings, or of the first one and fewer functions."""
    first = target.waits[:1]
    forms = [wait_tables.text_lines(target, target.waits)]
    forms += [wait_tables.text_lines(target, first, most) for most in range(wait_tables.TEXT_FUNCTIONS, 0, -1)]
    return replace(part(rank, *(["", *lines] if lines else [] for lines in forms)), optional=True)


def _caveat(target: TargetReport) -> list[str]:
    if target.plan.is_instrumented:
        return [COUNTS_CAVEAT]
    return [CAVEAT] if shared_text.has_values_only(target) else []


def _canaries(target: TargetReport, compared: Sequence[Comparison]) -> list[str]:
    return shared_text.canaries(target) if compared else []


def _environment(target: TargetReport, rank: int, place_lines: int) -> list[Part]:
    """Return where the target was measured, and what differs between the kernels' environments there."""
    differences = [_differences(target, limit) for limit in (8, 4, 2)]
    place = _short_place(target) if place_lines < PLACE_LINES else _place(target)
    return [part(rank, ["", *place]), part(rank, *differences)]


def _place(target: TargetReport) -> list[str]:
    """Return where the target was measured, on what, how often, and with which loss."""
    boots = "" if target.byte_identical else shared_text.repetitions(target)
    parts = [system_text.platform(target).topology, shared_text.block_counts(target), boots]
    return wrapped(
        f"{failures.name(target)}, {_device(target)}: {'; '.join(filter(None, parts))}", PLACE_LINES, indent="  "
    )


def _short_place(target: TargetReport) -> list[str]:
    """Return where the target was measured, and how often."""
    blocks = f"{target.blocks_completed} of {words.count(target.blocks_planned, 'block')}"
    return wrapped(f"{failures.name(target)}, {_device(target)}; {blocks}", SHORT_PLACE_LINES, indent="  ")


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


def _findings(groups: list[failures.FindingGroup], rank: int) -> list[Part]:
    parts = []
    for number, group in enumerate(groups):
        kind = group.finding.kind.value.replace("_", " ").upper()
        title = wrapped(f"{kind} on {group.place}: {group.finding.title}", 3, indent="  ")
        forms = [["", *title, *lines] for lines in _excerpts(group.finding.excerpt, SHORT_EXCERPT_LINES)]
        parts.append(part(rank if number == 0 else rank + 4, *forms, ["", *title]))
    return parts


def _builds(report: Report) -> list[Part]:
    """Return the builds' failures that are not the submission's, and their new warnings."""
    main, parts = report.submission.failure, []
    for build in shared_text.kernels(report):
        if build.arm in BETWEEN:  # the ladder has it
            continue
        name = f"{build.arm or 'kernel'} ({build.recipe}, {build.arch})"
        if build.failure and not (main and failures.is_same(build.failure, main)):
            title = wrapped(f"BUILD FAILED: {name}: {build.failure.kind}: {build.failure.summary}", 3, indent="  ")
            forms = [["", *title, *lines] for lines in _excerpts(build.failure.excerpt, SHORT_EXCERPT_LINES)]
            parts.append(part(5, *forms, ["", *title]))
        if build.new_warnings:
            number = words.count(len(build.new_warnings), "warning")
            found = [wrapped(f"{each.where}: {each.text} {each.option}", 2, "* ") for each in build.new_warnings]
            title = [f"{number} of the {build.arm or 'kernel'} that the baseline does not have:"]
            forms = [["", *title, *listed(found, limit, "* and {n} more")] for limit in (8, 4, 2)]
            parts.append(part(6, *forms, ["", *title]))
    return parts


def _attempts(report: Report) -> list[Part]:
    groups = failures.other_attempts(report)
    if not groups:
        return []
    title = f"{'Other failed' if report.submission.failure else 'Failed'} attempts:"
    found = [
        wrapped(f"{'; '.join(group.places)}: {group.failure.kind}: {group.failure.summary}", 3, "* ")
        for group in groups
    ]
    return [part(7, *(["", title, *listed(found, limit, "* and {n} more")] for limit in (9, 5, 3)))]


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


def _excerpts(excerpt: str, limits: Sequence[int]) -> list[list[str]]:
    """Return an excerpt in forms of at most `limits` lines, without repetitions."""
    lines = excerpt.splitlines()
    forms = [[f"| {line}" for line in shorten_lines(lines, limit)] for limit in limits]
    return [form for index, form in enumerate(forms) if form and form not in forms[:index]]
