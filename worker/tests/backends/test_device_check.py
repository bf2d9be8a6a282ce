"""The health check's own plan on an emulated device, told step by step, through real labgrid."""

from __future__ import annotations

import time

import pytest

from wqlab_contracts.enums import Arm, DeviceStep, Outcome, RunPurpose, StepOutcome
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import BootVerified, CheckStep, RunJob
from wqlab_contracts.specs import Conditions
from wqlab_worker.backends.conditions import LACKING
from wqlab_worker.measure.health_check import STEPS

from .conftest import ROOT, DeviceLab, Told
from .test_devices import execute

pytestmark = [pytest.mark.device, pytest.mark.timeout(900)]


def health_check(lab: DeviceLab, run_id: int) -> RunJob:
    data = load_data(ROOT)
    plan = data.plans["health-check"]
    job = lab.job([[Arm.BASELINE]], run_id=run_id)
    return job.model_copy(
        update={
            "purpose": RunPurpose.HEALTH_CHECK,
            "plan": plan,
            "profile": plan.emulated,
            "files": data.plan_files(plan.name),
            "device": job.device.model_copy(update={"conditions": Conditions(governor="performance", boost=False)}),
        }
    )


def test_a_fit_device_comes_through_every_step(device_lab: DeviceLab) -> None:
    device_lab.faults("tiny-1")
    told = Told()
    started = time.monotonic()
    result = execute(device_lab, health_check(device_lab, 301), told)
    steps = told.of(CheckStep)
    for step in steps:
        print(f"{step.outcome:8}{step.step:10} {step.text}")
    print(f"{time.monotonic() - started:.0f} s")
    assert result.outcome is Outcome.PASSED
    assert [step.step for step in steps] == list(STEPS)
    assert [step.outcome for step in steps] == [StepOutcome.OK] * 7 + [StepOutcome.SKIPPED]
    assert "heard on the console" in steps[5].text, "the detectors"
    (boot,) = told.of(BootVerified)
    assert boot.environment["governor"] == f"{LACKING} (wanted performance)", "an emulated CPU has one speed"
    assert boot.environment["boost"] == f"{LACKING} (wanted off)"


@pytest.mark.nightly  # what a topology is compared with: test_probe.py
def test_another_topology_than_declared_is_the_step_that_fails(device_lab: DeviceLab) -> None:
    device_lab.faults("tiny-1")
    job = health_check(device_lab, 302)
    other = job.device.topology.model_copy(update={"cores_per_l3": 4})
    told = Told()
    result = execute(
        device_lab, job.model_copy(update={"device": job.device.model_copy(update={"topology": other})}), told
    )
    assert (result.outcome, result.device_suspect) == (Outcome.FAILED, True)
    last = {step.step: step for step in told.of(CheckStep)}
    failed = last[DeviceStep.TOPOLOGY]
    assert (failed.outcome, last[DeviceStep.KEXEC].outcome) == (StepOutcome.FAILED, StepOutcome.OK)
    assert "2 CPUs, declared 4" in failed.text
    assert last[DeviceStep.DETECTORS].text == "needs topology"


@pytest.mark.nightly  # how the steps are told: test_walk.py
def test_a_condition_that_is_required_and_lacking_fails_fitness(device_lab: DeviceLab) -> None:
    device_lab.faults("tiny-1")
    job = health_check(device_lab, 303)
    strict = job.device.conditions.model_copy(update={"required": ["governor"]})
    told = Told()
    result = execute(
        device_lab, job.model_copy(update={"device": job.device.model_copy(update={"conditions": strict})}), told
    )
    assert (result.outcome, result.device_suspect) == (Outcome.FAILED, True)
    last = {step.step: step for step in told.of(CheckStep)}
    assert [last[step].outcome for step in STEPS] == (
        [StepOutcome.OK] * 5 + [StepOutcome.SKIPPED, StepOutcome.FAILED, StepOutcome.SKIPPED]
    )
    assert f"governor performance is required, found {LACKING}" in last[DeviceStep.FITNESS].text
