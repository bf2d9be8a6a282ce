"""BootRunner with a scripted device: events and failure of one boot."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic_core import to_json

from wqlab_contracts.enums import Arm, ErrorKind, FindingKind, Outcome
from wqlab_contracts.messages import BootFinished, BootKey, BootStarted, BootVerified, Finding, Samples, Unsupported
from wqlab_worker.claims.heartbeats import Stop, canceled
from wqlab_worker.measure.boot import BootFailure, BootRunner

from .scripted import RecordingSink, ScriptedDevice, job, kernel_failure_error, key, lab_failure

KEY = key(0, 0, Arm.CANDIDATE)


def run_boot(
    device: ScriptedDevice, stop: Stop | None = None, *, measured: bool = True
) -> tuple[BootFailure | None, RecordingSink]:
    sink = RecordingSink()
    runner = BootRunner(
        job(), device, sink, stop or Stop(), lambda text: None, device.clock, lambda: datetime(2026, 11, 1, tzinfo=UTC)
    )
    failure = runner.run_boot(KEY, measured=measured)
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
    _, sink = run_boot(ScriptedDevice(restored={"conditions put back": "2 files"}))
    assert sink.of(Samples)[-1].facts == {"conditions put back": "2 files"}


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
