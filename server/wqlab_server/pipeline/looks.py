"""Look at a run when it has finished the blocks that are due, and decide whether it gets further ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_comparison import Samples, SamplesError
from wqlab_comparison.stopping import look_at
from wqlab_contracts.enums import JobState, Outcome, RunPurpose
from wqlab_contracts.messages.looks import LookRecord

from ..comparisons.service import target_facts
from ..jobs.state import Ended, Retry
from ..models import Run
from ..views.samples_table import samples_of

log = structlog.get_logger(__name__)


def goes_on(session: Session, run: Run, ended: Retry | Ended) -> bool:
    """Look at a run that has finished its due blocks; return True if it gets the blocks up to the next look.

    The caller holds the row locks of the run and its submission, so looks at runs of one submission follow each other.
    A run whose samples cannot be compared ends here, and its submission says why.
    """
    if isinstance(ended, Retry) or ended.outcome is not Outcome.PASSED or not run.looks:
        return False
    session.flush()
    try:
        record = _look(session, run)
    except SamplesError as error:
        log.warning("look_failed", run=run.id, error=str(error))
        return False
    run.looked = [*run.looked, record]
    return not record.stops


def of_event(run: Run) -> dict[str, Any]:
    """Return what the event of a run says of its last look."""
    return {"look": run.looked[-1].model_dump(mode="json")} if run.looked else {}


def _look(session: Session, run: Run) -> LookRecord:
    """Look at the run with the figures of all runs of its submission, which share the families of tests.

    An unfinished run counts with the blocks of its last look, because only looks have a share of the level.
    """
    due = run.blocks_due
    runs = session.scalars(
        select(Run)
        .where(Run.submission_id == run.submission_id, Run.purpose == RunPurpose.MEASURE)
        .order_by(Run.target, Run.id)
    ).all()
    measured = [each for each in runs if each.recipe.figures and not each.byte_identical]
    tables = [table for each in measured if (table := _samples(session, run, each, due)) is not None]
    facts = [
        replace(target_facts(session, each), ended=each is not run and each.state is JobState.FINISHED)
        for each in measured
    ]
    return look_at(Samples.concatenate(tables) if tables else None, facts, (run.plan_name, run.device_type), due)


def _samples(session: Session, looked_at: Run, run: Run, due: int) -> Samples | None:
    if run is looked_at:
        return samples_of(session, run, due)
    if run.state is JobState.FINISHED:
        return samples_of(session, run)
    return samples_of(session, run, run.looked[-1].blocks) if run.looked else None
