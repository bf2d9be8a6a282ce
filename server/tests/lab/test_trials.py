"""Device trials: an administrator orders one, the worker of the machine's lab reports steps and ends it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from wqlab_contracts.celery_names import DEVICE_TRIAL
from wqlab_contracts.enums import JobState, Outcome, Scope, StepOutcome
from wqlab_contracts.messages.device_trials import TrialFile, TrialResult, TrialStep, TrialStepResult
from wqlab_contracts.new_devices.description import NewDevice
from wqlab_server.http.auth import create_token
from wqlab_server.http.problems import ApiProblem
from wqlab_server.lab import trials
from wqlab_server.models import Lab

from ..support.lab import LabUnderTest

pytestmark = pytest.mark.integration

DESCRIBED: dict[str, Any] = {
    "name": "rack3-1",
    "device_type": "rack3",
    "power": {"kind": "ipmi", "host": "bmc-1", "user": "lab", "password_file": "/etc/wqlab/ipmi"},
    "console": {"host": "console-1", "port": 7001},
    "ssh": {"host": "192.0.2.11"},
}


def step(name: TrialStep, outcome: StepOutcome = StepOutcome.OK) -> TrialStepResult:
    return TrialStepResult(step=name, outcome=outcome, at=datetime.now(UTC), text="as expected")


@pytest.fixture
def trial_id(lab: LabUnderTest) -> int:
    with lab.transaction() as session:
        session.merge(Lab(name="local", capacity=1))
    with lab.transaction() as session:
        return trials.request(session, NewDevice.model_validate(DESCRIBED), "root", write=True)


def claim(lab: LabUnderTest, trial_id: int) -> int:
    answer = lab.worker.request("POST", f"device_trials/{trial_id}/claim", json={"worker": "w/1", "lab": "local"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["device"]["console"]["port"] == 7001
    return int(answer.json()["fence"])


def test_steps_are_seen_as_they_end_and_files_at_the_end(lab: LabUnderTest, trial_id: int) -> None:
    assert [(message.task, message.queue) for message in lab.sent] == [(DEVICE_TRIAL, "lab.local")]
    fence = claim(lab, trial_id)
    body = {"fence": fence, "doing": "switching on", "steps": [step(TrialStep.CONSOLE).model_dump(mode="json")]}
    lab.worker.post(f"device_trials/{trial_id}/progress", body, 204)
    with lab.transaction() as session:
        seen = trials.read(session, trial_id)
    assert (seen.doing, [each.step for each in seen.steps], seen.outcome) == ("switching on", [TrialStep.CONSOLE], None)
    result = TrialResult(
        outcome=Outcome.PASSED,
        steps=[step(each) for each in TrialStep],
        files=[TrialFile(path="device-types/rack3.yaml", added="name: rack3\n", written=True)],
    )
    for _ in range(2):  # a repeated request changes nothing
        finish = {"fence": fence, "result": result.model_dump(mode="json")}
        lab.worker.post(f"device_trials/{trial_id}/finish", finish, 204)
    with lab.transaction() as session:
        ended = trials.read(session, trial_id)
    assert (ended.state, ended.outcome, ended.doing) == (JobState.FINISHED, Outcome.PASSED, "")
    assert [each.path for each in ended.files] == ["device-types/rack3.yaml"]
    assert ended.changes > seen.changes


def test_a_lab_tries_one_machine_at_a_time_and_only_new_ones(lab: LabUnderTest, trial_id: int) -> None:
    other = NewDevice.model_validate({**DESCRIBED, "name": "rack3-2"})
    with lab.transaction() as session, pytest.raises(ApiProblem, match="lab local tries rack3-1 now") as refused:
        trials.request(session, other, "root", write=False)
    assert refused.value.status == 409
    with lab.transaction() as session, pytest.raises(ApiProblem, match="is a device of lab local already"):
        trials.request(session, other.model_copy(update={"name": "single-1"}), "root", write=False)
    with lab.transaction() as session, pytest.raises(ApiProblem) as unknown:
        trials.request(session, other.model_copy(update={"lab": "far"}), "root", write=False)
    assert "labs with a worker: local" in str(unknown.value.errors)
    with lab.transaction() as session:
        trials.cancel(session, trial_id)
        assert trials.request(session, other, "root", write=False) > trial_id


def test_a_stopped_trial_is_canceled_at_the_next_heartbeat(lab: LabUnderTest, trial_id: int) -> None:
    fence = claim(lab, trial_id)
    with lab.transaction() as session:
        trials.cancel(session, trial_id)
    beat = lab.worker.request("POST", f"device_trials/{trial_id}/heartbeat", json={"fence": fence})
    assert beat.json()["cancel"] is True


def test_a_worker_that_disappears_ends_the_trial(lab: LabUnderTest, trial_id: int) -> None:
    claim(lab, trial_id)
    lab.expire("device_trials", trial_id)
    with lab.transaction() as session:
        lost = trials.read(session, trial_id)
    assert lost.failure is not None
    assert "stopped responding" in lost.failure.summary


def test_a_trial_without_a_worker_ends_with_advice(lab: LabUnderTest, trial_id: int) -> None:
    lab.sql("UPDATE device_trials SET created_at = now() - interval '1 hour' WHERE id = :id", id=trial_id)
    with lab.transaction() as session:
        ended = trials.read(session, trial_id)
    assert ended.outcome is Outcome.FAILED
    assert ended.failure is not None
    assert ended.failure.summary == "no worker of lab local took the trial"


def test_another_labs_worker_may_not_take_part(lab: LabUnderTest, trial_id: int) -> None:
    with lab.transaction() as session:
        _, lab.worker.token = create_token(session, "far", [Scope.WORKER], lab="far")
    for path, body in (
        ("claim", {"worker": "far/1", "lab": "far"}),
        ("heartbeat", {"fence": 1}),
        ("progress", {"fence": 1, "doing": "", "steps": []}),
        ("finish", {"fence": 1, "result": {"outcome": "passed"}}),
    ):
        assert lab.worker.request("POST", f"device_trials/{trial_id}/{path}", json=body).status_code == 403, path
