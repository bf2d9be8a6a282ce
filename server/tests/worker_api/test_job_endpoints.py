"""Endpoints of jobs: access and invalid values."""

from __future__ import annotations

import pytest

from wqlab_contracts.messages import Progress

from ..support.lab import NOW, LabUnderTest, RunSession

pytestmark = pytest.mark.integration


def test_value_that_cannot_be_stored_is_a_client_error(lab: LabUnderTest, run: RunSession) -> None:
    """A number that is too large or a NUL byte gives 422, so that the worker does not repeat the request."""
    answer = run.send(Progress(at=NOW, text="x", done=1 << 70), expect=422)
    assert "cannot be stored" in answer.json()["detail"]
    assert lab.worker.request("GET", "labs/a%00b/leases").status_code == 422
    run.heartbeat()


def test_only_worker_tokens_are_accepted(lab: LabUnderTest) -> None:
    assert lab.client.post("/api/worker/v1/jobs/1/claim", json={"worker": "x"}).status_code == 401
    lab.worker.token = "wql_wrong"
    assert lab.worker.request("GET", "labs/local/leases").status_code == 401
    lab.worker.token = lab.token
    answer = lab.worker.request("GET", "labs/local/leases")
    assert answer.status_code == 403
    assert "scope worker" in answer.json()["detail"]


def test_revoked_token_is_refused(lab: LabUnderTest) -> None:
    assert lab.worker.request("GET", "labs/local/leases").status_code == 200
    lab.sql("UPDATE tokens SET revoked_at = now() WHERE name = 'worker'")
    assert lab.worker.request("GET", "labs/local/leases").status_code == 401
