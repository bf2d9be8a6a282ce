"""Contract test of the backends: the same tests on labgrid and on LAVA."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from wqlab_contracts.enums import Arm, ErrorKind, FindingKind, Outcome
from wqlab_contracts.messages import (
    BlockDiscarded,
    BlockFinished,
    BootFinished,
    BootStarted,
    BootVerified,
    Finding,
    RunEvent,
    RunJob,
    RunResult,
    Unsupported,
)
from wqlab_worker.backends.cancellation import Stop, canceled
from wqlab_worker.backends.interface import Backend

from .conftest import DeviceLab, RecordingSink, lasting
from .lavalab import LavaLab

pytestmark = pytest.mark.device

VARIANTS_ONLY = "wqlab.test="
"""Marker: arguments after it are for the variants and not for the golden system."""


@dataclass(frozen=True)
class Target:
    """A backend with a device, and a check that the device was released."""

    job: Callable[..., RunJob]
    backend: Callable[[], Backend]
    assert_released: Callable[[], None]
    facts: dict[str, str]
    """Facts that the lab adds to each boot's environment."""

    def execute(self, job: RunJob, sink: RecordingSink, stop: Stop | None = None) -> RunResult:
        result = self.backend().execute(job, job.blocks, sink, stop or lasting())
        self.assert_released()
        return result


@pytest.fixture(params=["labgrid", pytest.param("lava", marks=pytest.mark.nightly)])
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    if request.param == "lava":
        lava: LavaLab = request.getfixturevalue("lava_lab")
        yield Target(lava.job, lava.backend, lava.assert_released, {"LAVA": f"2026.10 at {lava.trial.url}"})
        return
    lab: DeviceLab = request.getfixturevalue("device_lab")
    lab.faults("tiny-1")

    def assert_released() -> None:
        assert lab.holder("tiny-1") is None, "the place is released"
        assert not lab.powered("tiny-1"), "the device is off"

    yield Target(lab.job, lab.backend, assert_released, {"emulator": lab.bench["emulator"]})


def with_arguments(job: RunJob, arguments: str, **boot: object) -> RunJob:
    """Add kernel arguments for the variants, not for the golden system."""
    changed = job.device.boot.model_copy(
        update={"kernel_arguments": f"{job.device.boot.kernel_arguments} {VARIANTS_ONLY} {arguments}", **boot}
    )
    return job.model_copy(update={"device": job.device.model_copy(update={"boot": changed})})


@pytest.mark.nightly  # each submission of tests/scenarios is such a run, on both backends
def test_run_completes_blocks_of_alternating_boots(target: Target) -> None:
    sink = RecordingSink()
    job = target.job([[Arm.BASELINE, Arm.CANDIDATE], [Arm.CANDIDATE]], run_id=201)
    assert target.execute(job, sink) == RunResult(outcome=Outcome.PASSED)
    verified = sink.of(BootVerified)
    assert [boot.boot.arm for boot in verified] == [Arm.BASELINE, Arm.CANDIDATE, Arm.CANDIDATE]
    assert len({boot.kernel_boot_id for boot in verified}) == len({boot.token for boot in verified}) == 3
    for boot in verified:
        assert f"wqlab.token={boot.token}" in boot.cmdline.split()
        assert boot.build_id_gnu == job.kernels[boot.boot.arm].build_id_gnu
        assert boot.topology.cpus == 2
        assert boot.environment["mitigations"].startswith("off")
        assert boot.environment | target.facts == boot.environment
        assert boot.golden_s > 0
        assert boot.kexec_s > 0
        console = sink.consoles[boot.boot]
        assert console.count(b"Linux version") == 2, "golden system and variant, from the first line on"
        assert b"wqlab-ready token=" + boot.token.encode() in console
    assert [event.block for event in sink.of(BlockFinished)] == [0, 1]
    # The script always reads back `cache`, so the other setting counts as replaced by the kernel.
    assert {event.setting for event in sink.of(Unsupported)} == {"scope=system"}
    for finished in sink.of(BootFinished):
        assert finished.workload_s > 0
        assert 0 <= finished.overhead_s < 60
    assert sum("output-block" in name for name in sink.artifacts) == 3


@pytest.mark.nightly  # tests/scenarios also has kernels that panic
def test_panic_at_boot_is_a_kernel_failure(target: Target) -> None:
    sink = RecordingSink()
    job = with_arguments(target.job([[Arm.CANDIDATE]], run_id=202), "rdinit=/nowhere init=/nowhere")
    result = target.execute(job, sink)
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    assert {finding.kind for finding in sink.of(Finding) if finding.fatal} == {FindingKind.PANIC}
    assert "panic" in result.failure.summary
    assert not sink.of(BootVerified)
    assert [event.attempt for event in sink.of(BlockDiscarded)] == [0, 1], "the failure is confirmed by a second boot"


@pytest.mark.nightly  # test_ssh_device.py tests it without a device
def test_kernel_that_does_not_come_up_in_time_is_a_hang(target: Target) -> None:
    sink = RecordingSink()
    job = with_arguments(target.job([[Arm.CANDIDATE]], run_id=203), "rdinit=/bin/sleep -- 9999", variant_timeout_s=15)
    result = target.execute(job, sink)
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    assert "did not come up" in result.failure.summary
    assert {finding.kind for finding in sink.of(Finding) if finding.fatal} == {FindingKind.HANG}


@pytest.mark.nightly  # tests/scenarios also has kernels that panic
def test_panic_under_load_is_a_kernel_failure(target: Target) -> None:
    sink = RecordingSink()
    job = target.job([[Arm.CANDIDATE]], run_id=204)
    script = job.files["trivial.sh"].replace("case $1 in measure)", "case $1 in measure) echo c > /proc/sysrq-trigger")
    result = target.execute(job.model_copy(update={"files": {"trivial.sh": script}}), sink)
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    panics = [finding for finding in sink.of(Finding) if finding.fatal]
    assert [finding.kind for finding in panics] == [FindingKind.PANIC] * 2
    for panic in panics:
        assert "sysrq triggered crash" in panic.excerpt
        first = panic.excerpt.splitlines()[0].encode()[:20]
        assert sink.consoles[panic.boot][panic.console_offset :].startswith(first)


@pytest.mark.nightly  # test_swapped_kernel.py tests it at each step, on the bench
def test_unexpected_kernel_is_an_infrastructure_failure(target: Target) -> None:
    sink = RecordingSink()
    job = target.job([[Arm.CANDIDATE]], run_id=205, build_id="00" * 20)
    result = target.execute(job, sink)
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "build-id" in result.failure.summary
    assert not sink.of(BootVerified)


def test_cancel_ends_the_run_and_releases_the_device(target: Target) -> None:
    stop = lasting()

    def soon(event: RunEvent) -> None:
        if isinstance(event, BootStarted):
            threading.Timer(6.0, stop.request, [canceled("by its owner")]).start()

    result = target.execute(target.job([[Arm.BASELINE]] * 3, run_id=206, seconds=5), RecordingSink(soon), stop)
    assert result.outcome is Outcome.CANCELED
    assert result.failure and result.failure.kind is ErrorKind.CANCELED
