"""An error in one item does not stop the tick, and is logged and counted."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import select
from structlog.testing import capture_logs

from wqlab_contracts.enums import DeviceHealth, JobKind, Outcome
from wqlab_server.models import Run, TickError
from wqlab_server.pipeline.tick_errors import isolate_errors

from ..support.lab import LabUnderTest, passing_run

pytestmark = pytest.mark.integration

UNREADABLE = '{"from": "another release"}'
"""JSON that no contract model reads: loading such a row raises pydantic's ValidationError."""


def errors_in_metrics(lab: LabUnderTest) -> dict[str, float]:
    """Return kind of item -> number of errors in /metrics."""
    text = lab.client.get("/metrics", headers={"Authorization": f"Bearer {lab.token}"}).raise_for_status().text
    return {
        sample.labels["what"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "wqlab_tick_faults_total"
    }


def claim_and_expire(lab: LabUnderTest, task: str) -> int:
    """Claim the job of the first message of `task`, let the claim expire, and return the job's id."""
    message = next(message for message in lab.sent if message.task == task)
    assert message.id is not None
    assert lab.worker.claim(message.id) is not None
    lab.expire(message.id)
    lab.sent.remove(message)
    return message.id


def test_unreadable_apply_does_not_block_other_expired_claims(lab: LabUnderTest) -> None:
    lab.submit("locks@device")
    submission_id = lab.submit("affinity@single")
    broken = claim_and_expire(lab, JobKind.APPLY)
    intact = claim_and_expire(lab, JobKind.APPLY)
    lab.sql("UPDATE jobs SET payload = CAST(:tree AS jsonb) WHERE id = :id", tree=UNREADABLE, id=broken)
    with capture_logs() as logs:
        lab.tick()
        lab.tick()
    logged = {(entry["what"], entry["item"]) for entry in logs if entry["event"] == "tick_item_failed"}
    assert logged == {("apply", broken)}
    assert lab.tick_errors() == {("apply", str(broken)): 2}
    assert errors_in_metrics(lab) == {
        "apply": 2, "build": 0, "run": 0, "submission": 0, "device": 0, "health_check": 0, "device_check": 0,
        "offers": 0, "retention": 0, "last_tick": 0, "audit": 0, "outbox": 0, "lists": 0, "watches": 0,
        "history": 0, "bisections": 0, "order": 0, "source": 0, "forges": 0, "forge_head": 0, "claims": 0, "canary": 0,
    }  # fmt: skip
    with lab.transaction() as session:
        error = session.scalars(select(TickError.error).where(TickError.what == "apply")).one()
    assert "ValidationError" in error

    assert lab.finished(submission_id).outcome is Outcome.PASSED
    assert intact != broken


def test_unreadable_run_does_not_block_other_expired_runs(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    lab.worker.on_run = lambda run: None  # keeps its device and sends nothing
    broken_submission, submission_id = lab.submit("locks@device"), lab.submit("locks@single")
    lab.until_idle()
    broken, intact = (lab.runs(each)[0].id for each in (broken_submission, submission_id))
    lab.sql("UPDATE runs SET recipe = CAST(:recipe AS jsonb) WHERE id = :id", recipe=UNREADABLE, id=broken)
    lab.expire(broken)
    lab.expire(intact)
    lab.worker.on_run = passing_run
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    assert ("run", str(broken)) in lab.tick_errors()
    assert ("run", str(intact)) not in lab.tick_errors()


def test_unreadable_health_check_does_not_block_other_checks(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@single", "locks@device")
    lab.tick()
    with lab.transaction() as session:
        checks = {run.wanted_device: run.id for run in session.scalars(select(Run)) if run.wanted_device}
    assert {"single-1", "device-1"} <= checks.keys()
    lab.sql("UPDATE runs SET device_spec = CAST(:spec AS jsonb) WHERE id = :id", spec=UNREADABLE, id=checks["device-1"])
    lab.until_idle()
    assert lab.device("single-1").health is DeviceHealth.GOOD
    assert lab.runs(submission_id)[0].outcome is Outcome.PASSED
    assert lab.tick_errors()[("run", str(checks["device-1"]))] > 1


def test_unreadable_device_row_is_rewritten_and_checked(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    lab.sql("UPDATE devices SET facts = CAST(:facts AS jsonb) WHERE name = 'single-1'", facts=UNREADABLE)
    lab.tick()
    assert lab.device("single-1").facts.device_type == "single"
    assert lab.device("single-1").health is DeviceHealth.UNKNOWN
    assert lab.device("device-1").health is DeviceHealth.GOOD
    assert lab.tick_errors() == {}


def test_isolated_error_is_counted_and_its_message_is_cut(lab: LabUnderTest) -> None:
    for _ in range(2):
        with isolate_errors(lab.sessions, "run", 7):
            raise ValueError("x" * 2000 + "\0")
    with isolate_errors(lab.sessions, "run", 8):
        pass
    assert lab.tick_errors() == {("run", "7"): 2}
    with lab.transaction() as session:
        error = session.scalars(select(TickError.error)).one()
    assert error.startswith("ValueError: xxx")
    assert len(error) == 1000
