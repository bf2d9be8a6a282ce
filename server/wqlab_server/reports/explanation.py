"""What differs beside a primary metric that differs: from traced boots, or the counts of an instrumented device.

The explanation never enters a verdict, and it names differences, not causes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from wqlab_comparison.differences import Sides, TracedBoot, by_cell, differences, sentences
from wqlab_contracts import traced_counts
from wqlab_contracts.api.explanations import ExplainedComparison, Explanation
from wqlab_contracts.api.instrument import InstrumentCell
from wqlab_contracts.api.report import Comparison
from wqlab_contracts.api.submissions import RequestOptions
from wqlab_contracts.enums import Arm, Question
from wqlab_contracts.specs import Backend
from wqlab_contracts.traced_counts import Row, TracedTopic

from ..models import Run
from ..views.traced_boots import differing, why_not_traced


@dataclass(frozen=True)
class TracedRun:
    """The run of traced boots, and the table of each boot of a finished block: arm, block and text."""

    run: Run
    tables: Sequence[tuple[Arm, int, str]]

    def rows(self) -> Iterator[Row]:
        """Yield all rows of the tables; an unreadable table is ignored."""
        for _, _, text in self.tables:
            with suppress(ValueError):
                yield from list(traced_counts.read(text))


def explain(
    run: Run,
    comparisons: Sequence[Comparison],
    request: RequestOptions,
    *,
    backend: Backend | None,
    traced: TracedRun | None,
    instrument: Sequence[InstrumentCell],
) -> Explanation | None:
    """Return what differs beside the primary metrics of a run that differ; None if none does."""
    found = differing(comparisons)
    if not found:
        return None
    if run.plan.is_instrumented:
        return _from_instrument(found, instrument)
    if traced is None:
        reason = why_not_traced(request, run.files, backend, figures=run.recipe.figures)
        return Explanation(reason=reason or "no traced boots were made")
    explained = _explain(found, _boots(traced.tables), run.device_spec.emulated)
    return Explanation(
        run_id=traced.run.id, comparisons=explained, reason="" if explained else _why_nothing(traced.run)
    )


def _why_nothing(run: Run) -> str:
    if run.failure is not None:
        return f"the traced boots failed: {run.failure.summary}"
    if run.outcome is None:
        return "the traced boots are not finished"
    return "the traced boots left no counts"


_Boots = Mapping[tuple[Arm, str, str], Mapping[int, Sequence[Row]]]


def _boots(tables: Iterable[tuple[Arm, int, str]]) -> _Boots:
    """Return the rows of each boot by arm, scenario and setting, and by block. An unreadable table is ignored."""
    found: dict[tuple[Arm, str, str], dict[int, Sequence[Row]]] = {}
    for arm, block, text in tables:
        try:
            rows = list(traced_counts.read(text))
        except ValueError:
            continue
        for (scenario, setting), of_cell in by_cell(rows).items():
            found.setdefault((arm, scenario, setting), {})[block] = of_cell
    return found


def _explain(compared: Sequence[Comparison], boots: _Boots, emulated: bool) -> list[ExplainedComparison]:
    """Judge all comparisons together, from the blocks that have both sides of each of them."""
    pairs = [(of, boots.get(left, {}), boots.get(right, {})) for of in compared for left, right in [_keys(of)]]
    pairs = [(of, left, right) for of, left, right in pairs if left and right]
    blocks = sorted(set.intersection(*(left.keys() & right.keys() for _, left, right in pairs))) if pairs else []
    sides = [
        Sides([TracedBoot.of(left[block]) for block in blocks], [TracedBoot.of(right[block]) for block in blocks])
        for _, left, right in pairs
    ]
    found = []
    for (of, left, right), ranked in zip(pairs, differences(sides, times=not emulated), strict=True):
        rows = [row for side in (left, right) for block in blocks for row in side[block]]
        notes = dict.fromkeys(row.name for row in rows if row.topic is TracedTopic.NOTE)
        found.append(
            _explained(of, boots=len(blocks), sentences=sentences(ranked), differences=ranked, notes=list(notes))
        )
    return found


def _keys(of: Comparison) -> tuple[tuple[Arm, str, str], tuple[Arm, str, str]]:
    """Return arm, scenario and setting of both sides."""
    if of.question is Question.SETTING:
        arm = of.kernel or Arm.BASELINE
        return (arm, of.scenario, of.reference), (arm, of.scenario, of.setting)
    return (Arm.BASELINE, of.scenario, of.setting), (Arm.CANDIDATE, of.scenario, of.setting)


def _explained(comparison: Comparison, **of: object) -> ExplainedComparison:
    return ExplainedComparison.model_validate(
        {
            "scenario": comparison.scenario,
            "setting": comparison.setting,
            "question": comparison.question,
            "reference": comparison.reference,
            "kernel": comparison.kernel,
            "metric": comparison.metric,
            **of,
        }
    )


def _from_instrument(found: Sequence[Comparison], cells: Sequence[InstrumentCell]) -> Explanation:
    """Return the sentences about an instrumented device, from the profiles of the measured boots. No boot is added."""
    by_cell_name = {(cell.scenario, cell.setting): cell for cell in cells}
    explained = []
    for comparison in found:
        cell = by_cell_name.get((comparison.scenario, comparison.setting))
        if comparison.question is Question.KERNEL and cell is not None and cell.sentences:
            explained.append(_explained(comparison, boots=0, sentences=cell.sentences[:3]))
    return Explanation(comparisons=explained, reason="" if explained else "the boots left no profile of both kernels")
