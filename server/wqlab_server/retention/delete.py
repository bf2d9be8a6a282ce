"""Delete the files of a job, safe against uploads and submissions at the same time.

A deletion has two steps. The first locks the job, checks again that nothing needs it, and marks the job and those of
its artifacts that no other job has. The second removes the bytes of marked artifacts while it holds their rows. An
upload of the same content clears the mark under the same lock and then looks whether the bytes are there.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import structlog
from sqlalchemy import Exists, delete, exists, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from ..models import Artifact, ArtifactLink, Boot, ConsoleChunk, Job, Run
from ..storage.artifacts import ArtifactStore
from ..storage.db import SessionFactory, clock, transaction
from .needs import Need, need_of

log = structlog.get_logger(__name__)


def delete_files(factory: SessionFactory, need: Need) -> int:
    """Delete the job's artifacts or consoles; return the freed bytes, 0 if it is needed again or locked by others."""
    with transaction(factory) as session:
        locked = session.scalar(select(Job.id).where(Job.id == need.id).with_for_update(skip_locked=True))
        current = need_of(session, need.kind, need.id) if locked is not None else None
        if current is None or not current.deletable or current.used_at > need.used_at:
            return 0
        now = clock(session)
        freed = _delete_consoles(session, need, now) if need.kind == "consoles" else _mark_artifacts(session, need, now)
    log.info("deleted_by_retention", kind=need.kind, id=need.id, bytes=freed, used_at=str(need.used_at))
    return freed


def _delete_consoles(session: Session, need: Need, now: datetime) -> int:
    boots = select(Boot.id).where(Boot.run_id == need.id)
    session.execute(delete(ConsoleChunk).where(ConsoleChunk.boot_id.in_(boots)))
    session.execute(update(Run).where(Run.id == need.id).values(consoles_deleted_at=now))
    return need.bytes


def _mark_artifacts(session: Session, need: Need, now: datetime) -> int:
    session.execute(update(Job).where(Job.id == need.id).values(files_deleted_at=now))
    hashes = session.scalars(select(ArtifactLink.sha256).where(ArtifactLink.job_id == need.id)).all()
    return _mark_unneeded(session, hashes, now)


def _mark_unneeded(session: Session, hashes: Collection[str], now: datetime) -> int:
    """Mark those of the artifacts that no job needs as deleted; return their size in bytes.

    Their bytes are removed by the next pass of retention.
    """
    if not hashes:
        return 0
    # Locked by a statement of its own: the next one then sees every link that was committed before the lock.
    session.execute(
        select(Artifact.sha256).where(Artifact.sha256.in_(hashes)).order_by(Artifact.sha256).with_for_update()
    ).all()
    return sum(
        session.scalars(
            update(Artifact)
            .where(Artifact.sha256.in_(hashes), Artifact.deleted_at.is_(None), ~_is_needed())
            .values(deleted_at=now)
            .returning(Artifact.size)
            .execution_options(synchronize_session=False)
        ).all()
    )


def _is_needed() -> Exists:
    """Return the condition that a job whose files are not deleted has the artifact."""
    return exists(
        select(ArtifactLink.id)
        .join(Job, Job.id == ArtifactLink.job_id)
        .where(ArtifactLink.sha256 == Artifact.sha256, Job.files_deleted_at.is_(None))
    )


def remove_bytes(factory: SessionFactory, store: ArtifactStore) -> int:
    """Remove the bytes of all marked artifacts; return their number. Raises StoreUnavailable."""
    removed = 0
    while True:
        with transaction(factory) as session:
            row = session.scalar(
                select(Artifact)
                .where(Artifact.deleted_at.is_not(None), Artifact.stored)
                .limit(1)
                .with_for_update(skip_locked=True)
            )
            if row is None:
                return removed
            store.delete(row.sha256)
            row.stored = False
        removed += 1


def adopt_orphans(factory: SessionFactory, store: ArtifactStore, older_than_s: float) -> int:
    """Mark stored files without a row as deleted: their upload ended before it was recorded. Return their number."""
    store.remove_partial_files(older_than_s)
    adopted = 0
    with transaction(factory) as session:
        now = clock(session)
        known = set(session.scalars(select(Artifact.sha256).where(Artifact.stored)))
        for file in store.files():
            if file.sha256 in known or (now - file.stored_at).total_seconds() < older_than_s:
                continue
            created = insert(Artifact).values(
                sha256=file.sha256, size=file.size, created_at=now, deleted_at=now, stored=True
            )
            found = session.scalar(
                created.on_conflict_do_update(
                    index_elements=["sha256"], set_={"stored": True}, where=Artifact.deleted_at.is_not(None)
                ).returning(Artifact.sha256)
            )
            adopted += found is not None
    return adopted
