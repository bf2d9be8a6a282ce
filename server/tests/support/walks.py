"""A scripted worker's answers for series that are walked patch by patch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wqlab_contracts.enums import BETWEEN, Arm
from wqlab_contracts.messages import ApplyJob, ApplyResult, PatchSummary

from .scripted_worker import ScriptedWorker, oid, passing_apply


def walking_apply(patches: int) -> Callable[[ApplyJob, ScriptedWorker], ApplyResult]:
    """Return a handler that applies a series of so many patches."""

    def apply(job: ApplyJob, worker: ScriptedWorker) -> ApplyResult:
        applied = passing_apply(job, worker)
        if not job.walk or applied.candidate is None:  # the golden kernel
            return applied
        between = [
            applied.candidate.model_copy(update={"tree_oid": oid(f"tree {patch}"), "commit": oid(f"commit {patch}")})
            for patch in range(1, patches)
        ]
        summaries = [
            PatchSummary(subject=f"workqueue: change {patch}", author="A <a@example.org>")
            for patch in range(1, patches + 1)
        ]
        return applied.model_copy(update={"patches": summaries, "patch_sources": [*between, applied.candidate]})

    return apply


def values_of(locks: Mapping[Arm, float]) -> Callable[[Arm, str, str, int], float]:
    """Return the values of boots whose number of locks depends on the kernel alone."""
    return lambda arm, setting, metric, block: locks[arm] if metric == "locks_per_flush" else 100.0 + block


def after(*locks: float) -> dict[Arm, float]:
    """Return the locks of the base, of the kernel after each patch, and of the whole series."""
    base, *between, last = locks
    return {Arm.BASELINE: base, Arm.CANDIDATE: last, **dict(zip(BETWEEN, between, strict=False))}
