"""A swapped kernel image is never measured: swapped in the artifact store, in the worker's cache or between two boots.

Files, bench and labgrid are real; the server's HTTP is served from a folder. The nightly suite also swaps before the
first boot; `test_image_swapped_between_two_boots_is_detected` has the same check before the second.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from wqlab_contracts.enums import Arm, ErrorKind, JobKind, Outcome
from wqlab_contracts.messages import (
    Artifact,
    BlockDiscarded,
    BlockFinished,
    BootVerified,
    Failure,
    RunEvent,
    RunJob,
    RunResult,
    Samples,
)
from wqlab_worker.backends.cancellation import Stop
from wqlab_worker.backends.labgrid import LabgridBackend
from wqlab_worker.claims.runs import run_claimed
from wqlab_worker.claims.server import JobRef, Server, sha256_of

from .conftest import DeviceLab, RecordingSink, lasting

pytestmark = pytest.mark.device

PIECE = 1 << 20


class Swaps:
    """A lab whose worker fetches kernels from `store` into `cache`; files are named by hash."""

    def __init__(self, lab: DeviceLab, folder: Path) -> None:
        self.lab = lab
        self.store, self.cache = folder / "store", folder / "cache"
        self.store.mkdir()
        self.sha256 = sha256_of(lab.kernel)
        self.put(self.store, lab.kernel.read_bytes())
        self.server = Server(
            "http://lab", "secret", worker="w/1", lab="local", retry_s=5, transport=httpx.MockTransport(self.answer)
        )

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Worker API: serve artifacts from the store, accept everything else."""
        if request.method == "GET":
            return httpx.Response(200, content=(self.store / request.url.path.rsplit("/", 1)[1]).read_bytes())
        return httpx.Response(204)

    def put(self, folder: Path, image: bytes) -> None:
        """Replace the file by a rename, with the old name, time and mode."""
        target = folder / self.sha256
        before = target.stat() if target.exists() else None
        fresh = folder / "fresh"
        fresh.write_bytes(image)
        if before:
            os.utime(fresh, ns=(before.st_atime_ns, before.st_mtime_ns))
        fresh.replace(target)

    def swap(self, folder: Path) -> None:
        """Make another image of the same size and build id; only its checksum at the end differs."""
        image = self.lab.kernel.read_bytes()
        self.put(folder, image[:-1] + bytes([image[-1] ^ 0xFF]))

    def fetch(self, artifact: Artifact) -> Path:
        return self.server.fetch(artifact, self.cache)

    def backend(self) -> LabgridBackend:
        return LabgridBackend(
            coordinator=self.lab.coordinator,
            state=self.lab.state,
            ssh_key=self.lab.ssh_key,
            logs=self.lab.state / "sessions",
            fence=1,
            fetch=self.fetch,
        )

    def execute(self, job: RunJob, sink: RecordingSink) -> RunResult:
        result = self.backend().execute(job, job.blocks, sink, lasting())
        assert self.lab.holder(job.device.name) is None
        assert not self.lab.powered(job.device.name)
        return result


@pytest.fixture
def swaps(device_lab: DeviceLab, tmp_path: Path) -> Iterator[Swaps]:
    device_lab.faults("tiny-1")
    swaps = Swaps(device_lab, tmp_path)
    yield swaps
    swaps.server.close()


def lab_failure(result: RunResult) -> Failure:
    assert result.outcome is Outcome.FAILED
    assert not result.device_suspect, "the device did nothing"
    assert result.failure
    assert result.failure.kind is ErrorKind.INFRASTRUCTURE
    return result.failure


@pytest.mark.nightly
def test_image_swapped_in_the_artifact_store_is_not_booted(swaps: Swaps) -> None:
    """The image never reaches a device."""
    swaps.swap(swaps.store)
    job = swaps.lab.job([[Arm.CANDIDATE]], run_id=201)
    result = run_claimed(job, JobRef(JobKind.RUN, 201, 1), swaps.server, swaps.backend(), Stop(), fetch=swaps.fetch)
    failure = lab_failure(result)
    assert f"not {swaps.sha256}" in failure.summary
    assert "artifact store was changed" in failure.advice
    assert list(swaps.cache.iterdir()) == []


@pytest.mark.nightly
def test_image_swapped_in_the_cache_is_fetched_again(swaps: Swaps) -> None:
    path = swaps.fetch(swaps.lab.job([[Arm.CANDIDATE]], run_id=202).kernels[Arm.CANDIDATE].image)
    swaps.swap(swaps.cache)
    assert sha256_of(path) != swaps.sha256
    sink = RecordingSink()
    assert swaps.execute(swaps.lab.job([[Arm.CANDIDATE]], run_id=202), sink).outcome is Outcome.PASSED
    assert sha256_of(path) == swaps.sha256, "what booted is what was built"
    assert len(sink.of(BootVerified)) == 1


def test_image_swapped_between_two_boots_is_detected(swaps: Swaps) -> None:
    def intrude(event: RunEvent) -> None:
        if isinstance(event, BlockFinished) and event.block == 0:
            swaps.swap(swaps.cache)

    sink = RecordingSink(intrude)
    job = swaps.lab.job([[Arm.BASELINE], [Arm.CANDIDATE]], run_id=203)
    failure = lab_failure(swaps.execute(job, sink))
    assert "the kernel image on this worker was changed" in failure.summary
    assert f"not {swaps.sha256}" in failure.summary
    assert [event.block for event in sink.of(BlockFinished)] == [0]
    assert {boot.boot.block for boot in sink.of(BootVerified)} == {0}, "the other image was never started"
    assert {event.boot.block for event in sink.of(Samples)} <= {0}
    assert {(event.block, event.arm) for event in sink.of(BlockDiscarded)} == {(1, None)}, "the lab failed"


@pytest.mark.nightly
def test_image_swapped_between_fetch_and_boot_is_detected(swaps: Swaps, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch = swaps.server.fetch

    def fetch_and_intrude(artifact: Artifact, folder: Path) -> Path:
        path = fetch(artifact, folder)
        swaps.swap(swaps.cache)
        return path

    monkeypatch.setattr(swaps.server, "fetch", fetch_and_intrude)
    sink = RecordingSink()
    failure = lab_failure(swaps.execute(swaps.lab.job([[Arm.CANDIDATE]], run_id=204), sink))
    assert "the kernel image on this worker was changed" in failure.summary
    assert not sink.of(BootVerified)
    assert not sink.of(BlockFinished)
