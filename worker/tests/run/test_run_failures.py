"""Whatever fails in a run is blamed on the right party, and costs its block and no other."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from wqlab_contracts.enums import Arm, ErrorKind, FindingKind, Outcome, RunPurpose
from wqlab_contracts.messages import (
    BlockDiscarded,
    BlockFinished,
    BootFinished,
    BootKey,
    BootStarted,
    Finding,
    RunResult,
    Samples,
    Unsupported,
)
from wqlab_worker.claims.heartbeats import Stop, canceled
from wqlab_worker.measure.device import DeviceFailure, ScriptOutput

from .scripted import AB, ScriptedDevice, answer, job, kernel_death, key, lab_failure, run


def failing(*times: int, error: object = None, where: str = "measure", arm: Arm | None = None) -> ScriptedDevice:
    """A device that fails in its n-th boots (counted from 1, of one arm or of all)."""
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
    result, told = run(job(blocks=1), device)
    assert result.outcome is Outcome.PASSED
    (discarded,) = told.of(BlockDiscarded)
    assert (discarded.block, discarded.attempt, discarded.arm) == (0, 0, Arm.CANDIDATE), "whose boot it was is kept"
    assert device.boots == [
        key(0, 0, Arm.BASELINE, 0),
        key(0, 1, Arm.CANDIDATE, 0),
        key(0, 0, Arm.BASELINE, 1),
        key(0, 1, Arm.CANDIDATE, 1),
    ]
    assert [(event.block, event.attempt) for event in told.of(BlockFinished)] == [(0, 1)]


def test_a_second_infrastructure_failure_goes_back_to_the_server() -> None:
    result, told = run(job(), failing(1, 2, error=lab_failure(suspect=True), where="boot"))
    assert result.outcome is Outcome.FAILED
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert result.device_suspect
    assert len(told.of(BlockDiscarded)) == 2
    assert not told.of(BlockFinished)


def test_one_kernel_death_discards_the_block_against_its_arm_and_the_run_goes_on() -> None:
    result, told = run(job(), failing(1, error=kernel_death(), arm=Arm.CANDIDATE))
    assert result.outcome is Outcome.PASSED
    (discarded,) = told.of(BlockDiscarded)
    assert discarded.arm is Arm.CANDIDATE
    assert [(event.block, event.attempt) for event in told.of(BlockFinished)] == [(0, 1), (1, 0)]


def test_dying_twice_in_the_same_way_ends_the_run() -> None:
    result, told = run(job(blocks=5), failing(1, 2, error=kernel_death(), arm=Arm.CANDIDATE))
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    assert not result.device_suspect
    assert [event.arm for event in told.of(BlockDiscarded)] == [Arm.CANDIDATE, Arm.CANDIDATE]
    assert not told.of(BlockFinished)


def test_dying_in_ever_new_ways_ends_the_run_too() -> None:
    deaths = iter(["a", "b", "c", "d"])

    def die(which: BootKey, action: str, environment: Mapping[str, str]) -> None:
        if action == "measure" and which.arm is Arm.CANDIDATE:
            raise kernel_death(next(deaths))

    result, told = run(job(blocks=9), ScriptedDevice(on_script=die))
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    assert len(told.of(BlockDiscarded)) == 3


def test_a_candidate_that_never_boots_ends_the_run_after_two_attempts() -> None:
    deaths = iter(["one way", "another way"])

    def die(which: BootKey) -> None:
        if which.arm is Arm.CANDIDATE:
            raise kernel_death(next(deaths))

    device = ScriptedDevice(on_boot=die)
    result, told = run(job(blocks=5), device)
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    assert sum(which.arm is Arm.CANDIDATE for which in device.boots) == 2
    assert not told.of(BlockFinished)


def test_a_candidate_is_blamed_only_on_a_device_where_the_other_arm_comes_up() -> None:
    def die(which: BootKey) -> None:
        if which.arm is Arm.CANDIDATE:
            raise kernel_death()

    device = ScriptedDevice(on_boot=die)
    candidate_first = job(arms=[[Arm.CANDIDATE, Arm.BASELINE]])
    result, told = run(candidate_first, device)
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    assert device.boots[-1] == key(0, 1, Arm.BASELINE, 1), "the control boot"
    assert not [s for s in device.scripts if s[0].arm is Arm.BASELINE], "a control is not measured"
    assert not told.of(BlockFinished)


def test_a_device_on_which_nothing_boots_is_suspect_and_no_kernel_is_blamed() -> None:
    def die(_which: BootKey) -> None:
        raise kernel_death()

    result, _ = run(job(arms=[[Arm.CANDIDATE, Arm.BASELINE]]), ScriptedDevice(on_boot=die))
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert result.device_suspect


def test_a_health_check_never_blames_its_kernel() -> None:
    work = job(arms=[[Arm.BASELINE]], purpose=RunPurpose.HEALTH_CHECK, kernels=(Arm.BASELINE,))
    result, _ = run(work, failing(1, error=kernel_death()))
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert result.device_suspect


def test_what_a_health_checks_script_reports_is_the_devices_fault() -> None:
    def unfit(_key: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        return "failed\tinfrastructure\tscratch device is not there\n" if action == "measure" else None

    work = job(arms=[[Arm.BASELINE]], purpose=RunPurpose.HEALTH_CHECK, kernels=(Arm.BASELINE,))
    result, told = run(work, ScriptedDevice(on_script=unfit))
    assert result.failure and result.failure.summary == "scratch device is not there"
    assert result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert result.device_suspect
    assert len(told.of(BlockDiscarded)) == 2, "once more before it is an answer"


def test_a_health_check_that_the_lab_cut_short_says_nothing_of_the_device() -> None:
    work = job(arms=[[Arm.BASELINE]], purpose=RunPurpose.HEALTH_CHECK, kernels=(Arm.BASELINE,))
    result, _ = run(work, failing(1, 2, error=lab_failure(), where="boot"))
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert not result.device_suspect


def test_garbled_output_is_not_measured_and_never_zero() -> None:
    def broken(_key: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        return answer(environment).replace("12.5", "garbage") if action == "measure" else None

    result, told = run(job(blocks=1), ScriptedDevice(on_script=broken))
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "not measured" in result.failure.summary
    assert not [sample for event in told.of(Samples) for sample in event.samples]


def without(metric: str, *calls: int, arm: Arm = Arm.CANDIDATE) -> ScriptedDevice:
    """A device whose workload gives no samples in some repetitions of the first cell of each boot of `arm`."""
    seen: Counter[BootKey] = Counter()

    def on_script(which: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        if action != "measure" or which.arm is not arm:
            return None
        seen[which] += 1
        empty = seen[which] - 1 in calls
        return answer(environment).replace(f"value\t{metric}\t12.5\n", "") if empty else None

    return ScriptedDevice(on_script=on_script)


@pytest.mark.parametrize("calls", [(1,), (2,), (1, 2), (0, 1, 2)])
def test_a_cell_without_samples_is_told_and_the_plan_goes_on(calls: tuple[int, ...]) -> None:
    """One repetition without is no figure for the boot: the better ones do not stand for all."""
    result, told = run(job(blocks=2), without("speed", *calls))
    assert result == RunResult(outcome=Outcome.PASSED)
    assert not told.of(BlockDiscarded)
    lacks = told.of(Unsupported)
    assert [(each.boot.arm, each.metric, each.reason) for each in lacks] == [
        (Arm.CANDIDATE, "speed", "not measured: no value of speed in the output")
    ] * 2
    cells = {(each.boot, each.scenario, each.setting) for each in lacks}
    figures = Counter(
        (event.boot, each.scenario, each.setting, each.metric)
        for event in told.of(Samples)
        for each in event.samples
        if not each.warmup
    )
    assert len(figures) == 4 * 4 * 2 - 2
    assert not any((*cell, "speed") in figures for cell in cells)
    assert all(figures[(*cell, "share")] == 1 for cell in cells)


def test_a_warm_up_without_samples_takes_no_figure() -> None:
    result, told = run(job(blocks=1), without("speed", 0))
    assert result.outcome is Outcome.PASSED
    assert len(told.of(Unsupported)) == 1
    figures = [each for event in told.of(Samples) for each in event.samples if not each.warmup]
    assert len(figures) == 2 * 4 * 3


def test_a_script_that_failed_has_not_just_no_samples() -> None:
    class Failing(ScriptedDevice):
        def script(self, action: str, *rest: Any, **more: Any) -> ScriptOutput:
            output = super().script(action, *rest, **more)
            return replace(output, stdout="", status=1) if action == "measure" else output

    result, told = run(job(blocks=1), Failing())
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "exit status 1" in result.failure.summary
    assert not told.of(Unsupported)


def test_a_wrong_result_is_a_finding_against_the_kernel() -> None:
    def corrupt(which: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        if action == "measure" and which.arm is Arm.CANDIDATE:
            return "failed\tkernel\tverify: bad header at offset 0\n"
        return None

    result, told = run(job(), ScriptedDevice(on_script=corrupt))
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    findings = told.of(Finding)
    assert {(f.kind, f.boot.arm, f.fatal) for f in findings} == {(FindingKind.WRONG_RESULT, Arm.CANDIDATE, True)}


# --- a workload that breaks -------------------------------------------------------------------------------------------

BA = [Arm.CANDIDATE, Arm.BASELINE]


def breaking(*arms: Arm, say: str = "dmsetup refuses the table: error {}", times: int = 99) -> ScriptedDevice:
    """A device on which the script fails with these arms, in their first so many boots; the text varies in a number."""
    failed: list[BootKey] = []

    def on_script(which: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        if action == "measure" and which.arm in arms and len(failed) < times:
            failed.append(which)
            return f"failed\tinfrastructure\t{say.format(len(failed))}\n"
        return None

    return ScriptedDevice(on_script=on_script)


def test_a_workload_that_breaks_with_the_candidate_alone_is_the_kernels_failure() -> None:
    result, told = run(job(), breaking(Arm.CANDIDATE))
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    assert result.failure.summary.startswith("dmsetup refuses the table")
    assert not result.device_suspect
    assert not told.of(BlockFinished)


def test_the_baseline_is_measured_first_when_the_candidate_went_ahead() -> None:
    device = breaking(Arm.CANDIDATE)
    result, _ = run(job(arms=[BA]), device)
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    assert device.boots == [key(0, 0, Arm.CANDIDATE, 0), key(0, 0, Arm.CANDIDATE, 1), key(0, 1, Arm.BASELINE, 1)]
    assert [action for which, action, _ in device.scripts if which.arm is Arm.BASELINE].count("measure") > 0


@pytest.mark.parametrize("order", [AB, BA])
def test_a_workload_that_breaks_with_both_kernels_is_infrastructure(order: list[Arm]) -> None:
    result, _ = run(job(arms=[order]), breaking(Arm.BASELINE, Arm.CANDIDATE))
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE


def test_a_workload_that_broke_once_is_repeated_and_forgotten() -> None:
    result, _ = run(job(), breaking(Arm.CANDIDATE, times=1))
    assert result == RunResult(outcome=Outcome.PASSED)


def test_breaking_in_two_ways_blames_nobody() -> None:
    ways = iter(["mount fails", "dmsetup refuses"])

    def on_script(which: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        if action == "measure" and which.arm is Arm.CANDIDATE:
            return f"failed\tinfrastructure\t{next(ways)}\n"
        return None

    result, _ = run(job(), ScriptedDevice(on_script=on_script))
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE


def test_a_candidate_that_comes_up_without_a_network_is_blamed_and_the_device_is_not() -> None:
    def mute(which: BootKey) -> None:
        if which.arm is Arm.CANDIDATE:
            no_ssh = lab_failure("the variant is up, but does not answer by SSH", suspect=True).failure
            raise DeviceFailure(no_ssh, suspect=True, of_variant=True)

    result, _ = run(job(), ScriptedDevice(on_boot=mute))
    assert result.failure and result.failure.kind is ErrorKind.KERNEL
    assert not result.device_suspect


def test_what_the_lab_does_before_a_kernel_runs_is_never_held_against_it() -> None:
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

    result, told = run(job(), ScriptedDevice(on_script=on_script), stop)
    assert result.outcome is Outcome.CANCELED
    assert result.failure and result.failure.kind is ErrorKind.CANCELED
    assert len(told.of(BlockFinished)) == at // 36
    assert [event.arm for event in told.of(BlockDiscarded)] == [None], "a boot that was stopped did not fail"
    assert len(told.of(BootStarted)) == len(told.of(BootFinished))


def test_a_lost_lease_is_not_retried_here() -> None:
    stop = Stop()

    def on_script(_key: BootKey, action: str, environment: Mapping[str, str]) -> None:
        stop.request(lab_failure("lease lost").failure)

    result, told = run(job(), ScriptedDevice(on_script=on_script), stop)
    assert result.failure and result.failure.summary == "lease lost"
    assert len(told.of(BootStarted)) == 1
