"""The letter to a list about a regression that was bisected and confirmed on hardware. Pure.

Its form is that of the kernel test robot: the commit, a table with %stddev and %change, tags to copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wqlab_comparison import words
from wqlab_contracts.api.bisections import Bisection
from wqlab_contracts.api.report import ArmSummary, Comparison, Report, TargetReport
from wqlab_contracts.enums import BisectionState, BisectionStepState, Evidence, Question, Role, Scale, Verdict

from ..content import cells, shared_text
from ..units import readable
from . import lines
from .facts import facts, raw_data, reproduce

ROWS = 8
"""Most rows of the table."""


@dataclass(frozen=True)
class Lab:
    """Who sends the letter."""

    address: str
    """Name and address that fixes name as the reporter."""
    operator: str
    """Name and address of the person who runs the lab and can stop its mails."""
    regzbot: bool
    """True if the letter asks the kernel's regression tracker to track it."""


def not_told(bisection: Bisection, report: Report) -> str:
    """Return why no letter is written about a bisection; empty if one is. `report` compares the commit that was found
    with its parent."""
    if bisection.state is not BisectionState.FOUND or bisection.culprit is None:
        return "the commit is not found, or only a range of commits"
    target = _target(bisection, report)
    if target is None or target.emulated:
        return "it was not measured on hardware"
    cell = _cell(bisection, target)
    if cell is None or cell.evidence is not Evidence.PERFORMANCE:
        return "it is no measured time or throughput"
    if cell.verdict is not Verdict.REGRESSION:
        return "the commit against its parent is no regression"
    return ""


def subject(bisection: Bisection, report: Report) -> str:
    """Return `[wqlab] [linux:master] 0123456789ab: xfs-fsync bandwidth -12.3 % on ryzen-3900x-1`."""
    target, cell = _parts(bisection, readable(report))
    what = _what(bisection, target, cell)
    return f"[wqlab] [{_branch(bisection)}] {_commit(bisection)[:12]}: {what} {words.effect(cell)} on {_device(target)}"


def regression(bisection: Bisection, report: Report, lab: Lab) -> list[str]:
    """Return the lines of the letter. Raises ValueError with the reason if there is none, see `not_told`."""
    report = readable(report)
    target, cell = _parts(bisection, report)
    what = _what(bisection, target, cell)
    head = f"wqlab measured a {words.effect(cell)} regression of {what} on {_machine(target)}, after:"
    return lines.joined(
        [
            lines.paragraph(head, 4),
            _commit_lines(bisection, report),
            _table(target, cell),
            _confidence(bisection, target, cell),
            _tags(bisection, report, lab),
            facts(report, [target]),
            reproduce(report, [target]),
            raw_data(report),
            lines.paragraph(
                f"This lab is run by {lab.operator}, and a person has read this mail before it was sent. Write to that "
                "address to make it stop.",
            ),
        ]
    )


def _commit_lines(bisection: Bisection, report: Report) -> list[str]:
    assert bisection.culprit is not None  # noqa: S101 - `_parts` has checked it
    origin = shared_text.public_origin(report)
    between = (
        f"{words.count(bisection.commits or 0, 'commit')} from {_short(bisection.good)} to {_short(bisection.bad)}"
    )
    whole = f", which differ by {words.signed(bisection.effect)} {bisection.effect_unit}" if bisection.effect else ""
    return [
        f"commit {_commit(bisection)}",
        *lines.paragraph(f'("{bisection.culprit.subject}")'),
        *lines.paragraph(
            f"of {_branch(bisection)}{f', {origin}' if origin else ''}, found by bisecting {between}{whole}.",
            5,
        ),
    ]


def _table(target: TargetReport, cell: Comparison) -> list[str]:
    """Return the table of the kernel test robot: mean ±%stddev of the parent, %change, mean ±%stddev of the commit."""
    told = [cell, *(each for each in _others(target, cell) if _is_changed(each) and each.scale is Scale.RATIO)]
    rows = [[_mean(each.baseline), words.effect(each), _mean(each.candidate), _name(each, cell)] for each in told]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    header = ["parent", "", "commit"]
    units = ["%stddev", "%change", "%stddev"]
    body = [
        "  ".join(text.rjust(max(width, 7)) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, units)
    ]
    for row in rows[:ROWS]:
        figures = "  ".join(text.rjust(max(width, 7)) for text, width in zip(row[:3], widths, strict=True))
        name = f"  {row[3]}"
        fits = len(figures) + len(name) <= lines.WIDTH
        body += [f"{figures}{name}"] if fits else [figures, f"    {row[3]}"]
    return body


def _confidence(bisection: Bisection, target: TargetReport, cell: Comparison) -> list[str]:
    """Return interval, boots, the noise of that machine, and whether a revert was measured."""
    records = [each for each in target.canaries if each.device == _device(target)]
    noise = f"{records[0].line}." if records else "No A/A comparisons of this plan on this machine."
    floors = [
        f"Between boots, {cell.metric} spreads by {words.amount(metric.floor, metric.effect_unit)}."
        for record in records[:1]
        for metric in record.metrics
        if metric.metric == cell.metric and metric.floor is not None
    ]
    others = _others(target, cell)
    changed = [each for each in others if _is_changed(each) and each.scale is not Scale.RATIO]
    also = [f"{_name(each, cell, unit=False)} {words.effect(each)}" for each in changed]
    same = [_name(each, cell, unit=False) for each in others if not _is_changed(each)]
    return [
        *lines.paragraph(
            f"95 % interval of the change {words.ci(cell)} {cell.effect_unit}, {words.tests(cell)}; parent and commit "
            "booted in turn on this one machine.",
            4,
        ),
        *lines.paragraph(f"Noise: {' '.join([noise, *floors])}", 4),
        *lines.paragraph(f"Also: {'; '.join(also)}." if also else ""),
        *lines.paragraph(f"Not changed beyond their thresholds: {', '.join(same)}." if same else "", 4),
        *lines.paragraph(f"With the commit reverted on top of {_short(bisection.bad)}: {_reverted(bisection, cell)}."),
    ]


def _reverted(bisection: Bisection, cell: Comparison) -> str:
    """Return the effect of the revert on the metric, `bandwidth +13.5 %, 95 % interval [13.2, 13.9]`, or why none."""
    step = bisection.reverted
    if step is not None and step.state is BisectionStepState.MEASURED and step.effect is not None:
        unit = bisection.effect_unit
        interval = f", 95 % interval [{words.signed(step.ci95[0])}, {words.signed(step.ci95[1])}]" if step.ci95 else ""
        return f"{cell.metric} {words.signed(step.effect)} {unit}{interval}"
    if bisection.culprit is not None and bisection.culprit.commit == bisection.bad:
        return "that is its parent"
    return f"not measured{f' ({step.reason})' if step is not None and step.reason else ''}"


def _tags(bisection: Bisection, report: Report, lab: Lab) -> list[str]:
    tracked = ["", f"#regzbot introduced: {_commit(bisection)}"] if lab.regzbot else []
    return [
        "If you fix this in a commit of its own, these tags name the report:",
        f"| Reported-by: {lab.address}",
        f"| Closes: {report.lab_url.rstrip('/')}/bisections/{bisection.id}",
        *tracked,
    ]


# --- pieces ---------------------------------------------------------------------------------------------------------


def _parts(bisection: Bisection, report: Report) -> tuple[TargetReport, Comparison]:
    if reason := not_told(bisection, report):
        raise ValueError(f"no letter about bisection {bisection.id}: {reason}")
    target = _target(bisection, report)
    cell = _cell(bisection, target) if target is not None else None
    assert target is not None and cell is not None  # noqa: S101 - `not_told` has found both
    return target, cell


def _target(bisection: Bisection, report: Report) -> TargetReport | None:
    of = (bisection.request.plan, bisection.request.device_type)
    return next((each for each in report.targets if (each.plan.name, each.device_type) == of), None)


def _cell(bisection: Bisection, target: TargetReport) -> Comparison | None:
    """Return the comparison of the bisected metric; of several scenarios or settings the first that is a regression."""
    request = bisection.request
    found = [
        each
        for each in target.comparisons
        if each.question is Question.KERNEL
        and each.metric == request.metric
        and request.scenario in {None, each.scenario}
        and request.setting in {None, each.setting}
    ]
    return next((each for each in found if each.verdict is Verdict.REGRESSION), found[0] if found else None)


def _others(target: TargetReport, cell: Comparison) -> Sequence[Comparison]:
    """Return the other decided comparisons of the kernels, primary ones first."""
    found = [
        each
        for each in cells.judged(target.comparisons)
        if each is not cell and each.question is Question.KERNEL and each.verdict in cells.DECIDED
    ]
    return sorted(found, key=lambda each: each.role is not Role.PRIMARY)


def _mean(arm: ArmSummary | None) -> str:
    if arm is None:
        return ""
    spread = f" ±{100 * arm.stddev / abs(arm.mean):4.1f}%" if arm.stddev is not None and arm.mean else ""
    return f"{words.number(arm.mean)}{spread}"


def _is_changed(cell: Comparison) -> bool:
    return cell.verdict not in {Verdict.EQUIVALENT, Verdict.BELOW_THRESHOLD}


def _name(each: Comparison, cell: Comparison, *, unit: bool = True) -> str:
    """Return the metric, behind scenario and setting unless they are those of the bisected metric."""
    place = (each.scenario, each.setting) if (each.scenario, each.setting) != (cell.scenario, cell.setting) else ()
    return " ".join(filter(None, [*place, cells.metric(each) if unit else words.metric(each)]))


def _what(bisection: Bisection, target: TargetReport, cell: Comparison) -> str:
    """Return plan, scenario, setting and metric, without a scenario that is the plan's only one."""
    scenario = cell.scenario if bisection.request.scenario or len(target.plan.scenarios) > 1 else ""
    return " ".join(filter(None, [target.plan.name, scenario, cell.setting, words.metric(cell)]))


def _commit(bisection: Bisection) -> str:
    return bisection.culprit.commit if bisection.culprit is not None else ""


def _short(commit: str | None) -> str:
    return (commit or "")[:12]


def _branch(bisection: Bisection) -> str:
    reference = (bisection.request.ref or bisection.request.bad).removeprefix("refs/heads/")
    return f"{bisection.request.tree}:{reference}"


def _device(target: TargetReport) -> str:
    return target.environment.device if target.environment else target.device_type


def _machine(target: TargetReport) -> str:
    model = target.environment.facts.get("cpu model", "") if target.environment else ""
    return f"{_device(target)}{f' ({model})' if model else ''}"
