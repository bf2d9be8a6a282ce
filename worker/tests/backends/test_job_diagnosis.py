"""Diagnosis of LAVA jobs without results, all of which LAVA reports as incomplete."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from wqlab_contracts.enums import Arm, ErrorKind
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import BootKey, Finding, LavaBoot, RunJob
from wqlab_contracts.specs import Conditions
from wqlab_worker.backends.cancellation import Stop
from wqlab_worker.backends.console_tap import Wakeup
from wqlab_worker.backends.lava.job_definition import define
from wqlab_worker.backends.lava.lava_client import LavaJob, LavaTestCase, LogLine
from wqlab_worker.backends.lava.lava_device import SILENCE_S, LavaDevice, longest_silence_s
from wqlab_worker.measure.device_interface import DeviceFailure
from wqlab_worker.measure.script_calls import calls

from .conftest import ROOT, RecordingSink, trivial_job
from .lava_jobs import SOURCES

DEPLOY, GOLDEN, KEXEC, TEST = (f"start: {n} an-action (timeout 00:04:00) [common]" for n in (1, 2, 3, 4))
JUMP = "[    9.1] kexec_core: Starting new kernel"
PANIC = [
    "[   12.0] Kernel panic - not syncing: sysrq triggered crash",
    "[   12.1] ---[ end Kernel panic - not syncing: sysrq triggered crash ]---",
]
UP_TO_VARIANT = [DEPLOY, GOLDEN, "golden", KEXEC, JUMP]
MEASURING = [
    *UP_TO_VARIANT,
    "wqlab-ready token={token} boot_id=0b6a1e9c-0d6e-4a53-9f0c-4c1f3a2b1c0d",
    TEST,
    "plan-setup",
]


class EndedLava:
    """Fake LAVA server whose job has ended with the given log."""

    def __init__(self, story: list[str], health: str, error: tuple[str, str] | None) -> None:
        self.story, self.health, self.error = story, health, error
        self.token = ""

    def submit(self, definition: str) -> int:
        self.token = definition.split("wqlab.token=")[1].split(maxsplit=1)[0]
        return 5

    def job_url(self, number: int) -> str:
        return f"http://lava/{number}"

    def job(self, number: int) -> LavaJob:
        return LavaJob.model_validate({"id": number, "state": "Finished", "health": self.health})

    def log(self, number: int, start: int = 0) -> list[LogLine]:
        began = datetime(2026, 11, 1, tzinfo=UTC)
        return [
            LogLine(
                dt=began + timedelta(seconds=n),
                lvl="info" if text.startswith("start: ") else "target",
                msg=text.format(token=self.token),
            )
            for n, text in enumerate(self.story)
        ][start:]

    def tests(self, number: int) -> list[LavaTestCase]:
        if self.error is None:
            return []
        kind, text = self.error
        return [
            LavaTestCase(name="job", result="fail", metadata=f"error_type: {kind}\nerror_msg: {json.dumps(text)}\n")
        ]


class NoResults:
    def result(self, boot: str) -> None:
        return None

    def url(self, host: str | None = None) -> str:
        return f"http://{host}:1"

    def close_job(self) -> None:
        pass


def device_of(tmp_path: Path, server: Any, arms: list[Arm]) -> tuple[LavaDevice, RunJob, RecordingSink]:
    """Return a device for a run of one block with these boots."""
    data = load_data(ROOT)
    (tmp_path / "kernel").write_bytes(b"image")
    job = trivial_job(tmp_path / "kernel", "ab" * 20, "6.12", [arms], 12, "qemu-01", 0)
    mapping = data.device_types["tiny"].lava
    assert mapping is not None
    lava = LavaBoot(mapping=mapping, template=data.lava_templates["qemu"])
    job = job.model_copy(update={"device": job.device.model_copy(update={"backend": "lava", "lava": lava})})
    receiver: Any = NoResults()
    sink = RecordingSink()
    device = LavaDevice(
        job, job.blocks, lava=server, receiver=receiver, facts={}, emit=sink, cancel=Stop(), wakeup=Wakeup(),
        define=lambda boots, tokens: define(job, boots, tokens, SOURCES, "name"),
    )  # fmt: skip
    return device, job, sink


def diagnose(
    tmp_path: Path, story: list[str], health: str, error: tuple[str, str] | None
) -> tuple[DeviceFailure, list[Finding]]:
    device, job, sink = device_of(tmp_path, EndedLava(story, health, error), [Arm.CANDIDATE])
    key = BootKey(block=0, position=0, arm=Arm.CANDIDATE, attempt=0)
    with pytest.raises(DeviceFailure) as error_info:
        device.boot(key, job.kernels[Arm.CANDIDATE])
    device.off()
    device.close()
    return error_info.value, sink.of(Finding)


INFRASTRUCTURE, KERNEL = ErrorKind.INFRASTRUCTURE, ErrorKind.KERNEL


@pytest.mark.parametrize(
    ("story", "health", "error", "kind", "words", "suspect"),
    [
        ([DEPLOY], "Incomplete", ("Infrastructure", "no file\r\nx"), INFRASTRUCTURE, "Infrastructure: no file", True),
        ([], "Incomplete", ("Job", "no such device"), INFRASTRUCTURE, "before it booted anything: Job: no such", False),
        ([DEPLOY, GOLDEN, "x"], "Incomplete", ("Job", "timed out"), INFRASTRUCTURE, "golden system did not come", True),
        ([DEPLOY, GOLDEN, *PANIC], "Incomplete", ("Job", "x"), INFRASTRUCTURE, "the golden system failed: panic", True),
        (
            [DEPLOY, GOLDEN, KEXEC, "wqlab-jump: refused: kexec did not load"],
            "Incomplete", ("Job", "timed out"), INFRASTRUCTURE, "did not get to the variant: kexec did not load", False,
        ),
        (
            [DEPLOY, GOLDEN, KEXEC, "root@golden#"],
            "Incomplete", ("Job", "timed out"), INFRASTRUCTURE, "did not start the variant", True,
        ),
        ([*UP_TO_VARIANT, *PANIC], "Incomplete", ("Job", "timed out"), KERNEL, "panic", False),
        (UP_TO_VARIANT, "Incomplete", ("Job", "timed out"), KERNEL, "did not come up", False),
        (
            [*UP_TO_VARIANT, "wqlab-ready token=- boot_id=0b6a1e9c-0d6e-4a53-9f0c-4c1f3a2b1c0d"],
            "Incomplete", ("Job", "timed out"), KERNEL, "rebooted by itself before", False,
        ),
        ([*MEASURING, *PANIC], "Incomplete", ("Test", "timed out"), KERNEL, "panic", False),
        (MEASURING, "Incomplete", ("Job", "lava-test-shell timed out"), KERNEL, "the device does not answer", False),
        (
            [*MEASURING, "wqlab-ready token=- boot_id=1b6a1e9c-0d6e-4a53-9f0c-4c1f3a2b1c0d"],
            "Incomplete", ("Job", "timed out"), KERNEL, "restarted by itself while it was measured", False,
        ),
        (MEASURING, "Incomplete", ("Infrastructure", "connection closed"), INFRASTRUCTURE, "broke off", True),
        (MEASURING, "Canceled", ("Canceled", "by ann"), INFRASTRUCTURE, "was cancelled in LAVA, not by us", False),
        (MEASURING, "Complete", None, INFRASTRUCTURE, "its results did not arrive", False),
    ],
)  # fmt: skip
def test_boot_without_results_is_diagnosed(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    story: list[str],
    health: str,
    error: tuple[str, str] | None,
    kind: ErrorKind,
    words: str,
    suspect: bool,
) -> None:
    monkeypatch.setattr("wqlab_worker.backends.lava.lava_device.POLL_S", 0.01)
    found, findings = diagnose(tmp_path, story, health, error)
    assert (found.failure.kind, found.suspect) == (kind, suspect)
    assert words in found.failure.summary and found.failure.summary.isprintable()
    assert bool([finding for finding in findings if finding.fatal]) == (kind is KERNEL)


class LavaWithRunningJob(EndedLava):
    """Fake LAVA server that has not noticed the device's failure: the job runs until it is cancelled."""

    def __init__(self, story: list[str]) -> None:
        super().__init__(story, "Canceled", None)
        self.submitted = 0
        self.cancelled: list[int] = []

    def submit(self, definition: str) -> int:
        super().submit(definition)
        self.submitted += 1
        return self.submitted

    def cancel(self, number: int) -> None:
        self.cancelled.append(number)

    def job(self, number: int) -> LavaJob:
        state = "Finished" if number in self.cancelled else "Running"
        return LavaJob.model_validate({"id": number, "state": state, "health": self.health})


def test_boot_after_a_kernel_failure_gets_a_new_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Even if the failed job still runs and its next boot is the requested one."""
    monkeypatch.setattr("wqlab_worker.backends.lava.lava_device.POLL_S", 0.01)
    server = LavaWithRunningJob([*UP_TO_VARIANT, *PANIC])
    device, job, _ = device_of(tmp_path, server, [Arm.CANDIDATE, Arm.BASELINE])
    for position, arm in enumerate((Arm.CANDIDATE, Arm.BASELINE)):
        with pytest.raises(DeviceFailure) as error_info:
            device.boot(BootKey(block=0, position=position, arm=arm, attempt=0), job.kernels[arm])
        assert error_info.value.failure.kind is KERNEL
        device.off()
        assert (server.submitted, len(server.cancelled)) == (position + 1, position)
    device.close()
    assert server.cancelled == [1, 2]


def test_device_may_be_silent_while_it_cools_and_then_sets_up(job: RunJob) -> None:
    limit = max(call.limit_s for call in calls(job, 0)) + SILENCE_S
    assert longest_silence_s(job, 0) == limit
    cooling = job.device.model_copy(update={"conditions": Conditions(start_below_c=50, cool_s=900)})
    assert longest_silence_s(job.model_copy(update={"device": cooling}), 0) == limit + 900
