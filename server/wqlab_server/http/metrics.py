"""Prometheus metrics: request latency of this process, and the lab's state as the database has it at each scrape."""

from __future__ import annotations

import time
from collections.abc import Iterator

import structlog
from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wqlab_contracts.enums import JobState, RunPurpose, SubmissionState

from ..models import Apply, Build, Device, Lease, Run, Submission, TickError
from ..models.tick_errors import TICK_ITEM_KINDS
from ..storage.artifacts import ArtifactStore
from ..storage.db import SessionFactory
from .lab_metrics import age_families, artifact_volume, load_families

log = structlog.get_logger(__name__)


class LabCollector(Collector):
    """Collector that reads rows at each scrape. Without a database it yields only `wqlab_database_up 0` and the free
    space of the artifacts' volume."""

    def __init__(self, sessions: SessionFactory, store: ArtifactStore) -> None:
        self._sessions, self._store = sessions, store

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("wqlab_database_up", "Whether the last scrape could read the database")
        families: list[Metric] = []
        try:
            with self._sessions() as session:
                families = [*_lab_families(session), *age_families(session), *load_families(session)]
            up.add_metric([], 1)
        except SQLAlchemyError as error:
            log.warning("scrape_without_database", error=str(error))
            up.add_metric([], 0)
        yield up
        yield artifact_volume(self._store)
        yield from families

    def describe(self) -> list[Metric]:
        return []  # registering must not query the database


def _lab_families(session: Session) -> Iterator[Metric]:
    jobs = GaugeMetricFamily("wqlab_jobs", "Applies, builds and runs by state", labels=["kind", "state"])
    for kind, table in (("apply", Apply), ("build", Build), ("run", Run)):
        counts = dict(session.execute(select(table.state, func.count()).group_by(table.state)).all())
        for state in JobState:
            jobs.add_metric([kind, state], counts.get(state, 0))
    yield jobs

    submissions = GaugeMetricFamily("wqlab_submissions", "Submissions by state", labels=["state"])
    found = dict(session.execute(select(Submission.state, func.count()).group_by(Submission.state)).all())
    for each in SubmissionState:
        submissions.add_metric([each], found.get(each, 0))
    yield submissions

    waiting = GaugeMetricFamily("wqlab_queued_runs", "Runs waiting for a device, by type", labels=["device_type"])
    queued = (
        select(Run.device_type, func.count())
        .outerjoin(Lease, Lease.run_id == Run.id)
        .where(Run.state == JobState.QUEUED, Lease.run_id.is_(None), Run.purpose != RunPurpose.CANARY)
        .group_by(Run.device_type)
    )
    for device_type, count in session.execute(queued):
        waiting.add_metric([device_type], count)
    yield waiting

    devices = GaugeMetricFamily("wqlab_devices", "Devices by type and health", labels=["device_type", "health"])
    by_health = (
        select(Device.device_type, Device.health, func.count())
        .where(Device.retired_at.is_(None))
        .group_by(Device.device_type, Device.health)
    )
    for device_type, health, count in session.execute(by_health):
        devices.add_metric([device_type, health], count)
    yield devices

    leases = GaugeMetricFamily("wqlab_leased_devices", "Devices leased to a run")
    leases.add_metric([], session.scalar(select(func.count()).select_from(Lease)) or 0)
    yield leases

    faults = CounterMetricFamily("wqlab_tick_faults", "Items that failed in a tick, by kind", labels=["what"])
    counted = dict(session.execute(select(TickError.what, func.sum(TickError.count)).group_by(TickError.what)).all())
    for what in TICK_ITEM_KINDS:
        faults.add_metric([what], int(counted.get(what, 0)))
    yield faults


class Metrics:
    """Metrics registry of one application."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.latency = Histogram(
            "wqlab_http_request_seconds",
            "Time until the first byte of the response",
            ["operation", "status"],
            registry=self.registry,
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
        )
        self.streams = Gauge("wqlab_streams", "Event and console streams open in this process", registry=self.registry)

    def text(self) -> bytes:
        """Return the Prometheus exposition. Reads the database, so call it from a thread."""
        return generate_latest(self.registry)


class RequestLatency:
    """ASGI middleware that records each request's latency by operation id (`unmatched` if no route matches)."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()

        async def send_timed(message: Message) -> None:
            if message["type"] == "http.response.start":
                operation = getattr(scope.get("endpoint"), "__name__", "unmatched")
                elapsed_s = time.perf_counter() - started
                self.metrics.latency.labels(operation, str(message["status"])).observe(elapsed_s)
            await send(message)

        await self.app(scope, receive, send_timed)
