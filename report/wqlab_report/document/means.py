"""Means and changes of a report, as the tables of MMTests' compare-mmtests have them.

Each operation has a mean and a deviation per kernel, and the change from the first kernel in percent: positive is
better. A change is marked as significant if the verdict says so, as in all formats of the report, not by an interval of
the two means. Figures that are no evidence are shown as values only.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wqlab_comparison import words
from wqlab_contracts.api.report import ArmSummary, Comparison, Report, TargetReport
from wqlab_contracts.enums import Arm, Direction, Question, Role, Verdict

from ..comparisons import setting_labels
from ..content import failures, shared_text
from .blocks import Block, Link, Paragraph, Style, Verdicts
from .verdicts import not_finished, of_submission, of_target

_SIGNIFICANT = frozenset({Verdict.IMPROVEMENT, Verdict.REGRESSION, Verdict.BELOW_THRESHOLD})
_LEGEND = (
    "Hmean is the harmonic mean of rates for which higher is better, Amean the arithmetic mean of all other figures, "
    "Stddev the standard deviation. They are calculated over boots; a boot's value is the median of its repetitions. A "
    "positive percentage is an improvement. * * instead of ( ) marks a difference that is significant by the tests of "
    "the full report. There is no percentage if the figure is no evidence (an emulated device's clock), if neither "
    "direction is better, or if the first value is 0."
)


@dataclass(frozen=True)
class Value:
    value: float | None
    change: float | None = None
    """Change from the first column's value in percent, positive if better."""
    significant: bool = False


@dataclass(frozen=True)
class Row:
    statistic: str
    operation: str
    values: Sequence[Value]


@dataclass(frozen=True)
class MeanTable:
    title: str
    """Heading above the table; empty for the first table of a target, which stands below the heading of the target."""
    columns: Sequence[tuple[str, str]]
    """Heading of each column, in two lines."""
    rows: Sequence[Row]


def means(report: Report) -> Iterator[Block | MeanTable]:
    """Yield one table per plan and device type, and one per kernel whose settings were compared, with the verdicts."""
    yield from not_finished(report)
    if failed := of_submission(failures.main_failure(report)):
        yield Verdicts(failed)
    others = [target.run_id for target in failures.others(report)]
    for target in report.targets:
        if target.run_id in others:
            yield Verdicts([of_target(target)])
        if failures.comparisons(report, target):
            yield from (table for table in _tables(target) if table.rows)
    if failures.applies_method(report):
        yield Paragraph(_LEGEND, style=Style.NOTE)
    yield Paragraph((Link(shared_text.address(report)),))


_Boots = Mapping[tuple[str, str, str, Arm], Mapping[int, float]]
"""(scenario, setting, metric, arm) -> block -> value of the boot."""


def _tables(target: TargetReport) -> Iterator[MeanTable]:
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


def _kernel_table(target: TargetReport, cells: Sequence[Comparison], boots: _Boots) -> MeanTable:
    _, labels = setting_labels(list(dict.fromkeys(cell.setting for cell in cells)))
    columns = [(_release(target, arm), arm.value) for arm in (Arm.BASELINE, Arm.CANDIDATE)]
    operations = []
    for cell in cells:
        arms = [boots.get((cell.scenario, cell.setting, cell.metric, arm), {}) for arm in (Arm.BASELINE, Arm.CANDIDATE)]
        name = "-".join([_operation(cell), *([labels[cell.setting]] if len(labels) > 1 else [])])
        operations.append(_Operation(name, [None, cell], [cell.baseline, cell.candidate], arms))
    return MeanTable("", columns, _rows(operations))


def _settings_table(target: TargetReport, arm: Arm, cells: Sequence[Comparison], boots: _Boots) -> MeanTable:
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
    return MeanTable(f"Settings on the {arm} kernel", columns, _rows(operations))


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


def _rows(operations: Sequence[_Operation]) -> list[Row]:
    """Return all means, then all deviations, in MMTests' order."""
    means = [row for operation in operations if (row := _mean(operation))]
    return means + [row for operation in operations if (row := _deviation(operation))]


def _mean(operation: _Operation) -> Row | None:
    if all(mean is None for mean in operation.means):
        return None
    if not words.is_evidence(operation.cell):
        return Row("Amean", operation.name, [Value(mean.mean if mean else None) for mean in operation.means])
    # Only for throughput: where lower is better, a single boot with 0 would make the harmonic mean 0.
    rate = operation.cell.unit.endswith("/s") and operation.cell.direction is Direction.HIGHER_IS_BETTER
    average = statistics.harmonic_mean if rate else statistics.fmean
    values = [average(boots) if boots else None for boots in operation.columns]
    significant = [cell is not None and cell.verdict in _SIGNIFICANT for cell in operation.compared]
    changes = _changes(values, operation.cell.direction)
    cells = [Value(*each) for each in zip(values, changes, significant, strict=True)]
    return Row("Hmean" if rate else "Amean", operation.name, cells)


def _deviation(operation: _Operation) -> Row | None:
    if not words.is_evidence(operation.cell):
        return None
    values = [statistics.stdev(boots) if len(boots) > 1 else None for boots in operation.columns]
    if all(value is None for value in values):
        return None
    changes = _changes(values, Direction.LOWER_IS_BETTER)
    return Row("Stddev", operation.name, [Value(*each) for each in zip(values, changes, strict=True)])


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
