"""Health check on an emulated device, through real labgrid: its steps and outcomes."""

from __future__ import annotations

import time

import pytest

from wqlab_contracts.enums import Arm, DeviceStep, Outcome, RunPurpose, StepOutcome
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import BootVerified, CheckStep, RunJob, Samples
from wqlab_contracts.specs import Conditions
from wqlab_worker.backends.condition_commands import NOT_AVAILABLE
from wqlab_worker.measure.health_check_report import STEPS

from .conftest import ROOT, DeviceLab, RecordingSink
from .test_devices import execute

pytestmark = pytest.mark.device

CONDITIONS = Conditions(
    governor="performance", boost=False, smt=False, idle_latency_us=2, irq_affinity="0", transparent_hugepages="never",
    ksm=False,
)  # fmt: skip


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
            "device": job.device.model_copy(update={"conditions": CONDITIONS}),
        }
    )


def test_fit_device_passes_every_step(device_lab: DeviceLab) -> None:
    device_lab.faults("tiny-1")
    sink = RecordingSink()
    started = time.monotonic()
    result = execute(device_lab, health_check(device_lab, 301), sink)
    steps = sink.of(CheckStep)
    for step in steps:
        print(f"{step.outcome:8}{step.step:10} {step.text}")
    print(f"{time.monotonic() - started:.0f} s")
    assert result.outcome is Outcome.PASSED
    assert [step.step for step in steps] == list(STEPS)
    assert [step.outcome for step in steps] == [StepOutcome.OK] * 7 + [StepOutcome.SKIPPED]
    assert "appears on the console" in steps[5].text, "the detectors"
    (boot,) = sink.of(BootVerified)
    assert boot.environment["governor"] == f"{NOT_AVAILABLE} (wanted performance)", "an emulated CPU has one speed"
    assert boot.environment["boost"] == f"{NOT_AVAILABLE} (wanted off)"
    for name in ("smt", "idle states", "irq affinity", "microcode", "user processes"):
        print(f"{name:16}{boot.environment.get(name)}")
    assert boot.environment["idle states"] == f"{NOT_AVAILABLE} (wanted at most 2 us)"
    assert boot.environment["smt"] in {"off", "off (notsupported)", "off (notimplemented)"}
    assert boot.environment["irq affinity"].startswith("0"), "an emulated device has interrupts that can be moved"
    assert boot.environment["ksm"] == "off (not in this kernel)"
    assert boot.environment["transparent hugepages"] == "never (not in this kernel)"
    assert {"init", "dropbear"} <= set(boot.environment["user processes"].split())
    facts = {name: text for each in sink.of(Samples) for name, text in each.facts.items()}
    print(facts)
    assert facts["hardware counters"] == "not available: no PMU"
    assert facts["conditions put back"].endswith(" files")


@pytest.mark.nightly  # what a topology is compared with: test_probe.py
def test_topology_difference_fails_the_topology_step(device_lab: DeviceLab) -> None:
    device_lab.faults("tiny-1")
    job = health_check(device_lab, 302)
    other = job.device.topology.model_copy(update={"cores_per_l3": 4})
    sink = RecordingSink()
    result = execute(
        device_lab, job.model_copy(update={"device": job.device.model_copy(update={"topology": other})}), sink
    )
    assert (result.outcome, result.device_suspect) == (Outcome.FAILED, True)
    last = {step.step: step for step in sink.of(CheckStep)}
    failed = last[DeviceStep.TOPOLOGY]
    assert (failed.outcome, last[DeviceStep.KEXEC].outcome) == (StepOutcome.FAILED, StepOutcome.OK)
    assert "2 CPUs, declared 4" in failed.text
    assert last[DeviceStep.DETECTORS].text == "needs topology"


@pytest.mark.nightly  # test_health_check_report.py tests the steps
def test_unsatisfied_required_condition_fails_fitness(device_lab: DeviceLab) -> None:
    device_lab.faults("tiny-1")
    job = health_check(device_lab, 303)
    strict = job.device.conditions.model_copy(update={"required": ["governor"]})
    sink = RecordingSink()
    result = execute(
        device_lab, job.model_copy(update={"device": job.device.model_copy(update={"conditions": strict})}), sink
    )
    assert (result.outcome, result.device_suspect) == (Outcome.FAILED, True)
    last = {step.step: step for step in sink.of(CheckStep)}
    assert [last[step].outcome for step in STEPS] == (
        [StepOutcome.OK] * 5 + [StepOutcome.SKIPPED, StepOutcome.FAILED, StepOutcome.SKIPPED]
    )
    assert f"governor performance is required, found {NOT_AVAILABLE}" in last[DeviceStep.FITNESS].text
