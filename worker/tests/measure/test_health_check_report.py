"""Steps of a health check, through the real measuring loop with a scripted device."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from wqlab_contracts.enums import Arm, DeviceStep, ErrorKind, Outcome, RunPurpose, StepOutcome
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import BootKey, CheckStep, Failure, RunJob, RunResult
from wqlab_contracts.specs import Conditions, ExternalPower
from wqlab_worker.backends.cancellation import Stop
from wqlab_worker.backends.condition_commands import ConditionResult
from wqlab_worker.backends.verify_boot import check_conditions
from wqlab_worker.measure.device_interface import DeviceFailure
from wqlab_worker.measure.health_check_report import STEPS, HealthCheckReport, fix
from wqlab_worker.measure.measuring_loop import measure

from .scripted import RecordingSink, ScriptedDevice, job

DATA = load_data(Path(__file__).parents[3])


def work(purpose: RunPurpose) -> RunJob:
    """A run of the health check's plan: one cell, no metric."""
    plan = DATA.plans["health-check"]
    of = job(arms=[[Arm.BASELINE]], purpose=purpose, kernels=(Arm.BASELINE,))
    return of.model_copy(update={"plan": plan, "profile": plan.emulated})


WORK = work(RunPurpose.HEALTH_CHECK)
FINE = ("step\tfitness\tok\tfit", "step\tscratch\tskipped\tno device is listed as scratch")
BOOT_STEPS = [DeviceStep.POWER, DeviceStep.CONSOLE, DeviceStep.GOLDEN, DeviceStep.KEXEC]


def health_check(device: ScriptedDevice) -> tuple[RunResult, list[CheckStep]]:
    sink = RecordingSink()
    result = measure(WORK, WORK.blocks, device, sink, Stop(), clock=device.clock)
    return result, sink.of(CheckStep)


def script(*records: str, on_console: bool = True) -> ScriptedDevice:
    """Return a device whose script prints these records and logs its marker."""
    device = ScriptedDevice()

    def say(_key: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        if on_console:
            device.console += f"<3>wqlab: console check {environment.get('WQLAB_WORD')}\n"
        return "\n".join(records) + "\n" if action == "measure" else None

    device.on_script = say
    return device


TOPOLOGY = "step\ttopology\tok\tevery CPU is online"
DETECTORS = "step\tdetectors\tok\tcompiled in and on"


def test_a_fit_device_passes_each_step_in_order() -> None:
    _, steps = health_check(script(TOPOLOGY, DETECTORS, *FINE, "fact\thealthy\tyes"))
    once = steps[: len(STEPS)]
    assert [step.step for step in once] == list(STEPS)
    assert [step.outcome for step in once] == [StepOutcome.OK] * 7 + [StepOutcome.SKIPPED]
    texts = {step.step: step.text for step in once}
    assert texts[DeviceStep.GOLDEN] == "up 7.0 s after the power"
    assert texts[DeviceStep.KEXEC] == "6.12 in 3.0 s, verified by token, boot id and build id ab"
    assert texts[DeviceStep.TOPOLOGY] == (
        "2 CPUs, 2 cores, 1 L3 domain, 1 NUMA node, 1 package: as tiny declares; every CPU is online"
    )
    assert "appears on the console" in texts[DeviceStep.DETECTORS]


@pytest.mark.parametrize("stage", [*BOOT_STEPS, DeviceStep.TOPOLOGY])
def test_failed_boot_fails_its_current_step(stage: DeviceStep) -> None:
    def die(_key: BootKey) -> None:
        failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="it went wrong")
        raise DeviceFailure(failure, suspect=True, stage=stage)

    result, steps = health_check(ScriptedDevice(on_boot=die))
    assert result.outcome is Outcome.FAILED
    at = STEPS.index(stage)
    first = steps[: len(STEPS)]
    assert [step.outcome for step in first] == (
        [StepOutcome.OK] * at + [StepOutcome.FAILED] + [StepOutcome.SKIPPED] * (len(STEPS) - at - 1)
    )
    assert first[at].failure is not None
    assert first[at].failure.advice == fix(stage, WORK.device), "each step has its fix"
    assert {step.text for step in first[at + 1 :]} <= {f"needs {stage}"}
    assert len(steps) == 2 * len(STEPS), "reported again on the retry"


def test_missing_condition_fails_after_the_topology_step() -> None:
    device = WORK.device.model_copy(update={"conditions": Conditions(boost=False, required=["boost"])})

    def die(_key: BootKey) -> None:
        check_conditions(device, [ConditionResult("boost", "off", "on", satisfied=False)])

    result, steps = health_check(ScriptedDevice(on_boot=die))
    reported = {step.step: step for step in steps[: len(STEPS)]}
    assert [reported[step].outcome for step in [*BOOT_STEPS, DeviceStep.TOPOLOGY]] == [StepOutcome.OK] * 5
    assert reported[DeviceStep.TOPOLOGY].text == "as declared"
    detectors = reported[DeviceStep.DETECTORS]
    assert (detectors.outcome, detectors.text) == (
        StepOutcome.SKIPPED,
        "not tried: fitness failed before the script began",
    ), "the check ended before this step"
    failed = reported[DeviceStep.FITNESS]
    assert (failed.outcome, failed.failure and "`required`" in failed.failure.advice) == (StepOutcome.FAILED, True)
    assert "boost off is required, found on" in failed.text
    assert reported[DeviceStep.SCRATCH].text == "needs fitness"
    assert result.device_suspect


def test_script_failure_fails_the_next_step() -> None:
    device = script(TOPOLOGY, "failed\tinfrastructure\tCONFIG_WQ_WATCHDOG is off")
    result, steps = health_check(device)
    (failed,) = [step for step in steps[: len(STEPS)] if step.outcome is StepOutcome.FAILED]
    assert (failed.step, failed.text) == (DeviceStep.DETECTORS, "CONFIG_WQ_WATCHDOG is off")
    assert result.device_suspect


def test_console_without_the_kernel_log_fails_the_detectors_step() -> None:
    result, steps = health_check(script(TOPOLOGY, DETECTORS, *FINE, "fact\thealthy\tyes", on_console=False))
    (failed,) = [step for step in steps[: len(STEPS)] if step.outcome is StepOutcome.FAILED]
    assert failed.step is DeviceStep.DETECTORS
    assert "no detector would be seen" in failed.text
    assert result.device_suspect


def advice_on_power(**device: object) -> str:
    job = WORK.model_copy(update={"device": WORK.device.model_copy(update=device)})
    sink = RecordingSink()
    failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="the power could not be switched on")
    HealthCheckReport(job, sink, lambda: datetime.now(UTC)).record_failure(
        DeviceFailure(failure, stage=DeviceStep.POWER)
    )
    (failed,) = [step for step in sink.of(CheckStep) if step.failure]
    assert failed.step is DeviceStep.POWER
    advice: str = failed.failure.advice
    return advice


def test_power_advice_depends_on_the_power_switch() -> None:
    assert "labgrid-client -p unit-0 power cycle" in advice_on_power()
    own = advice_on_power(power=ExternalPower(turn_on="ipmitool -P secret on", turn_off="ipmitool -P secret off"))
    assert "`power:`" in own and "labgrid-client" not in own
    assert "secret" not in own, "the advice is public"
    assert "LAVA" in advice_on_power(backend="lava") and "labgrid" not in advice_on_power(backend="lava")


def test_advice_of_the_failure_takes_precedence() -> None:
    def die(_key: BootKey) -> None:
        failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="wrong", advice="do this")
        raise DeviceFailure(failure, stage=DeviceStep.KEXEC)

    _, steps = health_check(ScriptedDevice(on_boot=die))
    assert {step.failure.advice for step in steps if step.failure} == {"do this"}


def test_measuring_run_reports_no_steps() -> None:
    sink = RecordingSink()
    device = script("step\tdetectors\tok\ton", "fact\thealthy\tyes")
    measured = work(RunPurpose.MEASURE)
    measure(measured, measured.blocks, device, sink, Stop(), clock=device.clock)
    assert not sink.of(CheckStep)
