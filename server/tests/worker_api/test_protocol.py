"""A worker of another version is refused before it gets a job, and may finish the one that it has."""

from __future__ import annotations

import pytest

from wqlab_contracts.enums import JobKind, JobState
from wqlab_contracts.messages.protocol import PROTOCOL, PROTOCOL_HEADER, RELEASE_HEADER, release
from wqlab_server.models import Apply

from ..support.lab import LabUnderTest, RunSession

pytestmark = pytest.mark.integration

CLAIM = {"worker": "host/1", "lab": "local"}


def test_worker_of_an_older_release_is_refused_with_both_versions(lab: LabUnderTest) -> None:
    lab.submit("locks@single")
    older = {PROTOCOL_HEADER: str(PROTOCOL - 1), RELEASE_HEADER: "0.1.0"}
    answer = lab.worker.request("POST", "jobs/1/claim", json=CLAIM, headers=older)
    assert (answer.status_code, answer.json()["type"]) == (403, "urn:wqlab:problem:other-protocol")
    assert answer.json()["detail"] == (
        f"this worker is wqlab 0.1.0 with protocol {PROTOCOL - 1}, the server is wqlab {release()} with protocol "
        f"{PROTOCOL}: update the worker; the job waits"
    )
    with lab.transaction() as session:
        assert session.get_one(Apply, 1).state is JobState.QUEUED
    lab.work(JobKind.APPLY)
    with lab.transaction() as session:
        assert session.get_one(Apply, 1).state is JobState.FINISHED, "a worker of this version takes it"


def test_worker_of_a_newer_release_asks_for_a_newer_server(lab: LabUnderTest) -> None:
    lab.submit("locks@single")
    newer = {PROTOCOL_HEADER: str(PROTOCOL + 1), RELEASE_HEADER: "9.0.0"}
    answer = lab.worker.request("POST", "jobs/1/claim", json=CLAIM, headers=newer)
    assert answer.status_code == 403
    assert "this worker is wqlab 9.0.0" in answer.json()["detail"]
    assert "update the server" in answer.json()["detail"]


def test_worker_finishes_its_run_after_the_server_was_updated(run: RunSession) -> None:
    older = {PROTOCOL_HEADER: str(PROTOCOL - 1)}
    answer = run.worker.request("POST", f"jobs/{run.job.run_id}/heartbeat", json={"fence": run.fence}, headers=older)
    assert answer.status_code == 200


def test_version_does_not_replace_the_token(lab: LabUnderTest) -> None:
    assert lab.client.post("/api/worker/v1/jobs/1/claim", json=CLAIM).status_code == 401
