"""Order traced boots of both kernels when a primary metric of a finished run differs.

Traced boots are a run of their own in the same submission, on the same device. Their counts are compared for the
report; they have no samples, and however they end, the verdict stands.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Sequence

import structlog
from sqlalchemy.orm import Session

from wqlab_comparison import SamplesError
from wqlab_comparison.block_order import block_plan
from wqlab_contracts.api.report import Comparison as ComparisonData
from wqlab_contracts.enums import JobState, Outcome, RunPurpose
from wqlab_contracts.specs import Repetitions

from ..comparisons import service as comparisons
from ..jobs.state import change_state
from ..models import Device, Run, Submission
from ..storage.events import emit_run_state
from ..views.traced_boots import TRACED_BLOCKS, differing, why_not_traced

log = structlog.get_logger(__name__)


def order(session: Session, submission: Submission, runs: Sequence[Run]) -> list[Run]:
    """Order traced boots for each run of which a primary metric differs; return the new runs.

    The caller holds the row locks of the submission and of `runs`, all of which are finished. Nothing is ordered twice.
    """
    if any(run.purpose is RunPurpose.TRACE for run in runs):
        return []
    candidates = [run for run in runs if _device_reason(session, submission, run) == ""]
    if not candidates:
        return []
    try:
        compared = comparisons.store(session, submission.id)
    except SamplesError as error:
        log.warning("no_traced_boots", submission=submission.id, error=str(error))
        return []
    by_run: dict[int, list[ComparisonData]] = defaultdict(list)
    for row in compared:
        by_run[row.run_id].append(row.data)
    ordered = [_order(session, run, found) for run in candidates if (found := differing(by_run[run.id]))]
    session.flush()
    for run in ordered:
        emit_run_state(session, run)
    return ordered


def _device_reason(session: Session, submission: Submission, run: Run) -> str:
    device = session.get(Device, run.device_name) if run.device_name else None
    backend = device.backend if device is not None else None
    if run.outcome is not Outcome.PASSED or run.byte_identical:
        return "the run has no figures"
    return why_not_traced(submission.request, run.files, backend, figures=run.recipe.figures)


def _order(session: Session, run: Run, found: Sequence[ComparisonData]) -> Run:
    """Create the run of traced boots, with only the scenarios and settings that differ."""
    settings = {each.setting for each in found} | {each.reference for each in found if each.kernel is not None}
    seed = secrets.randbits(48)
    profile = run.profile.model_copy(
        update={
            "settings": [setting for setting in run.profile.settings if setting in settings],
            "repetitions": Repetitions(warmup=0, untraced=1, traced=0),
            "blocks": TRACED_BLOCKS,
            "looks": [],
        }
    )
    traced = Run(
        submission_id=run.submission_id,
        purpose=RunPurpose.TRACE,
        target=run.target,
        owner=run.owner,
        priority=run.priority,
        seed=seed,
        wanted_backend=run.wanted_backend,
        wanted_device=run.device_name,
        blocks=block_plan(TRACED_BLOCKS, run.candidate_build_id is not None, seed),
        profile=profile,
        device_type=run.device_type,
        device_spec=run.device_spec,
        plan_name=run.plan_name,
        plan=run.plan.with_scenarios([each.scenario for each in found]),
        files=run.files,
        recipe=run.recipe,
        fragments=run.fragments,
        modules=run.modules,
        baseline_build_id=run.baseline_build_id,
        candidate_build_id=run.candidate_build_id,
    )
    session.add(traced)
    session.flush()
    change_state(traced, JobState.QUEUED)
    log.info("traced_boots_ordered", run=run.id, traced=traced.id, cells=len(found))
    return traced
