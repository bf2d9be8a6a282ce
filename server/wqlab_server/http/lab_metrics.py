"""Prometheus metrics that alerts are made of: ages of queue, leases and tick, failures, times of a boot, free space."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from sqlalchemy import func, select, true
from sqlalchemy.orm import Session, aliased

from wqlab_contracts.enums import BootState, ErrorKind, JobState, RunPurpose

from ..models import Apply, BlockAttempt, Boot, Build, Device, LastTick, Lease, Run, RunAttempt, StorageReport
from ..storage.artifacts import ArtifactStore, StoreUnavailable
from ..storage.db import clock

log = structlog.get_logger(__name__)

RECENT_BOOTS = 100
"""Number of last finished boots over which the times of a boot are medians."""


def age_families(session: Session) -> Iterator[Metric]:
    """Yield the ages of what waits, of the leases and of the last tick, by the database's clock."""
    now = clock(session)
    queue = GaugeMetricFamily(
        "wqlab_queue_age_seconds",
        "Time for which the oldest queued job has waited, 0 if none waits; runs by device type",
        labels=["kind", "device_type"],
    )
    for kind, table in (("apply", Apply), ("build", Build)):
        oldest = session.scalar(select(func.min(table.created_at)).where(table.state == JobState.QUEUED))
        queue.add_metric([kind, ""], _age_s(now, oldest))
    for device_type, since in _oldest_runs(session):
        queue.add_metric(["run", device_type], _age_s(now, since))
    yield queue

    created, expires = session.execute(select(func.min(Lease.created_at), func.min(Lease.expires_at))).one()
    lease = GaugeMetricFamily("wqlab_lease_age_seconds", "Age of the oldest lease of a device, 0 if there is none")
    lease.add_metric([], _age_s(now, created))
    yield lease
    overdue = GaugeMetricFamily("wqlab_lease_overdue_seconds", "Time since the first lease expired, 0 if none has")
    overdue.add_metric([], _age_s(now, expires))
    yield overdue

    finished, seconds = session.execute(select(LastTick.finished_at, LastTick.seconds)).one_or_none() or (None, 0.0)
    tick = GaugeMetricFamily("wqlab_tick_age_seconds", "Time since the end of the last tick; +Inf before the first one")
    tick.add_metric([], _age_s(now, finished) if finished else float("inf"))
    yield tick
    duration = GaugeMetricFamily("wqlab_tick_duration_seconds", "Duration of the last tick")
    duration.add_metric([], seconds)
    yield duration


def _oldest_runs(session: Session) -> list[tuple[str, datetime | None]]:
    """Return, for each device type in use, since when its oldest queued run without a device could have been assigned.

    That is when its kernels were built and its last attempt ended. None: no run waits.
    """
    baseline, candidate = aliased(Build, flat=True), aliased(Build, flat=True)
    last_attempt = select(func.max(RunAttempt.finished_at)).where(RunAttempt.run_id == Run.id).scalar_subquery()
    since = func.greatest(Run.created_at, baseline.finished_at, candidate.finished_at, last_attempt)
    waiting: dict[str, datetime | None] = dict(
        session.execute(
            select(Run.device_type, func.min(since))
            .outerjoin(baseline, baseline.id == Run.baseline_build_id)
            .outerjoin(candidate, candidate.id == Run.candidate_build_id)
            .outerjoin(Lease, Lease.run_id == Run.id)
            .where(Run.state == JobState.QUEUED, Lease.run_id.is_(None), Run.purpose != RunPurpose.CANARY)
            .group_by(Run.device_type)
        ).all()
    )
    types = session.scalars(select(Device.device_type).where(Device.retired_at.is_(None)).distinct())
    return [(device_type, waiting.get(device_type)) for device_type in sorted({*types, *waiting})]


def load_families(session: Session) -> Iterator[Metric]:
    """Yield failures by kind, median times of the last boots, and the storage that each machine has reported."""
    failures = CounterMetricFamily(
        "wqlab_failures",
        "Failed applies and builds, failed attempts at runs, and discarded blocks, by kind of failure",
        labels=["kind", "error"],
    )
    for kind, failure, is_final in (
        ("apply", Apply.failure, Apply.state == JobState.FINISHED),
        ("build", Build.failure, Build.state == JobState.FINISHED),
        ("run", RunAttempt.failure, true()),
        ("block", BlockAttempt.failure, true()),
    ):
        error = func.jsonb_extract_path_text(failure, "kind").label("error")
        query = select(error, func.count()).where(failure.is_not(None), is_final).group_by("error")
        counts: dict[str, int] = dict(session.execute(query).all())
        for each in ErrorKind:
            failures.add_metric([kind, each], counts.get(each, 0))
    yield failures

    yield from _boot_times(session)
    yield from _storage(session)


def _boot_times(session: Session) -> Iterator[Metric]:
    times = GaugeMetricFamily(
        "wqlab_boot_seconds",
        f"Median time of each phase in the last {RECENT_BOOTS} finished boots; all but workload is overhead",
        labels=["device_type", "phase"],
    )
    phases = {"golden": Boot.golden_s, "kexec": Boot.kexec_s, "workload": Boot.workload_s, "other": Boot.overhead_s}
    recent = (
        select(Device.device_type, *(column.label(phase) for phase, column in phases.items()))
        .join(Device, Device.name == Boot.device_name)
        .where(Boot.state == BootState.FINISHED)
        .order_by(Boot.id.desc())
        .limit(RECENT_BOOTS)
        .subquery()
    )
    medians = [func.percentile_cont(0.5).within_group(recent.c[phase]) for phase in phases]
    for device_type, *values in session.execute(select(recent.c.device_type, *medians).group_by(recent.c.device_type)):
        for phase, value in zip(phases, values, strict=True):
            if value is not None:
                times.add_metric([device_type, phase], value)
    yield times


def _storage(session: Session) -> Iterator[Metric]:
    labels = ["lab", "machine", "area"]
    used = GaugeMetricFamily("wqlab_storage_bytes", "Bytes that an area of a machine uses", labels=labels)
    limit = GaugeMetricFamily("wqlab_storage_limit_bytes", "Size beyond which retention deletes", labels=labels)
    free = GaugeMetricFamily("wqlab_volume_free_bytes", "Free bytes of an area's volume, as reported", labels=labels)
    reserve = GaugeMetricFamily(
        "wqlab_volume_reserve_bytes", "Free bytes below which retention deletes before its time", labels=labels
    )
    age = GaugeMetricFamily(
        "wqlab_storage_report_age_seconds", "Time since a machine last reported its storage", labels=labels[:2]
    )
    now = clock(session)
    for report in session.scalars(select(StorageReport).order_by(StorageReport.lab, StorageReport.machine)):
        age.add_metric([report.lab, report.machine], _age_s(now, report.reported_at))
        for area in report.areas:
            place = [report.lab, report.machine, area.name]
            used.add_metric(place, area.bytes)
            for family, value in ((limit, area.limit_bytes), (free, area.free_bytes), (reserve, area.reserve_bytes)):
                if value is not None:
                    family.add_metric(place, value)
    yield from (used, limit, free, reserve, age)


def artifact_volume(store: ArtifactStore) -> Metric:
    """Return the free bytes of the artifacts' volume now; without a sample for a bucket and a missing folder."""
    free = GaugeMetricFamily("wqlab_artifact_volume_free_bytes", "Free bytes of the volume of the artifact store")
    try:
        value = store.free_bytes()
    except StoreUnavailable as error:
        log.warning("scrape_without_artifact_store", error=str(error))
        return free
    if value is not None:
        free.add_metric([], value)
    return free


def _age_s(now: datetime, since: datetime | None) -> float:
    return max((now - since).total_seconds(), 0.0) if since else 0.0
