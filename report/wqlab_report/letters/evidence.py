"""The letter to the author of a series: what was found, on which machine, and how to reproduce it. Pure.

Its sections have a fixed order and fixed limits. It has no checkpatch, no waits of work items and no statistical
method, which are on the page.
"""

from __future__ import annotations

from wqlab_comparison import words
from wqlab_contracts.api.report import Report, TargetReport
from wqlab_contracts.excerpts import shorten_lines

from ..content import failures, ladder_tables, sweep_tables, system_text
from ..document.verdicts import not_finished
from ..units import readable
from ..writers.text import lines_of
from . import counted, figures, found, lines
from .audience import Audience, left_out, shown_to
from .facts import facts, raw_data, reproduce

FOUND = 3
"""Most targets with a sentence at the top."""
EXCERPT_LINES = 16
PRIOR_ART = 6
"""Most lines about commits that the tree has already."""
ROWS = {1: 8, 2: 4}
"""Number of targets -> most rows of the table of each."""
FEW_ROWS = 2
"""Most rows of the table of each of three or more targets."""
TABLES = 4
"""Most targets with a table."""
KERNEL_REPORTS = 6
SWEEP_LINES = 12


def evidence(report: Report, audience: Audience, most: int, also: frozenset[str] = frozenset()) -> list[str]:
    """Return the lines of the letter, at most `most`. `also`: targets to include whatever their verdict.

    Lines that do not fit are cut from the end of the middle sections, and a line says so.
    """
    report = readable(report)
    shown = shown_to(report, audience, also)
    targets = failures.by_severity(failures.others(shown))
    middle = [
        _prior_art(shown),
        _failure(shown),
        *(_target(shown, target, audience, len(targets)) for target in targets[:TABLES]),
    ]
    main = failures.main_failure(shown)
    described = [main.target, *targets] if main is not None and main.target is not None else targets
    end = lines.joined([facts(shown, described), reproduce(shown, described), raw_data(shown)])
    top = lines.joined([_top(report, shown, targets, audience)])
    room = most - len(top) - len(end) - 2
    body = lines.joined(middle)
    if len(body) > room:
        body = [*body[: max(0, room - 1)], "(shortened; the report has the rest)"]
    return lines.joined([top, body, end])


def _top(report: Report, shown: Report, targets: list[TargetReport], audience: Audience) -> list[str]:
    """Return the sentences at the top: failure, findings, and what is not finished or left out."""
    main = failures.main_failure(shown)
    said = [f"FAILED ({main.kind.value}): {main.summary}"] if main is not None else []
    if shown.sweep is None:
        said += [found.sentence(target, audience) for target in targets[:FOUND]]
        more = len(targets) - FOUND
        said += [f"And {words.count(more, 'more target')}, see the report."] if more > 0 else []
        said += [] if said else ["Nothing is decided." if report.targets else "Nothing was measured."]
    missing = left_out(report, shown)
    return [
        *lines_of(not_finished(report)),
        *(line for text in said for line in lines.paragraph(text, 4)),
        *_sweep(shown),
        *lines.paragraph(f"Left out: {missing}." if missing else ""),
    ]


def _prior_art(report: Report) -> list[str]:
    """Return which patches the tree has already; nothing if it has none, or if it was not searched."""
    prior = report.submission.apply.prior_art
    tree = report.submission.tree
    found = [
        f"patch {each.patch}: {tree} has {'this change' if each.same == 'patch-id' else 'a commit of this subject'} "
        f"{'in the base' if each.in_base else 'after the base'}: {each.commit[:12]} of {each.date}"
        + (f' ("{each.subject}")' if each.same == "patch-id" else "")
        for each in (prior.found if prior is not None else [])
    ]
    for newer in prior.newer if prior is not None else []:
        if newer.has_series:
            found.append(f"{newer.tree} ({newer.release}) has every change of the series")
        elif newer.differs:
            names = ", ".join(newer.differs)
            found.append(f"{newer.tree} ({newer.release}) has changed what the series changes: {names}")
    return ["Prior art:", *lines.bullets(found, PRIOR_ART)] if found else []


def _failure(report: Report) -> list[str]:
    main = failures.main_failure(report)
    if main is None:
        return []
    excerpt = [f"| {line}" for line in shorten_lines(main.excerpt.splitlines(), EXCERPT_LINES)] if main.excerpt else []
    return [
        *(["Where:", *lines.bullets(main.places, 4)] if main.places else []),
        *lines.paragraph(f"What to do: {main.advice}"),
        *excerpt,
    ]


def _target(report: Report, target: TargetReport, audience: Audience, number: int) -> list[str]:
    """Return table, counts and kernel reports of one target. Those of a sweep have one section together."""
    parts = [_kernel_reports(report, target)]
    if report.sweep is None:
        parts = [
            figures.table(target, audience, ROWS.get(number, FEW_ROWS)),
            counted.section(target) if number == 1 else [],
            _ladder(target),
            *parts,
        ]
    return lines.joined(parts)


def _ladder(target: TargetReport) -> list[str]:
    if target.ladder is None:
        return []
    return lines.paragraph(f"{ladder_tables.HEADING}: {target.ladder.sentence}.", 4)


def _kernel_reports(report: Report, target: TargetReport) -> list[str]:
    """Return the titles of what the kernel reported on the console, besides the submission's failure."""
    groups = failures.other_findings(report, target)
    return ["Kernel reports:", *lines.bullets([each.title for each in groups], KERNEL_REPORTS)] if groups else []


def _sweep(report: Report) -> list[str]:
    """Return where the verdicts change over the topologies of a sweep."""
    sweep = report.sweep
    if sweep is None:
        return []
    kind = system_text.kind(report.targets[0]) if report.targets else "instrumented"
    sentences = [sweep_tables.sentence(curve, sweep) for curve in sweep.curves]
    return [
        *lines.paragraph(f"{sweep_tables.title(sweep)}; {found.NATURE[kind]}:"),
        *lines.bullets(sentences, SWEEP_LINES),
    ]
