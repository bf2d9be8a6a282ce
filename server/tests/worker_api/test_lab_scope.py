"""Access of worker tokens that are bound to a lab."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.celery_names import ADVANCE
from wqlab_contracts.enums import ArtifactKind, JobKind, Scope
from wqlab_server.http.auth import create_token
from wqlab_server.models import ArtifactLink, ConsoleChunk, Run

from ..support.lab import LabUnderTest, RunSession

pytestmark = pytest.mark.integration


def test_worker_of_another_lab_cannot_claim(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    submission_id = lab.submit("locks@single")
    lab.work(JobKind.APPLY, JobKind.BUILD, ADVANCE)
    path = f"jobs/{lab.runs(submission_id)[0].id}/claim"
    assert lab.worker.request("POST", path, json={"worker": "far/1", "lab": "far"}).status_code == 409
    with lab.transaction() as session:
        _, lab.worker.token = create_token(session, "far", [Scope.WORKER], lab="far")
    assert lab.worker.request("POST", path, json={"worker": "far/1", "lab": "local"}).status_code == 403
    assert lab.worker.request("POST", path, json={"worker": "far/1"}).status_code == 409
    assert lab.worker.request("GET", "labs/local/leases").status_code == 403
    assert lab.worker.request("GET", "labs/local/power").status_code == 403


def test_token_of_another_lab_cannot_report_on_a_run(lab: LabUnderTest, run: RunSession) -> None:
    key = run.first_key
    started = run.boot_events(key)[0]
    run.send(started)
    ours = lab.worker.token
    with lab.transaction() as session:
        _, theirs = create_token(session, "far", [Scope.WORKER], lab="far")
        _, lab.worker.token = create_token(session, "near", [Scope.WORKER], lab="local")
    run.heartbeat()
    run.console(key, 0, b"ours")
    lab.worker._fence = (run.job.run_id, run.fence)
    lab.worker.upload(ArtifactKind.RAW_OUTPUT, "ours", b"ours")

    lab.worker.token = theirs
    run.send(started, expect=403)
    run.finish(expect=403)
    run.console(key, 4, b"theirs", expect=403)
    lab.worker.post(f"jobs/{run.job.run_id}/heartbeat", {"fence": run.fence}, 403)
    lab.worker.upload(ArtifactKind.RAW_OUTPUT, "theirs", b"theirs", expect=403)

    lab.worker.token = ours
    run.heartbeat()
    with lab.transaction() as session:
        assert session.scalars(select(ConsoleChunk.data)).all() == [b"ours"]
        assert session.scalars(select(ArtifactLink.name).where(ArtifactLink.job_id == run.job.run_id)).all() == ["ours"]
        assert session.get_one(Run, run.job.run_id).outcome is None


def test_lab_token_cannot_claim_builds_applies_or_lookups(lab: LabUnderTest) -> None:
    lab.submit("locks@device")
    with lab.transaction() as session:
        _, lab.worker.token = create_token(session, "local", [Scope.WORKER], lab="local")
    claimed = lab.worker.request("POST", "jobs/1/claim", json={"worker": "w/1", "lab": "local"})
    assert claimed.status_code == 403
    assert "a build worker needs a token without a lab" in claimed.json()["detail"]
    for what, body in (
        ("finish", {"fence": 1, "result": {"kind": "apply", "outcome": "failed"}}),
        ("heartbeat", {"fence": 1}),
        ("events", {"fence": 1, "events": []}),
    ):
        assert lab.worker.request("POST", f"jobs/1/{what}", json=body).status_code == 403, what
    lab.worker._fence = (1, 1)
    lab.worker.upload(ArtifactKind.KERNEL, "bzImage", b"poison", expect=403)
