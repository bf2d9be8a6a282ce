"""Conclusion of a run from its rows: shown in the report, and used for the submission's outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from wqlab_comparison.target import BootCount, Conclusion, conclude
from wqlab_comparison.words import count
from wqlab_contracts.api import report as api_report
from wqlab_contracts.api.runs import FindingView
from wqlab_contracts.enums import ErrorKind, FindingKind, Outcome, Verdict
from wqlab_contracts.messages import Failure

from ..jobs.errors import make_failure
from .build import RunRows, finding_view

BYTE_IDENTICAL = "the kernels are byte-identical: nothing to measure"


def findings_of(rows: RunRows) -> list[FindingView]:
    boots = {boot.id: boot for boot in rows.boots}
    return [finding_view(each, boots[each.boot_id]) for each in rows.findings]


def conclusion_of(rows: RunRows, comparisons: Sequence[api_report.Comparison]) -> Conclusion:
    """Return verdict and headline of a run. `rows.run` needs its snapshot columns."""
    if rows.run.byte_identical:
        return Conclusion(Verdict.EQUIVALENT, BYTE_IDENTICAL)
    attempted = Counter(boot.arm for boot in rows.boots)
    passed = Counter(boot.arm for boot in rows.boots if boot.outcome is Outcome.PASSED)
    boots_of_arm = {arm: BootCount(attempted[arm], passed[arm]) for arms in rows.run.blocks for arm in arms}
    findings = [each for each in findings_of(rows) if not _is_hang_of_lab(each, rows)]
    conclusion = conclude(comparisons, findings, rows.run.failure, rows.run.device_spec.emulated, boots_of_arm)
    if comparisons or conclusion.verdict is not Verdict.INCONCLUSIVE:
        return conclusion
    if rows.run.compared_at is None:
        return Conclusion(
            Verdict.INCONCLUSIVE, "not compared: figures are compared once every run has ended without cancellation"
        )
    if not rows.run.recipe.figures:
        valid = Counter(boot.arm for boot in rows.boots if boot.valid)
        counted = " and ".join(f"{count(number, 'boot')} of the {arm}" for arm, number in sorted(valid.items()))
        return Conclusion(
            Verdict.NO_EVIDENCE, f"no problem found in {counted}; the recipe {rows.run.recipe.name} gives no figures"
        )
    return conclusion


def _is_hang_of_lab(finding: FindingView, rows: RunRows) -> bool:
    """Return True for a silent device in a boot whose block the lab discarded for a failure of its own."""
    return finding.kind is FindingKind.HANG and (finding.block, finding.attempt) in rows.lab_discards


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
    failure = make_failure(ErrorKind.KERNEL, conclusion.headline, excerpt=excerpt)
    quoted = next((each for each in findings_of(rows) if each.excerpt and each.excerpt == excerpt), None)
    return failure.model_copy(update={"stack": quoted.stack, "defect": quoted.defect}) if quoted else failure
