"""Endpoints of the lab pages: queue, device history, device checks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from wqlab_contracts.api.devices import DeviceTypeView, DeviceView
from wqlab_contracts.api.queue import DeviceHistory, QueueView, Waits
from wqlab_contracts.cpu_layout import LayoutBasis
from wqlab_contracts.enums import Arm, DeviceHealth, JobState, Outcome, RunPurpose, Scope
from wqlab_server.models import Device, Run, RunAttempt
from wqlab_server.pipeline import health_checks
from wqlab_server.storage.db import SessionFactory, clock, transaction

from ..support.live_server import Live
from ..support.scene import TOPOLOGY, Scene

pytestmark = pytest.mark.integration


def queued(scene: Scene, sessions: SessionFactory, *owners: str) -> list[int]:
    """Queue one run for each owner and return the run ids."""
    found = []
    for owner in owners:
        run_id = scene.run_id(scene.submission(owner))
        with transaction(sessions) as session:
            session.get_one(Run, run_id).state = JobState.QUEUED
        found.append(run_id)
    return found


def test_queue_lists_runs_in_the_order_of_assignment(
    client: httpx.Client, scene: Scene, sessions: SessionFactory
) -> None:
    scene.devices()
    at_work, *waiting = queued(scene, sessions, "bob", "bob", "alice", "alice", "carol")
    scene.lease(at_work, "tiny-1")
    with transaction(sessions) as session:
        session.get_one(Run, at_work).state = JobState.RUNNING
    view = QueueView.model_validate_json(client.get("/api/v1/queue").content)
    assert (view.total, view.waiting_for_kernels) == (4, 0)
    assert [entry.run_id for entry in view.entries] == [*waiting[1:], waiting[0]], "bob has a device already"
    first, *_, last = view.entries
    assert first.waits is Waits.NEXT
    assert (last.waits, last.devices_held, last.share, last.position) == (Waits.AHEAD, 1, -25.0, 4)
    assert (last.ahead_runs, last.ahead_boots) == (4, 16)
    assert last.title == "[PATCH] wq: faster"


def test_queue_position_equals_that_of_the_runs_page(
    client: httpx.Client, scene: Scene, sessions: SessionFactory
) -> None:
    scene.devices()
    at_work, *waiting = queued(scene, sessions, "bob", "bob", "alice")
    scene.lease(at_work, "tiny-1")
    view = QueueView.model_validate_json(client.get("/api/v1/queue").content)
    places = {entry.run_id: entry.position_in_type for entry in view.entries}
    for run_id in waiting:
        assert client.get(f"/api/v1/runs/{run_id}").json()["queue_position"] == places[run_id]


def ran(
    scene: Scene, sessions: SessionFactory, device: str, hours_ago: float, took_h: float | None = 1.0, **changes: Any
) -> int:
    """Create a run with one attempt on `device` and return its id."""
    run_id = scene.run_id(scene.submission())
    with transaction(sessions) as session:
        started = clock(session) - timedelta(hours=hours_ago)
        fields = {
            "number": 1,
            "device_name": device,
            "fence": 1,
            "outcome": None if took_h is None else Outcome.PASSED,
            "started_at": started,
            "finished_at": None if took_h is None else started + timedelta(hours=took_h),
        }
        session.add(RunAttempt(run_id=run_id, **fields | changes))
    return run_id


def history(client: httpx.Client, name: str = "tiny-1", **query: Any) -> DeviceHistory:
    answer = client.get(f"/api/v1/devices/{name}/history", params=query)
    assert answer.status_code == 200, answer.text
    return DeviceHistory.model_validate_json(answer.content)


def test_device_history_lists_its_runs(client: httpx.Client, scene: Scene, sessions: SessionFactory) -> None:
    scene.devices()
    number = scene.submission()
    run_id = scene.measured(number, {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0})
    other = ran(scene, sessions, "tiny-2", 1)
    found = history(client)
    (run,) = found.runs.items
    assert (run.run_id, run.submission_id, run.boots, run.device_type) == (run_id, number, 5, "tiny")
    assert found.runs.total == 1
    assert run.last_boot_id == found.consoles[0].boot_id
    assert [console.failure for console in found.consoles] == ["", "", "", "", "panic in flush"]
    assert [run.run_id for run in history(client, "tiny-2").runs.items] == [other]
    assert client.get("/api/v1/devices/nowhere/history").status_code == 404


def test_device_history_is_paged(client: httpx.Client, scene: Scene, sessions: SessionFactory) -> None:
    scene.devices()
    runs = [ran(scene, sessions, "tiny-1", hours) for hours in (5, 4, 3)]
    first = history(client, limit=2)
    assert first.runs.next is not None
    second = history(client, limit=2, cursor=first.runs.next)
    assert [run.run_id for run in (*first.runs.items, *second.runs.items)] == runs[::-1]


def test_device_history_names_who_changed_health(client: httpx.Client, scene: Scene, live: Live) -> None:
    scene.devices()
    with live.client(Scope.MAINTAIN) as maintainer:
        for _ in range(2):
            maintainer.post("/api/v1/devices/tiny-1/quarantine", json={"reason": "smells"})
        maintainer.post("/api/v1/devices/tiny-1/release")
    changes = history(client).health
    assert [(change.health, change.reason, change.by) for change in changes] == [
        (DeviceHealth.UNKNOWN, "", "maintain"),
        (DeviceHealth.QUARANTINED, "smells (maintain)", "maintain"),
    ]


def test_requested_check_is_run(client: httpx.Client, scene: Scene, sessions: SessionFactory) -> None:
    scene.devices()
    client.post("/api/v1/devices/tiny-2/check")
    view = DeviceView.model_validate_json(client.get("/api/v1/devices/tiny-2").content)
    assert view.check_requested_at is not None
    assert view.health_check is None
    runs = order(scene, sessions)
    assert [(run.wanted_device, run.purpose) for run in runs] == [("tiny-2", RunPurpose.HEALTH_CHECK)]
    view = DeviceView.model_validate_json(client.get("/api/v1/devices/tiny-2").content)
    assert (view.check_requested_at, view.health_check) == (None, runs[0].id)
    assert order(scene, sessions) == [], "one request orders one check"


def order(scene: Scene, sessions: SessionFactory) -> list[Run]:
    data = scene.data.current()
    with transaction(sessions) as session:
        return [
            health_checks.order_check(session, data, name)
            for name in health_checks.devices_to_check(session, data, scene.settings)
        ]


def test_check_is_refused_with_a_reason(
    client: httpx.Client, scene: Scene, sessions: SessionFactory, live: Live
) -> None:
    scene.devices(DeviceHealth.QUARANTINED)
    refused = client.post("/api/v1/devices/tiny-1/check")
    assert refused.status_code == 409
    assert "release it" in refused.json()["detail"]
    with transaction(sessions) as session:
        session.get_one(Device, "tiny-1").retired_at = datetime.now(UTC)
    assert client.post("/api/v1/devices/tiny-1/check").status_code == 409
    assert client.post("/api/v1/devices/nowhere/check").status_code == 404
    with live.client(Scope.SUBMIT) as submitter:
        assert submitter.post("/api/v1/devices/tiny-2/check").status_code == 403


def test_quarantine_ends_a_check_request(client: httpx.Client, scene: Scene, sessions: SessionFactory) -> None:
    scene.devices()
    client.post("/api/v1/devices/tiny-1/check")
    client.post("/api/v1/devices/tiny-1/quarantine", json={"reason": "smells"})
    assert order(scene, sessions) == []


def test_types_and_devices_have_the_same_layout_shape(
    client: httpx.Client, scene: Scene, sessions: SessionFactory
) -> None:
    scene.devices()
    with transaction(sessions) as session:
        session.get_one(Device, "tiny-1").measured_topology = TOPOLOGY
        (run_id,) = [session.scalars(select(Run.id)).first() or scene.run_id(scene.submission())]
    scene.lease(run_id, "tiny-2")
    described = DeviceTypeView.model_validate(client.get("/api/v1/device-types").json()[0])
    assert described.layout.basis is LayoutBasis.DESCRIBED
    assert (described.device_counts.good, described.device_counts.busy, described.free) == (1, 1, 1)
    measured = DeviceView.model_validate_json(client.get("/api/v1/devices/tiny-1").content).layout
    assert measured is not None
    assert measured.model_copy(update={"basis": LayoutBasis.DESCRIBED}) == described.layout
    assert DeviceView.model_validate_json(client.get("/api/v1/devices/tiny-2").content).layout is None
