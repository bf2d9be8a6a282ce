"""Comparisons as plain text tables, in the style of tables in kernel mail: what `wqlab compare` prints. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from wqlab_comparison import conclude, words
from wqlab_comparison.reasons import reasons
from wqlab_contracts.api.report import Comparison
from wqlab_contracts.enums import Question, Role, Scale

from .content import cells
from .plain_text import GAP, INTERVAL, WIDTH, fitted, printable, wrapped


def comparisons_text(comparisons: Sequence[Comparison]) -> str:
    """Return the verdict of each plan and device type, its tables, and the reasons of the verdicts."""
    targets: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in comparisons:
        targets.setdefault((comparison.plan, comparison.device_type), []).append(comparison)
    lines: list[str] = []
    for (plan, device_type), group in targets.items():
        conclusion = conclude(group)
        verdict = words.VERDICT[conclusion.verdict].upper()
        lines += ["", *wrapped(f"{plan} on {device_type}: {verdict}", indent="  "), *wrapped(conclusion.headline, "  ")]
        for table in (kernel_tables(group), setting_tables(group)):
            lines += ["", *table] if table else []
        why = [line for reason in reasons(group) for line in wrapped(reason, "* ")]
        lines += ["", "Notes:", *why] if why else []
    return "\n".join(printable(line) for line in lines[1:])


def kernel_tables(comparisons: Sequence[Comparison]) -> list[str]:
    """Format candidate against baseline: one table per metric that was measured, a row per scenario and setting."""
    selected = [comparison for comparison in comparisons if comparison.question is Question.KERNEL]
    lines: list[str] = []
    for _, group in _by_metric(cells.judged(selected)):
        lines += ["", *_kernel_table(group)] if any(map(cells.is_measured, group)) else []
    measured = list(filter(cells.is_measured, selected))
    if explaining := cells.explanatory(measured):
        lines += ["", "Explanatory (no verdict):", *_plain_table(explaining)]
    if values := cells.values_only(measured):
        lines += ["", "No evidence (values only; an emulated clock is not hardware):", *_plain_table(values)]
    return lines[1:]


def setting_tables(comparisons: Sequence[Comparison]) -> list[str]:
    """Format settings against the reference setting, per kernel and scenario: a row per setting."""
    selected = [comparison for comparison in comparisons if comparison.question is Question.SETTING]
    if not any(map(cells.is_measured, selected)):
        return []
    lines: list[str] = []
    kernels = {comparison.kernel for comparison in selected}
    order = {(c.kernel, c.scenario): index for index, c in reversed(list(enumerate(selected)))}
    selected.sort(key=lambda c: order[c.kernel, c.scenario])
    groups = groupby(selected, key=lambda c: (c.kernel, c.scenario))
    for number, ((kernel, scenario), group) in enumerate(groups, 1):
        rows = list(group)
        boots = max((c.candidate.n for c in rows if c.candidate), default=0)
        of = f" on the {kernel} kernel" if len(kernels) > 1 else ""
        lines += ["", *wrapped(f"{number}. {scenario}{of} (n={boots})", indent="   ")]
        for _, judged in _by_metric(cells.judged(rows)):
            lines += ["", *_setting_table(judged)] if any(map(cells.is_measured, judged)) else []
        lines += _side_by_side(cells.explanatory(rows), "explanatory, no verdict")
        lines += _side_by_side(cells.values_only(rows), "no evidence, values only")
    return lines[1:]


def setting_labels(settings: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return a column heading and the name of each setting in that column.

    If all settings have the same knobs: `scope,strict` and `cache,1`; otherwise no heading and the whole setting.
    """
    pairs = {setting: [pair.partition("=") for pair in setting.split(",")] for setting in settings}
    knobs = {tuple(knob for knob, _, _ in each) for each in pairs.values()}
    if len(knobs) != 1 or not all(knobs):
        return "", {setting: setting for setting in settings}
    return ",".join(knobs.pop()), {
        setting: ",".join(value if equals else knob for knob, equals, value in each) for setting, each in pairs.items()
    }


def _by_metric(comparisons: Sequence[Comparison]) -> list[tuple[str, list[Comparison]]]:
    groups: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        groups.setdefault(comparison.metric, []).append(comparison)
    return list(groups.items())


def _title(first: Comparison, sample: str = "") -> str:
    unit = f" ({first.unit})" if first.unit else ""
    n = f", {sample}" if sample else ""
    role = "" if first.role is Role.PRIMARY else f", {first.role}"
    difference = first.scale is Scale.DIFFERENCE and bool(first.unit)
    change = f", change in {first.effect_unit}" if difference else ""
    delta = f", threshold {f'{first.delta:.3g}' if difference else words.threshold(first)}" if first.delta else ""
    return f"{words.metric(first)}{unit}{n}: {words.DIRECTION[first.direction]}{role}{change}{delta}"


def _kernel_table(compared: list[Comparison]) -> list[str]:
    decimals = _decimals(compared)
    rows = [
        [
            _row_name(cell, compared),
            cells.figure(cell.baseline, decimals, exact=cell.exact),
            cells.figure(cell.candidate, decimals, exact=cell.exact),
            cells.change(cell),
            words.interval(cell),
            cells.verdict(cell),
        ]
        for cell in compared
    ]
    header = ["", *cells.sides(Question.KERNEL), "change", INTERVAL, "verdict"]
    return [*wrapped(_title(compared[0], cells.sample(compared))), *fitted(header, rows, (0, 5))]


def _setting_table(compared: list[Comparison]) -> list[str]:
    first = compared[0]
    decimals = _decimals(compared)
    knobs, labels = setting_labels([first.reference, *(cell.setting for cell in compared)])
    header = [knobs, words.metric(first), "vs. ref.", INTERVAL, "verdict"]
    reference = next((cell.baseline for cell in compared if cell.baseline), None)
    rows = [[labels[first.reference], cells.figure(reference, decimals, exact=False), "", "", "reference"]]
    rows += [
        [
            labels[cell.setting],
            cells.figure(cell.candidate, decimals, exact=False),
            cells.change(cell),
            words.interval(cell),
            cells.verdict(cell),
        ]
        for cell in compared
    ]
    return [*wrapped(_title(first)), *fitted(header, rows, (0, 4))]


def _side_by_side(compared: Sequence[Comparison], title: str) -> list[str]:
    """Format several metrics as columns, as many as fit; settings as rows. Values only."""
    metrics = [(name, group) for name, group in _by_metric(compared) if any(map(cells.is_measured, group))]
    lines: list[str] = []
    while metrics:
        taken = 1
        while taken < len(metrics) and _columns_width(metrics[: taken + 1]) <= WIDTH:
            taken += 1
        chosen, metrics = metrics[:taken], metrics[taken:]
        settings = [chosen[0][1][0].reference, *(cell.setting for cell in chosen[0][1])]
        knobs, labels = setting_labels(settings)
        header = [knobs, *(cells.metric(group[0]) for _, group in chosen)]
        rows = []
        for setting in settings:
            row = [labels[setting]]
            for _, group in chosen:
                decimals = _decimals(group)
                cell = next((c for c in group if c.setting == setting), None)
                row.append(cells.figure(cell.candidate if cell else group[0].baseline, decimals, exact=False))
            rows.append(row)
        lines += ["", *([f"({title})"] if not lines else []), *fitted(header, rows)]
    return lines


def _columns_width(metrics: Sequence[tuple[str, list[Comparison]]]) -> int:
    knobs, labels = setting_labels([cell.setting for _, group in metrics for cell in group])
    names = max(len(knobs), *map(len, labels.values()))
    figures = 0
    for _, group in metrics:
        decimals = _decimals(group)
        column = [cells.figure(arm, decimals, exact=False) for cell in group for arm in (cell.baseline, cell.candidate)]
        figures += len(GAP) + max(len(cells.metric(group[0])), *map(len, column))
    return names + figures


def _plain_table(compared: Sequence[Comparison]) -> list[str]:
    rows = []
    for cell in compared:
        decimals = _decimals([cell])
        sides = [cells.figure(arm, decimals, exact=cell.exact) for arm in (cell.baseline, cell.candidate)]
        rows.append([cells.name(cell), *sides, cell.unit])
    return fitted(["", "baseline", "candidate", "unit"], rows, (0, 3))


def _row_name(cell: Comparison, cells: Sequence[Comparison]) -> str:
    settings = {other.setting for other in cells}
    return f"{cell.scenario} {cell.setting}" if len(settings) > 1 else cell.scenario


def _decimals(cells: Iterable[Comparison]) -> int:
    return words.decimals(arm for cell in cells for arm in (cell.baseline, cell.candidate))
