"""Render the report as tables like those of MMTests' compare-mmtests.

Each operation has a mean and a deviation per kernel, and the change from the first kernel in percent: positive is
better. The layout is that of MMTests (`Compare.pm`, `PrintGeneric.pm`): operations in rows, `%12.2f` and ` (%7.2f%%)`,
which becomes ` *%7.2f%%*` for a significant change. Significance follows the verdict, as in all formats of the report,
not an interval of the two means. Figures that are no evidence are shown as values only.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wqlab_comparison import words
from wqlab_contracts.api.report import ArmSummary, Comparison, Report, TargetReport
from wqlab_contracts.enums import Arm, Direction, Question, Role, SubmissionState, Verdict

from ..comparisons import setting_labels, verdict_lines
from ..content import failures, instrument_tables, shared_text
from ..plain_text import printable, wrapped

_SIGNIFICANT = frozenset({Verdict.IMPROVEMENT, Verdict.REGRESSION, Verdict.BELOW_THRESHOLD})
_VALUE_WIDTH = 12
"""Columns of a value, as in MMTests; more if a heading or a value is longer."""
_CHANGE_WIDTH = len(" (   0.00%)")
_LEGEND = (
    "Hmean is the harmonic mean of rates for which higher is better, Amean the arithmetic mean of all other figures, "
    "Stddev the standard deviation. They are calculated over boots; a boot's value is the median of its repetitions. A "
    "positive percentage is an improvement. * * instead of ( ) marks a difference that is significant by the tests of "
    "the full report. There is no percentage if the figure is no evidence (an emulated device's clock), if neither "
    "direction is better, or if the first value is 0."
)


@dataclass(frozen=True)
class _Value:
    value: float | None
    change: float | None = None
    """Change from the first column's value in percent, positive if better."""
    significant: bool = False


@dataclass(frozen=True)
class _Row:
    statistic: str
    operation: str
    values: Sequence[_Value]


@dataclass(frozen=True)
class _Table:
    title: str
    """Title of a target's second and later tables; empty for the first."""
    columns: Sequence[tuple[str, str]]
    """Heading of each column, in two lines."""
    rows: Sequence[_Row]


def render_mmtests(report: Report) -> str:
    """Render one table per plan and device type, and one per kernel whose settings were compared."""
    submission = report.submission
    lines: list[str] = []
    if submission.state is not SubmissionState.FINISHED:
        lines += [f"NOT FINISHED ({submission.state.value}): this report shows the results so far.", ""]
    if main := failures.main_failure(report):
        lines += [*wrapped(f"FAILED ({main.kind}): {main.summary}", indent="  "), ""]
    others = [target.run_id for target in failures.others(report)]
    tables: list[str] = []
    for target in report.targets:
        verdict = verdict_lines(failures.name(target), target.verdict, instrument_tables.headline(target))
        tables += [*verdict, ""] if target.run_id in others else []
        if failures.comparisons(report, target):
            tables += [line for table in _tables(target) if table.rows for line in (*_lines(table), "")]
    legend = [*wrapped(_LEGEND), ""] if failures.applies_method(report) else []
    lines += [*tables, *legend, shared_text.address(report)]
    return "\n".join(printable(line.rstrip()) for line in lines) + "\n"


# --- from comparisons to rows -------------------------------------------------------------------------------------

_Boots = Mapping[tuple[str, str, str, Arm], Mapping[int, float]]
"""(scenario, setting, metric, arm) -> block -> value of the boot."""


def _tables(target: TargetReport) -> Iterator[_Table]:
    # Metrics that have a verdict only on real hardware are shown on an emulated device too, as values.
    judged = {
        metric.name
        for metric in target.plan.metrics
        if {metric.role(target.emulated), metric.role(emulated=False)} != {Role.EXPLANATORY}
    }
    cells = [cell for cell in target.comparisons if cell.metric in judged]
    boots: dict[tuple[str, str, str, Arm], dict[int, float]] = {}
    for each in target.values:
        boots.setdefault((each.scenario, each.setting, each.metric, each.arm), {})[each.block] = each.value
    yield _kernel_table(target, [cell for cell in cells if cell.question is Question.KERNEL], boots)
    for arm in (Arm.BASELINE, Arm.CANDIDATE):
        yield _settings_table(
            target, arm, [c for c in cells if c.question is Question.SETTING and c.kernel is arm], boots
        )


def _kernel_table(target: TargetReport, cells: Sequence[Comparison], boots: _Boots) -> _Table:
    _, labels = setting_labels(list(dict.fromkeys(cell.setting for cell in cells)))
    columns = [(_release(target, arm), arm.value) for arm in (Arm.BASELINE, Arm.CANDIDATE)]
    operations = []
    for cell in cells:
        arms = [boots.get((cell.scenario, cell.setting, cell.metric, arm), {}) for arm in (Arm.BASELINE, Arm.CANDIDATE)]
        name = "-".join([_operation(cell), *([labels[cell.setting]] if len(labels) > 1 else [])])
        operations.append(_Operation(name, [None, cell], [cell.baseline, cell.candidate], arms))
    return _Table("", columns, _rows(operations))


def _settings_table(target: TargetReport, arm: Arm, cells: Sequence[Comparison], boots: _Boots) -> _Table:
    """Return the reference setting and the other ones side by side, as MMTests shows several kernels."""
    groups: dict[tuple[str, str], dict[str, Comparison]] = {}
    for cell in cells:
        groups.setdefault((cell.scenario, cell.metric), {})[cell.setting] = cell
    settings = list(dict.fromkeys(cell.setting for cell in cells))
    operations = []
    for (scenario, metric), group in groups.items():
        first = next(iter(group.values()))
        found = [group.get(setting) for setting in settings]
        summaries = [next((c.baseline for c in group.values() if c.baseline), None)]
        summaries += [cell.candidate if cell else None for cell in found]
        columns_boots = [boots.get((scenario, each, metric, arm), {}) for each in (first.reference, *settings)]
        operations.append(_Operation(_operation(first), [None, *found], summaries, columns_boots))
    references = [cells[0].reference] if cells else []
    columns = [(_release(target, arm), setting) for setting in (*references, *settings)]
    return _Table(f"Settings on the {arm} kernel", columns, _rows(operations))


@dataclass(frozen=True)
class _Operation:
    """A row of figures by column; the other columns are compared with the first one."""

    name: str
    compared: Sequence[Comparison | None]
    means: Sequence[ArmSummary | None]
    boots: Sequence[Mapping[int, float]]

    @property
    def cell(self) -> Comparison:
        return next(cell for cell in self.compared if cell is not None)

    @property
    def columns(self) -> list[list[float]]:
        """Values by column of the blocks that all measured columns have, else of all blocks of each column."""
        measured = [boots for boots in self.boots if boots]
        common = set.intersection(*(set(boots) for boots in measured)) if measured else set()
        return [[boots[block] for block in sorted(common or boots)] if boots else [] for boots in self.boots]


def _rows(operations: Sequence[_Operation]) -> list[_Row]:
    """Return all means, then all deviations, in MMTests' order."""
    means = [row for operation in operations if (row := _mean(operation))]
    return means + [row for operation in operations if (row := _deviation(operation))]


def _mean(operation: _Operation) -> _Row | None:
    if all(mean is None for mean in operation.means):
        return None
    if not words.is_evidence(operation.cell):
        return _Row("Amean", operation.name, [_Value(mean.mean if mean else None) for mean in operation.means])
    # Only for throughput: where lower is better, a single boot with 0 would make the harmonic mean 0.
    rate = operation.cell.unit.endswith("/s") and operation.cell.direction is Direction.HIGHER_IS_BETTER
    average = statistics.harmonic_mean if rate else statistics.fmean
    values = [average(boots) if boots else None for boots in operation.columns]
    significant = [cell is not None and cell.verdict in _SIGNIFICANT for cell in operation.compared]
    changes = _changes(values, operation.cell.direction)
    cells = [_Value(*each) for each in zip(values, changes, significant, strict=True)]
    return _Row("Hmean" if rate else "Amean", operation.name, cells)


def _deviation(operation: _Operation) -> _Row | None:
    if not words.is_evidence(operation.cell):
        return None
    values = [statistics.stdev(boots) if len(boots) > 1 else None for boots in operation.columns]
    if all(value is None for value in values):
        return None
    changes = _changes(values, Direction.LOWER_IS_BETTER)
    return _Row("Stddev", operation.name, [_Value(*each) for each in zip(values, changes, strict=True)])


def _changes(values: Sequence[float | None], direction: Direction) -> list[float | None]:
    return [_change(values[0], value, direction) for value in values]


def _change(base: float | None, value: float | None, direction: Direction) -> float | None:
    if base is None or value is None or direction is Direction.NONE:
        return None
    if value == base:
        return 0.0
    if base == 0:
        return None
    percent = 100 * (value / base) - 100
    return percent if direction is Direction.HIGHER_IS_BETTER else -percent


def _operation(cell: Comparison) -> str:
    """Return the name of an operation in MMTests' form, such as `send-64`."""
    return f"{words.metric(cell).replace(' ', '-')}-{cell.scenario}"


def _release(target: TargetReport, arm: Arm) -> str:
    return (target.environment.release.get(arm) if target.environment else None) or "kernel"


# --- from rows to lines -------------------------------------------------------------------------------------------


def _lines(table: _Table) -> list[str]:
    statistic = max(len(row.statistic) for row in table.rows)
    operation = max(len(printable(row.operation)) for row in table.rows)
    rows = [(row, [_figure(value, row) for value in row.values]) for row in table.rows]
    fields = [
        max(
            _VALUE_WIDTH,
            *(len(figures[at]) + 1 for _, figures in rows),
            *(len(line) + 1 - _CHANGE_WIDTH for line in heading),
        )
        for at, heading in enumerate(table.columns)
    ]
    lines = [*wrapped(table.title, indent="  ")]
    for line in (0, 1):
        cells = (
            heading[line].rjust(field + _CHANGE_WIDTH) for heading, field in zip(table.columns, fields, strict=True)
        )
        lines.append(" " * (statistic + 1 + operation) + "".join(cells))
    for row, figures in rows:
        pairs = zip(figures, fields, row.values, strict=True)
        cells = (f"{figure:>{field}}{_percent(value)}" for figure, field, value in pairs)
        lines.append(f"{row.statistic:<{statistic}} {printable(row.operation):<{operation}}{''.join(cells)}")
    return lines


def _figure(value: _Value, row: _Row) -> str:
    """Format a value with two decimals as in MMTests, or more if the row's figures are too small for that."""
    if value.value is None:
        return "n/a"
    known = [each.value for each in row.values if each.value is not None]
    return f"{value.value:.{max(2, words.places(known))}f}"


def _percent(value: _Value) -> str:
    if value.change is None:
        return " " * _CHANGE_WIDTH
    return f" *{value.change:7.2f}%*" if value.significant else f" ({value.change:7.2f}%)"
