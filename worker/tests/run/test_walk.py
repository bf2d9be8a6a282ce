"""A health check told step by step, through the real loop; only the device is scripted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from wqlab_contracts.enums import Arm, DeviceStep, ErrorKind, Outcome, RunPurpose, StepOutcome
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import BootKey, CheckStep, Failure, RunJob, RunResult
from wqlab_contracts.specs import Conditions, ExternalPower
from wqlab_worker.backends.conditions import Standing
from wqlab_worker.backends.verify import met
from wqlab_worker.claims.heartbeats import Stop
from wqlab_worker.measure.device import DeviceFailure
from wqlab_worker.measure.health_check import STEPS, Walk, fix
from wqlab_worker.measure.run import measure

from .scripted import ScriptedDevice, Told, job

DATA = load_data(Path(__file__).parents[3])


def work(purpose: RunPurpose) -> RunJob:
    """The health check's own plan: one cell, no metric."""
    plan = DATA.plans["health-check"]
    of = job(arms=[[Arm.BASELINE]], purpose=purpose, kernels=(Arm.BASELINE,))
    return of.model_copy(update={"plan": plan, "profile": plan.emulated})


WORK = work(RunPurpose.HEALTH_CHECK)
FINE = ("step\tfitness\tok\tfit", "step\tscratch\tskipped\tno device is listed as scratch")
BOOT_STEPS = [DeviceStep.POWER, DeviceStep.CONSOLE, DeviceStep.GOLDEN, DeviceStep.KEXEC]


def walk(device: ScriptedDevice) -> tuple[RunResult, list[CheckStep]]:
    told = Told()
    result = measure(WORK, WORK.blocks, device, told, Stop(), clock=device.clock)
    return result, told.of(CheckStep)


def script(*records: str, on_console: bool = True) -> ScriptedDevice:
    """A device whose script prints these records and logs the word it was given."""
    device = ScriptedDevice()

    def say(_key: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        if on_console:
            device.console += f"<3>wqlab: can this be heard? {environment.get('WQLAB_WORD')}\n"
        return "\n".join(records) + "\n" if action == "measure" else None

    device.on_script = say
    return device


TOPOLOGY = "step\ttopology\tok\tevery CPU is online"
DETECTORS = "step\tdetectors\tok\tcompiled in and on"


def test_a_fit_device_passes_each_step_in_order() -> None:
    _, steps = walk(script(TOPOLOGY, DETECTORS, *FINE, "fact\thealthy\tyes"))
    once = steps[: len(STEPS)]
    assert [step.step for step in once] == list(STEPS)
    assert [step.outcome for step in once] == [StepOutcome.OK] * 7 + [StepOutcome.SKIPPED]
    texts = {step.step: step.text for step in once}
    assert texts[DeviceStep.GOLDEN] == "up 7.0 s after the power"
    assert texts[DeviceStep.KEXEC] == "6.12 in 3.0 s, verified by token, boot id and build id ab"
    assert texts[DeviceStep.TOPOLOGY] == (
        "2 CPUs, 2 cores, 1 L3 domain, 1 NUMA node, 1 package: as tiny declares; every CPU is online"
    )
    assert "heard on the console" in texts[DeviceStep.DETECTORS]


@pytest.mark.parametrize("stage", [*BOOT_STEPS, DeviceStep.TOPOLOGY])
def test_a_boot_that_fails_is_the_step_it_was_at(stage: DeviceStep) -> None:
    def die(_key: BootKey) -> None:
        failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="it went wrong")
        raise DeviceFailure(failure, suspect=True, stage=stage)

    result, steps = walk(ScriptedDevice(on_boot=die))
    assert result.outcome is Outcome.FAILED
    at = STEPS.index(stage)
    first = steps[: len(STEPS)]
    assert [step.outcome for step in first] == (
        [StepOutcome.OK] * at + [StepOutcome.FAILED] + [StepOutcome.SKIPPED] * (len(STEPS) - at - 1)
    )
    assert first[at].failure is not None
    assert first[at].failure.advice == fix(stage, WORK.device), "each step has its fix"
    assert {step.text for step in first[at + 1 :]} <= {f"needs {stage}"}
    assert len(steps) == 2 * len(STEPS), "told again when it was tried again"


def test_a_condition_that_the_device_lacks_is_found_after_its_topology_was_verified() -> None:
    device = WORK.device.model_copy(update={"conditions": Conditions(boost=False, required=["boost"])})

    def die(_key: BootKey) -> None:
        met(device, [Standing("boost", "off", "on", met=False)])

    result, steps = walk(ScriptedDevice(on_boot=die))
    told = {step.step: step for step in steps[: len(STEPS)]}
    assert [told[step].outcome for step in [*BOOT_STEPS, DeviceStep.TOPOLOGY]] == [StepOutcome.OK] * 5
    assert told[DeviceStep.TOPOLOGY].text == "as declared"
    detectors = told[DeviceStep.DETECTORS]
    assert (detectors.outcome, detectors.text) == (
        StepOutcome.SKIPPED,
        "not tried: fitness failed before the script began",
    ), "nobody looked at them"
    failed = told[DeviceStep.FITNESS]
    assert (failed.outcome, failed.failure and "`required`" in failed.failure.advice) == (StepOutcome.FAILED, True)
    assert "boost off is required, found on" in failed.text
    assert told[DeviceStep.SCRATCH].text == "needs fitness"
    assert result.device_suspect


def test_what_the_script_complains_of_is_the_step_after_the_last_it_came_through() -> None:
    device = script(TOPOLOGY, "failed\tinfrastructure\tCONFIG_WQ_WATCHDOG is off")
    result, steps = walk(device)
    (failed,) = [step for step in steps[: len(STEPS)] if step.outcome is StepOutcome.FAILED]
    assert (failed.step, failed.text) == (DeviceStep.DETECTORS, "CONFIG_WQ_WATCHDOG is off")
    assert result.device_suspect


def test_a_console_that_does_not_carry_the_kernels_log_fails_the_detectors() -> None:
    result, steps = walk(script(TOPOLOGY, DETECTORS, *FINE, "fact\thealthy\tyes", on_console=False))
    (failed,) = [step for step in steps[: len(STEPS)] if step.outcome is StepOutcome.FAILED]
    assert failed.step is DeviceStep.DETECTORS
    assert "no detector would be seen" in failed.text
    assert result.device_suspect


def advice_on_power(**device: object) -> str:
    job = WORK.model_copy(update={"device": WORK.device.model_copy(update=device)})
    told = Told()
    failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="the power could not be switched on")
    Walk(job, told, lambda: datetime.now(UTC)).failed(DeviceFailure(failure, stage=DeviceStep.POWER))
    (failed,) = [step for step in told.of(CheckStep) if step.failure]
    assert failed.step is DeviceStep.POWER
    advice: str = failed.failure.advice
    return advice


def test_the_fix_of_power_is_for_what_switches_it() -> None:
    assert "labgrid-client -p unit-0 power cycle" in advice_on_power()
    own = advice_on_power(power=ExternalPower(turn_on="ipmitool -P secret on", turn_off="ipmitool -P secret off"))
    assert "`power:`" in own and "labgrid-client" not in own
    assert "secret" not in own, "everybody reads it"
    assert "LAVA" in advice_on_power(backend="lava") and "labgrid" not in advice_on_power(backend="lava")


def test_the_advice_of_the_failure_itself_comes_before_the_steps_own() -> None:
    def die(_key: BootKey) -> None:
        failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="wrong", advice="do this")
        raise DeviceFailure(failure, stage=DeviceStep.KEXEC)

    _, steps = walk(ScriptedDevice(on_boot=die))
    assert {step.failure.advice for step in steps if step.failure} == {"do this"}


def test_a_measuring_run_tells_no_steps() -> None:
    told = Told()
    device = script("step\tdetectors\tok\ton", "fact\thealthy\tyes")
    measured = work(RunPurpose.MEASURE)
    measure(measured, measured.blocks, device, told, Stop(), clock=device.clock)
    assert not told.of(CheckStep)
