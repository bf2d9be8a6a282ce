"""Run retention over artifacts and consoles, and report what uses the server's storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog
from sqlalchemy import func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.messages.storage import StorageArea, StorageUse

from ..models import Artifact, StorageReport, Submission
from ..settings import Settings
from ..storage.artifacts import ArtifactStore, StoreUnavailable
from ..storage.db import SessionFactory, clock, transaction
from .delete import adopt_orphans, delete_files, remove_bytes
from .needs import Need, console_needs, file_needs

log = structlog.get_logger(__name__)

SERVER = "server"
LOW_SPACE_INTERVAL_S = 15.0
"""Shortest time between two passes while the volume is nearly full."""
ORPHAN_AGE_S = 86400.0
MAX_PER_PASS = 500
"""Jobs whose files one pass deletes; it holds up the tick meanwhile."""
MAX_MACHINES_PER_LAB = 32


class TooManyMachines(ValueError):
    """A lab reports the storage of more machines than the server stores."""


@dataclass
class _Policy:
    """What may be deleted from one area."""

    needs: Sequence[Need]
    total_bytes: int
    limit_bytes: int
    keep_s: float
    free_bytes: int | None = None
    reserve_bytes: int = 0
    deleted: set[tuple[str, int]] = field(default_factory=set)

    @property
    def excess_bytes(self) -> int:
        """Bytes to delete whatever their age."""
        missing = 0 if self.free_bytes is None else self.reserve_bytes - self.free_bytes
        return max(self.total_bytes - self.limit_bytes, missing, 0)

    def apply(self, factory: SessionFactory, now: datetime, keep_at_least_s: float) -> None:
        """Delete what is too old, then what was needed longest ago until enough is free."""
        for need in self.needs:
            age_s = (now - need.used_at).total_seconds()
            if age_s < keep_at_least_s or len(self.deleted) >= MAX_PER_PASS:
                return
            if not need.deletable or (age_s < self.keep_s and not self.excess_bytes):
                continue
            freed = delete_files(factory, need)
            self.total_bytes -= freed
            if self.free_bytes is not None:
                self.free_bytes += freed
            self.deleted.add((need.kind, need.id))

    def area(self, name: str, summary: str, place: str) -> StorageArea:
        kept = [need for need in self.needs if (need.kind, need.id) not in self.deleted]
        ages = [need.used_at for need in kept if need.deletable]
        return StorageArea(
            name=name,
            summary=summary,
            place=place,
            bytes=max(self.total_bytes, 0),
            entries=len(kept),
            pinned_bytes=min(sum(need.bytes for need in kept if not need.deletable), max(self.total_bytes, 0)),
            limit_bytes=self.limit_bytes,
            keep_s=self.keep_s,
            free_bytes=self.free_bytes,
            reserve_bytes=self.reserve_bytes if self.free_bytes is not None else None,
            next_deletion_at=min(ages) + timedelta(seconds=self.keep_s) if ages else None,
            problem="pinned and recent files exceed the limit: unpin submissions, or add space"
            if self.excess_bytes and len(self.deleted) < MAX_PER_PASS
            else "",
        )


def run_when_due(factory: SessionFactory, settings: Settings, store: ArtifactStore) -> bool:
    """Run a pass if the last one is `retention_s` old, or the volume is nearly full. Return True if one ran."""
    with transaction(factory) as session:
        report = session.get(StorageReport, ("", SERVER))
        age_s = (clock(session) - report.reported_at).total_seconds() if report else float("inf")
    free = store.free_bytes()
    is_low = free is not None and free < settings.reserve_bytes
    if age_s < (LOW_SPACE_INTERVAL_S if is_low else settings.retention_s):
        return False
    run(factory, settings, store)
    return True


def run(factory: SessionFactory, settings: Settings, store: ArtifactStore) -> list[StorageArea]:
    """Delete artifacts and consoles that exceed the limits of age or size; store and return the use of each area.

    Raises StoreUnavailable if the artifact store does not answer. Remaining files are deleted at the next run, because
    their rows are marked.
    """
    with transaction(factory) as session:
        now = clock(session)
        files = _Policy(
            file_needs(session),
            session.scalar(select(func.coalesce(func.sum(Artifact.size), 0)).where(Artifact.stored)) or 0,
            settings.artifact_total_bytes,
            settings.artifact_keep_days * 86400,
            store.free_bytes(),
            settings.reserve_bytes,
        )
        consoles = console_needs(session)
        texts = _Policy(
            consoles,
            sum(need.bytes for need in consoles),
            settings.console_total_bytes,
            settings.console_keep_days * 86400,
        )
    files.apply(factory, now, settings.keep_at_least_s)
    texts.apply(factory, now, settings.keep_at_least_s)
    adopt_orphans(factory, store, ORPHAN_AGE_S)
    remove_bytes(factory, store)
    with transaction(factory) as session:
        areas = [
            files.area("artifacts", "kernels, symbols, logs, bundles and raw output", store.name),
            texts.area("consoles", "consoles of boots", "the database"),
            StorageArea(
                name="database",
                summary="submissions, samples, reports and consoles; retention deletes only consoles",
                place="PostgreSQL",
                bytes=session.scalar(text("SELECT pg_database_size(current_database())")) or 0,
                entries=session.scalar(select(func.count()).select_from(Submission)) or 0,
            ),
        ]
        keep_report(session, "", StorageUse(machine=SERVER, areas=areas))
    for area in areas:
        if area.problem:
            log.warning("storage_beyond_limit", area=area.name, bytes=area.bytes, problem=area.problem)
    return areas


def try_to_run(factory: SessionFactory, settings: Settings) -> None:
    """Run a pass if it is due. A store that does not answer is only logged; the next pass tries again."""
    try:
        run_when_due(factory, settings, ArtifactStore.of(settings))
    except StoreUnavailable as error:
        log.warning("retention_failed", error=str(error))


def keep_report(session: Session, lab: str, use: StorageUse) -> None:
    """Store a machine's report in place of its last one. Raises TooManyMachines."""
    known = session.scalars(select(StorageReport.machine).where(StorageReport.lab == lab)).all()
    if use.machine not in known and len(known) >= MAX_MACHINES_PER_LAB:
        raise TooManyMachines(f"the server stores the storage of {MAX_MACHINES_PER_LAB} machines of a lab")
    values = {"areas": use.areas, "reported_at": clock(session)}
    session.execute(
        insert(StorageReport)
        .values(lab=lab, machine=use.machine, **values)
        .on_conflict_do_update(index_elements=["lab", "machine"], set_=values)
    )
