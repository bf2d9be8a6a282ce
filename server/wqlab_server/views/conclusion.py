"""What is concluded of one run, from its rows: the report shows it and the submission ends by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from wqlab_comparison.target import Conclusion, conclude
from wqlab_comparison.words import count
from wqlab_contracts.api import report as api_report
from wqlab_contracts.api import submissions as api
from wqlab_contracts.enums import ErrorKind, Verdict
from wqlab_contracts.messages import EXCERPT_LIMIT, Failure

from ..jobs.errors import failure
from .build import RunRows, finding_view


def findings_of(rows: RunRows) -> list[api.FindingView]:
    boots = {boot.id: boot for boot in rows.boots}
    return [finding_view(each, boots[each.boot_id]) for each in rows.findings]


def conclusion_of(rows: RunRows, comparisons: Sequence[api_report.Comparison]) -> Conclusion:
    """`rows.run` with its snapshot columns."""
    booted = Counter(boot.arm for boot in rows.boots)
    tried = {arm: booted[arm] for arms in rows.run.blocks for arm in arms}
    concluded = conclude(comparisons, findings_of(rows), rows.run.failure, rows.run.device_spec.emulated, tried)
    if comparisons or concluded.verdict is not Verdict.INCONCLUSIVE:
        return concluded
    if rows.run.compared_at is None:
        return Conclusion(Verdict.INCONCLUSIVE, "not compared: that is done once every run has ended by itself")
    if not rows.run.recipe.figures:
        whole = Counter(boot.arm for boot in rows.boots if boot.valid)
        counted = " and ".join(f"{count(number, 'boot')} of the {arm}" for arm, number in sorted(whole.items()))
        return Conclusion(
            Verdict.NO_EVIDENCE, f"nothing against it in {counted}; the recipe {rows.run.recipe.name} gives no figures"
        )
    return concluded


def kernel_failure(rows: RunRows, conclusion: Conclusion) -> Failure | None:
    """That the kernel failed although its run went through, or ended for another reason. None when it did not, or when
    the run's own failure says so already."""
    told = rows.run.failure
    if conclusion.verdict is not Verdict.FAILED or (told is not None and told.kind is ErrorKind.KERNEL):
        return None
    if told is not None and not conclusion.accused:
        return None
    excerpt = "\n\n".join(each.excerpt for each in conclusion.accused if each.excerpt)
    return failure(ErrorKind.KERNEL, conclusion.headline, excerpt=excerpt[:EXCERPT_LIMIT])
