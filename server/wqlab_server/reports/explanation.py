"""What differs beside a primary metric that differs: from traced boots, or the counts of an instrumented device.

The explanation never enters a verdict, and it names differences, not causes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wqlab_comparison.differences import TracedBoot, by_cell, differences, sentences
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
    """The run of traced boots, and the table of each boot of a finished block."""

    run: Run
    tables: Sequence[tuple[Arm, str]]


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
    boots = _boots(traced.tables)
    explained = [each for each in (_explain(one, boots, run.device_spec.emulated) for one in found) if each is not None]
    return Explanation(
        run_id=traced.run.id, comparisons=explained, reason="" if explained else _why_nothing(traced.run)
    )


def _why_nothing(run: Run) -> str:
    if run.failure is not None:
        return f"the traced boots failed: {run.failure.summary}"
    if run.outcome is None:
        return "the traced boots are not finished"
    return "the traced boots left no counts"


_Boots = Mapping[tuple[Arm, str, str], Sequence[Sequence[Row]]]


def _boots(tables: Iterable[tuple[Arm, str]]) -> _Boots:
    """Return the rows of each boot by arm, scenario and setting. A table that cannot be read is ignored."""
    found: dict[tuple[Arm, str, str], list[Sequence[Row]]] = {}
    for arm, text in tables:
        try:
            rows = list(traced_counts.read(text))
        except ValueError:
            continue
        for (scenario, setting), of_cell in by_cell(rows).items():
            found.setdefault((arm, scenario, setting), []).append(of_cell)
    return found


def _explain(comparison: Comparison, boots: _Boots, emulated: bool) -> ExplainedComparison | None:
    scenario, setting = comparison.scenario, comparison.setting
    if comparison.question is Question.SETTING:
        arm = comparison.kernel or Arm.BASELINE
        keys = (arm, scenario, comparison.reference), (arm, scenario, setting)
    else:
        keys = (Arm.BASELINE, scenario, setting), (Arm.CANDIDATE, scenario, setting)
    left, right = (boots.get(key, ()) for key in keys)
    if not left or not right:
        return None
    sides = ([TracedBoot.of(rows) for rows in left], [TracedBoot.of(rows) for rows in right])
    ranked = differences(*sides, times=not emulated)
    notes = dict.fromkeys(row.name for rows in [*left, *right] for row in rows if row.topic is TracedTopic.NOTE)
    return _explained(
        comparison, boots=min(len(left), len(right)), sentences=sentences(ranked), differences=ranked, notes=list(notes)
    )


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
