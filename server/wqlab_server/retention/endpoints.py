"""REST endpoint of the lab's storage."""

from __future__ import annotations

from fastapi import APIRouter
from sqlalchemy import select

from wqlab_contracts.api.storage import MachineStorage, StorageView

from ..http.auth import Reader
from ..http.deps import Db
from ..http.problems import documented
from ..models import StorageReport, Submission

router = APIRouter(tags=["lab"], responses=documented(401, 403, 429))

MAX_PINNED = 1000


@router.get("/lab/storage")
def get_lab_storage(session: Db, _: Reader) -> StorageView:
    """Return the storage used on each machine by kind of file, its limits, what is pinned, and the next deletion."""
    reports = session.scalars(select(StorageReport).order_by(StorageReport.lab, StorageReport.machine))
    pinned = select(Submission.id).where(Submission.pinned_at.is_not(None))
    return StorageView(
        machines=[
            MachineStorage(
                machine=f"{report.lab}: {report.machine}" if report.lab else report.machine,
                reported_at=report.reported_at,
                areas=report.areas,
            )
            for report in reports
        ],
        pinned=list(session.scalars(pinned.order_by(Submission.id.desc()).limit(MAX_PINNED))),
    )
