"""Attribution of failures to kernel, device or lab; each failure costs only its block."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from wqlab_contracts.enums import Arm, ErrorKind, FindingKind, NotMeasuredCause, Outcome, RunPurpose
from wqlab_contracts.messages import (
    BlockDiscarded,
    BlockFinished,
    BootFinished,
    BootKey,
    BootStarted,
    Failure,
    Finding,
    RunResult,
    Samples,
    Unsupported,
)
from wqlab_worker.backends.cancellation import Stop, canceled
from wqlab_worker.measure.device_interface import DeviceFailure, ScriptOutput

from .scripted import AB, ScriptedDevice, answer, job, kernel_failure_error, key, lab_failure, run

BA = [Arm.CANDIDATE, Arm.BASELINE]


def failing(*times: int, error: object = None, where: str = "measure", arm: Arm | None = None) -> ScriptedDevice:
    """Return a device whose n-th boots fail (counted from 1, of one arm or of all)."""
    counted: list[BootKey] = []
    failed: set[int] = set()

    def applies(which: BootKey) -> bool:
        if which not in counted and (arm is None or which.arm is arm):
            counted.append(which)
        return which in counted and (counted.index(which) + 1) in times

    def on_boot(which: BootKey) -> None:
        if applies(which) and where == "boot":
            raise error  # type: ignore[misc]

    def on_script(which: BootKey, action: str, environment: Mapping[str, str]) -> None:
        if where == "measure" and action == "measure" and applies(which) and counted.index(which) not in failed:
            failed.add(counted.index(which))
            raise error  # type: ignore[misc]

    return ScriptedDevice(on_boot=on_boot, on_script=on_script)


def test_an_infrastructure_failure_discards_the_block_and_is_retried_whole() -> None:
    device = failing(2, error=lab_failure())
    result, sink = run(job(blocks=1), device)
    assert result.outcome is Outcome.PASSED
    (discarded,) = sink.of(BlockDiscarded)
    assert (discarded.block, discarded.attempt) == (0, 0)
    assert device.boots == [
        key(0, 0, Arm.BASELINE, 0),
        key(0, 1, Arm.CANDIDATE, 0),
        key(0, 0, Arm.BASELINE, 1),
        key(0, 1, Arm.CANDIDATE, 1),
    ]
    assert [(event.block, event.attempt) for event in sink.of(BlockFinished)] == [(0, 1)]


@pytest.mark.parametrize(
    ("error", "counts_against"),
    [
        (lab_failure("the console server closed the connection"), None),
        (lab_failure("the device answers, but the script did not end", of_variant=True), Arm.CANDIDATE),
        (kernel_failure_error(), Arm.CANDIDATE),
    ],
)
def test_discard_counts_against_an_arm_only_if_seen_through_the_device(
    error: DeviceFailure, counts_against: Arm | None
) -> None:
    result, sink = run(job(blocks=1), failing(2, error=error))
    assert result.outcome is Outcome.PASSED
    assert [discarded.arm for discarded in sink.of(BlockDiscarded)] == [counts_against]


def test_second_infrastructure_failure_is_returned_to_the_server() -> None:
    result, sink = run(job(), failing(1, 2, error=lab_failure(suspect=True), where="boot"))
    assert result.outcome is Outcome.FAILED
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert result.device_suspect
    assert len(sink.of(BlockDiscarded)) == 2
    assert not sink.of(BlockFinished)


def test_single_kernel_failure_discards_only_its_block() -> None:
    result, sink = run(job(), failing(1, error=kernel_failure_error(), arm=Arm.CANDIDATE))
    assert result.outcome is Outcome.PASSED
    (discarded,) = sink.of(BlockDiscarded)
    assert discarded.arm is Arm.CANDIDATE
    assert [(event.block, event.attempt) for event in sink.of(BlockFinished)] == [(0, 1), (1, 0)]


def test_two_equal_kernel_failures_end_the_run() -> None:
    result, sink = run(job(blocks=5), failing(1, 2, error=kernel_failure_error(), arm=Arm.CANDIDATE))
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    assert not result.device_suspect
    assert [event.arm for event in sink.of(BlockDiscarded)] == [Arm.CANDIDATE, Arm.CANDIDATE]
    assert not sink.of(BlockFinished)


def test_three_different_kernel_failures_end_the_run() -> None:
    deaths = iter(["a", "b", "c", "d"])

    def die(which: BootKey, action: str, environment: Mapping[str, str]) -> None:
        if action == "measure" and which.arm is Arm.CANDIDATE:
            raise kernel_failure_error(next(deaths))

    result, sink = run(job(blocks=9), ScriptedDevice(on_script=die))
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    assert len(sink.of(BlockDiscarded)) == 3


def test_candidate_that_never_boots_ends_the_run_after_two_attempts() -> None:
    deaths = iter(["one way", "another way"])

    def die(which: BootKey) -> None:
        if which.arm is Arm.CANDIDATE:
            raise kernel_failure_error(next(deaths))

    device = ScriptedDevice(on_boot=die)
    result, sink = run(job(blocks=5), device)
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    assert sum(which.arm is Arm.CANDIDATE for which in device.boots) == 2
    assert not sink.of(BlockFinished)


def test_candidate_failure_needs_a_device_where_the_other_arm_boots() -> None:
    def die(which: BootKey) -> None:
        if which.arm is Arm.CANDIDATE:
            raise kernel_failure_error()

    device = ScriptedDevice(on_boot=die)
    candidate_first = job(arms=[[Arm.CANDIDATE, Arm.BASELINE]])
    result, sink = run(candidate_first, device)
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    assert device.boots[-1] == key(0, 1, Arm.BASELINE, 1), "the control boot"
    assert not [s for s in device.scripts if s[0].arm is Arm.BASELINE], "a control is not measured"
    assert not sink.of(BlockFinished)


def panicking(*arms: Arm, error: DeviceFailure | None = None) -> ScriptedDevice:
    """Return a device on which the workload crashes the kernels of these arms; the other arm raises `error`."""

    def on_script(which: BootKey, action: str, environment: Mapping[str, str]) -> None:
        if action == "measure" and which.arm in arms:
            raise kernel_failure_error()
        if action == "measure" and error:
            raise error

    return ScriptedDevice(on_script=on_script)


@pytest.mark.parametrize("order", [AB, BA])
def test_candidate_is_blamed_only_after_the_baseline_came_through_the_workload(order: list[Arm]) -> None:
    device = panicking(Arm.CANDIDATE)
    result, sink = run(job(arms=[order]), device)
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    passed = [event.boot.arm for event in sink.of(BootFinished) if event.outcome is Outcome.PASSED]
    assert Arm.BASELINE in passed
    measured = [which.arm for which, action, _ in device.scripts if action == "measure"]
    assert Arm.BASELINE in measured, "the control runs the workload"


def test_workload_that_crashes_both_kernels_blames_neither() -> None:
    result, _ = run(job(arms=[BA]), panicking(Arm.CANDIDATE, Arm.BASELINE))
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert result.failure.summary.startswith("neither kernel comes through the workload on this device")
    assert result.device_suspect


@pytest.mark.parametrize("kind", [ErrorKind.INFRASTRUCTURE, ErrorKind.CANCELED])
def test_control_boot_that_the_lab_ended_blames_no_kernel(kind: ErrorKind) -> None:
    error = DeviceFailure(Failure(kind=kind, summary="the control ended"))
    result, _ = run(job(arms=[BA]), panicking(Arm.CANDIDATE, error=error))
    assert result.failure and (result.failure.kind, result.failure.summary) == (kind, "the control ended")
    assert not result.device_suspect


def test_candidate_that_boots_only_on_a_device_where_nothing_else_does_is_not_blamed() -> None:
    """The candidate came up and crashed later; the baseline does not come up at all."""

    def on_boot(which: BootKey) -> None:
        if which.arm is Arm.BASELINE:
            raise kernel_failure_error("another")

    device = panicking(Arm.CANDIDATE)
    device.on_boot = on_boot
    result, _ = run(job(arms=[BA]), device)
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE


def test_device_on_which_no_kernel_boots_is_suspect() -> None:
    def die(_which: BootKey) -> None:
        raise kernel_failure_error()

    result, _ = run(job(arms=[[Arm.CANDIDATE, Arm.BASELINE]]), ScriptedDevice(on_boot=die))
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert result.device_suspect


def test_a_health_check_never_blames_its_kernel() -> None:
    work = job(arms=[[Arm.BASELINE]], purpose=RunPurpose.HEALTH_CHECK, kernels=(Arm.BASELINE,))
    result, _ = run(work, failing(1, error=kernel_failure_error()))
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert result.device_suspect


def test_failure_of_health_check_script_suspects_the_device() -> None:
    def unfit(_key: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        return "failed\tinfrastructure\tscratch device is not there\n" if action == "measure" else None

    work = job(arms=[[Arm.BASELINE]], purpose=RunPurpose.HEALTH_CHECK, kernels=(Arm.BASELINE,))
    result, sink = run(work, ScriptedDevice(on_script=unfit))
    assert result.failure and result.failure.summary == "scratch device is not there"
    assert result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert result.device_suspect
    assert len(sink.of(BlockDiscarded)) == 2, "the failure is confirmed by a second boot"


def test_interrupted_health_check_does_not_suspect_the_device() -> None:
    work = job(arms=[[Arm.BASELINE]], purpose=RunPurpose.HEALTH_CHECK, kernels=(Arm.BASELINE,))
    result, _ = run(work, failing(1, 2, error=lab_failure(), where="boot"))
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert not result.device_suspect


def test_garbled_output_is_not_measured() -> None:
    def broken(_key: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        return answer(environment).replace("12.5", "garbage") if action == "measure" else None

    result, sink = run(job(blocks=1), ScriptedDevice(on_script=broken))
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "not measured" in result.failure.summary
    assert not [sample for event in sink.of(Samples) for sample in event.samples]


def without(metric: str, *calls: int, arm: Arm = Arm.CANDIDATE) -> ScriptedDevice:
    """Return a device without samples in some repetitions of the first cell of each boot of `arm`."""
    seen: Counter[BootKey] = Counter()

    def on_script(which: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        if action != "measure" or which.arm is not arm:
            return None
        empty = seen[which] - 1 in calls  # the call before warms the boot
        seen[which] += 1
        return answer(environment).replace(f"value\t{metric}\t12.5\n", "") if empty else None

    return ScriptedDevice(on_script=on_script)


@pytest.mark.parametrize("calls", [(1,), (2,), (1, 2), (0, 1, 2)])
def test_cell_without_samples_is_reported_and_the_plan_continues(calls: tuple[int, ...]) -> None:
    """One repetition without samples leaves the boot without a value."""
    result, sink = run(job(blocks=2), without("speed", *calls))
    assert result == RunResult(outcome=Outcome.PASSED)
    assert not sink.of(BlockDiscarded)
    lacks = sink.of(Unsupported)
    assert [(each.boot.arm, each.metric, each.cause, each.reason) for each in lacks] == [
        (Arm.CANDIDATE, "speed", NotMeasuredCause.NO_SAMPLES, "no value of speed in the output")
    ] * 2
    cells = {(each.boot, each.scenario, each.setting) for each in lacks}
    figures = Counter(
        (event.boot, each.scenario, each.setting, each.metric)
        for event in sink.of(Samples)
        for each in event.samples
        if not each.warmup
    )
    assert len(figures) == 4 * 4 * 2 - 2
    assert not any((*cell, "speed") in figures for cell in cells)
    assert all(figures[(*cell, "share")] == 1 for cell in cells)


def test_warm_up_without_samples_does_not_affect_other_figures() -> None:
    result, sink = run(job(blocks=1), without("speed", 0))
    assert result.outcome is Outcome.PASSED
    assert len(sink.of(Unsupported)) == 1
    figures = [each for event in sink.of(Samples) for each in event.samples if not each.warmup]
    assert len(figures) == 2 * 4 * 3


def test_failed_script_is_a_failure_not_missing_samples() -> None:
    class Failing(ScriptedDevice):
        def script(self, action: str, *rest: Any, **more: Any) -> ScriptOutput:
            output = super().script(action, *rest, **more)
            return replace(output, stdout="", status=1) if action == "measure" else output

    result, sink = run(job(blocks=1), Failing())
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "exit status 1" in result.failure.summary
    assert not sink.of(Unsupported)


def test_a_wrong_result_is_a_finding_against_the_kernel() -> None:
    def corrupt(which: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        if action == "measure" and which.arm is Arm.CANDIDATE:
            return "failed\tkernel\tverify: bad header at offset 0\n"
        return None

    result, sink = run(job(), ScriptedDevice(on_script=corrupt))
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    findings = sink.of(Finding)
    assert {(f.kind, f.boot.arm, f.fatal) for f in findings} == {(FindingKind.WRONG_RESULT, Arm.CANDIDATE, True)}


# --- a workload that breaks -------------------------------------------------------------------------------------------


def breaking(*arms: Arm, say: str = "dmsetup refuses the table: error {}", times: int = 99) -> ScriptedDevice:
    """Return a device whose script fails in the first boots of these arms, with a varying number in the text."""
    failed: list[BootKey] = []

    def on_script(which: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        if action == "measure" and which.arm in arms and len(failed) < times:
            failed.append(which)
            return f"failed\tinfrastructure\t{say.format(len(failed))}\n"
        return None

    return ScriptedDevice(on_script=on_script)


def test_workload_failure_on_the_candidate_only_is_a_kernel_failure() -> None:
    result, sink = run(job(), breaking(Arm.CANDIDATE))
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    assert result.failure.summary.startswith("dmsetup refuses the table")
    assert not result.device_suspect
    assert not sink.of(BlockFinished)


def test_control_boot_of_the_baseline_is_measured() -> None:
    device = breaking(Arm.CANDIDATE)
    result, _ = run(job(arms=[BA]), device)
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    assert device.boots == [key(0, 0, Arm.CANDIDATE, 0), key(0, 0, Arm.CANDIDATE, 1), key(0, 1, Arm.BASELINE, 1)]
    assert [action for which, action, _ in device.scripts if which.arm is Arm.BASELINE].count("measure") > 0


@pytest.mark.parametrize("order", [AB, BA])
def test_workload_failure_on_both_arms_is_infrastructure(order: list[Arm]) -> None:
    result, _ = run(job(arms=[order]), breaking(Arm.BASELINE, Arm.CANDIDATE))
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE


def test_single_workload_failure_is_repeated() -> None:
    result, _ = run(job(), breaking(Arm.CANDIDATE, times=1))
    assert result == RunResult(outcome=Outcome.PASSED)


def test_two_different_failures_are_not_attributed_to_the_candidate() -> None:
    ways = iter(["mount fails", "dmsetup refuses"])

    def on_script(which: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        if action == "measure" and which.arm is Arm.CANDIDATE:
            return f"failed\tinfrastructure\t{next(ways)}\n"
        return None

    result, _ = run(job(), ScriptedDevice(on_script=on_script))
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE


def test_candidate_without_network_is_the_kernels_failure() -> None:
    def mute(which: BootKey) -> None:
        if which.arm is Arm.CANDIDATE:
            raise lab_failure("the variant is up, but does not answer by SSH", suspect=True, of_variant=True)

    result, _ = run(job(), ScriptedDevice(on_boot=mute))
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    assert not result.device_suspect


def test_failure_before_the_kernel_runs_is_never_the_kernels() -> None:
    def no_power(which: BootKey) -> None:
        if which.arm is Arm.CANDIDATE:
            raise lab_failure("the power could not be switched on", suspect=True)

    result, _ = run(job(), ScriptedDevice(on_boot=no_power))
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert result.device_suspect


# --- cancel -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", range(0, 40, 3))
def test_cancel_at_any_point_ends_canceled_with_the_device_off(at: int) -> None:
    stop = Stop()
    steps = iter(range(1000))

    def on_script(_key: BootKey, action: str, environment: Mapping[str, str]) -> None:
        if next(steps) == at:
            stop.request(canceled())

    result, sink = run(job(), ScriptedDevice(on_script=on_script), stop)
    assert result.outcome is Outcome.CANCELED
    assert result.failure and result.failure.kind is ErrorKind.CANCELED
    assert len(sink.of(BlockFinished)) == at // 36
    assert [event.arm for event in sink.of(BlockDiscarded)] == [None], "a boot that was stopped did not fail"
    assert len(sink.of(BootStarted)) == len(sink.of(BootFinished))


def test_lost_lease_is_not_retried() -> None:
    stop = Stop()

    def on_script(_key: BootKey, action: str, environment: Mapping[str, str]) -> None:
        stop.request(lab_failure("lease lost").failure)

    result, sink = run(job(), ScriptedDevice(on_script=on_script), stop)
    assert result.failure and result.failure.summary == "lease lost"
    assert len(sink.of(BootStarted)) == 1
