"""Offers, heartbeats and expiry of leases."""

from __future__ import annotations

import pytest

from wqlab_contracts.enums import JobKind, JobState, Outcome

from ..support.lab import LabUnderTest, RunSession

pytestmark = pytest.mark.integration


def test_expired_offer_frees_the_device_without_an_attempt(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    submission_id = lab.submit("locks@single")
    lab.work(JobKind.APPLY, JobKind.BUILD, "wqlab.advance")
    run = lab.runs(submission_id)[0]
    assert (run.state, run.device_name) == (JobState.QUEUED, "single-1")
    lab.sql("UPDATE leases SET expires_at = now() - interval '1 second'")
    lab.sent.clear()
    assert lab.worker.claim(run.id) is None
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    assert lab.runs(submission_id)[0].attempts == 1


def test_lease_expires_without_a_tick(lab: LabUnderTest, run: RunSession) -> None:
    lab.expire(run.job.run_id)
    run.heartbeat(expect=409)
    assert lab.worker.request("GET", "labs/local/leases").json() == {"leases": []}


def test_heartbeat_extends_the_lease(lab: LabUnderTest, run: RunSession) -> None:
    lab.sql("UPDATE leases SET expires_at = now() + interval '1 second'")
    assert run.heartbeat() == {"expires_in_s": lab.settings.lease_s, "cancel": False}
    (lease,) = lab.worker.request("GET", "labs/local/leases").json()["leases"]
    assert lease["expires_in_s"] > lab.settings.lease_s - 5
    assert (lease["device"], lease["run_id"], lease["holder"]) == ("single-1", run.job.run_id, "test/1")
    assert lease["fence"] == run.fence
