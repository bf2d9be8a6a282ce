"""Requests and results of device checks."""

from __future__ import annotations

import pytest

from wqlab_contracts.celery_names import TICK
from wqlab_contracts.enums import DeviceStep, ErrorKind, Outcome, StepOutcome
from wqlab_server.lab import checks
from wqlab_server.models import DeviceCheck

from ..support.lab import LabUnderTest, failed

pytestmark = pytest.mark.integration


def test_request_creates_one_check_and_asks_for_a_tick(lab: LabUnderTest) -> None:
    with lab.transaction() as session:
        first = checks.request(session, "single-1", "dev").id
    with lab.transaction() as session:
        assert checks.request(session, "single-1", "ann").id == first
        assert [view.by for view in checks.list_for_device(session, "single-1")] == ["dev"]
        assert checks.read(session, "single-1", first).doing == "is being ordered"
    assert [message.task for message in lab.sent] == [TICK]


def test_steps_without_a_result_are_skipped_with_the_reason(lab: LabUnderTest) -> None:
    with lab.transaction() as session:
        check_id = checks.request(session, "single-1", "dev").id
    lab.tick()
    with lab.transaction() as session:
        check = session.get_one(DeviceCheck, check_id)
        checks.finish(session, check, Outcome.FAILED, failed(ErrorKind.INFRASTRUCTURE, "no compiler"))
    with lab.transaction() as session:
        view = checks.read(session, "single-1", check_id)
    assert (view.outcome, [step.step for step in view.steps]) == (Outcome.FAILED, list(DeviceStep))
    assert {step.outcome for step in view.steps} == {StepOutcome.SKIPPED}
    assert view.steps[0].text == "not reached: no compiler"
