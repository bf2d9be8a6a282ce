"""BootRunner with a scripted device: events and failure of one boot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import pytest
from pydantic_core import to_json

from wqlab_contracts.enums import Arm, ErrorKind, FindingKind, Outcome, RunPurpose
from wqlab_contracts.messages import (
    BootFinished,
    BootKey,
    BootStarted,
    BootVerified,
    Finding,
    RunJob,
    Samples,
    Unsupported,
)
from wqlab_worker.backends.cancellation import Stop, canceled
from wqlab_worker.measure.boot import BootFailure, BootRunner
from wqlab_worker.measure.device_interface import DeviceFailure

from .scripted import RecordingSink, ScriptedDevice, answer, job, kernel_failure_error, key, lab_failure

KEY = key(0, 0, Arm.CANDIDATE)


def runner(work: RunJob, device: ScriptedDevice, sink: RecordingSink, stop: Stop | None = None) -> BootRunner:
    return BootRunner(
        work, device, sink, stop or Stop(), lambda text: None, device.clock, lambda: datetime(2026, 11, 1, tzinfo=UTC)
    )


def run_boot(
    device: ScriptedDevice, stop: Stop | None = None, *, measured: bool = True
) -> tuple[BootFailure | None, RecordingSink]:
    sink = RecordingSink()
    failure = runner(job(), device, sink, stop).run_boot(KEY, measured=measured)
    assert device.on is None, "the device is off"
    return failure, sink


def finished(sink: RecordingSink) -> BootFinished:
    (event,) = sink.of(BootFinished)
    assert isinstance(event, BootFinished)
    assert sink.events[-1] is event
    return event


def test_passed_boot_is_started_verified_measured_and_finished() -> None:
    failure, sink = run_boot(ScriptedDevice())
    assert failure is None
    assert [type(event) for event in sink.events[:2]] == [BootStarted, BootVerified]
    assert sum(len(event.samples) for event in sink.of(Samples)) == 4 * 4
    assert (finished(sink).outcome, finished(sink).failure) == (Outcome.PASSED, None)
    assert [name for _, name, _ in sink.artifacts] == ["output-block0-0-candidate-attempt0.txt"]


def test_boot_without_measuring_only_verifies_the_kernel() -> None:
    device = ScriptedDevice()
    failure, sink = run_boot(device, measured=False)
    assert failure is None
    assert not device.scripts
    assert [type(event) for event in sink.events] == [BootStarted, BootVerified, BootFinished]


def test_failure_before_verification_is_at_boot() -> None:
    def fail(_key: BootKey) -> None:
        raise lab_failure("no golden system", suspect=True)

    failure, sink = run_boot(ScriptedDevice(on_boot=fail))
    assert failure is not None
    assert (failure.at_boot, failure.suspect, failure.failure.of_variant) == (True, True, False)
    assert not sink.of(BootVerified)
    assert finished(sink).outcome is Outcome.FAILED
    assert finished(sink).failure == failure.failure


def test_kernel_failure_while_measuring_keeps_its_signature() -> None:
    def fail(_key: BootKey, action: str, _environment: Mapping[str, str]) -> str | None:
        if action == "measure":
            raise kernel_failure_error("oops: here")
        return None

    failure, sink = run_boot(ScriptedDevice(on_script=fail))
    assert failure is not None
    assert (failure.failure.kind, failure.signature, failure.at_boot) == (ErrorKind.KERNEL, "oops: here", False)
    assert failure.arm is Arm.CANDIDATE
    assert sink.of(BootVerified)


def test_failed_setup_is_attributed_to_the_variant_and_the_boot_reported() -> None:
    def fail(_key: BootKey, action: str, _environment: Mapping[str, str]) -> str | None:
        return "fact\tdisk\tnone\nfailed\tinfrastructure\tno disk\n" if action == "setup" else None

    failure, sink = run_boot(ScriptedDevice(on_script=fail))
    assert failure is not None
    assert (failure.failure.summary, failure.failure.of_variant, failure.suspect) == ("no disk", True, False)
    assert len(sink.of(BootVerified)) == 1


def test_failure_of_the_workloads_verification_is_a_finding() -> None:
    def fail(_key: BootKey, action: str, _environment: Mapping[str, str]) -> str | None:
        return "failed\tkernel\tread back other data\n" if action == "teardown" else None

    failure, sink = run_boot(ScriptedDevice(on_script=fail))
    assert failure is not None and failure.failure.kind is ErrorKind.KERNEL
    (finding,) = sink.of(Finding)
    assert (finding.kind, finding.title, finding.fatal) == (FindingKind.WRONG_RESULT, "read back other data", True)


def test_facts_about_restored_conditions_are_sent() -> None:
    _, sink = run_boot(ScriptedDevice(on_restore=lambda: {"conditions put back": "2 files"}))
    assert sink.of(Samples)[-1].facts == {"conditions put back": "2 files"}


def failing(error: DeviceFailure, before: Callable[[], object] = lambda: None) -> ScriptedDevice:
    """Return a device whose conditions cannot be restored."""

    def fail() -> dict[str, str]:
        before()
        raise error

    return ScriptedDevice(on_restore=fail)


def test_boot_is_kept_if_its_conditions_cannot_be_restored() -> None:
    failure, sink = run_boot(failing(lab_failure("the device did not answer", suspect=True, of_variant=True)))
    assert failure is None
    assert finished(sink).outcome is Outcome.PASSED
    assert sink.of(Samples)[-1].facts == {"conditions put back": "not read (the device did not answer)"}


def test_boot_is_not_kept_if_it_was_interrupted_while_conditions_were_restored() -> None:
    stop = Stop()
    lost = DeviceFailure(lab_failure("the place was lost").failure, place_lost=True)
    ended = failing(lab_failure("ended"), lambda: stop.request(canceled("not needed any more")))
    for device in (failing(lost), ended, failing(kernel_failure_error())):
        failure, sink = run_boot(device, stop if device is ended else None)
        assert failure is not None
        assert finished(sink).outcome is Outcome.FAILED


def canary(emulated: bool, files: dict[str, str]) -> RunJob:
    work = job(purpose=RunPurpose.CANARY)
    return work.model_copy(
        update={"device": work.device.model_copy(update={"emulated": emulated}), "files": work.files | files}
    )


def test_aa_comparison_on_hardware_measures_how_far_the_monitor_disturbs() -> None:
    device, sink = ScriptedDevice(), RecordingSink()

    def slower_beside_the_monitor(_key: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        if action != "measure" or environment["TRACE"] == "1":
            return None
        value = 12.0 if device.monitored[-1] else 12.5
        return answer(environment).replace("12.5", str(value))

    device.on_script = slower_beside_the_monitor
    work = canary(False, {"monitor.sh": ""})
    assert runner(work, device, sink).run_boot(KEY) is None
    assert device.monitored[:7] == [False, True, False, True, False, True, True], "both warm-ups, two pairs, traced"
    effects = {name: text for each in sink.of(Samples) for name, text in each.facts.items() if "monitor's" in name}
    assert effects["monitor's effect low scope=cache"] == "speed -4.00 % (2 monitored, 2 plain repetitions)"
    assert len(effects) == 4
    samples = [sample for each in sink.of(Samples) for sample in each.samples if sample.metric == "speed"]
    assert {sample.value for sample in samples if not sample.warmup} == {12.5}, "monitored ones are not compared"
    numbers = {sample.repetition for each in sink.of(Samples) for sample in each.samples}
    counts = work.profile.repetitions
    assert numbers == set(range(counts.warmup + counts.untraced + counts.traced)), "the server refuses larger numbers"


@pytest.mark.parametrize(("emulated", "files"), [(True, {"monitor.sh": ""}), (False, {})])
def test_monitors_effect_is_not_measured_where_it_means_nothing(emulated: bool, files: dict[str, str]) -> None:
    device = ScriptedDevice()
    assert runner(canary(emulated, files), device, RecordingSink()).run_boot(KEY) is None
    assert len(device.monitored) == 1 + 4 * 4


def test_canceled_run_does_not_boot_the_device() -> None:
    device, stop = ScriptedDevice(), Stop()
    stop.request(canceled("not needed any more"))
    failure, sink = run_boot(device, stop)
    assert failure is not None and failure.failure.kind is ErrorKind.CANCELED
    assert not device.boots
    assert finished(sink).outcome is Outcome.CANCELED


def test_a_device_cannot_make_an_event_too_large_for_the_server() -> None:
    """The server refuses events of more than 256 KiB, which would end the run as a failure of the lab."""
    text = "\U0001f512" * 100_000

    def print_much(_key: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        facts = "".join(f"fact\t{action} {number}\t{text}\n" for number in range(100))
        if action == "setup":
            return facts
        if action == "measure" and environment["SCENARIO"] == "low":
            return f"{facts}unsupported\t*\t{text}\n"
        return f"{facts}failed\tinfrastructure\t{text}\n" if action == "teardown" else None

    failure, sink = run_boot(ScriptedDevice(on_script=print_much))
    assert failure is not None and failure.failure.of_variant
    assert sink.of(Unsupported)
    assert max(len(to_json(event)) for event in sink.events) < 256 << 10
    (verified,) = sink.of(BootVerified)
    assert verified.environment["setup 0"].endswith(" [...]")
    assert int(verified.environment["facts left out"]) > 50
