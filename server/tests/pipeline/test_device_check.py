"""Device checks through the real pipeline and API, with a scripted worker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wqlab_contracts.api.queue import DeviceCheck, DeviceHistory
from wqlab_contracts.enums import DeviceHealth, DeviceStep, ErrorKind, Outcome, StepOutcome
from wqlab_contracts.messages import CheckStep, RunResult

from ..support.lab import NOW, LabUnderTest, RunSession, failed, passing_run

pytestmark = pytest.mark.integration


def step_event(step: DeviceStep, outcome: StepOutcome = StepOutcome.OK) -> CheckStep:
    return CheckStep(at=NOW, step=step, outcome=outcome, text=f"{step} was checked")


def pass_health_check(run: RunSession) -> RunResult | None:
    run.send(*(step_event(step) for step in DeviceStep))
    return passing_run(run)


def request_check(lab: LabUnderTest) -> DeviceCheck:
    answer = lab.client.post("/api/v1/devices/single-1/check", headers={"Authorization": f"Bearer {lab.token}"})
    return DeviceCheck.model_validate_json(answer.raise_for_status().content)


def read(lab: LabUnderTest, known: DeviceCheck, query: str = "") -> DeviceCheck:
    url = f"/api/v1/devices/{known.device}/checks/{known.id}{query}"
    answer = lab.client.get(url, headers={"Authorization": f"Bearer {lab.token}"})
    return DeviceCheck.model_validate_json(answer.raise_for_status().content)


def run_check(
    lab: LabUnderTest, on_health_check: Callable[[RunSession], RunResult | None] = pass_health_check
) -> DeviceCheck:
    lab.worker.on_health_check = on_health_check
    requested = request_check(lab)
    lab.until_idle()
    return read(lab, requested)


def test_good_device_passes_every_step(lab: LabUnderTest) -> None:
    check = run_check(lab)
    assert (check.outcome, check.failure, check.by) == (Outcome.PASSED, None, "dev")
    assert [(step.step, step.outcome) for step in check.steps] == [(step, StepOutcome.OK) for step in DeviceStep]
    assert lab.device("single-1").health is DeviceHealth.GOOD


def test_failed_step_ends_the_check(lab: LabUnderTest) -> None:
    silent = failed(ErrorKind.INFRASTRUCTURE, "the console stayed silent").model_copy(update={"advice": "look at it"})

    def fail_at_console(run: RunSession) -> RunResult:
        run.send(
            step_event(DeviceStep.POWER),
            step_event(DeviceStep.CONSOLE, StepOutcome.FAILED).model_copy(update={"failure": silent}),
            *(step_event(step, StepOutcome.SKIPPED) for step in list(DeviceStep)[2:]),
        )
        return RunResult(outcome=Outcome.FAILED, failure=silent, device_suspect=True)

    check = run_check(lab, fail_at_console)
    assert check.outcome is Outcome.FAILED
    assert [step.outcome for step in check.steps] == [
        StepOutcome.OK, StepOutcome.FAILED, *[StepOutcome.SKIPPED] * 6
    ]  # fmt: skip
    assert check.failure == silent
    assert lab.device("single-1").health is DeviceHealth.QUARANTINED


def test_check_without_a_kernel_skips_every_step_with_the_reason(lab: LabUnderTest) -> None:
    def fail_build(job: object, worker: object) -> object:
        from wqlab_contracts.messages import BuildResult

        return BuildResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.INFRASTRUCTURE, "no compiler"))

    lab.worker.on_build = fail_build  # type: ignore[assignment]
    check = run_check(lab)
    assert check.outcome is Outcome.FAILED
    assert check.failure is not None
    assert "no compiler" in check.failure.summary
    assert {step.outcome for step in check.steps} == {StepOutcome.SKIPPED}


def test_request_returns_the_unfinished_check_else_a_new_one(lab: LabUnderTest) -> None:
    first = request_check(lab)
    assert request_check(lab).id == first.id
    lab.worker.on_health_check = pass_health_check
    lab.until_idle()
    assert request_check(lab).id != first.id


def test_progress_is_visible_while_the_check_runs(lab: LabUnderTest) -> None:
    seen: list[DeviceCheck] = []

    def report_step_twice(run: RunSession) -> RunResult | None:
        run.send(step_event(DeviceStep.POWER))
        seen.append(read(lab, requested))
        run.send(step_event(DeviceStep.POWER))  # a repeated event
        seen.append(read(lab, requested))
        return pass_health_check(run)

    lab.worker.on_health_check = report_step_twice
    requested = request_check(lab)
    lab.until_idle()
    assert [step.step for step in seen[0].steps] == [DeviceStep.POWER]
    assert seen[0].changes == seen[1].changes > requested.changes, "a repeated event is no change"
    assert read(lab, requested, f"?seen={10**6}&wait_s=20").finished_at is not None, "no wait after the end"


def test_check_belongs_to_its_device(lab: LabUnderTest) -> None:
    check = request_check(lab)
    assert (
        lab.client.get(
            f"/api/v1/devices/device-1/checks/{check.id}", headers={"Authorization": f"Bearer {lab.token}"}
        ).status_code
        == 404
    )


@pytest.mark.nightly
def test_device_history_lists_its_checks(lab: LabUnderTest) -> None:
    check = run_check(lab)
    answer = lab.client.get("/api/v1/devices/single-1/history", headers={"Authorization": f"Bearer {lab.token}"})
    history = DeviceHistory.model_validate_json(answer.raise_for_status().content)
    assert history.checks == [check]
