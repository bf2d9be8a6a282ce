"""Conclusion of a run from its rows: shown in the report, and used for the submission's outcome."""

from __future__ import annotations

from collections.abc import Sequence

from wqlab_comparison.ladder import ladder_of
from wqlab_comparison.runs import RecordedBoot, RecordedRun, conclude_run
from wqlab_comparison.target import Conclusion
from wqlab_contracts.api import report as api_report
from wqlab_contracts.api.ladder import Ladder
from wqlab_contracts.api.runs import FindingView
from wqlab_contracts.enums import ErrorKind, Outcome, Verdict
from wqlab_contracts.excerpts import shorten
from wqlab_contracts.messages import Failure

from ..models import Run
from .build import RunRows, finding_view


def findings_of(rows: RunRows) -> list[FindingView]:
    boots = {boot.id: boot for boot in rows.boots}
    return [finding_view(each, boots[each.boot_id]) for each in rows.findings]


def conclusion_of(rows: RunRows, comparisons: Sequence[api_report.Comparison]) -> Conclusion:
    """Return verdict and headline of a run. `rows.run` needs its snapshot columns."""
    return conclude_run(
        recorded_run(rows.run), _recorded_boots(rows), findings_of(rows), comparisons, rows.lab_discards
    )


def ladder_of_rows(rows: RunRows, comparisons: Sequence[api_report.Comparison]) -> Ladder | None:
    """Return the ladder of a run; None if its series was not walked. `comparisons` are those of single patches."""
    return ladder_of(recorded_run(rows.run), _recorded_boots(rows), findings_of(rows), comparisons, rows.lab_discards)


def _recorded_boots(rows: RunRows) -> list[RecordedBoot]:
    return [RecordedBoot(boot.arm, boot.outcome is Outcome.PASSED, boot.valid) for boot in rows.boots]


def recorded_run(run: Run) -> RecordedRun:
    """Return what was planned for the run, and how it ended. `run` needs its snapshot columns."""
    return RecordedRun(
        plan=run.plan,
        device_type=run.device_type,
        emulated=run.device_spec.emulated,
        settings=run.profile.settings,
        blocks=run.blocks,
        recipe=run.recipe.name,
        figures=run.recipe.figures,
        compared=run.compared_at is not None,
        byte_identical=run.byte_identical,
        failure=run.failure,
        looks=run.looks,
        spreads=run.profile.spreads,
        machine=(run.device_spec.emulation and run.device_spec.emulation.profile) or "",
        walk=run.walk,
    )


def kernel_failure(rows: RunRows, conclusion: Conclusion) -> Failure | None:
    """Return the kernel's failure in a run that passed or ended for another reason.

    None if the kernel did not fail, or if the run's own failure already is a kernel failure.
    """
    run_failure = rows.run.failure
    if conclusion.verdict is not Verdict.FAILED or (run_failure is not None and run_failure.kind is ErrorKind.KERNEL):
        return None
    if run_failure is not None and not conclusion.accused:
        return None
    excerpt = "\n\n".join(each.excerpt for each in conclusion.accused if each.excerpt)
    failure = Failure(kind=ErrorKind.KERNEL, summary=conclusion.headline, excerpt=shorten(excerpt))
    quoted = next((each for each in findings_of(rows) if each.excerpt and each.excerpt == excerpt), None)
    return failure.model_copy(update={"stack": quoted.stack, "defect": quoted.defect}) if quoted else failure
