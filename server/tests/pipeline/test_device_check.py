"""Device checks through the real pipeline and API, with a scripted worker."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import select

from wqlab_contracts.api.queue import DeviceCheck, DeviceHistory
from wqlab_contracts.enums import (
    PAIR,
    Arm,
    DeviceHealth,
    DeviceStep,
    ErrorKind,
    Outcome,
    RunPurpose,
    Scope,
    StepOutcome,
    UserRole,
)
from wqlab_contracts.messages import CheckStep, RunResult
from wqlab_server.http.auth import create_token
from wqlab_server.models import Run

from ..support.lab import NOW, LabUnderTest, RunSession, failed, infrastructure_result, passing_run
from ..support.people import add_user

pytestmark = pytest.mark.integration

HEALTH_STEPS = [step for step in DeviceStep if step is not DeviceStep.NOISE]


def step_event(step: DeviceStep, outcome: StepOutcome = StepOutcome.OK) -> CheckStep:
    return CheckStep(at=NOW, step=step, outcome=outcome, text=f"{step} was checked")


def pass_health_check(run: RunSession) -> RunResult | None:
    run.send(*(step_event(step) for step in HEALTH_STEPS))
    return passing_run(run)


def request_check(
    lab: LabUnderTest, name: str = "single-1", expect: int = 202, token: str | None = None
) -> DeviceCheck:
    headers = {"Authorization": f"Bearer {token or lab.token}"}
    answer = lab.client.post(f"/api/v1/devices/{name}/check", headers=headers)
    assert answer.status_code == expect, answer.text
    return DeviceCheck.model_validate_json(answer.content) if expect == 202 else None  # type: ignore[return-value]


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


def test_good_device_passes_every_step_and_its_noise_is_measured(lab: LabUnderTest) -> None:
    check = run_check(lab)
    assert (check.outcome, check.failure, check.by) == (Outcome.PASSED, None, "dev")
    assert [(step.step, step.outcome) for step in check.steps] == [(step, StepOutcome.OK) for step in DeviceStep]
    noise = lab.worker.runs[-1].job
    assert (noise.purpose, noise.plan.name, noise.device.name) == (RunPurpose.NOISE, "affinity", "single-1")
    assert [sorted(plan.arms) for plan in noise.blocks] == [[Arm.BASELINE, Arm.CANDIDATE]] * 5
    assert {plan.arms[0] for plan in noise.blocks} == set(PAIR), "the arms alternate"
    assert noise.kernels[Arm.BASELINE] == noise.kernels[Arm.CANDIDATE]
    assert noise.profile.settings == ["scope=system"]
    assert (noise.profile.repetitions.untraced, noise.profile.repetitions.traced) == (0, 1), (
        "only what the metric needs"
    )
    assert lab.device("single-1").health is DeviceHealth.GOOD


def test_noise_step_reports_the_comparison_and_noise_floor(lab: LabUnderTest) -> None:
    def same(arm: Arm, setting: str, metric: str, block: int) -> float:
        return 40.0 + (block * 7 % 5) / 10 + (0.05 if (arm is Arm.BASELINE) == (block % 2 == 0) else 0.0)

    lab.worker.value = same
    step = run_check(lab).steps[-1]
    assert step.outcome is StepOutcome.OK
    assert step.text.startswith("no difference seen: affinity high, share_l3: 40.2")
    assert "(n=5 each)" in step.text
    # Differences .05, -.05, .05, -.05, .05 up to their sign: mean .01 and -.01, sd .05477; t .408 with 4 degrees of
    # freedom has p .70. With 6 blocks, all must have the same sign: in four cases of five at an effect of 1.79 sd,
    # or .1 points. The whole interval has to be beyond the threshold of .5 points.
    assert "-0.01 points, p 0.7" in step.text
    assert "noise floor 0.6 points with 6 blocks" in step.text


def test_difference_between_equal_kernels_fails_the_check_only(lab: LabUnderTest) -> None:
    lab.worker.value = lambda arm, _setting, _metric, block: (50.0 if arm is Arm.BASELINE else 60.0) + block / 10
    check = run_check(lab)
    step = check.steps[-1]
    assert (check.outcome, step.step, step.outcome) == (Outcome.FAILED, DeviceStep.NOISE, StepOutcome.FAILED)
    assert step.failure is not None
    assert step.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "two arms of the same kernel" in step.failure.summary
    assert "check again" in step.failure.advice
    assert check.failure == step.failure
    assert lab.device("single-1").health is DeviceHealth.GOOD, "noise does not change the health"


def test_failed_step_ends_the_check(lab: LabUnderTest) -> None:
    silent = failed(ErrorKind.INFRASTRUCTURE, "the console stayed silent").model_copy(update={"advice": "look at it"})

    def fail_at_console(run: RunSession) -> RunResult:
        run.send(
            step_event(DeviceStep.POWER),
            step_event(DeviceStep.CONSOLE, StepOutcome.FAILED).model_copy(update={"failure": silent}),
            *(step_event(step, StepOutcome.SKIPPED) for step in HEALTH_STEPS[2:]),
        )
        return RunResult(outcome=Outcome.FAILED, failure=silent, device_suspect=True)

    check = run_check(lab, fail_at_console)
    assert check.outcome is Outcome.FAILED
    assert [step.outcome for step in check.steps] == [
        StepOutcome.OK, StepOutcome.FAILED, *[StepOutcome.SKIPPED] * 7
    ]  # fmt: skip
    assert check.steps[-1].text == "noise is measured only after the device has passed its health check"
    assert check.noise_run_id is None
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


@pytest.mark.nightly
def test_failed_noise_run_fails_the_noise_step(lab: LabUnderTest) -> None:
    lab.worker.on_run = lambda run: RunResult(
        outcome=Outcome.FAILED, failure=failed(ErrorKind.KERNEL, "oops: in the A/A run")
    )
    check = run_check(lab)
    assert (check.outcome, check.steps[-1].step) == (Outcome.FAILED, DeviceStep.NOISE)
    assert check.steps[-1].outcome is StepOutcome.FAILED
    assert "oops: in the A/A run" in check.steps[-1].text


def test_noise_run_on_a_device_that_does_not_boot_ends_after_two_attempts(lab: LabUnderTest) -> None:
    lab.worker.on_run = lambda run: infrastructure_result("the device was never off", suspect=True)
    check = run_check(lab)
    assert (check.outcome, check.steps[-1].step) == (Outcome.FAILED, DeviceStep.NOISE)
    assert "the device was never off" in check.steps[-1].text
    with lab.transaction() as session:
        run = session.scalars(select(Run).where(Run.purpose == RunPurpose.NOISE)).one()
    assert run.attempts == 2


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


def test_quarantine_between_the_runs_cancels_the_check(lab: LabUnderTest) -> None:
    def pass_then_quarantine(run: RunSession) -> RunResult | None:
        result = pass_health_check(run)
        headers = {"Authorization": f"Bearer {lab.token}"}
        body = {"reason": "smells of smoke"}
        lab.client.post("/api/v1/devices/single-1/quarantine", json=body, headers=headers).raise_for_status()
        return result

    check = run_check(lab, pass_then_quarantine)
    assert check.outcome is Outcome.CANCELED
    assert check.failure is not None
    assert "smells of smoke" in check.failure.summary
    assert check.noise_run_id is None
    request_check(lab, expect=409)


def test_check_needs_a_maintainer_and_a_known_device(lab: LabUnderTest) -> None:
    with lab.transaction() as session:
        user = add_user(session, "sam", UserRole.SUBMITTER)
        _, submitter = create_token(session, "sam", [Scope.SUBMIT], user=user)
    request_check(lab, expect=403, token=submitter)
    request_check(lab, "single-9", expect=404)
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
    with lab.transaction() as session:
        assert session.get_one(Run, check.noise_run_id).owner == "dev"
