"""A tick goes on past whatever is broken, says what it was, and leaves nothing waiting for what will not come."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import select
from structlog.testing import capture_logs

from wqlab_contracts.enums import DeviceHealth, ErrorKind, JobState, Outcome, RunPurpose
from wqlab_contracts.messages import BlockPlan, BootKey, BootStarted, RunResult
from wqlab_server.models import Device, Lease, Run, TickFault
from wqlab_server.storage.live_data import LiveData

from ..support.lab import NOW, LabUnderTest, RunSession, failed, passing_run

pytestmark = pytest.mark.integration

UNREADABLE = '{"from": "another release"}'
"""JSON that no contract model reads: loading such a row raises pydantic's ValidationError."""


def faults(lab: LabUnderTest) -> dict[tuple[str, str], int]:
    with lab.transaction() as session:
        return {(fault.what, fault.item): fault.count for fault in session.scalars(select(TickFault))}


def counted(lab: LabUnderTest) -> dict[str, float]:
    """What Prometheus reads: kind of item -> faults."""
    text = lab.client.get("/metrics").raise_for_status().text
    return {
        sample.labels["what"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "wqlab_tick_faults_total"
    }


def claimed(lab: LabUnderTest, task: str, kind: str) -> int:
    """Claims the job of the first such message and lets the claim run out."""
    message = next(message for message in lab.sent if message.task == task)
    assert message.id is not None
    assert lab.worker.claim(kind, message.id) is not None
    lab.expire(kind, message.id)
    lab.sent.remove(message)
    return message.id


def api(lab: LabUnderTest, path: str, body: dict[str, Any] | None = None) -> None:
    headers = {"Authorization": f"Bearer {lab.token}"}
    lab.client.post(f"/api/v1/{path}", json=body, headers=headers).raise_for_status()


# --- one broken item --------------------------------------------------------------------------------------------------


def test_a_claim_that_cannot_be_taken_back_leaves_the_others_to_be(lab: LabUnderTest) -> None:
    lab.submit("locks@device")
    submission_id = lab.submit("affinity@single")
    broken = claimed(lab, "wqlab.apply", "applies")
    whole = claimed(lab, "wqlab.apply", "applies")
    lab.sql("UPDATE applies SET tree = CAST(:tree AS jsonb) WHERE id = :id", tree=UNREADABLE, id=broken)
    with capture_logs() as logs:
        lab.tick()
        lab.tick()
    told = {(entry["what"], entry["item"]) for entry in logs if entry["event"] == "tick_item_failed"}
    assert told == {("apply", broken)}
    assert faults(lab) == {("apply", str(broken)): 2}
    assert counted(lab) == {
        "apply": 2, "build": 0, "run": 0, "submission": 0, "device": 0, "health_check": 0, "device_check": 0,
        "offers": 0,
    }  # fmt: skip
    with lab.transaction() as session:
        error = session.scalars(select(TickFault.error).where(TickFault.what == "apply")).one()
    assert "ValidationError" in error

    lab.until_idle()
    assert lab.submission(submission_id).outcome is Outcome.PASSED
    assert whole != broken


def test_a_run_that_cannot_be_loaded_keeps_its_device_and_no_other(lab: LabUnderTest) -> None:
    lab.all_good()
    lab.worker.on_run = lambda run: None  # holds its device and says nothing
    broken_submission, submission_id = lab.submit("locks@device"), lab.submit("locks@single")
    lab.until_idle()
    broken, whole = (lab.runs(each)[0].id for each in (broken_submission, submission_id))
    lab.sql("UPDATE runs SET recipe = CAST(:recipe AS jsonb) WHERE id = :id", recipe=UNREADABLE, id=broken)
    lab.expire("runs", broken)
    lab.expire("runs", whole)
    lab.worker.on_run = passing_run
    lab.until_idle()
    assert lab.submission(submission_id).outcome is Outcome.PASSED
    assert ("run", str(broken)) in faults(lab)
    assert ("run", str(whole)) not in faults(lab)


def test_a_health_check_that_cannot_be_loaded_does_not_keep_other_devices_from_theirs(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@single", "locks@device")
    lab.tick()
    with lab.transaction() as session:
        checks = {run.wanted_device: run.id for run in session.scalars(select(Run)) if run.wanted_device}
    assert {"single-1", "device-1"} <= checks.keys()
    lab.sql("UPDATE runs SET device_spec = CAST(:spec AS jsonb) WHERE id = :id", spec=UNREADABLE, id=checks["device-1"])
    lab.until_idle()
    assert lab.device("single-1").health is DeviceHealth.GOOD
    assert lab.runs(submission_id)[0].outcome is Outcome.PASSED
    assert faults(lab)[("run", str(checks["device-1"]))] > 1


def test_a_device_whose_row_no_model_reads_is_written_anew_and_checked(lab: LabUnderTest) -> None:
    lab.all_good()
    lab.sql("UPDATE devices SET facts = CAST(:facts AS jsonb) WHERE name = 'single-1'", facts=UNREADABLE)
    lab.tick()
    assert lab.device("single-1").facts.device_type == "single"
    assert lab.device("single-1").health is DeviceHealth.UNKNOWN
    assert lab.device("device-1").health is DeviceHealth.GOOD
    assert faults(lab) == {}


def test_a_check_whose_recipe_an_operator_took_away_ends_and_a_new_one_is_ordered(lab: LabUnderTest) -> None:
    lab.submit("locks@single")
    lab.tick()
    lab.sql(
        "UPDATE runs SET device_spec = jsonb_set(device_spec, '{recipe}', '\"gone\"') WHERE wanted_device = 'single-1'"
    )
    lab.tick()
    with lab.transaction() as session:
        check = session.scalars(select(Run).where(Run.wanted_device.is_not(None))).one()
    assert check.outcome is Outcome.FAILED
    assert check.failure is not None
    assert "no recipe gone any more" in check.failure.summary
    assert faults(lab) == {}


# --- checks of devices that are out of the pool ------------------------------------------------------------------------


def checks(lab: LabUnderTest, device: str) -> list[Run]:
    with lab.transaction() as session:
        return list(session.scalars(select(Run).where(Run.wanted_device == device).order_by(Run.id)))


def with_a_check(lab: LabUnderTest, *, offered: bool) -> int:
    """A submission whose device has a check that waits: for its kernel, or offered to a worker that does not come."""
    submission_id = lab.submit("locks@single")
    if offered:
        for _ in range(10):
            lab.work("wqlab.apply", "wqlab.build", "wqlab.advance", "wqlab.tick")
            lab.tick()
        lab.sent.clear()
    else:
        lab.tick()
    (check,) = checks(lab, "single-1")
    assert check.state is (JobState.QUEUED if offered else JobState.WAITING)
    return submission_id


@pytest.mark.parametrize("offered", [False, True])
def test_a_quarantine_ends_the_checks_that_wait_and_a_release_orders_a_fresh_one(
    lab: LabUnderTest, offered: bool
) -> None:
    with_a_check(lab, offered=offered)
    api(lab, "devices/single-1/quarantine", {"reason": "smells of smoke"})
    (check,) = checks(lab, "single-1")
    assert (check.state, check.outcome) == (JobState.FINISHED, Outcome.CANCELED)
    assert check.failure is not None
    assert check.failure.kind is ErrorKind.CANCELED
    assert check.failure.summary == "single-1 was quarantined: smells of smoke (dev)"
    with lab.transaction() as session:
        assert session.scalar(select(Lease)) is None
    lab.until_idle()
    assert len(checks(lab, "single-1")) == 1, "nobody checks a quarantined device"

    api(lab, "devices/single-1/release")
    lab.until_idle()
    first, fresh = checks(lab, "single-1")
    assert (first.id, fresh.outcome) == (check.id, Outcome.PASSED)
    assert lab.device("single-1").health is DeviceHealth.GOOD


def test_a_check_that_was_ordered_beside_a_quarantine_ends_with_the_next_tick(lab: LabUnderTest) -> None:
    with_a_check(lab, offered=True)
    lab.sql("UPDATE devices SET health = 'quarantined', health_reason = 'by hand' WHERE name = 'single-1'")
    lab.tick()
    (check,) = checks(lab, "single-1")
    assert check.outcome is Outcome.CANCELED
    assert check.failure is not None
    assert check.failure.summary == "single-1 was quarantined: by hand"


def test_a_check_of_a_device_that_left_the_data_folder_ends(lab: LabUnderTest) -> None:
    with_a_check(lab, offered=True)
    (lab.settings.data_dir / "device-types/single.yaml").unlink()
    lab.app.state.data = LiveData(lab.settings.data_dir)  # it looks at the folder once a second
    lab.tick()
    (check,) = checks(lab, "single-1")
    assert check.outcome is Outcome.CANCELED
    assert check.failure is not None
    assert "no longer in the device-types folder" in check.failure.summary


def test_a_check_under_way_when_its_device_is_quarantined_is_not_given_out_again(lab: LabUnderTest) -> None:
    def cut_short(run: RunSession) -> RunResult:
        plan: BlockPlan = run.remaining[0]
        run.send(BootStarted(at=NOW, boot=BootKey(block=0, position=0, arm=plan.arms[0], attempt=plan.first_attempt)))
        api(lab, "devices/single-1/quarantine", {"reason": "smoke"})
        return RunResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.INFRASTRUCTURE, "no coordinator"))

    lab.worker.on_health_check = cut_short
    lab.submit("locks@single")
    lab.until_idle()
    (check,) = checks(lab, "single-1")
    assert (check.state, check.outcome, check.attempts) == (JobState.FINISHED, Outcome.CANCELED, 1)
    assert check.failure is not None
    assert check.failure.summary == "single-1 was quarantined: smoke (dev)"


def test_a_release_is_answered_by_a_check_though_nobody_waits_for_the_device(lab: LabUnderTest) -> None:
    lab.all_good()
    api(lab, "devices/device-2/quarantine", {"reason": "new fan"})
    api(lab, "devices/device-2/release")
    assert [message.task for message in lab.sent] == ["wqlab.tick"], "it is not left to the next beat"
    lab.until_idle()
    (check,) = checks(lab, "device-2")
    assert (check.purpose, check.outcome) == (RunPurpose.HEALTH_CHECK, Outcome.PASSED)
    with lab.transaction() as session:
        assert not session.scalars(select(Device.name).where(Device.check_requested_at.is_not(None))).all()


def test_a_type_that_the_bench_cannot_build_is_out_of_the_pool_until_it_can(lab: LabUnderTest) -> None:
    lab.all_good()
    why = "this lab has no golden system for arm64; `make arm64` makes one"

    def publish(refused: dict[str, str] | None) -> dict[str, tuple[DeviceHealth, str]]:
        lab.worker.post("labs/local/capacity", {"capacity": 2, "refused": refused}, 204)
        with lab.transaction() as session:
            return {device.name: (device.health, device.health_reason) for device in session.scalars(select(Device))}

    before = publish(None)
    refused = publish({"single": why})
    assert refused["single-1"] == (DeviceHealth.QUARANTINED, f"{why} (lab local)")
    assert {name for name in before if refused[name] != before[name]} == {"single-1"}
    assert publish({"single": why}) == refused
    assert publish(None) == refused, "a bench that is silent changes nothing"
    assert publish({})["single-1"] == (DeviceHealth.UNKNOWN, ""), "checked again before it is used"

    # What a person took out stays out, whatever the bench says.
    api(lab, "devices/single-1/quarantine", {"reason": "smells of smoke"})
    smoke = (DeviceHealth.QUARANTINED, "smells of smoke (dev)")
    assert publish({"single": why})["single-1"] == smoke
    assert publish({})["single-1"] == smoke
