"""Quote of a request: every figure comes from a measured time or from the plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wqlab_contracts.api.quotes import QuoteBasis
from wqlab_contracts.enums import DeviceHealth, JobState, RunPurpose
from wqlab_contracts.specs import DeviceType, Profile, TestPlan
from wqlab_server.estimates.lab_snapshot import DeviceSnapshot, LabSnapshot, UnfinishedRun
from wqlab_server.estimates.timings import BootTime, MeanTime
from wqlab_server.submissions.quote_calculation import (
    Request,
    RequestedKernel,
    RequestedTarget,
    SimilarBoots,
    boot_time,
    quote,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DEVICE = DeviceType.model_validate(
    {
        "name": "tiny",
        "summary": "s",
        "arch": "x86_64",
        "topology": {"sockets": 1, "l3_per_socket": 1, "cores_per_l3": 2, "threads_per_core": 1},
        "boot": {"power_off_s": 2, "golden_timeout_s": 100, "variant_timeout_s": 100},
        "units": [{"name": "t1"}],
    }
)
PLAN = TestPlan.model_validate(
    {
        "name": "fsync",
        "summary": "s",
        "script": "run.sh",
        "parser": "fio",
        "scenarios": [{"name": "a", "summary": "s"}, {"name": "b", "summary": "s", "parameters": {"runtime_s": 10}}],
        "reference_setting": "",
        "hardware": {
            "settings": [""],
            "blocks": 6,
            "repetitions": {"warmup": 1, "untraced": 2, "traced": 1},
            "measure_timeout_s": 60,
        },
        "emulated": {"settings": [""]},
        "metrics": [],
    }
)
PAST = BootTime(seconds=50.0, count=12, workload_s=30.0, cells=2.0)
BUILT = MeanTime(600.0, 3)


def target_of(index: int = 0, measured: BootTime | None = PAST, **profile: Any) -> RequestedTarget:
    changed = PLAN.hardware.model_copy(update=profile)
    return RequestedTarget(index, PLAN, DEVICE, Profile.model_validate(changed.model_dump()), 2, measured, None)


def lab_state(
    *health: DeviceHealth, work: list[UnfinishedRun] | None = None, leased: dict[str, int] | None = None
) -> LabSnapshot:
    devices = [
        DeviceSnapshot(f"t{number}", "tiny", "local", each, (leased or {}).get(f"t{number}"))
        for number, each in enumerate(health, 1)
    ]
    return LabSnapshot(NOW, devices, work or [], {})


def other(number: int, **changes: Any) -> UnfinishedRun:
    fields = {
        "run_id": number, "submission_id": number, "title": "t", "owner": "bob", "purpose": RunPurpose.MEASURE,
        "plan": "fsync", "device_type": "tiny", "wanted_device": None, "wanted_backend": None, "device": None,
        "state": JobState.QUEUED,
        "priority": 50, "created_at": NOW - timedelta(minutes=5), "boots_left": 12, "boot_s": 10.0,
    }  # fmt: skip
    return UnfinishedRun(**fields | changes)


def request(*targets: RequestedTarget, kernels: tuple[MeanTime | None, ...] = (BUILT, BUILT), **more: Any) -> Request:
    return Request("alice", 50, targets, [RequestedKernel("measure", time) for time in kernels], **more)


GOOD = DeviceHealth.GOOD


def test_quote_uses_measured_boot_times() -> None:
    found = quote(request(target_of()), lab_state(GOOD))
    (target,) = found.targets
    assert (target.blocks, target.boots, target.boot_s, target.device_s) == (6, 12, 50.0, 600.0)
    assert (target.basis, target.measured_boots) == (QuoteBasis.MEASURED, 12)
    assert found.basis is QuoteBasis.MEASURED
    assert (found.build_s, found.device_s) == (1200.0, 600.0)
    assert found.starts_at == NOW + timedelta(seconds=1200), "once its kernels are built"
    assert found.ends_at == NOW + timedelta(seconds=1800)


def test_more_settings_increase_the_workload_time() -> None:
    seconds, _, text = boot_time(target_of(settings=["", "", ""]))
    assert seconds == 20.0 + 3 * 30.0, "booting takes as long as before"
    assert "scaled from 2 to 6 (scenarios times settings)" in text


def test_fewer_scenarios_reduce_the_boot_time() -> None:
    narrow = replace(target_of(), plan=PLAN.with_scenarios(["b"]))
    assert boot_time(narrow)[0] == 20.0 + 15.0
    assert boot_time(replace(narrow, measured=None))[0] == 52 + 4 * 10


def test_quote_uses_the_plans_times_without_measurements() -> None:
    found = quote(request(target_of(measured=None)), lab_state(GOOD))
    (target,) = found.targets
    assert target.boot_s == 52 + 4 * 5 + 4 * 10, "shares of the limits of boots and one scenario, run time of the other"
    assert (target.basis, target.measured_boots, found.basis) == (QuoteBasis.PLANNED, 0, QuoteBasis.PLANNED)
    assert target.basis_text.startswith("a guess, since fsync was not measured on such a device type yet: 52 s to boot")


def test_boots_on_a_similar_device_type_are_the_guess_for_a_new_one() -> None:
    unmeasured = replace(target_of(measured=None, settings=["", ""]), similar=SimilarBoots("small", PAST))
    seconds, basis, text = boot_time(unmeasured)
    assert (seconds, basis) == (20.0 + 2 * 30.0, QuoteBasis.PLANNED)
    assert text == "a guess, since fsync was not measured on tiny yet: its boots on small"


def test_kernels_never_built_have_no_build_time() -> None:
    found = quote(request(target_of(), kernels=(None, BUILT)), lab_state(GOOD))
    assert (found.build_s, found.starts_at, found.ends_at, found.basis) == (None, None, None, QuoteBasis.UNKNOWN)
    assert found.device_s == 600.0, "the device time is still known"
    assert "have not been built in this lab yet" in found.targets[0].notes[0]


def test_existing_kernel_costs_no_build_time() -> None:
    kernels = [RequestedKernel("measure", None, exists=True), RequestedKernel("measure", BUILT)]
    found = quote(replace(request(target_of()), kernels=kernels), lab_state(GOOD))
    (build,) = found.builds
    assert (build.kernels, build.reused, build.build_s, build.basis) == (2, 1, 600.0, QuoteBasis.MEASURED)
    assert found.starts_at == NOW + timedelta(seconds=600)


def test_builds_of_other_submissions_come_first() -> None:
    found = quote(request(target_of(), builds_ahead=[MeanTime(100.0, 1)]), lab_state(GOOD))
    assert found.starts_at == NOW + timedelta(seconds=1300)


def test_runs_with_a_higher_score_are_ahead() -> None:
    work = [
        other(1, owner="carol", device="t1", state=JobState.RUNNING, boots_left=100),
        other(2),
        other(3, state=JobState.WAITING, boots_left=6),
        other(4, priority=10, created_at=NOW),
        other(5, device_type="huge"),
    ]
    (target,) = quote(request(target_of(), kernels=()), lab_state(GOOD, work=work, leased={"t1": 1})).targets
    assert target.queue_position == 3, (
        "after the runs that wait for a device or for kernels, before the run of lower priority"
    )
    assert (target.ahead_runs, target.ahead_boots) == (3, 118)
    assert target.starts_at == NOW + timedelta(seconds=1000 + 120 + 60)
    assert (target.device_counts.good, target.device_counts.busy) == (0, 1)


def test_two_targets_share_the_devices_of_their_type() -> None:
    found = quote(request(target_of(0), target_of(1), kernels=()), lab_state(GOOD))
    assert [target.starts_at for target in found.targets] == [NOW, NOW + timedelta(seconds=600)]
    assert (found.starts_at, found.ends_at) == (NOW, NOW + timedelta(seconds=1200))
    two_devices = quote(request(target_of(0), target_of(1), kernels=()), lab_state(GOOD, GOOD))
    assert [target.starts_at for target in two_devices.targets] == [NOW, NOW]


@pytest.mark.parametrize(
    ("health", "words", "starts"),
    [
        ((DeviceHealth.QUARANTINED,), "quarantined: no run can start", False),
        ((), "there is no device of this type: no run can start", False),
        ((DeviceHealth.UNKNOWN,), "health check yet", True),
    ],
)
def test_note_describes_unavailable_devices(health: tuple[DeviceHealth, ...], words: str, starts: bool) -> None:
    (target,) = quote(request(target_of(), kernels=()), lab_state(*health)).targets
    assert words in target.notes[0]
    assert (target.starts_at is not None) is starts


def test_quote_lists_the_mistakes_of_the_request() -> None:
    found = quote(request(errors=[{"pointer": "/tree", "detail": "no tree"}]), lab_state(GOOD))
    assert [(error.pointer, error.detail) for error in found.errors] == [("/tree", "no tree")]
    assert (found.targets, found.device_s, found.ends_at) == ([], None, None)


def test_note_tells_of_traced_boots_that_may_follow() -> None:
    (target,) = quote(request(replace(target_of(), traced_boots=4), kernels=()), lab_state(GOOD)).targets
    assert "if a primary metric differs, 4 traced boots more" in target.notes[-1]
    (without,) = quote(request(target_of(), kernels=()), lab_state(GOOD)).targets
    assert not any("traced boots" in note for note in without.notes)
