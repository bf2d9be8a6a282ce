"""Send the results of finished submissions to KernelCI's results database."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from wqlab_contracts.enums import DeliveryKind, DeliveryState, Outcome
from wqlab_report.writers.kcidb import render_kcidb

from ..models import Submission
from ..outbox import deliveries
from ..reports.responses import kcidb_sender
from ..reports.stored_report import load_or_assemble
from ..settings import Settings
from ..storage.artifacts import ArtifactStore

EVENT = "submission.finished"


def write_result(session: Session, settings: Settings, submission: Submission, now: datetime) -> int | None:
    """Write the document about a finished submission as a delivery, and return its id.

    Nothing is written if no database is configured, for a canceled submission, or if the document is there already.
    """
    if not settings.kcidb_url or submission.outcome in {None, Outcome.CANCELED}:
        return None
    report = load_or_assemble(session, submission, ArtifactStore.of(settings), settings.public_url)
    key = deliveries.key_of(DeliveryKind.KCIDB, settings.kcidb_origin, submission.id)
    return deliveries.write(
        session,
        DeliveryKind.KCIDB,
        key,
        event=EVENT,
        destination=settings.kcidb_url,
        message_id=f"kcidb_{deliveries.id_of(key, settings.public_url)}",
        submission_id=submission.id,
        body=render_kcidb(report, kcidb_sender(settings)),
        state=DeliveryState.WAITING,
        next_at=now,
    )
