"""Prometheus metrics."""

from __future__ import annotations

import httpx
import pytest

from wqlab_contracts.celery_names import ADVANCE
from wqlab_contracts.enums import DeviceHealth, ErrorKind, JobKind, Outcome
from wqlab_contracts.messages import ApplyResult, Failure

from ..support.lab import LabUnderTest, infrastructure_result, passing_apply, passing_run, results
from ..support.live_server import expect
from ..support.scene import Scene

pytestmark = pytest.mark.integration

USER = Failure(kind=ErrorKind.USER, summary="does not apply")


def test_metrics_count_jobs_devices_and_requests(client: httpx.Client, scene: Scene) -> None:
    scene.devices(DeviceHealth.SUSPECT)
    number = scene.submission()
    client.get(f"/api/v1/submissions/{number}")
    text = expect(client.get("/metrics")).text
    assert 'wqlab_jobs{kind="apply",state="queued"} 1.0' in text
    assert 'wqlab_submissions{state="applying"} 1.0' in text
    assert 'wqlab_devices{device_type="tiny",health="suspect"} 2.0' in text
    assert "wqlab_database_up 1.0" in text
    assert 'wqlab_http_request_seconds_count{operation="get_submission",status="200"} 1.0' in text


def samples(lab: LabUnderTest) -> dict[str, float]:
    """Return sample -> value of /metrics."""
    headers = {"Authorization": f"Bearer {lab.token}"}
    lines = expect(lab.client.get("/metrics", headers=headers)).text.splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def test_metrics_have_ages_of_queue_leases_and_tick(lab: LabUnderTest) -> None:
    assert samples(lab)["wqlab_tick_age_seconds"] == float("inf"), "there was no tick"
    lab.tick()
    lab.mark_all_good()
    idle = samples(lab)
    assert idle['wqlab_queue_age_seconds{device_type="single",kind="run"}'] == 0
    assert idle["wqlab_lease_age_seconds"] == idle["wqlab_lease_overdue_seconds"] == 0
    assert 0 <= idle["wqlab_tick_age_seconds"] < 60
    assert idle["wqlab_tick_duration_seconds"] > 0

    number = lab.submit("locks@single")
    lab.sql("UPDATE jobs SET created_at = now() - interval '100 seconds' WHERE kind = 'apply'")
    assert 100 <= samples(lab)['wqlab_queue_age_seconds{device_type="",kind="apply"}'] < 160
    lab.work(JobKind.APPLY, JobKind.BUILD, ADVANCE)
    lab.sql("UPDATE leases SET created_at = now() - interval '2 hours', expires_at = now() - interval '90 seconds'")
    leased = samples(lab)
    assert 7200 <= leased["wqlab_lease_age_seconds"] < 7260
    assert 90 <= leased["wqlab_lease_overdue_seconds"] < 150
    assert leased['wqlab_queue_age_seconds{device_type="single",kind="run"}'] == 0

    lab.sql("DELETE FROM leases")
    lab.sql("UPDATE jobs SET created_at = now() - interval '5 hours' WHERE kind = 'run'")
    lab.sql("UPDATE jobs SET finished_at = now() - interval '3 hours' WHERE kind = 'build'")
    lab.sql("UPDATE last_tick SET finished_at = now() - interval '300 seconds'")
    waiting = samples(lab)
    assert lab.runs(number)[0].state == "queued"
    assert 3 * 3600 <= waiting['wqlab_queue_age_seconds{device_type="single",kind="run"}'] < 3 * 3600 + 60, (
        "it could not have run before its kernels were built"
    )
    assert 300 <= waiting["wqlab_tick_age_seconds"] < 360


def test_metrics_count_failures_by_kind_and_time_boots(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    lab.worker.on_apply = lambda job, worker: ApplyResult(outcome=Outcome.FAILED, failure=USER)
    lab.finished(lab.submit("locks@single"))
    lab.worker.on_apply = passing_apply
    lab.worker.on_run = results(infrastructure_result(), passing_run)
    lab.finished(lab.submit("locks@single"))
    found = samples(lab)
    assert found['wqlab_failures_total{error="user",kind="apply"}'] == 1
    assert found['wqlab_failures_total{error="infrastructure",kind="run"}'] == 1
    assert found['wqlab_failures_total{error="kernel",kind="run"}'] == 0
    assert found['wqlab_boot_seconds{device_type="single",phase="golden"}'] > 0
    assert found['wqlab_boot_seconds{device_type="single",phase="workload"}'] > 0


def test_metrics_have_free_space_of_each_machine(lab: LabUnderTest) -> None:
    lab.tick()  # runs retention, which reports the server's storage
    found = samples(lab)
    area = '{area="artifacts",lab="",machine="server"}'
    assert found[f"wqlab_volume_free_bytes{area}"] > 0
    assert found[f"wqlab_volume_reserve_bytes{area}"] == 2 << 30
    assert found[f"wqlab_storage_limit_bytes{area}"] == 50 << 30
    assert found['wqlab_storage_report_age_seconds{lab="",machine="server"}'] < 60
    assert found["wqlab_artifact_volume_free_bytes"] > 0
