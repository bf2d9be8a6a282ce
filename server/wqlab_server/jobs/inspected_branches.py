"""Branches whose patches a worker has read before they are submitted."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api.series import SeriesInspection
from wqlab_contracts.enums import Outcome
from wqlab_contracts.messages import GitSeries
from wqlab_contracts.messages.branch_readings import BranchReadingJob
from wqlab_contracts.specs import Tree

from ..models import BranchReading
from ..storage.db import clock

PROPOSAL_TIME = timedelta(minutes=10)
"""How long targets are proposed from a reading. The branch may move meanwhile; a submission takes it as it is then."""


def last_inspection(session: Session, git: GitSeries, tree: Tree) -> SeriesInspection | None:
    """Return what a worker found of a branch in the last PROPOSAL_TIME; None if it found nothing."""
    found = session.scalar(
        select(BranchReading)
        .where(
            BranchReading.key == BranchReadingJob(series=git, tree=tree).model_dump_json(),
            BranchReading.outcome == Outcome.PASSED,
            BranchReading.finished_at > clock(session) - PROPOSAL_TIME,
        )
        .order_by(BranchReading.id.desc())
        .limit(1)
    )
    return found.result.inspection if found is not None and found.result is not None else None
