"""Runs on an instrumented device with the golden kernel."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from wqlab_contracts import instrument
from wqlab_contracts.enums import Arm, ArtifactKind, ErrorKind, FindingKind, Outcome
from wqlab_contracts.messages import BlockDiscarded, BootVerified, Finding, Kernel, RunJob, Samples
from wqlab_worker.backends.cancellation import canceled
from wqlab_worker.backends.instrumented import InstrumentedBackend

from ..conftest import RecordingSink, lasting
from .conftest import job_of

pytestmark = pytest.mark.device
A, B = Arm.BASELINE, Arm.CANDIDATE
Make = Callable[[], InstrumentedBackend]


class ProfileSink(RecordingSink):
    """A `RecordingSink` that keeps the profiles."""

    def __init__(self) -> None:
        super().__init__()
        self.profiles: dict[str, bytes] = {}

    def artifact(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        super().artifact(kind, name, data)
        if kind is ArtifactKind.INSTRUMENT_PROFILE:
            self.profiles[name] = data

    def samples(self) -> list[tuple[str, float]]:
        return [(sample.metric, sample.value) for event in self.of(Samples) for sample in event.samples]


@contextmanager
def load() -> Iterator[None]:
    """Keep a core busy meanwhile."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


def run(backend: Make, job: RunJob) -> ProfileSink:
    sink = ProfileSink()
    result = backend().execute(job, job.blocks, sink, lasting())
    assert result.outcome is Outcome.PASSED, result.failure
    return sink


@pytest.mark.nightly
def test_same_seed_gives_the_same_boot_byte_for_byte(backend: Make, kernel: Kernel) -> None:
    job = job_of(kernel, [[A, B]])
    sink = run(backend, job)
    with load():
        again = run(backend, job.model_copy(update={"blocks": job.blocks}))
    # Both kernels of the block are the same one, so the counts of both arms are equal too.
    first, second = (console for _, console in sorted(sink.consoles.items(), key=lambda item: item[0].position))
    assert first == second == next(iter(again.consoles.values()))
    assert b"wqlab-ready token=0000000000000000" in first
    assert sink.samples() == again.samples()
    half = len(sink.samples()) // 2
    assert sink.samples()[:half] == sink.samples()[half:]
    assert len(set(sink.profiles.values()) | set(again.profiles.values())) == 1
    verified = sink.of(BootVerified)
    assert {event.environment["seed"] for event in verified} == {"0"}
    assert all(event.environment["emulator"].startswith("QEMU ") for event in verified)

    profile = instrument.read(next(iter(sink.profiles.values())))
    (window,) = profile.windows
    values = dict(sink.samples()[:half])
    assert (window.operations, window.unit, profile.seed) == (4, "fsync", 0)
    assert values["instructions_per_op"] == window.instructions / 4
    assert values["transfers_within_l3_per_op"] == window.transfers.within_l3 / 4 > 0
    assert values["transfers_across_l3_per_op"] == 0, "the device has one L3"
    functions = {function.name: function for function in window.functions}
    assert functions["pipe_write"].touched
    assert functions["pipe_write"].file == "fs/pipe.c"
    assert functions["pipe_write"].subsystem == "fs"
    assert values["touched_instructions_per_op"] == functions["pipe_write"].instructions / 4
    assert sum(function.instructions for function in window.functions) == window.instructions
    assert functions["(user space)"].instructions == window.instructions - window.kernel_instructions


@pytest.mark.nightly
def test_seeds_differ(backend: Make, kernel: Kernel) -> None:
    sink = run(backend, job_of(kernel, [[A], [A]]))
    first, second = (value for metric, value in sink.samples() if metric == "instructions_per_op")
    assert first != second
    assert abs(first - second) < 0.2 * first


def test_panic_is_a_finding_of_the_kernel(backend: Make, kernel: Kernel) -> None:
    job = job_of(kernel, [[A, B]])
    boot = job.device.boot.model_copy(update={"kernel_arguments": f"{job.device.boot.kernel_arguments} rdinit=/none"})
    job = job.model_copy(update={"device": job.device.model_copy(update={"boot": boot})})
    sink = ProfileSink()
    result = backend().execute(job, job.blocks, sink, lasting())
    assert result.outcome is Outcome.FAILED
    assert sink.of(Finding)[0].kind is FindingKind.PANIC
    assert all(event.failure.kind is ErrorKind.KERNEL for event in sink.of(BlockDiscarded))


def test_canceled_run_ends_at_once(backend: Make, kernel: Kernel) -> None:
    job = job_of(kernel, [[A]])
    stop = lasting()
    sink = ProfileSink()
    threading.Timer(1.0, lambda: stop.request(canceled())).start()
    result = backend().execute(job, job.blocks, sink, stop)
    assert result.outcome is Outcome.CANCELED
